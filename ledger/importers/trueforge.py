"""TrueForge: session events as its API lists or streams them (JSON, NDJSON), and its SQLite tables."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._harness.lines import damage_item, entries
from ledger.importers._harness.values import items, record, words
from ledger.importers._jsonb import decode_jsonb
from ledger.importers._sqlite import Database, open_database, tables_of
from ledger.importers._trueforge.session import SessionReader

FORMAT = "trueforge"
TITLE = "TrueForge session events and SQLite tables (types of 0.180; not run)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Who decided an approval, when, and under which policy version.",
    "A compaction: it leaves no event. It is inferred from context rows that are gone, or from fewer input tokens.",
    "In exported events: the session's id, and what a compaction wrote.",
    "Tool schemas and parameters of model requests, and the wire form of messages.",
    "Sessions that were deleted: all their rows go with them.",
)

_KINDS = (
    rb"(?:turn\.(?:created|done|update)|model\.message|thread\.(?:created|done)|sandbox\.created"
    rb"|tool\.(?:response|approval_required|response_required)|mcp\.(?:auth_required|initialized?))"
)
_EVENT = re.compile(rb'"type"\s*:\s*"' + _KINDS + rb'"')
_SHAPE = re.compile(rb"\A\s*(?:\[\s*)?\{")
_TABLES = {"session", "turn", "session_event", "thread_context_log"}
_LARGEST_LIST = 256 * 1024 * 1024


def recognizes(sniff: Sniff) -> bool:
    """Its tables, or events of its types with ids and times."""
    if tables_of(sniff).keys() >= _TABLES:
        return True
    start = sniff.start.removeprefix(b"\xef\xbb\xbf")
    if not _SHAPE.match(start) or not _EVENT.search(start):
        return False
    return (
        b'"created_at"' in start
        and (b'"thread_id"' in start or b'"turn_id"' in start)
        and b'"jsonrpc"' not in start
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The items of a file or database."""
    with open_source(path) as stream:
        start = stream.read(64 * 1024)
    if start.startswith(b"SQLite format 3\0"):
        with open_database(path) as database:
            yield from _database_items(database, desk)
        return
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].strip()
    try:
        native = record(decode_json(first))
    except ValueError:
        native = {}
    if "type" in native or "event" in native:
        yield from _lines(path, desk)
    else:
        yield from _list(path, desk)


def _lines(path: Path, desk: Desk) -> Iterator[Item]:
    readers = _Readers(desk, desk.fallback_session(FORMAT))
    for entry in entries(path, desk):
        if entry.damage is not None:
            yield damage_item(desk, readers.session, entry, FORMAT)
        if entry.value is None:
            readers.root.damaged()
        else:
            yield from readers.event(entry.value, entry.line)


def _list(path: Path, desk: Desk) -> Iterator[Item]:
    with open_source(path) as stream:
        content = stream.read(_LARGEST_LIST + 1)
    try:
        native = decode_json(content) if len(content) <= _LARGEST_LIST else None
    except ValueError as error:
        raise InputError(f"{path}: expected a list of events as JSON, found: {error}") from error
    rows = items(native) or items(record(native).get("data")) or items(record(native).get("events"))
    readers = _Readers(desk, desk.fallback_session(FORMAT))
    for index, row in enumerate(rows, 1):
        desk.tally.lines = index
        yield from readers.event(record(row), index)


_SESSIONS = """
select session_id from (
    select session_id, created_at from session
    union all
    select distinct session_id, null from session_event
    where not exists (select 1 from session where session.session_id is session_event.session_id)
) order by created_at is null, created_at, session_id
"""  # events whose session has no row are told all the same


def _database_items(database: Database, desk: Desk) -> Iterator[Item]:
    query = "select turn_id, event, created_at from session_event where session_id is ? order by event_id"
    for (session,) in list(database.rows(_SESSIONS)):
        desk.tally.lines += 1
        desk.tally.native["session"] += 1
        readers = _Readers(desk, words(session) or desk.fallback_session(FORMAT))
        lost = list(_lost(database, session))
        readers.has_contexts = bool(lost)
        current: Any = None
        for turn, event, _ in database.rows(query, (session,)):
            desk.tally.lines += 1
            if turn != current:
                current = turn
                yield from _told_lost(database, readers, lost, turn)
            value, failure = _value(event)
            if failure is not None:
                yield readers.root.damage(
                    desk.tally.lines, f"an event of session {session}: {failure}", event
                )
                continue
            native = {"turn_id": None if isinstance(turn, bytes) else turn, "event": value}
            yield from readers.event(native, desk.tally.lines)
        yield from _told_lost(database, readers, lost, None)


