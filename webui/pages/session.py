"""/sessions/S: one session in short: what ran, what it cost, where to look first."""

from ledger.errors import SessionNotFoundError
from ledger.views.events import EventRow, Wanted
from ledger.views.session_row import SessionRow
from webui.dependencies import LedgerDep, ListsDep, SessionDep
from webui.holding import Brake, brake_of
from webui.minimap import Minimap, minimap
from webui.page import Context, Page

_WEIGHTY = 10
_CHILDREN = 50
_LAST = 5
_AGENTS = 10

page = Page("Overview", link="/sessions/{session}", order=10)


class Count(Context):
    """How often something happened."""

    type: str
    """Type of the event."""
    events: int
    """How often."""


class SessionContext(Context):
    """What session.html may use."""

    session: str
    """Its id."""
    row: dict[str, object]
    """Its line in the list of sessions."""
    agents: list[str]
    """Agents that acted, or some of them."""
    counts: list[Count]
    """Types of its events, the most frequent first."""
    weighty: list[EventRow]
    """Its first events at the highest level."""
    last: list[EventRow]
    """Its last events."""
    children: list[str]
    """Sessions that it delegated to, or some of them."""
    overview: Minimap
    """Where tokens went, where weighty events are."""
    behind: int
    """Records of the ledger that the lists do not show yet."""
    brake: Brake
    """How its hand brake stands."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"{self.row['name'] or self.session[:13]}"


@page.view("/sessions/{session}", template="session.html")
def overview(ledger: LedgerDep, lists: ListsDep, session: SessionDep) -> SessionContext:
    """One session in short."""
    with lists.sessions() as listed:
        row = listed.row(session)
        children = [child.id for child, _ in zip(listed.children(session), range(_CHILDREN), strict=False)]
    behind = lists.behind()
    if row is None and not behind:
        raise SessionNotFoundError(session)
    with lists.events() as events:
        kinds = events.kinds(session)
        weighty = events.window(session, Wanted(level="high"), first=1, count=_WEIGHTY)
        head = events.head(session)
        last = events.window(session, Wanted(), first=max(1, head - _LAST + 1), count=_LAST)
        overview_map = minimap(events, session, head)
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind.type] = counts.get(kind.type, 0) + kind.events
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return SessionContext(
        session=session,
        row=(row or SessionRow(session)).as_json(),
        agents=sorted({kind.agent for kind in kinds if kind.agent})[:_AGENTS],
        counts=[Count(type=name, events=count) for name, count in ordered],
        weighty=weighty,
        last=last,
        children=children,
        overview=overview_map,
        behind=behind,
        brake=brake_of(ledger, lists, session),
    )
