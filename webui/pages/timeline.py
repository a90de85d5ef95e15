"""/sessions/S/events: the events of a session in windows, one of them open."""

from typing import Annotated, Literal

from fastapi import Depends, HTTPException, Query, Response
from pydantic import BaseModel, Field

from ledger.cli.records import is_content, record_json
from ledger.cli.terminal import json_text
from ledger.events import BY_NAME, Record
from ledger.home import Ledger
from ledger.views.events import EventRow, EventsView, Wanted
from ledger.views.findings import write_note
from webui.around import Link, Note, links_of, said_of
from webui.contents import Content, Form, contents_of, references
from webui.dependencies import LedgerDep, ListsDep, SeqPath, SessionDep, WhoDep, segment
from webui.fitting import fit, fitting, weight
from webui.minimap import Minimap, minimap
from webui.page import Context, Done, Page
from webui.reading import Lists
from webui.visible import cut
from webui.windows import LONGEST_AGENT, MOST_BOUNDS, ROWS, neighbours, query_of, wanted_by, window_at

_LONGEST_FACT = 1000
_BYTES_OF_FACTS, _LEAST_OF_FACT = 2100, 80
_MOST_BYTES, _FRAME, _ROW, _FACT, _LINK, _LONGEST_SAID = 39_000, 11_000, 150, 50, 150, 80
_MOST_CHOICES, _LONGEST_CHOICE, _CHOICE, _BYTES_OF_CHOICES = 200, 60, 30, 2500

WantedDep = Annotated[Wanted, Depends(wanted_by)]

page = Page("Timeline", link="/sessions/{session}/events", order=20)


class Fact(Context):
    """A field of a record."""

    name: str
    """Its name."""
    value: str
    """Its value."""
    link: str | None = None
    """Where it leads."""


class Opened(Context):
    """One event, whole."""

    seq: int
    """Its place."""
    type: str
    """Its type."""
    about: str
    """What events of this type say."""
    facts: list[Fact]
    """What is known around it."""
    fields: list[Fact]
    """Its own fields, without contents."""
    contents: list[Content]
    """Its contents, a piece of each."""
    form: Form
    """How contents are shown."""
    earlier_weighty: int | None
    """The weighty event before it."""
    later_weighty: int | None
    """The weighty event after it."""
    links: list[Link]
    """What belongs to it and stands elsewhere: its call, its question, findings about it."""
    notes: list[Note]
    """Notes about it, the first written first."""
    record: dict[str, object]
    """The record as `events --json` gives it."""


class NoteForm(BaseModel):
    """A note."""

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """Its words."""


