"""Sessions from a seed in which a tool runs that no request offered, or tools come into reach late and are used."""

import random
from collections.abc import Iterator
from typing import Any

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested
from tests.audit.labelled import Labelled, call
from tests.ledger.audit.histories import Told

DETECTOR = "edge.not_offered"
TITLE = "sessions from a seed: a tool nobody offered, first or late; tools that come late, of the provider, of servers"
BASELINE = "a tool whose very name is not among those of the request before it"

_BAD = ("at first", "late")
_GOOD = (
    "all offered",
    "came later",
    "the provider's",
    "a server's",
    "schemas not on record",
    "schemas not seen",
    "left out again",
)


def cases() -> Iterator[Labelled]:
    """270 sessions."""
    chance = random.Random(22)
    for number in range(270):
        kind = (*_BAD, *_GOOD)[number % 9]
        yield Labelled(f"{kind} {number}", kind in _BAD, list(_session(chance, kind)), group=kind)


def _asked(number: int, names: list[str] | None, **more: Any) -> Told:
    told: Told = {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "openai.chat",
        "completeness": "messages",
        **more,
    }
    if names is None:
        return told
    return told | {"tools": [{"type": "function", "function": {"name": name}} for name in names]}


def _session(chance: random.Random, kind: str) -> Iterator[Told]:
    offered = ["search", "read", "write"][: chance.randint(2, 3)]
    known = None if kind == "schemas not on record" else offered
    rounds = chance.randint(2, 5)
    for number in range(rounds):
        yield _asked(number, known)
        if kind == "at first" and number == 0:
            yield from call(90, "wire_money", {"to": "x"})
        yield from call(number, chance.choice(offered), {"n": number})
    match kind:
        case "late" | "schemas not on record":
            yield from call(91, "wire_money", {"to": "x"})
        case "came later":
            yield _asked(50, [*offered, "wire_money"])
            yield from call(91, "wire_money", {"to": "x"})
        case "the provider's":
            yield from call(91, "web_search", {"q": "x"}, provider_executed=True)
        case "schemas not seen":
            yield _asked(50, [], not_seen=["system", "tools"])
            yield from call(91, "wire_money", {"to": "x"})
        case "left out again":  # a harness that leaves schemas out to save room still runs what it had shown
            yield _asked(50, [*offered, "wire_money"])
            yield _asked(51, offered)
            yield from call(91, "wire_money", {"to": "x"})
        case "a server's":
            yield _asked(50, [*offered, "mcp__files__list"])
            yield from call(91, "list", {}, server="files")


def baseline(records: list[Record], reader: Reader) -> bool:
    """A tool whose very name is not among those of the request before it."""
    offered: set[str] | None = None
    for record in records:
        event = record.event
        if isinstance(event, ModelCallRequested):
            tools: Any = reader.value(event.tools)
            offered = None if tools is None else {one["function"]["name"] for one in tools}
        elif isinstance(event, ToolCallRequested) and offered is not None and event.tool not in offered:
            return True
    return False
