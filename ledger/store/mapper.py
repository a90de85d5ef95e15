"""Record <-> stored row, validated, under our own type names. Never imports a class that data names."""

import hashlib
from typing import Any

import orjson
from eventsourcing.persistence import Mapper, Notification, StoredEvent, Transcoder
from pydantic import ValidationError

from ledger.errors import RecordDamagedError, UnknownEventError
from ledger.events import BY_NAME, Actor, Draft, Event, Record, Source, UnknownEvent
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.upcasts import upcast

GENESIS = bytes(32)
"""`previous` of a session's first record."""


def record_hash(session: str, seq: int, name: str, state: bytes) -> bytes:
    """SHA-256 over a record as stored: `LENGTH|SEQ|LENGTH|SESSION NAME STATE`, without the spaces, in UTF-8.

    The lengths of session and name, in characters, frame the parts, so that no two records share an input.
    """
    return hashlib.sha256(f"{len(session)}|{seq}|{len(name)}|{session}{name}".encode() + state).digest()


def encode_state(draft: Draft, cause: int | str | None, recorded_at: str, previous: str) -> bytes:
    """Canonical JSON (RFC 8785) of a draft with its stamp and link. Fields at their default are left out."""
    event = draft.event
    state: dict[str, Any] = {
        "data": event.__pydantic_serializer__.to_python(event, mode="json", exclude_defaults=True),
        "grade": draft.grade,
        "prev": previous,
        "recorded_at": recorded_at,
        "v": event.VERSION,
    }
    if event.IGNORABLE:
        state["ignorable"] = True
    if draft.occurred_at is not None:
        state["occurred_at"] = draft.occurred_at
    actor = draft.actor
    if actor is not None:
        state["actor"] = {"kind": actor.kind} if actor.id is None else {"id": actor.id, "kind": actor.kind}
    if cause is not None:
        state["cause"] = cause
    if draft.correlation is not None:
        state["correlation"] = draft.correlation
    if draft.agent is not None:
        state["agent"] = draft.agent
    if draft.depth:
        state["depth"] = draft.depth
    source = draft.source
    if source is not None:
        parts = (
            ("format", source.format),
            ("file", source.file),
            ("item", source.item),
            ("line", source.line),
            ("rest", source.rest),
        )
        state["source"] = {name: value for name, value in parts if value is not None}
    try:
        return orjson.dumps(state, option=orjson.OPT_SORT_KEYS)
    except (
        TypeError
    ):  # a lone surrogate, or an integer beyond 64 bits: the reader must not use the fast way either
        state["exact"] = True
        return canonical_json(state)


class RecordMapper(Mapper[str]):
    """The library's extension point for our record format."""

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """Refuses: the link to the record before is made inside the append, by `encode_state`."""
        raise NotImplementedError("append through EventStore, which links records")

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        """The Record of a row; see `decode_record`."""
        return decode_record(stored_event)


def decode_record(stored: StoredEvent) -> Record:
    """The validated record of a row. Raises RecordDamagedError or UnknownEventError, which name `SESSION#SEQ`."""
    session, seq, name = str(stored.originator_id), stored.originator_version, stored.topic
    try:
        state = _decode_state(stored.state)
        source = state.get("source")
        actor = state.get("actor")
        return Record(
            session=session,
            seq=seq,
            position=stored.id if isinstance(stored, Notification) else 0,
            event=_event(session, seq, name, state),
            recorded_at=state["recorded_at"],
            previous=state["prev"],
            hash=record_hash(session, seq, name, stored.state).hex(),
            occurred_at=state.get("occurred_at"),
            actor=Actor(actor["kind"], actor.get("id")) if actor else None,
            cause=state.get("cause"),
            correlation=state.get("correlation"),
            agent=state.get("agent"),
            depth=state.get("depth", 0),
            source=Source(**source) if source else None,
            grade=state["grade"],
        )
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordDamagedError(f"{session}#{seq}", f"{type(error).__name__}: {error}") from error


def _decode_state(state: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = orjson.loads(state)
        if "exact" not in fields:
            return fields
    except orjson.JSONDecodeError:
        pass
    exact: dict[str, Any] = decode_json(state)
    return exact


def _event(session: str, seq: int, name: str, state: dict[str, Any]) -> Event:
    event_class = BY_NAME.get(name)
    version: int = state["v"]
    if event_class is None or version > event_class.VERSION:
        if state.get("ignorable") is True:
            return UnknownEvent(stored_type=name, stored_version=version, data=state["data"])
        raise UnknownEventError(f"{session}#{seq}", name, version)
    fields = state["data"]
    if version < event_class.VERSION:
        fields = upcast(name, version, event_class.VERSION, fields)
    event: Event = event_class.__pydantic_validator__.validate_python(fields)
    return event


class NoTranscoder(Transcoder):
    """The library asks for one; our mapper writes the bytes itself."""

    def encode(self, obj: object) -> bytes:
        """Not used."""
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        """Not used."""
        raise NotImplementedError