class TimelineContext(Context):
    """What timeline.html and its parts may use."""

    session: str
    """Its id."""
    rows: list[EventRow]
    """The window."""
    index: int
    """How many windows come before."""
    size: int
    """Rows of a window."""
    shown: int
    """Events that the filter lets through."""
    total: int
    """Events of the session."""
    earlier: int | None
    """A seq in the window before."""
    later: int | None
    """A seq in the window after."""
    query: dict[str, str]
    """The filter, as parameters of an address."""
    families: list[str]
    """Families of events that the session has."""
    agents: list[str]
    """Agents that acted."""
    overview: Minimap
    """Where tokens went, where weighty events are."""
    follow: bool
    """Whether new events are added as they come."""
    behind: int
    """Records of the ledger that the lists do not show yet."""
    before_at: str | None = None
    """When the event before the window happened, so that a gap shows; none where rows are left out."""
    opened: Opened | None = None
    """The event that is open."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Event {self.opened.seq}" if self.opened else "Timeline"


class RowsContext(Context):
    """What _rows.html may use."""

    session: str
    """Its id."""
    rows: list[EventRow]
    """The window."""
    query: dict[str, str]
    """The filter, as parameters of an address."""
    before_at: str | None = None
    """When the event before the window happened, so that a gap shows; none where rows are left out."""

    @property
    def may_grow(self) -> bool:
        """Whether more rows may come, so that nobody keeps the window."""
        return len(self.rows) < ROWS


class NewsContext(Context):
    """What _news.html may use."""

    session: str
    """Its id."""
    head: int
    """Last seq."""
    count: int
    """Events that are not shown yet."""


class BoundsContext(Context):
    """Where the windows of a filtered list begin."""

    bounds: list[int]
    """First seq of each window."""
    is_cut: bool
    """Whether there are more."""


@page.view("/sessions/{session}/events", template="timeline.html")
def timeline(
    lists: ListsDep,
    session: SessionDep,
    wanted: WantedDep,
    at: Annotated[int, Query(ge=0, le=2**53, description="A seq; the window around it is shown.")] = 1,
    follow: Annotated[Literal["", "1"], Query(description="1: go to the end and stay there.")] = "",
) -> TimelineContext:
    """A window of events, an overview, filters."""
    return _timeline(lists, session, wanted, at, follow=follow == "1")


@page.view("/sessions/{session}/events/{seq}", template="timeline.html", part="_detail.html")
def event(
    ledger: LedgerDep,
    lists: ListsDep,
    session: SessionDep,
    seq: SeqPath,
    wanted: WantedDep,
    form: Annotated[Form, Query(description="How contents are shown.")] = "text",
    content: Annotated[str, Query(max_length=400, description="Field whose content is paged through.")] = "",
    piece: Annotated[int, Query(ge=0, le=2**40, description="Which piece of it.")] = 0,
) -> TimelineContext:
    """One event, whole, beside the window around it."""
    record = ledger.store.record(session, seq)
    found = _timeline(lists, session, wanted, seq, follow=False)
    facts, fields = _short(_facts(ledger, record)), _short(_fields(record))
    with lists.events() as view:
        earlier, later = neighbours(view, session, Wanted(level="medium"), seq)
    findings, notes = said_of(ledger, record)
    links = [*links_of(ledger.store, record), *findings]
    room = _MOST_BYTES - _FRAME - _weight(found)
    room -= sum(_FACT + weight(one.value) for one in [*facts, *fields])
    room -= sum(_LINK + len(one.href) + weight(cut(one.told, 200)) for one in links)
    room -= sum(_LINK + len(segment(one.session)) + weight(cut(one.text, 400)) for one in notes)
    opened = Opened(
        seq=seq,
        type=record.type,
        about=_about(record),
        facts=facts,
        fields=fields,
        contents=contents_of(ledger.store, record, form, content, piece, room),
        form=form,
        earlier_weighty=earlier,
        later_weighty=later,
        links=links,
        notes=notes,
        record=record_json(record),
    )
    return found.model_copy(update={"opened": opened})


@page.action("/sessions/{session}/events/{seq}/notes")
def note(ledger: LedgerDep, session: SessionDep, seq: SeqPath, who: WhoDep, form: NoteForm) -> Done:
    """Write a note about a record."""
    place = write_note(ledger.recorder, session, seq, form.text, who.id or "")
    return Done(to=f"/sessions/{segment(session)}/events/{seq}", recorded=[place])


@page.view("/sessions/{session}/rows", template="_rows.html", keeps=True)
def rows(
    lists: ListsDep,
    session: SessionDep,
    wanted: WantedDep,
    first: Annotated[int, Query(alias="from", ge=1, le=2**53, description="First seq.")] = 1,
) -> RowsContext:
    """The rows of one window, for a list that scrolls."""
    with lists.events() as view:
        found = view.window(session, wanted, first=first, count=ROWS)
        before = _before_at(view, session, wanted, first)
    return RowsContext(session=session, rows=found, query=query_of(wanted), before_at=before)


@page.view("/sessions/{session}/news", template="_news.html")
def news(
    ledger: LedgerDep,
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=2**53, description="Last seq that is shown.")] = 0,
) -> NewsContext:
    """How many events came since, for a list that does not follow."""
    head = ledger.store.head(session).seq
    return NewsContext(session=session, head=head, count=max(0, head - after))


@page.view("/sessions/{session}/bounds", template="_bounds.html")
def bounds(lists: ListsDep, session: SessionDep, wanted: WantedDep) -> BoundsContext:
    """Where the windows of a filtered list begin."""
    with lists.events() as view:
        found = view.bounds(session, wanted, ROWS)
    return BoundsContext(bounds=found[:MOST_BOUNDS], is_cut=len(found) > MOST_BOUNDS)


@page.html.get("/sessions/{session}/contents/{seq}")
def raw(
    ledger: LedgerDep,
    session: SessionDep,
    seq: SeqPath,
    path: Annotated[str, Query(max_length=400, description="Field of the record.")],
) -> Response:
    """The bytes of one content of a record, as a file."""
    record = ledger.store.record(session, seq)
    digest = next((ref["digest"] for name, ref in references(record) if name == path), None)
    if digest is None:
        raise HTTPException(404, f"{session}#{seq} has no content at this path.")
    headers = {"Content-Disposition": f'attachment; filename="{digest[:16]}.bin"'}
    return Response(ledger.store.content(str(digest)), 200, headers, "application/octet-stream")


def _timeline(lists: Lists, session: str, wanted: Wanted, at: int, *, follow: bool) -> TimelineContext:
    with lists.events() as view:
        window = window_at(view, session, wanted, view.head(session) if follow else at)
        kinds = view.kinds(session)
        overview = minimap(view, session, window.total)
        before = _before_at(view, session, wanted, window.rows[0].seq) if window.rows else None
    return TimelineContext(
        before_at=before,
        session=session,
        rows=window.rows,
        index=window.number,
        size=ROWS,
        shown=window.shown,
        total=window.total,
        earlier=window.earlier,
        later=window.later,
        query=query_of(wanted),
        families=sorted({kind.type.partition(".")[0] for kind in kinds}),
        agents=_choices({kind.agent for kind in kinds if 0 < len(kind.agent) <= LONGEST_AGENT}),
        overview=overview,
        follow=follow,
        behind=lists.behind(),
    )


def _short(facts: list[Fact]) -> list[Fact]:
    """The facts with their values as long as there is room for all of them."""
    found: list[Fact] = []
    left = _BYTES_OF_FACTS
    for fact in facts:
        value = fit(fact.value, max(left, _LEAST_OF_FACT))
        left -= weight(value)
        found.append(fact if value == fact.value else fact.model_copy(update={"value": f"{value}…"}))
    return found


def _weight(context: TimelineContext) -> int:
    """Bytes that the list beside an event takes in a page, and what one may choose there."""
    row = _ROW + len(segment(context.session))
    said = sum(row + weight(cut(one.said, _LONGEST_SAID)) for one in context.rows)
    return said + sum(_CHOICE + weight(name) + weight(cut(name, _CHOICE)) for name in context.agents)


def _choices(agents: set[str]) -> list[str]:
    """Agents to choose from, as far as a page has room for their names."""
    names = sorted(agents, key=lambda name: (len(name) > _LONGEST_CHOICE, name))[:_MOST_CHOICES]
    (count,) = fitting(
        [names], lambda name: _CHOICE + weight(name) + weight(name[:_LONGEST_CHOICE]), _BYTES_OF_CHOICES
    )
    return sorted(names[:count])


def _before_at(view: EventsView, session: str, wanted: Wanted, first: int) -> str | None:
    """When the event before a window happened; the first one has nothing before it, and a filter leaves events out."""
    if not wanted.is_all:
        return None
    rows = view.window(session, wanted, first=max(1, first - 1), count=1)
    return rows[0].at if rows else None


def _about(record: Record) -> str:
    known = BY_NAME.get(record.type)
    return (known.__doc__ or "").strip() if known else "An event of a newer version of loopledger."


def _facts(ledger: Ledger, record: Record) -> list[Fact]:
    """What is known around the fact itself."""
    actor, source = record.actor, record.source
    cause = None if record.cause is None else str(record.cause)
    given: list[tuple[str, object]] = [
        ("occurred", record.occurred_at),
        ("recorded", record.recorded_at),
        ("actor", None if actor is None else f"{actor.kind} {actor.id or ''}".strip()),
        ("agent", record.agent),
        ("depth", record.depth or None),
        ("correlation", record.correlation),
        ("grade", record.grade),
        ("source", None if source is None else f"{source.format} {source.file or ''}".strip()),
        ("source line", None if source is None else source.line),
        ("source item", None if source is None else source.item),
        ("position", record.position),
        ("hash", record.hash),
        ("previous", record.previous),
    ]
    facts = [Fact(name=name, value=str(value)[:_LONGEST_FACT]) for name, value in given if value is not None]
    if cause is not None:
        place = cause if "#" in cause else f"{record.session}#{cause}"
        facts.insert(2, Fact(name="caused by", value=cause, link=place))
    return facts


def _fields(record: Record) -> list[Fact]:
    data = record_json(record)["data"]
    facts = []
    for name, value in data.items():
        if value in (None, "", [], {}) or is_content(value):
            continue
        text = value if isinstance(value, str) else json_text(value)
        facts.append(Fact(name=name, value=text[:_LONGEST_FACT]))
    return facts
