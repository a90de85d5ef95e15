"""The five answers about an edge in words: who acted, what it may and did reach, what crossed, cost, evidence."""

from collections import Counter
from typing import Any

from ledger.audit.edges import Edge
from webui.page import Context

_FEW = 4
_LONGEST = 240


class EdgeLine(Context):
    """One way by which an agent reaches a tool, a server or another agent."""

    source: str
    """Agent that acts."""
    kind: str
    """By what way."""
    target: str
    """What is reached."""
    uses: int
    """How often."""
    first: str
    """Session of the first use; empty where it is not on record."""
    first_seq: int
    """Its record."""
    acted: str
    """Who acted, and who allowed it."""
    reach: str
    """What it may reach, and what it reached."""
    exceeding: str
    """Where that is more than it may; empty for nowhere."""
    crossed: str
    """What crossed."""
    cost: str
    """What it cost."""
    evidence: str
    """What of it is on record."""
    missing: str
    """What is not; empty for nothing."""


def edge_line(edge: Edge) -> EdgeLine:
    """An edge in words."""
    session, _, seq = (edge.places[0] if edge.places else "").rpartition("#")
    return EdgeLine(
        source=edge.name.source,
        kind=edge.name.kind,
        target=edge.name.target,
        uses=edge.uses,
        first=session,
        first_seq=int(seq) if seq.isdigit() else 0,
        acted=_acted(edge),
        reach=_reach(edge),
        exceeding=_cut("; ".join(edge.exceeding())),
        crossed=f"{edge.bytes_out} bytes there, {edge.bytes_back} back; largest {edge.largest}",
        cost=_cost(edge),
        evidence=_cut(
            f"arguments of {edge.arguments}, results of {edge.results};"
            f" ended: {_counts(edge.outcomes) or 'none'}"
        ),
        missing=_cut("; ".join(edge.missing())),
    )


def _acted(edge: Edge) -> str:
    told = [_counts(edge.actors) or "no actor on record"]
    if edge.asked:
        told.append(f"asked {edge.asked}x: {_counts(edge.decided) or 'no answer'}")
    return _cut("; ".join(told))


def _reach(edge: Edge) -> str:
    told = []
    if edge.may is not None:
        told.append(f"may: {_list(edge.may)}")
    elif not edge.is_to_agent:
        told.append("offered" if edge.is_offer_known and not edge.not_offered else "offer not on record")
    if edge.used:
        told.append(f"used: {_list(edge.used)}")
    if reached := _counts(edge.reached):
        told.append(f"reached: {reached}")
    if edge.targets:
        told.append(f"on {_list(edge.targets)}")
    if edge.handles:
        told.append(f"with {_list(edge.handles)}")
    return _cut("; ".join(told) or "not on record")


def _cost(edge: Edge) -> str:
    told = []
    if edge.cost_usd is not None:
        told.append(f"{edge.cost_usd:.4f} USD")
    if edge.tokens is not None:
        told.append(f"{edge.tokens} tokens")
    if edge.timed:
        told.append(f"{edge.ms} ms")
    if edge.is_to_agent:
        told.append(
            f"calls of models {edge.model_calls}, of tools {edge.tool_calls}; handed on {edge.handed_on}x"
        )
    return "; ".join(told) or "not on record"


def _counts(counts: Counter[Any]) -> str:
    found = [f"{name} {count}" for name, count in sorted(counts.items()) if count > 0]
    return ", ".join(found[:_FEW]) + (f" and {len(found) - _FEW} more" if len(found) > _FEW else "")


def _list(names: set[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:_FEW]) + (f" and {len(found) - _FEW} more" if len(found) > _FEW else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
