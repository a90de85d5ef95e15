"""The audit: how soon a finding is there while a session runs, and how many calls detectors get through in a second."""

import queue
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from textwrap import indent

from ledger.audit import SessionFolds, discover
from ledger.audit.rules import read_rules, rules_detector
from ledger.events import Draft, Record
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.views.auditing import AuditFollower
from ledger.views.findings import reader_of
from tests.benchmarks.measure import Result
from tests.benchmarks.rules_of_others import RULES, UNTRUSTED, calls
from tests.ledger.audit.histories import History, Told

_CALLS = 10_000
_TIMES = 20
_AT_ONCE = 1000
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
    yield from _live("a session of 100,000 records, once read", before=50_000, sessions=1)
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


def _live(where: str, *, before: int, sessions: int) -> Iterator[Result]:
    """Findings of a fold and of a query, with all detectors and 20 rules, after so many calls in each session."""
    text = f"untrusted: [{', '.join(UNTRUSTED)}]\nrules:\n" + "".join(
        f"- name: rule_{number}\n  title: A rule\n  steps:\n{indent(steps, '  ')}"
        for number, steps in enumerate(RULES)
    )
    detectors = [one for one in discover().values() if not one.is_experimental]
    detectors.append(rules_detector(read_rules("bench", text, "bench.yaml")))
    names = [f"s{number}" for number in range(sessions)]
    came: queue.Queue[str] = queue.Queue()
    with tempfile.TemporaryDirectory() as home, History(Path(home)) as history:
        for name in names:
            _fill(history, name, before)
        with AuditFollower(history.ledger.recorder, detectors, tell=lambda one: came.put(one.detector)):
            for what, detector, events in (
                ("a fold", "control_tampering", _tampering),
                ("a query", "duplicated_effect", _twice),
            ):
                took: list[float] = []
                for number in range(
                    -sessions, _TIMES
                ):  # before the first is counted, each session has been read
                    name = names[number % sessions]
                    history.add([{**event, "@session": name} for event in events(number + sessions)])
                    began = time.monotonic()
                    while not came.get(timeout=600).startswith(detector):
                        pass
                    took.append(time.monotonic() - began)
                took = sorted(took[sessions:])
                middle, worst = took[len(took) // 2], took[-1]
                yield Result(
                    f"Live finding of {what} in {where}: from the event on, median and worst of {_TIMES}",
                    f"{middle * 1000:.0f} ms, {worst * 1000:.0f} ms",
                    "<= 1000 ms",
                    worst <= 1,
                )


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
