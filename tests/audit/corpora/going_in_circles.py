"""Sessions from a seed that loop or fail on and on, and ones that repeat for a reason."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.tool_call import ToolCallRequested
from tests.audit.labelled import Labelled, call
from tests.ledger.audit.histories import Told

DETECTOR = "going_in_circles"
TITLE = "sessions from a seed: circles, failing streaks; polling, re-reading after edits, flaky retries"
BASELINE = "any call made three times with the same arguments"

_BAD = ("same call", "circle of two", "circle of three", "failing streak")
_GOOD = ("polling", "tests between edits", "flaky retries", "asked again", "plain", "reads of many files")


def cases() -> Iterator[Labelled]:
    """300 sessions."""
    chance = random.Random(11)
    for number in range(300):
        kind = (*_BAD, *_GOOD)[number % 10]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    calls: list[tuple[str, Any, Any, str]] = [
        (chance.choice(("read", "grep", "list")), {"path": f"src/{place}.py"}, f"text {place}", "returned")
        for place in range(chance.randint(3, 9))
    ]
    times = chance.randint(3, 6)
    match kind:
        case "same call":
            calls += [("search", {"q": "answer"}, "nothing found", "returned")] * times
        case "circle of two":
            calls += [("open", {"id": 1}, "a", "returned"), ("close", {"id": 1}, "b", "returned")] * times
        case "circle of three":
            calls += [(tool, {"id": 1}, "same", "returned") for tool in ("up", "down", "look")] * times
        case "failing streak":
            calls += [("edit", {"try": place}, f"no match {place}", "failed") for place in range(times + 2)]
        case "polling":
            calls += [("status", {"job": 1}, f"{place * 10} %", "returned") for place in range(times)]
        case "tests between edits":
            for place in range(times):
                calls += [
                    ("edit", {"change": place}, "ok", "returned"),
                    ("test", {}, f"{times - place} failed", "returned"),
                ]
        case "flaky retries":
            calls += [("fetch", {"url": "x"}, "timeout", "failed")] * 2 + [
                ("fetch", {"url": "x"}, "page", "returned")
            ]
        case "reads of many files":
            calls += [("read", {"path": f"lib/{place}.py"}, f"lib {place}", "returned") for place in range(9)]
    for number, (tool, arguments, result, outcome) in enumerate(calls):
        yield from call(number, tool, arguments, result, outcome=outcome)
    if kind == "asked again":
        for number in range(100, 103):
            asked = {"role": "user", "content": "run it again"}
            yield {"type": "input.message_received", "origin": "human", "message": asked}
            yield from call(number, "test", {}, "ok")


def baseline(records: list[Record], reader: Reader) -> bool:
    """Any call made three times with the same arguments."""
    made = Counter(
        (record.event.tool, record.event.arguments.digest)
        for record in records
        if isinstance(record.event, ToolCallRequested)
    )
    return any(count > 2 for count in made.values())
