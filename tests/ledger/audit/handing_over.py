"""Runs in which one agent hands work to another, and their edges."""

from typing import Any

from ledger.audit.edges import Edge
from ledger.views.edges import RunEdges, run_edges
from ledger.views.sessions import SessionsView
from tests.audit.labelled import call
from tests.ledger.audit.histories import History, Told

SECRET = {"password": "made-up-51c9a0d2f3b7Qz"}


def asked(number: int, *tools: str, **more: Any) -> Told:
    """A request that offers tools."""
    return {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "anthropic.messages",
        "completeness": "body",
        "tools": [{"name": tool} for tool in tools],
        **more,
    }


def answered(number: int, cost: str, **more: Any) -> Told:
    """Its answer."""
    return {
        "type": "model_call.answered",
        "call_id": f"m{number}",
        "message": {"role": "assistant", "content": "well"},
        "cost_usd": cost,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        **more,
    }


def two_agents() -> list[Told]:
    """`main` hands work to `clerk`, whose session is its own."""
    clerk: dict[str, Any] = {"@session": "clerk-1"}
    return [
        {"type": "session.started", "harness": "own"},
        asked(1, "Task", "look"),
        *call(1, "look", {"at": "this"}, "seen", effect_class="read"),
        {"type": "tool_call.requested", "call_id": "t", "tool": "Task", "arguments": {"do": "count"}},
        {
            "type": "delegation.started",
            "delegation_id": "d",
            "to_agent": "clerk",
            "to_session": "clerk-1",
            "how": "tool",
            "call_id": "t",
            "budget_usd": "0.01",
        },
        {"type": "session.started", "harness": "own", "agent": "id-77", "parent": "main"} | clerk,
        asked(2, "count") | clerk,
        answered(2, "0.02") | clerk,
        *(one | clerk for one in call(2, "count", {}, 3, effect_class="read")),
        *(one | clerk for one in call(3, "erase", {"path": "/x"}, effect_class="irreversible")),
        {
            "type": "delegation.returned",
            "delegation_id": "d",
            "outcome": "returned",
            "from_session": "clerk-1",
            "result": "three",
        },
        {"type": "tool_call.settled", "call_id": "t", "outcome": "returned", "result": "three"},
    ]


def edges_of(history: History, *, deep: bool = True) -> RunEdges:
    """The edges of the run that begins with `main`."""
    ledger = history.ledger
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return run_edges(ledger.store, view, "main", deep=deep)


def edge(run: RunEdges, target: str) -> Edge:
    """The edge to a target."""
    return next(one for name, one in run.edges.items() if name.target == target)


def handed(**more: Any) -> Told:
    """The call `t` turns out to hand over to the clerk."""
    return {
        "type": "delegation.started",
        "delegation_id": "d",
        "to_agent": "clerk",
        "call_id": "t",
        "how": "handoff",
        **more,
    }
