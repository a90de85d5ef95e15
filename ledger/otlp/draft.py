"""Items and drafts with what surrounds them: time, agent, source. Holds no rule about what happened."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from ledger.events import ContentRef, Draft, Event, Source
from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.intake import Desk, Item
from ledger.otlp.records import LogRecord, Origin, Record, Span

FORMAT = "otlp"
"""Name of the format."""

GRADE: Grade = "semantic"
"""What it proves at best: the meaning, as an instrumentation saw it."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # UTC: a zone costs as much as the time
_MESSAGES_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the run a span stands."""

    session: str
    """Session."""
    depth: int = 0
    """Delegation depth."""
    agent: str | None = None
    """Agent at work."""
    tool: Span | None = None
    """Tool span around it, since the session's agent began."""
    tool_call: str | None = None
    """Id of that call."""


def time_of(nanoseconds: int) -> str | None:
    """A time as RFC 3339; None for none, and for one beyond the calendar."""
    if nanoseconds <= 0:
        return None
    try:
        time = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None
    return f"{time.isoformat(timespec='microseconds')}Z"


def duration_of(span: Span) -> int | None:
    """Milliseconds from start to end."""
    return (span.end - span.start) // 1_000_000 if 0 < span.start <= span.end else None


class Scribe:
    """Makes items and drafts, and keeps content."""

    def __init__(self, desk: Desk, file: str | None) -> None:
        self.desk = desk
        self._file = file
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._messages: OrderedDict[bytes, ContentRef] = OrderedDict()

    def message(self, message: Any, where: str) -> ContentRef:
        """Keep a message. The same one comes again in every later call, so it is looked at once."""
        try:
            raw = orjson.dumps(message)
        except (TypeError, orjson.JSONEncodeError):
            raw = canonical_json(message)
        key = hashlib.sha256(raw).digest()
        found = self._messages.get(key)
        if found is None:
            found = self._messages[key] = self.desk.keep.json(message, where)
            if len(self._messages) > _MESSAGES_KEPT:
                self._messages.popitem(last=False)
        return found

    def content(self, value: Any, where: str) -> ContentRef:
        """Keep a value: a text as text, anything else as JSON."""
        return (
            self.desk.keep.text(value, where) if isinstance(value, str) else self.desk.keep.json(value, where)
        )

    def remember_origin(self, session: str, origin: Origin) -> None:
        """From now on records of the session are told from this origin by saying another."""
        self._origins[session] = origin
        if len(self._origins) > 1000:
            self._origins.popitem(last=False)

    def rest(self, record: Record, session: str, used: Iterable[str] = ()) -> str:
        """What no event field carries."""
        if isinstance(record, Span):
            body = record.whole(without=set(used))
        else:
            body = {**record.rest, "time": str(record.time)}
        if record.origin != self._origins.get(session):
            body["resource"], body["scope"] = record.origin.resource, record.origin.scope
        return self.desk.keep.json(body, "span").digest

    def draft(self, event: Event, record: Record, place: Place, at: int, *, rest: str | None = None) -> Draft:
        """A draft about a record."""
        return Draft(
            event,
            occurred_at=time_of(at),
            correlation=record.trace or None,
            agent=place.agent,
            depth=place.depth,
            source=Source(FORMAT, self._file, record.key, record.number, rest),
            grade=GRADE,
        )

    def kept(self, record: Record, place: Place, native: str, *, known: bool) -> list[Draft]:
        """A record that carries no loop action, whole."""
        if isinstance(record, LogRecord):
            rest = self.rest(record, place.session)
            event = SourceKept(
                native_type=native, recognized=known, body=self.desk.keep.json(record.whole(), "log record")
            )
            return [self.draft(event, record, place, record.time, rest=rest)]
        body = record.whole()
        if record.origin != self._origins.get(place.session):
            body["resource"], body["scope"] = record.origin.resource, record.origin.scope
        event = SourceKept(native_type=native, recognized=known, body=self.desk.keep.json(body, "span"))
        return [self.draft(event, record, place, record.start)]

    def item(
        self, session: str, key: str, drafts: list[Draft], record: Record, *, cause: str | None = None
    ) -> Item:
        """An item that is part of a record."""
        return Item(session, key, drafts, record.number, cause=cause)

    def main_item(
        self, session: str, key: str, drafts: list[Draft], record: Record, *, cause: str | None = None
    ) -> Item:
        """The item that stands for a record: the same bytes are the same record."""
        return Item(session, key, drafts, record.number, record.fingerprint(), cause=cause)
