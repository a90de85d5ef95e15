"""The edges of runs: those of a session and of all that it handed work to, joined with what lies behind them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ledger.audit import Reader
from ledger.audit.designed import Design, difference
from ledger.audit.edge_fold import READS, EdgeFold
from ledger.audit.edges import Edge, Name
from ledger.events.session import SessionStarted
from ledger.store import EventStore
from ledger.views.findings import reader_of
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView

_NAMES = tuple(event.TYPE for event in READS)


@dataclass
class RunEdges:
    """The edges of one run."""

    root: str
    """Session that it began with."""
    sessions: list[str] = field(default_factory=list)
    """Sessions of the run, each after the one that handed over to it."""
    edges: dict[Name, Edge] = field(default_factory=dict)
    """Edges by name, in the order of their first use."""
    agents: set[str] = field(default_factory=set)
    """Agents that acted, by name."""

    def add(self, edge: Edge) -> None:
        """Take in an edge of one of its sessions."""
        kept = self.edges.get(edge.name)
        if kept is None:
            self.edges[edge.name] = edge
        else:
            kept.add(edge)


@dataclass
class _Node:
    """One session of a run, until those behind it are known."""

    row: SessionRow
    before: "_Node | None"
    edge: Edge | None
    fold: EdgeFold
    cost_usd: Decimal | None = None
    tokens: int | None = None


def run_edges(
    store: EventStore, sessions: SessionsView, session: str, *, deep: bool = True, whole: bool = True
) -> RunEdges:
    """The edges of a session and, if `whole`, of all that it handed work to.

    `deep`: contents are looked at, for secrets, for what was offered, and for effects that nobody declared; without it
    no content is loaded. The view must be up to the store.
    """
    reader = reader_of(store) if deep else None
    run = RunEdges(session)
    root = _node(store, sessions.row(session) or SessionRow(session), None, None, reader)
    nodes, waiting = [root], [root]
    seen = {session}
    while waiting and whole:
        node = waiting.pop()
        for row in sessions.children(node.row.id):
            if row.id not in seen:
                seen.add(row.id)
                child = _node(store, row, node, node.fold.by_child.get(row.id), reader)
                nodes.append(child)
                waiting.append(child)
    for node in nodes:
        _cost(node)
    for node in reversed(nodes):  # what lies behind an edge is whole before the edge is counted
        if node.before is not None and node.edge is not None:
            _behind(node.edge, node)
            _up(node.before, node)
    for node in nodes:
        run.sessions.append(node.row.id)
        run.agents |= node.fold.acted
        for edge in node.fold.used():
            run.agents.add(edge.name.source)
            if edge.is_to_agent:
                run.agents.add(edge.name.target)
            run.add(edge)
    return run


def _node(
    store: EventStore, row: SessionRow, before: _Node | None, edge: Edge | None, reader: Reader | None
) -> _Node:
    if before is not None and edge is None:
        edge = _edge_by_call(store, before.fold, row) or _implied(before.fold, row)
    name = None if edge is None or edge.name.target == "?" else edge.name.target
    fold = EdgeFold(row.id, reader, name)
    for record in store.read(row.id, names=_NAMES):
        fold.take(record)
    fold.forget_uses()
    return _Node(row, before, edge, fold)


def _edge_by_call(store: EventStore, fold: EdgeFold, row: SessionRow) -> Edge | None:
    """The edge of the call that the session says it was begun by."""
    first = next(store.read(row.id, names=(SessionStarted.TYPE,)), None)
    call = first.event.parent_call if first and isinstance(first.event, SessionStarted) else None
    return None if call is None else fold.by_call.get(call)


def _implied(fold: EdgeFold, row: SessionRow) -> Edge:
    """An edge to a session of which the one that handed over tells nothing."""
    name = Name(fold.agent, "delegation", row.agent or "?")
    edge = fold.edges.setdefault(name, Edge(name))
    edge.uses += 1
    edge.implied += 1
    edge.places.append(f"{row.id}#1")
    return edge


def _cost(node: _Node) -> None:
    row = node.row
    known = [count for count in row.tokens.values() if count is not None]
    node.tokens = sum(known) if known else None
    node.cost_usd = None if row.cost_usd is None else Decimal(row.cost_usd)


def _up(before: _Node, node: _Node) -> None:
    """What a session cost counts for the one that handed over to it, too."""
    if node.cost_usd is not None:
        before.cost_usd = (before.cost_usd or Decimal(0)) + node.cost_usd
    if node.tokens is not None:
        before.tokens = (before.tokens or 0) + node.tokens


def _behind(edge: Edge, node: _Node) -> None:
    """What the session behind an edge did."""
    edge.children.append(node.row.id)
    edge.model_calls += node.row.model_calls
    edge.tool_calls += node.row.tool_calls
    if node.cost_usd is not None:
        edge.cost_usd = (edge.cost_usd or Decimal(0)) + node.cost_usd
    if node.tokens is not None:
        edge.tokens = (edge.tokens or 0) + node.tokens
    if (tools := node.fold.tools) is not None:
        edge.may = (edge.may or set()) | tools
    for own in node.fold.used():
        if own.is_to_agent:
            edge.handed_on += own.uses
            edge.model_calls += own.model_calls
            edge.tool_calls += own.tool_calls
        else:
            edge.note(edge.used, own.name.target)
        edge.reached.update(own.reached)


# -- over runs ------------------------------------------------------------------------------------------------------


def all_runs(
    store: EventStore,
    sessions: SessionsView,
    *,
    deep: bool = True,
    tell: Callable[[int], None] = lambda count: None,
) -> Iterator[RunEdges]:
    """The runs of a ledger, one after the other."""
    for count, row in enumerate(sessions.rows(), 1):
        tell(count)
        if _is_root(sessions, row):
            yield run_edges(store, sessions, row.id, deep=deep)


def _is_root(sessions: SessionsView, row: SessionRow) -> bool:
    """Whether a run begins with it: its parent is not on record, or, of parents in a circle, it is the first by id."""
    way: dict[str, None] = {}
    above: SessionRow | None = row
    while above is not None and above.id not in way:
        way[above.id] = None
        above = None if above.parent is None else sessions.row(above.parent)
    if above is None:
        return len(way) == 1
    names = list(way)
    return row.id == min(names[names.index(above.id) :])


def edges_json(runs: Iterable[RunEdges], design: Design | None = None) -> dict[str, Any]:
    """The documented form of `edges --json`: the edges of all the runs together, and what differs from the design."""
    total = RunEdges("")
    count = sessions = 0

    def counted() -> Iterator[list[Edge]]:
        nonlocal count, sessions
        for run in runs:
            count += 1
            sessions += len(run.sessions)
            total.agents |= run.agents
            yield list(run.edges.values())
            for edge in run.edges.values():
                total.add(edge)

    found = difference(design or Design(edges=()), counted())
    ordered = sorted(total.edges.values(), key=lambda edge: (not edge.is_to_agent, -edge.uses, edge.name))
    return {
        "runs": count,
        "sessions": sessions,
        "agents": sorted(total.agents),
        "edges": [edge.as_json() for edge in ordered],
        "design": None if design is None else found.as_json(),
    }
