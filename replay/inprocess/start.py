"""Begins replays and branches in process, and records how they ended."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeVar

from ledger.capture.journal import Surroundings
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import InputError
from ledger.events import Actor, Draft, Event, Record
from ledger.events.canonical import decode_json
from ledger.events.governance import ArtifactChanged
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import BranchOpened
from ledger.events.replaying import AnswerSource, ReplayEnded, ReplayStarted, ToolTreatment
from ledger.events.session import SessionForked, SessionStarted
from ledger.home import Ledger
from ledger.protocols.plain import type_name
from replay.inprocess.course import Branch, Course, Report
from replay.inprocess.frozen import Frozen, FrozenError, thawed
from replay.inprocess.journal import ReplayDivergedError, ReplayJournal
from replay.inprocess.loop import ReplayedLoop
from replay.inprocess.script import kind_of

_Result = TypeVar("_Result")

_LOOKED_FOR_PROTOCOL = 2000
_SYSTEM = Actor("system")


@contextmanager
def replay_loop(
    ledger: Ledger,
    session: str,
    *,
    tools: Mapping[str, AnswerSource] | None = None,
    frozen: bool = True,
    allow: Sequence[str] = (),
    protocol: str | None = None,
) -> Iterator[ReplayedLoop]:
    """The recorder to run a recorded loop again with. Its `report` says afterwards whether the run was equal.

    `session` is an id or prefix. `tools` gives a treatment to names of tools, `*` to all others: `recorded` (the
    default), `live` or `blocked`. While a `frozen` replay runs, whatever goes past the recorder is stopped; `allow`
    names functions and modules that may (see `Frozen`). A divergence ends the `with` block without an error: it is in
    the report. `protocol` is that given to `record_loop`; without it, that of the first recorded model call.

    Raises SessionNotFoundError, AmbiguousSessionError; InputError for a session without a start.
    """
    with _run(ledger, session, tools, None, None, frozen, allow, protocol) as loop:
        yield loop


@contextmanager
def branch_loop(
    ledger: Ledger,
    session: str,
    *,
    at: int,
    answers: Mapping[int, Any] | None = None,
    models: Literal["live", "blocked"] = "live",
    tools: Mapping[str, AnswerSource] | None = None,
    protocol: str | None = None,
) -> Iterator[ReplayedLoop]:
    """The recorder to run a loop with that leaves its recording after the record `at`, and lives on from there.

    Up to there it is held against the recording, as in a replay. `answers` gives other answers to recorded calls, by
    the seq of the call (an error is raised); once one was given, the loop may leave the recording earlier, at its
    first step that differs. Afterwards models are asked for real unless they are `blocked`, and only tools run that
    `tools` declares `live`.

    Raises what `replay_loop` raises; RecordNotFoundError when there is no record `at`; InputError when an answer is
    given to what is no call.
    """
    with _run(ledger, session, tools, (at, models), answers, False, (), protocol) as loop:
        yield loop


def replay_function(
    ledger: Ledger, session: str, function: Callable[[ReplayedLoop], Any], **options: Any
) -> Report:
    """Run a loop that takes its recorder as its only argument; options are those of `replay_loop`."""
    with replay_loop(ledger, session, **options) as loop:
        function(loop)
    return loop.report


@contextmanager
def _run(
    ledger: Ledger,
    name: str,
    tools: Mapping[str, AnswerSource] | None,
    leaving: tuple[int, Literal["live", "blocked"]] | None,
    answers: Mapping[int, Any] | None,
    frozen: bool,
    allow: Sequence[str],
    protocol: str | None,
) -> Iterator[ReplayedLoop]:
    origin = ledger.store.resolve(name)
    first = ledger.store.record(origin, 1)
    if not isinstance(first.event, SessionStarted):
        raise InputError(
            f"{origin} starts with {first.type}: expected session.started, so it is no loop to run again"
        )
    branch = None if leaving is None else _branch(ledger, origin, leaving, answers or {})
    identity = ledger.recorder.ids()
    report = Report("rerun" if branch is None else "branch", origin, identity)
    course = Course(ledger.store, report, dict(tools or {}), branch, answers)
    journal = ReplayJournal(
        Surroundings(ledger.recorder),
        identity,
        course,
        {},
        agent=first.event.agent,
        correlation=identity,
        depth=0,
    )
    journal.follow(origin)
    policy = _policy(ledger, origin)
    loop = ReplayedLoop(journal, first.event, protocol or _protocol(ledger, origin), policy=policy)
    guard = Frozen(course.went_past, allow) if frozen else nullcontext()
    with thawed():
        loop.__enter__()
        _begin(ledger, journal, report, course, frozen)
    error: BaseException | None = None
    try:
        with guard:
            yield loop
    except (ReplayDivergedError, FrozenError) as stopped:
        error = stopped
    except BaseException as raised:
        error = raised
        report.reason = report.reason or f"the loop raised {type_name(raised)}"
        raise
    finally:
        with thawed():
            _finish(loop, journal, report, course, error)


def _policy(ledger: Ledger, origin: str) -> LoopPolicy | None:
    """The policy that the loop ran under first: the calls that needed a yes then need it again."""
    for record in ledger.store.read(origin, upto=_LOOKED_FOR_PROTOCOL, names=(ArtifactChanged.TYPE,)):
        event = record.event
        if (
            isinstance(event, ArtifactChanged)
            and event.artifact == "policy:loop"
            and event.content is not None
        ):
            return LoopPolicy.model_validate(decode_json(ledger.store.content(event.content.digest)))
    return None


def _branch(
    ledger: Ledger, origin: str, leaving: tuple[int, Literal["live", "blocked"]], answers: Mapping[int, Any]
) -> Branch:
    at, models = leaving
    position = ledger.store.record(origin, at).position if at else 0
    for seq in answers:
        if kind_of(ledger.store.record(origin, seq).event) not in ("model", "tool"):
            raise InputError(
                f"{origin}#{seq} begins no model or tool call: only these can be given another answer"
            )
        if seq > at:
            raise InputError(
                f"{origin}#{seq} comes after the branch at {at}, where nothing is answered from the record: "
                f"branch at {seq} or later to give this call another answer"
            )
    return Branch(at, position, models)


def _begin(ledger: Ledger, journal: ReplayJournal, report: Report, course: Course, frozen: bool) -> None:
    origin = report.session
    at = ledger.store.head(origin).seq if course.branch is None else course.branch.at
    last: Record | None = ledger.store.record(origin, at) if at else None
    events: list[Event] = [
        ReplayStarted(
            origin=origin,
            origin_seq=at,
            origin_hash=None if last is None else last.hash,
            level=report.level,
            mode="in_process",
            tools=tuple(
                ToolTreatment(tool=tool, treatment=how)
                for tool, how in sorted((course.tools | {"*": course.tools.get("*", "recorded")}).items())
            ),
            frozen=frozen,
        )
    ]
    others: dict[str, list[Draft]] = {}
    if report.level == "branch":
        events.insert(0, SessionForked(origin=origin, origin_seq=at, runs_again=True))
        others[origin] = [Draft(BranchOpened(branch=report.replay_session, at_seq=at), actor=_SYSTEM)]
    with journal.fact("start of the replay"):
        journal.append([journal.draft(event, actor=_SYSTEM) for event in events], others=others)


def _finish(
    loop: ReplayedLoop, journal: ReplayJournal, report: Report, course: Course, error: BaseException | None
) -> None:
    """End the session, then say what the replay showed."""
    kind = None if error is None else type(error)
    loop.__exit__(kind, error, None)
    if report.divergence is not None:
        report.verdict = "diverged"
    elif course.stopped is None:
        report.verdict = "equal"
    ended = ReplayEnded(
        verdict=report.verdict,
        level=report.level,
        checked=sum(report.answers.values()),
        recorded=report.answers["recorded"],
        live=report.answers["live"],
        blocked=report.answers["blocked"],
        outside_calls=report.outside_calls,
        effects=report.effects,
        detail=journal.keep.json(report.as_json(), "report"),
    )
    with journal.fact("verdict of the replay"):
        journal.append([journal.draft(ended, actor=_SYSTEM)], durable=True)


def _protocol(ledger: Ledger, origin: str) -> str:
    """The protocol of the first recorded model call."""
    for record in ledger.store.read(origin, upto=_LOOKED_FOR_PROTOCOL):
        if isinstance(record.event, ModelCallRequested):
            return record.event.protocol
    return "openai.chat"