_Lost = tuple[str, str | None, str | None, list[Any], list[Any]]


def _lost(database: Database, session: Any) -> Iterator[_Lost]:
    """Thread, turn before, turn, and context rows of both, where one turn had rows that the next has no more."""
    if "turn_thread_context" not in database.tables():
        return
    query = (
        "select context.thread_id, context.turn_id, context.append_id from turn_thread_context as context "
        "join turn on turn.session_id = context.session_id and turn.turn_id = context.turn_id "
        "where context.session_id is ? order by context.thread_id, turn.created_at, context.turn_id, context.pos"
    )
    before: tuple[str | None, str | None, list[Any]] = (None, None, [])
    now: tuple[str | None, str | None, list[Any]] = (None, None, [])
    for thread, turn, append_id in [*database.rows(query, (session,)), (None, None, None)]:
        if (words(thread), words(turn)) != now[:2]:
            if now[0] is not None and now[0] == before[0] and set(before[2]) - set(now[2]):
                yield now[0], before[1], now[1], before[2], now[2]
            before, now = now, (words(thread), words(turn), [])
        now[2].append(append_id)


def _told_lost(database: Database, readers: "_Readers", lost: list[_Lost], turn: Any) -> Iterator[Item]:
    """The compactions of a turn; of all that are left when no turn is named."""
    for one in [one for one in lost if turn is None or one[2] == turn]:
        lost.remove(one)
        thread, before, after, had, has = one
        gone = [name for name in had if name not in set(has)]
        fresh = next((name for name in has if name not in set(had)), None)
        found = database.row("select body from thread_context_log where append_id = ?", (fresh,))
        summary = _value(found[0])[0] if found is not None else None
        yield readers.of(thread).lost(before, after, gone, len(had), len(has), summary)


def _value(content: Any) -> tuple[Any, str | None]:
    """JSON as text, or as SQLite's JSONB."""
    try:
        if isinstance(content, str):
            return decode_json(content.encode("utf-8", "surrogateescape")), None
        if isinstance(content, bytes):
            return (
                decode_json(content)
                if content[:1] == b"{" and content[-1:] == b"}"
                else decode_jsonb(content)
            ), None
    except ValueError as error:
        return None, f"expected JSON or JSONB, found: {error}"
    return None, f"expected JSON or JSONB, found {type(content).__name__}"


class _Readers:
    """One reader for each thread of a session: the main one is the session, the others are its sub-agents."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.session = session
        self._desk = desk
        self._readers: dict[str, SessionReader] = {}
        self.has_contexts = False
        self.root = self.of("main")

    def of(self, thread: str | None) -> SessionReader:
        """The reader of a thread."""
        name = thread or "main"
        if name not in self._readers:
            session = self.session if name == "main" else f"{self.session}.{name}"
            self._readers[name] = SessionReader(self._desk, FORMAT, session, self.session)
        return self._readers[name]

    def event(self, native: dict[str, Any], line: int) -> Iterator[Item]:
        """One event, with or without the envelope that names its turn."""
        event = record(native.get("event")) if "event" in native else native
        turn = words(native.get("turn_id")) or words(event.get("turn_id"))
        kind = words(event.get("type")) or "none"
        thread = words(event.get("thread_id")) or "main"
        if kind in ("thread.created", "thread.done"):
            parent = words(record(event.get("parent")).get("thread_id")) or "main"
            yield from self.of(parent).child(
                event, turn, line, canonical_json(native), self.of(thread).story.session
            )
            if kind == "thread.created":
                yield from self.of(thread).begin(event, line)
            return
        self.of(thread).counts_tokens = not self.has_contexts
        yield from self.of(thread).event(event, turn, line, canonical_json(native))
