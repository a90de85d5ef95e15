"""/sessions: all sessions, the last started or the riskiest first, with what is worth a look."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

from fastapi import Query

from ledger.views.events import Bucket, EventsView
from ledger.views.finding_rows import SessionRisk
from ledger.views.findings_list import FindingsView
from ledger.views.session_row import SessionRow
from ledger.views.sessions import SessionsView
from ledger.views.view_file import column
from webui.dependencies import LedgerDep, ListsDep
from webui.page import Context, Page

_ROWS = 32
_STRIP = 24
_SEARCHED = 20_000
_LONGEST_PLACE = 10

page = Page("Sessions", link="/sessions", order=10)


class Line(Context):
    """One session."""

    id: str
    """Session."""
    name: str | None
    """Title for people."""
    harness: str | None
    """Program that ran the loop."""
    agent: str | None
    """Name or role of the agent."""
    parent: str | None
    """Session that delegated to it."""
    started_at: str | None
    """The first time that it tells."""
    last_at: str | None
    """The last time that it tells."""
    events: int
    """Its records."""
    outcome: str | None
    """How it ended; none while it has not."""
    tokens: int | None
    """Tokens of models; none where nobody says."""
    cost_usd: float | None
    """Cost as the source says it."""
    findings: int
    """Findings raised."""
    open: int
    """Those that nobody has judged."""
    worst: str
    """The worst severity of those that are no false alarm; empty for none."""
    high: int
    """Events at the highest level."""
    medium: int
    """Events at the middle level."""
    integrity: Literal["ok", "problems", "unknown"]
    """What the last verification found."""
    verified_seq: int | None
    """How far that looked; none: nobody verified it."""
    strip: list[int]
    """For each of 24 parts of the session: 0 nothing, 1 medium, 2 high."""


class SessionsContext(Context):
    """What sessions.html may use."""

    lines: list[Line]
    """The sessions."""
    q: str
    """Text that id, title, harness or agent contain."""
    state: str
    """`open` or `ended`; empty for both."""
    only: str
    """`findings`, `high` or `problems`; empty for all."""
    sort: str
    """`severity` or `open`: the riskiest first; empty: the last started first."""
    next_after: str | None
    """Where the next page begins; none at the end."""
    is_cut: bool
    """Whether the search stopped before the oldest session."""
    behind: int
    """Records that the list does not show yet."""


@page.view("/sessions", template="sessions.html")
def sessions(
    ledger: LedgerDep,
    lists: ListsDep,
    q: Annotated[str, Query(max_length=200, description="Text in id, title, harness or agent.")] = "",
    state: Annotated[Literal["", "open", "ended"], Query(description="Whether it has ended.")] = "",
    only: Annotated[
        Literal["", "findings", "high", "problems"], Query(description="Only sessions with these.")
    ] = "",
    sort: Annotated[
        Literal["", "severity", "open"],
        Query(
            description="Which come first: those with the worst findings, or with most that nobody judged."
        ),
    ] = "",
    after: Annotated[str, Query(max_length=500, description="As `next_after` of the page before.")] = "",
) -> SessionsContext:
    """All sessions, the last started or the riskiest first."""
    text = q.strip().lower()
    lines: list[Line] = []
    reached = ""
    searched = 0
    with (
        lists.sessions() as listed,
        lists.events() as events,
        FindingsView(ledger.home, ledger.store) as found,
    ):
        found.catch_up()
        ordered = _ordered(listed, found, sort, after)
        for row, place in islice(ordered, _SEARCHED):
            reached, searched = place, searched + 1
            if _fits(row, text, state, only):
                line = _line(row, events, found.risk(row.id))
                if only != "high" or line.high:
                    lines.append(line)
            if len(lines) == _ROWS:
                break
        more = next(ordered, None) is not None
    return SessionsContext(
        lines=lines,
        q=q,
        state=state,
        only=only,
        sort=sort,
        next_after=reached if more else None,
        is_cut=searched == _SEARCHED,
        behind=lists.behind(),
    )


def _ordered(
    listed: SessionsView, found: FindingsView, sort: Literal["", "severity", "open"], after: str
) -> Iterator[tuple[SessionRow, str]]:
    """The sessions after a place, and the place of each: its number among the risky ones, then its start and id."""
    start, mark, identity = after.partition("|")
    if sort and not mark:
        first = int(start) if start.isascii() and start.isdigit() and len(start) < _LONGEST_PLACE else 0
        for place, one in enumerate(found.riskiest(_SEARCHED, by=sort, first=first), first + 1):
            if (risky := listed.row(one.session)) is not None:
                yield risky, str(place)
    for row in listed.newest((start, identity) if mark else None):
        if not sort or found.risk(row.id) is None:
            yield row, f"{column(row.started_at or '')}|{row.id}"


def _fits(row: SessionRow, text: str, state: str, only: str) -> bool:
    if state and (row.outcome is None) != (state == "open"):
        return False
    if only == "findings" and not row.findings:
        return False
    if only == "problems" and row.integrity != "problems":
        return False
    names = (row.id, row.name, row.harness, row.agent)
    return not text or any(text in name.lower() for name in names if name)


def _line(row: SessionRow, events: EventsView, risk: SessionRisk | None) -> Line:
    buckets = events.buckets(row.id, _STRIP)
    known = [count for count in row.tokens.values() if count is not None]
    return Line(
        id=row.id,
        name=row.name,
        harness=row.harness,
        agent=row.agent,
        parent=row.parent,
        started_at=row.started_at,
        last_at=row.last_at,
        events=row.head_seq,
        outcome=row.outcome,
        tokens=sum(known) if known else None,
        cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        findings=row.findings,
        open=risk.open if risk else 0,
        worst=risk.worst if risk else "",
        high=sum(bucket.high for bucket in buckets),
        medium=sum(bucket.medium for bucket in buckets),
        integrity=row.integrity,
        verified_seq=row.verified_seq,
        strip=[_shade(bucket) for bucket in buckets],
    )


def _shade(bucket: Bucket) -> int:
    return 2 if bucket.high else 1 if bucket.medium else 0
