"""One replay in process as a whole: what it follows, how tools are treated, what came of it. Its sessions share it.

For a branch, the recorded part ends with a record of the root session; from there on the loop lives: its model is
called for real, and its tools as far as their treatment lets them.
"""

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ledger.errors import InputError
from ledger.events.model_call import ModelCallRequested
from ledger.events.replaying import AnswerSource, MatchGrade, ReplayAnswered
from ledger.events.tool_call import ToolCallRequested
from ledger.store import EventStore
from replay.divergence import Divergence
from replay.inprocess.answers import Answers
from replay.inprocess.frozen import FrozenError, thawed
from replay.inprocess.order import Order
from replay.inprocess.script import Script, Step

Level = Literal["rerun", "branch"]
"""The whole again, or a recorded beginning with a life of its own."""


class BlockedError(InputError):
    """The replay does not let this tool or model answer, and the record holds no answer."""


class Branch(NamedTuple):
    """Where a run leaves its recording."""

    at: int
    """Last record of the root session that counts."""

    position: int
    """Its place in the whole ledger: of the other sessions, too, only what lies before it counts."""

    models: Literal["live", "blocked"]
    """Whether models are asked after it."""


@dataclass
class Report:
    """What a replay in process shows."""

    level: Level
    """What was to be proved."""

    session: str
    """The session that was replayed."""

    replay_session: str
    """The session in which the replay is recorded."""

    verdict: Literal["equal", "diverged", "incomplete"] = "incomplete"
    """Whether it was equal; `incomplete` until it has ended, and when the recording ends in the middle of a call."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    """The model requests: `{"seq", "match", "rules"}`, seq of the recorded one or None."""

    divergence: Divergence | None = None
    """The first difference."""

    reason: str | None = None
    """Why it is incomplete, or ended in another way than the recording."""

    answers: Counter[str] = field(default_factory=Counter)
    """How many steps were answered `recorded`, `live`, `blocked`."""

    outside_calls: int = 0
    """Attempts to go past the recorder, and models asked for real."""

    effects: int = 0
    """Tools that ran for real."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        divergence = self.divergence
        return {
            "verdict": self.verdict,
            "level": self.level,
            "session": self.session,
            "replay_session": self.replay_session,
            "requests": self.requests,
            "divergence": None if divergence is None else divergence.as_json(),
            "reason": self.reason,
            "answers": {name: self.answers[name] for name in ("recorded", "live", "blocked")},
            "outside_calls": self.outside_calls,
            "effects": self.effects,
        }


class Course:
    """What the sessions of one replay have in common."""

    def __init__(
        self,
        store: EventStore,
        report: Report,
        tools: dict[str, AnswerSource],
        branch: Branch | None = None,
        substitutes: Mapping[int, Any] | None = None,
    ) -> None:
        self.store = store
        self.report = report
        self.answers = Answers(store)
        self.tools = tools
        self.branch = branch
        self._substitutes = dict(substitutes or {})
        self.stopped: str | None = None
        """Why nothing is answered any more."""
        self._has_substituted = False
        self._has_left = False
        self.order = Order(self._is_expected)
        """When each answer is given."""

    def open_script(self, origin: str) -> Script:
        """The steps of a recorded session."""
        return Script(self.store.read(origin))

    def is_live(self, script: Script) -> bool:
        """Whether a session has left its recording."""
        if self.branch is None or self._has_left:
            return self._has_left
        due = script.first()
        return due is None or due.position > self.branch.position

    def _is_expected(self, step: Step) -> bool:
        """Whether a step is to begin again before the replay ends or leaves its recording."""
        is_over = self.stopped is not None or self._has_left
        return not is_over and (self.branch is None or step.position <= self.branch.position)

    def may_leave(self) -> bool:
        """Whether a step that differs ends the recorded part of a branch, and not the branch. If so, it does."""
        self._has_left = self._has_substituted
        return self._has_left

    def counts(self, step: Step) -> bool:
        """Whether the end of a step is a part of what is replayed."""
        return self.branch is None or step.end_position <= self.branch.position

    def treatment(self, tool: str, *, is_recorded: bool) -> AnswerSource:
        """Where a tool's answer comes from. Nothing runs for real unless it was named for that."""
        if is_recorded and self.branch is not None:
            return "recorded"
        asked = self.tools.get(tool, self.tools.get("*", "recorded"))
        return "blocked" if asked == "recorded" and not is_recorded else asked

    def answered(self, event: Any, step: Step | None, session: str | None) -> ReplayAnswered:
        """Take note of where the answer to a step will come from."""
        is_recorded = step is not None and self.counts(step)
        source: AnswerSource = "recorded" if is_recorded else "live"
        match: MatchGrade | None = None
        if isinstance(event, ToolCallRequested):
            source = self.treatment(event.tool, is_recorded=is_recorded)
        elif isinstance(event, ModelCallRequested):
            match = "raw" if step is not None else "miss"
            if not is_recorded and self.branch is not None:
                source = self.branch.models
            seq = None if step is None else step.seq
            self.report.requests.append({"seq": seq, "match": match, "rules": []})
        if step is not None and session == self.report.session and step.seq in self._substitutes:
            source = "live"  # another answer is given for it
        self.report.answers[source] += 1
        return ReplayAnswered(
            origin_session=session,
            origin_seq=None if step is None else step.seq,
            call_id=getattr(event, "call_id", None),
            source=source,
            match=match,
        )

    def substitute(self, session: str | None, step: Step) -> Callable[[], Any] | None:
        """The answer that takes the place of the recorded one; None where none does."""
        if session != self.report.session or step.seq not in self._substitutes:
            return None
        value, self._has_substituted = self._substitutes[step.seq], True

        def give() -> Any:
            if isinstance(value, BaseException):
                raise value
            return value

        return give

    def ask_model(self, create: Callable[..., Any], request: Mapping[str, Any]) -> Any:
        """A model's answer in the live part of a branch."""
        if self.branch is None or self.branch.models == "blocked":
            raise BlockedError(
                "the replay does not ask models, and the record holds no answer to this request"
            )
        self.report.outside_calls += 1
        return self._run(create, request)

    def run_tool(self, function: Callable[..., Any], tool: str, given: Mapping[str, Any], how: str) -> Any:
        """A tool that runs for real, or is refused."""
        if how != "live":
            raise BlockedError(
                f"the replay does not run tool {tool!r}: the record holds no result for this call;"
                f" let it run by tools={{{tool!r}: 'live'}}, or give its result"
            )
        self.report.effects += 1
        return self._run(function, given)

    def ask_person(self, ask: Callable[[], Any]) -> Any:
        """A decision in the live part of a branch."""
        return self._run(ask, {})

    def went_past(self, error: FrozenError) -> None:
        """The loop was stopped at going past the recorder: nothing is answered from now on."""
        self.report.outside_calls += 1
        self.stopped = self.stopped or str(error)
        if self.report.divergence is None:
            self.report.reason = str(error)
            self.report.divergence = Divergence(
                "undeclared_input" if error.kind in ("clock", "random") else "extra",
                self.report.session,
                None,
                cause=f"{error.what} at {error.where} went past the recorder",
            )

    def _run(self, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        with thawed():
            result = function(**given)
        return _thawed(result) if inspect.isawaitable(result) else result


async def _thawed(result: Awaitable[Any]) -> Any:
    with thawed():
        return await result
