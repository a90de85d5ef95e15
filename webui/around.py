"""What belongs to one record: the rest of its call, its question, findings and notes about it. Renders nothing."""

from itertools import islice

from ledger.events import BY_NAME, Event, Record
from ledger.events.compaction import CompactionDone
from ledger.events.recovery import CheckpointTaken
from ledger.home import Ledger
from ledger.store import EventStore
from ledger.views.finding_rows import Sought
from ledger.views.findings_list import FindingsView
from webui.dependencies import segment
from webui.evidence import LONGEST_ID, told_of
from webui.page import Context

_NEAR = 200
_PARTS = 8
_SAID = 10
_LOOKED_AT = 200
_SESSIONS = {
    "to_session": "work handed to",
    "from_session": "result of",
    "parent": "delegated by",
    "branch": "branch",
}
"""Fields that name another session, and what that is to the record."""

_ORIGINS = ("session.forked", "replay.started")
_CALLS = tuple(
    name
    for name in BY_NAME
    if name.startswith(("tool_call.", "model_call.", "approval.", "effect.", "policy.evaluated"))
    and name != "model_call.chunk"
)
"""Events that tell of a call."""


class Link(Context):
    """Where something that belongs to a record is."""

    name: str
    """What it is to the record."""
    told: str
    """What it is called."""
    href: str
    """Its address."""


class Note(Context):
    """A note about a record."""

    by: str
    """Who wrote it."""
    at: str
    """When."""
    text: str
    """Its words."""
    session: str
    """Session that holds it."""
    seq: int
    """Its record."""


def links_of(store: EventStore, record: Record) -> list[Link]:
    """What belongs to a record and stands elsewhere."""
    event, base = record.event, f"/sessions/{segment(record.session)}"
    found = [*_of_call(store, record), *_named(event, record.session), *_sessions(store, record)]
    if isinstance(event, CheckpointTaken):
        found.append(Link(name="go back", told="roll back to it…", href=f"{base}/rollback?to={record.seq}"))
    if isinstance(event, CompactionDone):
        query = f"a={record.seq - 1}&b={record.seq}&section=context"
        found.append(Link(name="context", told="what it took out", href=f"{base}/diff?{query}"))
        href = f"{base}/constraints?at={record.seq}"
        found.append(Link(name="constraints", told="which of them it kept, and which it lost", href=href))
    return found


def _of_call(store: EventStore, record: Record) -> list[Link]:
    """The other records of the same call, as far as they are near."""
    call = getattr(record.event, "call_id", None)
    if not call or record.type not in _CALLS:
        return []
    near = store.read(record.session, after=max(0, record.seq - _NEAR), upto=record.seq + _NEAR, names=_CALLS)
    same = (one for one in near if getattr(one.event, "call_id", None) == call and one.seq != record.seq)
    return [
        Link(
            name="same call",
            told=f"#{one.seq} {one.type}",
            href=f"/sessions/{segment(one.session)}/events/{one.seq}",
        )
        for one in islice(same, _PARTS)
    ]


def _named(event: Event, session: str) -> list[Link]:
    """The question or the finding that an event names."""
    approval, finding = getattr(event, "approval_id", None), getattr(event, "finding_id", None)
    found = []
    if approval and len(approval) <= LONGEST_ID:
        href = f"/approvals/{segment(approval)}?session={segment(session)}"
        found.append(Link(name="question", told="what was asked, and the answer", href=href))
    if finding:
        href = f"/findings/{segment(finding[:LONGEST_ID])}"
        found.append(Link(name="finding", told="the finding with its evidence", href=href))
    return found


def _sessions(store: EventStore, record: Record) -> list[Link]:
    """Other sessions that an event names, where the ledger has them."""
    names = dict(_SESSIONS)
    if record.type in _ORIGINS:
        names["origin"] = "origin"
    found = []
    for field, name in names.items():
        other = getattr(record.event, field, None)
        if isinstance(other, str) and other != record.session and _is_there(store, other):
            found.append(Link(name=name, told=other, href=f"/sessions/{segment(other)}"))
    return found


def _is_there(store: EventStore, session: str) -> bool:
    """Whether the ledger has a session; a name with half a character is none of its own."""
    return session == session.encode("utf-8", "replace").decode() and store.head(session).seq > 0


def said_of(ledger: Ledger, record: Record) -> tuple[list[Link], list[Note]]:
    """Findings that name a record as witness, as far as its own session raised them; and notes about it."""
    with FindingsView(ledger.home, ledger.store) as view:
        view.catch_up()
        rows = view.rows(Sought(session=record.session), _LOOKED_AT)
        notes = view.notes([record.place], _SAID)
    named = [row for row in rows if record.place in row.witnesses][:_PARTS]
    return [
        Link(
            name="finding",
            told=f"{row.severity}: {told_of(ledger.store, row.message, 160) or row.detector}",
            href=f"/findings/{segment(row.id[:LONGEST_ID])}",
        )
        for row in named
    ], [
        Note(
            by=note.actor or "somebody",
            at=note.at,
            text=told_of(ledger.store, note.message),
            session=note.session,
            seq=note.seq,
        )
        for note in notes
    ]
