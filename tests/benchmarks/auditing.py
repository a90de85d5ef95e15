"""The audit: how soon a finding is there while a session runs, and how many calls detectors get through in a second."""

import queue
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from textwrap import indent

from ledger.audit import Detector, Finding, Found, SessionFolds, discover
from ledger.audit.rules import read_rules, rules_detector
from ledger.events import Draft, Record
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.views.auditing import AuditFollower
from ledger.views.findings import reader_of
from tests.benchmarks.measure import Result, resident_mb
from tests.benchmarks.rules_of_others import RULES, UNTRUSTED, calls
from tests.ledger.audit.histories import History, Told

_CALLS = 10_000
_TIMES = 20
_AT_ONCE = 1000
_RECORDS = 100_000
_ENDED = 2000
_COMMANDS = (
    "pytest -q tests/test_{}.py",
    "git status",
    "sed -i 's/a/b/' src/mod{}.py",
    "grep -rn guard src{}",
)


def run() -> Iterator[Result]:
    """All lines."""
    yield from _live("a session that begins", before=0, sessions=1)
    yield from _live("50 sessions that run", before=200, sessions=50)
    yield from _live("5 sessions, beside detectors that hang", before=20, sessions=5, others=_hanging())
    yield from _long()
    yield from _folds()


def _tampering(number: int) -> list[Told]:
    command = {"command": f"rm .claude/hooks/guard{number}.py"}
    return [
        {"type": "tool_call.requested", "call_id": f"k{number}", "tool": "Bash", "arguments": command},
        {"type": "tool_call.started", "call_id": f"k{number}"},
    ]


def _twice(number: int) -> list[Told]:
    return [
        event
        for call in "ab"
        for event in (
            {
                "type": "tool_call.requested",
                "call_id": f"{call}{number}",
                "tool": "pay",
                "effect_class": "irreversible",
                "arguments": {"to": number},
            },
            {"type": "tool_call.settled", "call_id": f"{call}{number}", "outcome": "returned"},
        )
    ]


def _hanging() -> list[Detector]:
    """One of Python that takes half a minute for a record, and one of SQL that never ends."""
    sleeper = Detector.unusable("sleeper", "sleeper.py", "")
    endless = (
        "select session, 1 as seq, 'x' as message from tool_calls, range(1000000000000) as r (n) where n < 0"
    )
    return [
        replace(sleeper, broken=None, start=lambda given: _Sleeper()),
        replace(sleeper, name="endless", broken=None, sql=endless),
    ]


class _Sleeper:
    def take(self, record: Record) -> Iterable[Found]:
        time.sleep(30)
        return ()

    def end(self) -> Iterable[Found]:
        return ()


