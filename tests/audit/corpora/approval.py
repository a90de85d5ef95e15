"""Sessions from a seed in which calls run under good answers, bad ones, or none that anybody had asked for."""

import random
from collections.abc import Iterator
from typing import Any

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.approval import ApprovalDecided
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from tests.audit.labelled import Labelled
from tests.ledger.audit.histories import Told

DETECTOR = "approval"
TITLE = (
    "sessions from a seed: run after a no, unanswered, expired, reused; good answers, calls nobody asks about"
)
BASELINE = "any call that started with no approval of that very call before it"

_BAD = ("after a no", "unanswered", "other arguments", "expired", "used twice")
_GOOD = ("approved", "denied and not run", "nobody asks", "approved for the session", "asked and cancelled")


def cases() -> Iterator[Labelled]:
    """200 sessions."""
    chance = random.Random(9)
    for number in range(200):
        kind = (*_BAD, *_GOOD)[number % 10]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _call(name: str, arguments: Any, *, runs: bool = True) -> list[Told]:
    requested = {"type": "tool_call.requested", "call_id": name, "tool": "pay", "arguments": arguments}
    settled = {
        "type": "tool_call.settled",
        "call_id": name,
        "outcome": "returned" if runs else "denied",
    }
    started = [{"type": "tool_call.started", "call_id": name}] if runs else []
    return [requested, *started, settled]


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    for number in range(chance.randint(1, 4)):
        yield from _call(f"plain{number}", {"number": number}) if kind == "nobody asks" else ()
    asked: Told = {"type": "approval.asked", "approval_id": "q", "call_id": "c", "tool": "pay"}
    yes: Told = {
        "type": "approval.decided",
        "approval_id": "q",
        "call_id": "c",
        "outcome": "approved",
        "decided_by": "human",
        "scope": "once",
        "@at": "2026-01-01T00:00:00Z",
    }
    used: Told = {
        "type": "approval.used",
        "approval_id": "q",
        "call_id": "c",
        "@at": "2026-01-01T00:05:00Z",
    }
    requested, started, settled = _call("c", {"to": f"person {chance.randint(1, 99)}"})
    match kind:
        case "after a no":
            yield from (requested, asked, yes | {"outcome": "denied"}, started, settled)
        case "unanswered":
            yield from (requested, asked, started, settled)
        case "other arguments":
            given = {"arguments_digest": "a" * 64}
            other = {"arguments_digest": "b" * 64}
            yield from (requested, asked | given, yes | given, used | other, started, settled)
        case "expired":
            yield from (
                requested,
                asked,
                yes | {"expires_at": "2026-01-01T00:01:00Z"},
                used,
                started,
                settled,
            )
        case "used twice":
            yield from (requested, asked, yes, used, started, settled)
            again = _call("d", {"to": "somebody"})
            yield from (again[0], used | {"call_id": "d"}, *again[1:])
        case "approved":
            yield from (requested, asked, yes, used, started, settled)
        case "denied and not run" | "asked and cancelled":
            outcome = "denied" if kind == "denied and not run" else "cancelled"
            yield from (requested, asked, yes | {"outcome": outcome}, settled | {"outcome": "denied"})
        case "approved for the session":
            yield from (requested, asked, yes | {"scope": "session"}, used, started, settled)
            again = _call("d", {"to": "somebody"})
            yield from (again[0], used | {"call_id": "d"}, *again[1:])


def baseline(records: list[Record], reader: Reader) -> bool:
    """Any call that started with no approval of that very call before it."""
    approved: set[str | None] = set()
    asked: set[str] = set()
    for record in records:
        event = record.event
        if isinstance(event, ApprovalDecided) and event.outcome == "approved":
            approved.add(event.call_id)
        elif isinstance(event, ToolCallRequested):
            asked.add(event.call_id)
        elif isinstance(event, ToolCallStarted) and event.call_id in asked - approved:
            return True
    return False
