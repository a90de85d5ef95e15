"""The audit: how soon a finding is there while a session runs, and how many calls detectors get through in a second."""

import queue
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ledger.audit import SessionFolds, discover
from ledger.events import Draft, Record
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.views.auditing import AuditFollower
from ledger.views.findings import reader_of
from tests.benchmarks.measure import Result
from tests.ledger.audit.histories import History, Told

_CALLS = 10_000
_TIMES = 20
_COMMANDS = (
    "pytest -q tests/test_{}.py",
    "git status",
    "sed -i 's/a/b/' src/mod{}.py",
    "grep -rn guard src{}",
)


def run() -> Iterator[Result]:
    """All lines."""
    yield _live("a fold", _tampering)
    yield _live("a query", _twice)
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


def _live(what: str, events: Callable[[int], list[Told]]) -> Result:
    took: list[float] = []
    came: queue.Queue[float] = queue.Queue()
    detectors = [one for one in discover().values() if not one.is_experimental]
    with (
        tempfile.TemporaryDirectory() as home,
        History(Path(home)) as history,
        AuditFollower(history.ledger.recorder, detectors, tell=lambda _: came.put(time.monotonic())),
    ):
        for number in range(_TIMES):
            history.add(events(number))
            began = time.monotonic()
            took.append(came.get(timeout=60) - began)
    took.sort()
    middle, worst = took[len(took) // 2], took[-1]
    name = f"Live finding of {what}: from the event to the finding, median and worst of {_TIMES}"
    return Result(name, f"{middle * 1000:.0f} ms, {worst * 1000:.0f} ms", "<= 1000 ms", worst <= 1)


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
