"""Links drafts into a session: seq, stamp, hash of the record before. The inner loop of every append."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from ledger.events import Draft, Record, Sibling
from ledger.store.mapper import encode_state, record_hash
from ledger.store.rows import Attachments


class Head(NamedTuple):
    """Where a session stands."""

    seq: int
    """Last seq, 0 for an empty session."""
    hash: bytes
    """Hash of the last record, 32 zero bytes for an empty session."""


class SourceKey(NamedTuple):
    """Claims that a draft comes from a source record, so that it is never recorded twice."""

    session: str
    """Session of the draft."""
    place: int
    """Index of the draft among those of its session in this append."""
    key: bytes
    """16-byte digest of session and native identity."""
    line: int
    """Line in the source."""
    check: int
    """64-bit check of the source record's bytes."""


@dataclass(eq=False, slots=True)
class Request:
    """One caller's append, waiting for the commit that several callers share."""

    drafts: Mapping[str, Sequence[Draft]]
    """Drafts by session."""
    stamp: Callable[[], str]
    """Gives the time of recording."""
    expect: Mapping[str, int]
    """Seq that a session must be at."""
    attachments: Attachments
    """What commits with the records."""
    keys: Sequence[SourceKey]
    """Source records that the drafts come from."""
    done: bool = False
    """Whether it was committed or refused."""
    error: BaseException | None = None
    """Why it was refused."""
    records: list[Record] = field(default_factory=list)
    """The records, once committed."""


class Linked(NamedTuple):
    """A draft with its place, ready to be stored."""

    request: Request
    """The append that it belongs to."""
    stored: StoredEvent
    """The row."""
    hash: bytes
    """Its hash."""
    draft: Draft
    """The draft."""
    previous: str
    """Hash of the record before, hexadecimal."""
    recorded_at: str
    """Its stamp."""
    cause: int | str | None
    """Its cause, siblings resolved."""


def link(request: Request, session: str, drafts: Sequence[Draft], head: Head, linked: list[Linked]) -> Head:
    """Add the drafts, linked behind `head`, to `linked`; give the new head."""
    seq, digest = head
    base, previous = seq, digest.hex()
    stamp = request.stamp
    for draft in drafts:
        seq += 1
        recorded_at = stamp()
        cause = draft.cause
        if isinstance(cause, Sibling):
            cause = base + 1 + cause.place
        name = draft.event.TYPE
        state = encode_state(draft, cause, recorded_at, previous)
        digest = record_hash(session, seq, name, state)
        stored = StoredEvent(session, seq, name, state)
        linked.append(Linked(request, stored, digest, draft, previous, recorded_at, cause))
        previous = digest.hex()
    return Head(seq, digest)


def to_record(linked: Linked, position: int) -> Record:
    """The record that was stored at a position."""
    _, stored, digest, draft, previous, recorded_at, cause = linked
    return Record(
        str(stored.originator_id),
        stored.originator_version,
        position,
        draft.event,
        recorded_at,
        previous,
        digest.hex(),
        draft.occurred_at,
        draft.actor,
        cause,
        draft.correlation,
        draft.agent,
        draft.depth,
        draft.source,
        draft.grade,
    )
