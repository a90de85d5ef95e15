"""Sessions from a seed that end well although what they handed over has no end on record, or has one."""

import random
from collections.abc import Iterator

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.delegation import DelegationReturned, DelegationStarted
from tests.audit.labelled import Labelled
from tests.ledger.audit.histories import Told

DETECTOR = "edge_evidence"
TITLE = "sessions from a seed: not back, end unknown, a server's act without result; back, handed off, cut off, running"
BASELINE = "more hand-overs than returns"

_BAD = ("not back", "end unknown", "a server's act")
_GOOD = ("back", "handed off", "cut off", "still running", "failed and told")


def cases() -> Iterator[Labelled]:
    """200 sessions."""
    chance = random.Random(24)
    for number in range(200):
        kind = (*_BAD, *_GOOD)[number % 8]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _back(number: int, outcome: str = "returned") -> Told:
    return {"type": "delegation.returned", "delegation_id": f"d{number}", "outcome": outcome}


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    yield {"type": "session.started", "harness": "seed"}
    how = "handoff" if kind == "handed off" else chance.choice(["tool", "spawn", "message"])
    count = chance.randint(1, 4)
    for number in range(count):
        yield {
            "type": "delegation.started",
            "delegation_id": f"d{number}",
            "to_agent": "clerk",
            "how": how,
            "payload": "part",
        }
        is_last = number == count - 1
        if kind == "handed off" or (is_last and kind in ("not back", "cut off", "still running")):
            continue
        outcome = {"end unknown": "unknown", "failed and told": "failed"}.get(
            kind if is_last else "", "returned"
        )
        yield _back(number, outcome)
    if kind == "a server's act":
        yield {
            "type": "tool_call.requested",
            "call_id": "c",
            "tool": "pay",
            "server": "bank",
            "arguments": {"to": "somebody"},
            "effect_class": "irreversible",
        }
    if kind != "still running":
        yield {"type": "session.ended", "outcome": "aborted" if kind == "cut off" else "completed"}


def baseline(records: list[Record], reader: Reader) -> bool:
    """More hand-overs than returns."""
    given = sum(isinstance(record.event, DelegationStarted) for record in records)
    return given > sum(isinstance(record.event, DelegationReturned) for record in records)
