"""The records that show a finding, each with the events around it, also of other sessions. Renders nothing."""

from collections.abc import Sequence

from ledger.errors import LedgerError
from ledger.store import EventStore
from ledger.views.events import EventRow, EventsView, Wanted
from ledger.views.finding_rows import FindingRow
from webui.contents import first_content
from webui.page import Context

AROUND = 3
"""Events that are shown before a witness, and after it."""

LONGEST_ID = 300
"""Characters of the id of a finding in an address; the beginning names it as well."""

LONGEST_MESSAGE = 600
"""Characters of what a finding, a note or a reason says, in a list."""


class FindingLine(Context):
    """A finding in a list."""

    id: str
    """Its id, or the beginning of a long one."""
    session: str
    """Session that it is about."""
    seq: int
    """Record that raised it."""
    detector: str
    """Who found it."""
    severity: str
    """How bad it is."""
    verdict: str
    """The last that a person said of it; empty while nobody has."""
    message: str
    """What was found."""
    at: str
    """When it was raised."""


class Witness(Context):
    """A record that shows a finding."""

    place: str
    """`SESSION#SEQ`."""
    session: str
    """Its session."""
    seq: int
    """Its seq."""
    is_elsewhere: bool
    """Whether it is of another session than the finding."""
    rows: list[EventRow]
    """It and the events around it; empty where the ledger has no such record."""
    field: str = ""
    """Its first content, by the name of the field; empty for none."""
    text: str = ""
    """The beginning of that content."""
    is_cut: bool = False
    """Whether the content goes on."""


def place_of(text: str) -> tuple[str, int] | None:
    """Session and seq of `SESSION#SEQ`; None where it names no record."""
    session, mark, seq = text.rpartition("#")
    if not mark or not seq.isascii() or not seq.isdigit() or len(seq) > 15:
        return None
    return session, int(seq)


def witnesses_of(store: EventStore, view: EventsView, session: str, places: Sequence[str]) -> list[Witness]:
    """Some witnesses of a finding about a session."""
    found = []
    for place in places:
        named = place_of(place)
        if named is None:
            found.append(Witness(place=place, session=place, seq=0, is_elsewhere=True, rows=[]))
            continue
        of, seq = named
        rows = view.window(of, Wanted(), first=max(1, seq - AROUND), count=2 * AROUND + 1)
        if not any(row.seq == seq for row in rows):
            rows = []
        content = first_content(store, store.record(of, seq)) if rows else None
        found.append(
            Witness(
                place=place,
                session=of,
                seq=seq,
                is_elsewhere=of != session,
                rows=rows,
                field=content.path if content else "",
                text=content.text[:LONGEST_MESSAGE] if content else "",
                is_cut=content is not None and (content.pieces > 1 or len(content.text) > LONGEST_MESSAGE),
            )
        )
    return found


def told_of(store: EventStore, digest: str | None, longest: int = LONGEST_MESSAGE) -> str:
    """What a content says, its beginning; a sentence where it was erased."""
    if digest is None:
        return ""
    try:
        text = store.content(digest)[: 4 * longest].decode("utf-8", "replace")
    except LedgerError:
        return "(this text was erased)"
    return text if len(text) <= longest else f"{text[:longest]}…"


def line_of(store: EventStore, row: FindingRow) -> FindingLine:
    """A finding in a list."""
    return FindingLine(
        id=row.id[:LONGEST_ID],
        session=row.session,
        seq=row.seq,
        detector=row.detector,
        severity=row.severity,
        verdict=row.verdict,
        message=told_of(store, row.message),
        at=row.at,
    )
