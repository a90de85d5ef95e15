"""Windows of a long list: always the same fifty rows, wherever one comes from. Knows no page."""

from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from fastapi import Query
from pydantic import StringConstraints

from ledger.views.events import EventRow, EventsView, Wanted

ROWS = 50
"""Rows of a window."""

LONGEST_AGENT = 400
"""Characters of an agent's name in an address."""

MOST_BOUNDS = 4000
"""Windows of a filtered list that a browser is told the beginnings of."""

_LEAST_GAP_S = 15 * 60

LevelName = Literal["", "low", "medium", "high"]

SeqText = Annotated[str, StringConstraints(pattern="^[0-9]{0,15}$")]
"""A seq, or nothing: a form gives both."""


class Window(NamedTuple):
    """Fifty rows of a session, and where they stand."""

    rows: list[EventRow]
    """The rows, in order; fewer at the end."""

    number: int
    """How many windows come before."""

    shown: int
    """How many rows the filter lets through in all."""

    total: int
    """Events of the session."""

    earlier: int | None
    """A seq in the window before; None where there is none."""

    later: int | None
    """A seq in the window after; None where there is none."""


def wanted_by(
    kind: Annotated[str, Query(max_length=80, description="A type or family of events.")] = "",
    level: Annotated[LevelName, Query(description="The least level.")] = "",
    agent: Annotated[str, Query(max_length=LONGEST_AGENT, description="Agent that acted.")] = "",
    q: Annotated[str, Query(max_length=200, description="Text that the row contains.")] = "",
    since: Annotated[SeqText, Query(description="The first seq of a range.")] = "",
    upto: Annotated[SeqText, Query(description="The last seq of a range.")] = "",
) -> Wanted:
    """The filter of an address."""
    level = "" if level == "low" else level
    return Wanted(kind.strip(), level, agent, q.strip(), int(since or 0), int(upto or 0))


def query_of(wanted: Wanted) -> dict[str, str]:
    """A filter as parameters of an address."""
    return {
        "kind": wanted.kind,
        "level": wanted.level,
        "agent": wanted.agent,
        "q": wanted.text,
        "since": str(wanted.first or ""),
        "upto": str(wanted.last or ""),
    }


def window_at(view: EventsView, session: str, wanted: Wanted, at: int) -> Window:
    """The window that holds the first wanted row from a seq on."""
    total = view.head(session)
    at = max(1, at)
    shown, before = (total, at - 1) if wanted.is_all else view.counts(session, wanted, at)
    before = min(before, max(0, shown - 1))  # past the end, it is the last window
    number, inside = divmod(before, ROWS)
    if wanted.is_all:
        rows = view.window(session, wanted, first=number * ROWS + 1, count=ROWS)
    else:
        rows = _filtered(view, session, wanted, at, inside)
    earlier = neighbours(view, session, wanted, rows[0].seq)[0] if number and rows else None
    later = rows[-1].seq + 1 if rows and (number + 1) * ROWS < shown else None
    return Window(rows, number, shown, total, earlier, later)


def _filtered(view: EventsView, session: str, wanted: Wanted, at: int, inside: int) -> list[EventRow]:
    """The rows around a seq, `inside` of which come before it."""
    after = view.window(session, wanted, first=at, count=ROWS - inside)
    missing = 0 if after else 1  # nothing from here on: the last row is the one to show
    before = view.window(session, wanted, first=at - 1, count=inside + missing, back=True)
    return before + after


def neighbours(view: EventsView, session: str, wanted: Wanted, seq: int) -> tuple[int | None, int | None]:
    """The seq of the last wanted event before a seq, and of the first after it."""
    before = view.window(session, wanted, first=seq - 1, count=1, back=True) if seq > 1 else []
    after = view.window(session, wanted, first=seq + 1, count=1)
    return (before[0].seq if before else None), (after[0].seq if after else None)


def gap(before: str | None, at: str | None) -> str:
    """How long nothing happened between two times, in words; empty for less than a quarter of an hour."""
    try:
        seconds = (datetime.fromisoformat(at or "") - datetime.fromisoformat(before or "")).total_seconds()
    except (ValueError, TypeError):  # as a source says it: not a time, or with no zone beside one with
        return ""
    if seconds < _LEAST_GAP_S:
        return ""
    minutes = int(seconds // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