class _Watched:
    """A ledger whose audit is watched."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._number = 0
        self.came: queue.Queue[tuple[str, str]] = queue.Queue()
        """Detector and session of each finding."""

    def tell(self, finding: Finding) -> None:
        """What was found."""
        self.came.put((finding.detector.partition(".")[0], finding.session))

    def seconds(self, session: str, detector: str, events: Callable[[int], list[Told]]) -> float:
        """From the event to its finding."""
        self._number += 1
        self._history.add([{**event, "@session": session} for event in events(self._number)])
        began = time.monotonic()
        while self.came.get(timeout=600) != (detector, session):
            pass
        return time.monotonic() - began

    def lines(self, where: str, names: list[str], *, aside: int) -> Iterator[Result]:
        """Findings of a fold and of a query, one session after the other; the first `aside` of each are left out."""
        for what, detector, events in (
            ("a fold", "control_tampering", _tampering),
            ("a query", "duplicated_effect", _twice),
        ):
            took = [self.seconds(names[n % len(names)], detector, events) for n in range(aside + _TIMES)]
            took = sorted(took[aside:])
            middle, worst = took[len(took) // 2], took[-1]
            yield Result(
                f"Live finding of {what} in {where}: from the event on, median and worst of {_TIMES}",
                f"{middle * 1000:.0f} ms, {worst * 1000:.0f} ms",
                "<= 1000 ms",
                worst <= 1,
            )


def _all_detectors() -> list[Detector]:
    """Those that are on, and 20 rules."""
    text = f"untrusted: [{', '.join(UNTRUSTED)}]\nrules:\n" + "".join(
        f"- name: rule_{number}\n  title: A rule\n  steps:\n{indent(steps, '  ')}"
        for number, steps in enumerate(RULES)
    )
    detectors = [one for one in discover().values() if not one.is_experimental]
    return [*detectors, rules_detector(read_rules("bench", text, "bench.yaml"))]


def _live(where: str, *, before: int, sessions: int, others: Sequence[Detector] = ()) -> Iterator[Result]:
    """After so many calls in each session; each has been read before the first is counted."""
    names = [f"s{number}" for number in range(sessions)]
    with tempfile.TemporaryDirectory() as home, History(Path(home)) as history:
        for name in names:
            _fill(history, name, before)
        watched, detectors = _Watched(history), [*_all_detectors(), *others]
        with AuditFollower(history.ledger.recorder, detectors, tell=watched.tell):
            yield from watched.lines(where, names, aside=sessions)


def _long() -> Iterator[Result]:
    """A session of 100,000 records that the audit begins to read when it starts, and many that had ended."""
    others = [f"other{number}" for number in range(5)]
    with tempfile.TemporaryDirectory() as home, History(Path(home)) as history:
        _fill(history, "long", _RECORDS // 2)
        for number in range(_ENDED):
            _fill(history, f"ended{number}", 5)
            history.add([{"type": "session.ended", "@session": f"ended{number}", "outcome": "completed"}])
        for name in others:
            _fill(history, name, 20)
        watched = _Watched(history)
        with AuditFollower(history.ledger.recorder, _all_detectors(), tell=watched.tell) as follower:
            memory, spent = resident_mb(), time.process_time()
            history.add([{**event, "@session": "long"} for event in _tampering(-1)])
            yield from watched.lines("another session while one of 100,000 records is read", others, aside=0)
            is_read = follower.wait(0)
            follower.wait(3600)
            spent = time.process_time() - spent
            yield Result(
                f"Late start: to read the session of 100,000 records ({_ENDED} that had ended are not read)",
                f"{spent:.0f} CPU s" + (", over before the lines above" if is_read else ""),
                "-",
                None,
            )
            grown = resident_mb() - memory
            yield Result("Memory that the live audit takes for them", f"{grown:.0f} MB", "-", None)
            yield from watched.lines("that session, once read", ["long"], aside=0)


def _fill(history: History, session: str, count: int) -> None:
    recorder, told = history.ledger.recorder, calls(count)
    number = 0
    while some := list(islice(told, _AT_ONCE)):
        keeper, drafts = recorder.keeper(), list[Draft]()
        for tool, arguments, result in some:
            number += 1
            call_id = f"{session}-{number}"
            drafts.append(
                Draft(ToolCallRequested(call_id=call_id, tool=tool, arguments=keeper.json(arguments)))
            )
            drafts.append(
                Draft(ToolCallSettled(call_id=call_id, outcome="returned", result=keeper.json(result)))
            )
        recorder.append(session, drafts, keeper)


def _folds() -> Iterator[Result]:
    chance = random.Random(1)
    detectors = [one for one in discover().values() if one.start is not None and not one.is_experimental]
    with tempfile.TemporaryDirectory() as home, History(Path(home)) as history:
        keeper = history.ledger.recorder.keeper()
        drafts: list[Draft] = []
        for number in range(_CALLS):
            command = chance.choice(_COMMANDS).format(number % 500)
            arguments = keeper.json({"command": command})
            requested = ToolCallRequested(call_id=str(number), tool="Bash", arguments=arguments)
            result = keeper.text(f"ok {number % 1000}")
            drafts += [
                Draft(requested),
                Draft(ToolCallSettled(call_id=str(number), outcome="returned", result=result)),
            ]
        history.ledger.recorder.append("s", drafts, keeper)
        records: list[Record] = list(history.ledger.store.read("s"))
        folds = SessionFolds("s", detectors, reader_of(history.ledger.store))
        began = time.process_time()
        for record in records:
            folds.take(record)
        folds.end()
        spent = time.process_time() - began
    speed = _CALLS * len(detectors) / spent
    name = f"Shell calls through {len(detectors)} detectors of Python, contents read"
    yield Result(name, f"{speed:,.0f} calls x detectors in a CPU second", "-", None)
