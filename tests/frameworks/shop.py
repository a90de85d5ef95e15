"""A shop that every framework runs: what the scripted model says, tools that count, and what the ledger must hold."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledger.events import Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Usage
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from ledger.store import verify
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, Text, ToolCall
from tests.scripted_model import Usage as ScriptedUsage

DESK, BUYER, EXPERT = "You are the desk.", "You buy for the house.", "You are the expert."
"""Instructions of the three agents: by them the scripted model tells them apart."""

FAILED = "the shelf of anchors is locked"


class Shop:
    """The tools, and how often each ran with what."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()

    def read_offer(self, number: str) -> str:
        """Read an offer."""
        self.ran[f"read_offer {number}"] += 1
        return f"Offer {number}: 40 pumps at 12.50 each."

    async def check_stock(self, item: str) -> str:
        """Look how many there are."""
        self.ran[f"check_stock {item}"] += 1
        if item == "anchors":
            raise ValueError(FAILED)
        await asyncio.sleep(0.05 if item == "pumps" else 0)
        return f"{item}: 7 in stock"

    def look_up(self, what: str) -> str:
        """Look something up."""
        self.ran[f"look_up {what}"] += 1
        return f"{what}: good"

    def place_order(self, item: str, total: float) -> str:
        """Place an order. It cannot be taken back."""
        self.ran[f"place_order {item}"] += 1
        return f"ordered {item} for {total:.2f}"


RAN = {
    "read_offer 77": 1,
    "check_stock pumps": 1,
    "check_stock hoses": 1,
    "check_stock anchors": 1,
    "look_up pumps": 1,
    "place_order pumps": 1,
}
"""What runs when pumps are approved and hoses refused."""

ENDS = {
    "call_read": "returned",
    "call_pumps": "returned",
    "call_hoses": "returned",
    "call_expert": "returned",
    "call_anchors": "failed",
    "call_look": "returned",
    "call_yes": "returned",
    "call_no": "denied",
}
"""How each tool call ends, by the model's id."""


def script(
    *, expert: tuple[str, Mapping[str, Any]], handoff: ToolCall | None = None, thanks: bool = True
) -> Script:
    """What the model says. `expert` is the call of the sub-agent, `handoff` that with which the desk hands over.

    `thanks`: the user says thank you at the end.
    """
    steps = _steps(
        (Text("I read the offer."), ToolCall("read_offer", {"number": "77"}, id="call_read")),
        (
            ToolCall("check_stock", {"item": "pumps"}, id="call_pumps"),
            ToolCall("check_stock", {"item": "hoses"}, id="call_hoses"),
        ),
        (
            ToolCall(expert[0], expert[1], id="call_expert"),
            ToolCall("check_stock", {"item": "anchors"}, id="call_anchors"),
        ),
        (ToolCall("place_order", {"item": "pumps", "total": 500.0}, id="call_yes"),),
        (ToolCall("place_order", {"item": "hoses", "total": 900.0}, id="call_no"),),
        (Text("I ordered pumps and no hoses."),),
        *([(Text("You are welcome."),)] if thanks else []),
    )
    asked = _steps((ToolCall("look_up", {"what": "pumps"}, id="call_look"),), (Text("They are good pumps."),))
    lanes = [Lane("expert", asked, Match(system=EXPERT)), Lane("buyer", steps, Match(system=BUYER))]
    if handoff is not None:
        lanes.insert(0, Lane("desk", _steps((handoff,)), Match(system=DESK)))
    return Script(lanes=lanes, prefix="shop-")


def _steps(*answers: tuple[Any, ...]) -> list[Step]:
    return [
        Step(
            blocks=blocks,
            usage=ScriptedUsage(
                input_tokens=100 + number, output_tokens=20 + number, cache_read_tokens=7, reasoning_tokens=3
            ),
        )
        for number, blocks in enumerate(answers)
    ]


def records(ledger: Ledger) -> list[Record]:
    """Everything in the ledger, in order."""
    return list(ledger.store.read_all())


def of_type(ledger: Ledger, kind: type[Event]) -> list[Any]:
    """All events of a kind, in order."""
    return [record.event for record in records(ledger) if isinstance(record.event, kind)]


def content(ledger: Ledger, reference: Any) -> Any:
    """What a reference names."""
    raw = ledger.store.content(reference.digest)
    assert raw is not None
    return json.loads(raw) if reference.kind == "json" else raw.decode()


def served(server: ScriptedModel) -> list[dict[str, Any]]:
    """Response id and usage of every answer that the server gave, in order."""
    found = []
    for exchange in server.exchanges:
        if exchange.status == 200 and exchange.protocol is not None:
            text = "".join(exchange.chunks)
            found.append(_told(exchange.protocol, text))
    return found


def _told(protocol: str, text: str) -> dict[str, Any]:
    bodies = [line[6:] for line in text.splitlines() if line.startswith("data: {")] or [text]
    merged: dict[str, Any] = {}
    for body in map(json.loads, bodies):
        body = body.get("response") or body.get("message") or body
        usage = body.get("usage") or body.get("usageMetadata") or {}
        merged["usage"] = {**merged.get("usage", {}), **usage}
        merged["id"] = merged.get("id") or body.get("id") or body.get("responseId")
    return {"id": merged["id"], "usage": _usage(protocol, merged["usage"])}


def _usage(protocol: str, usage: dict[str, Any]) -> tuple[int, int, int]:
    """Uncached input, output, cached input."""
    if "promptTokenCount" in usage:
        cached = usage.get("cachedContentTokenCount", 0)
        written = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
        return usage["promptTokenCount"] - cached, written, cached
    if "prompt_tokens" in usage:
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return usage["prompt_tokens"] - cached, usage["completion_tokens"], cached
    if "cache_read_input_tokens" in usage:
        return usage["input_tokens"], usage["output_tokens"], usage["cache_read_input_tokens"]
    cached = usage["input_tokens_details"]["cached_tokens"]
    return usage["input_tokens"] - cached, usage["output_tokens"], cached


