"""Sessions from a seed in which agents multiply, or many work one after the other."""

import random
from collections.abc import Iterator

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.delegation import DelegationStarted
from tests.audit.labelled import Labelled
from tests.ledger.audit.histories import Told

DETECTOR = "edge.fan_out"
TITLE = "sessions from a seed: many at once, many before any is back; many in turn, a few at once, hand-offs"
BASELINE = "more than 8 hand-overs in the session"

_BAD = ("many at once", "more and more")
_GOOD = ("many in turn", "a few at once", "hand-offs", "few")


def cases() -> Iterator[Labelled]:
    """180 sessions."""
    chance = random.Random(23)
    for number in range(180):
        kind = (*_BAD, *_GOOD)[number % 6]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _given(number: int, how: str = "spawn") -> Told:
    return {
        "type": "delegation.started",
        "delegation_id": f"d{number}",
        "to_agent": f"worker {number % 3}",
        "how": how,
        "payload": f"part {number}",
    }


def _back(number: int) -> Told:
    return {"type": "delegation.returned", "delegation_id": f"d{number}", "outcome": "returned"}


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    count = chance.randint(12, 30)
    match kind:
        case "many at once":
            yield from (_given(number) for number in range(count))
            yield from (_back(number) for number in range(count))
        case "more and more":
            for number in range(2 * count):
                yield _given(number)
                if number % 2:
                    yield _back(number)
        case "many in turn":
            for number in range(count):
                yield from (_given(number), _back(number))
        case "a few at once":
            for start in range(0, count, 4):
                yield from (_given(start + place) for place in range(4))
                yield from (_back(start + place) for place in range(4))
        case "hand-offs":
            yield from (_given(number, "handoff") for number in range(count))
        case _:
            yield from (_given(number) for number in range(chance.randint(1, 5)))


def baseline(records: list[Record], reader: Reader) -> bool:
    """More than 8 hand-overs in the session."""
    return sum(isinstance(record.event, DelegationStarted) for record in records) > 8
