"""/sessions/S/agents: who hands work to whom, by what edges, and who worked when."""

from ledger.audit.edges import Edge
from ledger.events import Record
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.store import EventStore
from ledger.views.edges import RunEdges, run_edges
from ledger.views.events import EventsView
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView
from webui.dependencies import ListsDep, SessionDep, WebDep
from webui.edge_words import EdgeLine, edge_line
from webui.graph import NODE_HEIGHT, NODE_WIDTH, Layout, layout
from webui.lanes import Lane, Lanes, Tick, lanes_of
from webui.page import Context, Page

_AGENTS = 40
_EDGES = 40
_SESSIONS = 30
_MOST_SESSIONS = 200
_MOST_RECORDS = 150_000
_CROSSINGS = 200

page = Page("Agents", link="/sessions/{session}/agents", order=77)


class AgentNode(Context):
    """An agent in the graph."""

    name: str
    """Its name."""
    session: str
    """A session of it; empty where none of its own is on record."""
    x: float
    """Left."""
    y: float
    """Top."""


class AgentArrow(Context):
    """A way from agent to agent."""

    source: str
    """Who hands over."""
    target: str
    """To whom."""
    label: str
    """How, and how often."""
    d: str
    """The `d` of an SVG path."""
    x: float
    """Middle of its label."""
    y: float
    """Ground line of its label."""


class Graph(Context):
    """The agents as a graph."""

    width: float
    """Width of its view box."""
    height: float
    """Height of its view box."""
    node_width: float = NODE_WIDTH
    """Width of a node."""
    node_height: float = NODE_HEIGHT
    """Height of a node."""
    nodes: list[AgentNode]
    """The agents."""
    arrows: list[AgentArrow]
    """The ways between them."""


class AgentsContext(Context):
    """What agents.html may use."""

    session: str
    """Its id."""
    sessions: int
    """Sessions of the run: this one and all that it handed work to, as far as they are shown."""
    agents: int
    """Agents of the run."""
    graph: Graph | None
    """Who hands work to whom; none where the run is too long to be summed up for a page."""
    edges: list[EdgeLine]
    """Edges: those to agents first, then the most used."""
    total_edges: int
    """How many edges there are."""
    lanes: Lanes | None
    """Who worked when; none where nobody tells times."""
    is_cut: bool
    """Whether there are more sessions than are shown."""
    behind: int
    """Records that the lists do not show yet."""


@page.view("/sessions/{session}/agents", template="agents.html")
def agents(web: WebDep, lists: ListsDep, session: SessionDep) -> AgentsContext:
    """Who hands work to whom, by what edges, and who worked when."""
    with lists.sessions() as view:
        family, is_cut = _family(view, session)
        run = None
        if not is_cut and sum(row.head_seq for row in family) <= _MOST_RECORDS:
            key = ("edges", session, *((row.id, row.head_seq) for row in family))
            run = web.answers.of(key, lambda: run_edges(web.ledger.store, view, session, deep=False))
    edges = [] if run is None else sorted(run.edges.values(), key=_order)
    with lists.events() as events:
        lanes = [_lane(web.ledger.store, events, row) for row in family[:_SESSIONS]]
    return AgentsContext(
        session=session,
        sessions=len(family),
        agents=0 if run is None else len(run.agents),
        graph=None if run is None else _graph(run, edges, session),
        edges=[edge_line(edge) for edge in edges[:_EDGES]],
        total_edges=len(edges),
        lanes=lanes_of(lanes),
        is_cut=is_cut or len(family) > _SESSIONS,
        behind=lists.behind(),
    )


def _order(edge: Edge) -> tuple[bool, int, str]:
    return not edge.is_to_agent, -edge.uses, str(edge.name)


def _family(view: SessionsView, session: str) -> tuple[list[SessionRow], bool]:
    """A session and those that it handed work to, each after the one before it; whether there are more."""
    found, waiting, seen = [], [view.row(session) or SessionRow(session)], {session}
    while waiting:
        row = waiting.pop()
        found.append(row)
        if len(found) == _MOST_SESSIONS:
            return found, bool(waiting)
        children: list[SessionRow] = []
        for child in view.children(row.id):
            if len(children) == _MOST_SESSIONS:
                break
            if child.id not in seen:
                seen.add(child.id)
                children.append(child)
        waiting.extend(reversed(children))
    return found, False


def _graph(run: RunEdges, edges: list[Edge], session: str) -> Graph:
    between = [edge for edge in edges if edge.is_to_agent]
    names = dict.fromkeys(name for edge in between for name in (edge.name.source, edge.name.target))
    names.update(dict.fromkeys(sorted(run.agents)))
    shown = list(names)[:_AGENTS]
    labels: dict[tuple[str, str], list[str]] = {}
    behind: dict[str, str] = {}
    for edge in between:
        pair = (edge.name.source, edge.name.target)
        labels.setdefault(pair, []).append(f"{edge.name.kind} {edge.uses}")
        if edge.children:
            behind.setdefault(edge.name.target, edge.children[0])
    drawn: Layout = layout(shown, labels)
    return Graph(
        width=drawn.width,
        height=drawn.height,
        nodes=[
            AgentNode(name=node.name[:200], session=behind.get(node.name, ""), x=node.x, y=node.y)
            for node in drawn.nodes
        ],
        arrows=[
            AgentArrow(
                source=arrow.source[:200],
                target=arrow.target[:200],
                label=", ".join(labels[arrow.source, arrow.target][:3]),
                d=arrow.d,
                x=arrow.x,
                y=arrow.y,
            )
            for arrow in drawn.arrows
        ],
    )


def _lane(store: EventStore, events: EventsView, row: SessionRow) -> Lane:
    """A session over time, with what it handed over and what came back."""
    names = (DelegationStarted.TYPE, DelegationReturned.TYPE)
    ticks: list[Tick] = []
    is_handing = any(kind.type in names for kind in events.kinds(row.id))
    for record in store.read(row.id, names=names) if is_handing else ():
        if len(ticks) == _CROSSINGS:
            break
        at = _time(record)
        if at is not None:
            event = record.event
            out = isinstance(event, DelegationStarted)
            ticks.append(Tick(at=at, seq=record.seq, is_out=out))
    return Lane(
        session=row.id,
        name=row.agent or row.name or row.id,
        parent=row.parent,
        start=row.started_at,
        end=row.last_at,
        ticks=ticks,
    )


def _time(record: Record) -> str | None:
    return record.occurred_at or (record.recorded_at if record.source is None else None)