def check_models(ledger: Ledger, server: ScriptedModel, *, has_ids: bool = True) -> None:
    """Every answer that the server gave is in the ledger, once, with its tokens and its id."""
    answered = of_type(ledger, ModelCallAnswered)
    given = served(server)
    told = [
        (one.usage.input_tokens, one.usage.output_tokens, one.usage.cache_read_tokens) for one in answered
    ]
    assert Counter(told) == Counter(one["usage"] for one in given)
    if has_ids:
        assert Counter(one.response_id for one in answered) == Counter(one["id"] for one in given)
    assert all(isinstance(one.usage, Usage) for one in answered)
    requested = [one.call_id for one in of_type(ledger, ModelCallRequested)]
    ended = [one.call_id for one in answered + of_type(ledger, ModelCallFailed)]
    assert len(requested) == len(set(requested))
    assert sorted(requested) == sorted(ended)
    refused = [one for one in server.exchanges if one.protocol is not None and one.status != 200]
    assert len(of_type(ledger, ModelCallFailed)) == len(refused)


def check_tools(ledger: Ledger, shop: Shop, ends: Mapping[str, str] = ENDS) -> None:
    """Every tool call is in the ledger once, started when it ran, and ended as it did."""
    requested = [one.call_id for one in of_type(ledger, ToolCallRequested)]
    settled = [(one.call_id, one.outcome) for one in of_type(ledger, ToolCallSettled)]
    assert sorted(requested) == sorted(ends)
    assert sorted(settled) == sorted(ends.items())
    started = Counter(one.call_id for one in of_type(ledger, ToolCallStarted))
    assert set(started) == {name for name, end in ends.items() if end != "denied"}
    assert shop.ran == Counter(RAN)


def check_approvals(ledger: Ledger) -> None:
    """One was granted and used, one refused."""
    asked = {one.call_id: one.approval_id for one in of_type(ledger, ApprovalAsked)}
    assert list(asked) == ["call_yes", "call_no"]
    decided = {one.approval_id: one.outcome for one in of_type(ledger, ApprovalDecided)}
    assert decided == {asked["call_yes"]: "approved", asked["call_no"]: "denied"}
    assert len(of_type(ledger, ApprovalDecided)) == 2
    used = [(one.approval_id, one.call_id) for one in of_type(ledger, ApprovalUsed)]
    assert used == [(asked["call_yes"], "call_yes")]


def check_order(ledger: Ledger) -> None:
    """What causes stands before what it causes: answer, question, decision, start, end."""
    told = records(ledger)
    places: dict[tuple[str, str], int] = {}
    for record in told:
        event: Any = record.event
        name = getattr(event, "call_id", None) or getattr(event, "approval_id", None)
        if name is not None:
            places.setdefault((type(event).TYPE, name), record.position)
    for call_id in {name for kind, name in places if kind == ToolCallRequested.TYPE}:
        line = [
            places.get((kind.TYPE, call_id))
            for kind in (
                ApprovalAsked,
                ApprovalDecided,
                ToolCallRequested,
                ApprovalUsed,
                ToolCallStarted,
                ToolCallSettled,
            )
        ]
        seen = [place for place in line if place is not None]
        assert seen == sorted(seen), call_id
    for call_id in {name for kind, name in places if kind == ModelCallRequested.TYPE}:
        end = places.get((ModelCallAnswered.TYPE, call_id)) or places[(ModelCallFailed.TYPE, call_id)]
        assert places[(ModelCallRequested.TYPE, call_id)] < end
    answers = {call: record for record in told for call in _calls_in(ledger, record)}
    for record in told:
        if isinstance(record.event, ToolCallRequested):
            asked = answers[record.event.call_id]
            assert (asked.session, True) == (record.session, asked.seq < record.seq)


def _calls_in(ledger: Ledger, record: Record) -> list[str]:
    if not isinstance(record.event, ModelCallAnswered):
        return []
    text = json.dumps(content(ledger, record.event.message))
    return [name for name in (*ENDS, "call_handoff") if f'"{name}"' in text]


def check_sessions(ledger: Ledger, *, runs: int) -> str:
    """One conversation, which went on, and the expert's session below it; gives the conversation's session."""
    started = {
        record.session: record.event for record in records(ledger) if isinstance(record.event, SessionStarted)
    }
    roots = [session for session, event in started.items() if event.parent is None]
    assert len(roots) == 1
    below = [event for event in started.values() if event.parent is not None]
    assert [(event.agent, event.parent) for event in below] == [("expert", roots[0])]
    ends = [record for record in records(ledger) if isinstance(record.event, SessionEnded)]
    assert ends, "no session ended"
    assert {record.event.outcome for record in ends} == {"completed"}  # type: ignore[attr-defined]
    assert len(of_type(ledger, SessionResumed)) == runs - 1
    return roots[0]


def check_gone_on(home: Path, session: str) -> None:
    """Two processes, one after the other, made one call each in the same conversation."""
    with open_ledger(home) as ledger:
        assert {record.session for record in records(ledger)} == {session}
        assert [one.outcome for one in of_type(ledger, SessionEnded)] == ["completed", "completed"]
        assert len(of_type(ledger, SessionResumed)) == 1
        assert len(of_type(ledger, ModelCallAnswered)) == 2
        check_ledger(ledger)


def check_ledger(ledger: Ledger) -> None:
    """The chain holds, and nothing was lost."""
    assert verify(ledger.store).problems == []
