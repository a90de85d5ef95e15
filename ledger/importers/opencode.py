"""opencode databases: `~/.local/share/opencode/opencode.db`, by its event log, or by messages and parts before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import decode_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._harness.values import number, record, words
from ledger.importers._opencode.session import SessionReader
from ledger.importers._sqlite import Database, open_database, tables_of

FORMAT = "opencode"
TITLE = "opencode SQLite databases, event log or messages and parts (run with 1.18)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "System prompt, tool schemas and parameters of model requests, and how messages were laid out in them.",
    "Requests for titles, failed attempts and retries that left no message.",
    "Who answered when a permission was asked: only the rules in force and the outcome of the call are kept.",
    "What was streamed when: a part is written again and again, and only its last state joins the answer.",
    "In databases without an event log: the order in which things happened within a message, and earlier states.",
)

_EVENT_COLUMNS = {"id", "aggregate_id", "seq", "type", "data"}


def recognizes(sniff: Sniff) -> bool:
    """A database with opencode's tables of sessions, messages and parts."""
    tables = tables_of(sniff)
    return {"session", "message", "part"} <= tables.keys() and (
        {"project_id", "directory"} <= set(tables["session"])
        and {"session_id", "data"} <= set(tables["message"])
        and {"message_id", "data"} <= set(tables["part"])
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The database's items, session by session, in the order of their events."""
    with open_database(path) as database:
        tables = database.tables()
        logged: set[str] = set()
        if set(tables.get("event", ())) >= _EVENT_COLUMNS:
            yield from _events(database, desk, logged)
        yield from _projections(database, desk, logged, tables)


def _events(database: Database, desk: Desk, logged: set[str]) -> Iterator[Item]:
    reader: SessionReader | None = None
    query = "select aggregate_id, seq, id, type, data from event order by aggregate_id, seq, id"
    for session, seq, name, kind, data in database.rows(query):
        desk.tally.lines += 1
        session = words(session) or desk.fallback_session(FORMAT)
        if reader is None or reader.story.session != session:
            if reader is not None:
                yield from reader.finish()
            reader = SessionReader(desk, FORMAT, session)
            logged.add(session)
        key = f"seq:{seq}" if number(seq) is not None else f"event:{name}"
        kind = words(kind) or "none"
        desk.tally.native[kind] += 1
        body, failure = _json(data)
        if failure is not None:
            yield reader.damage(key, desk.tally.lines, f"event {key} of {session}: {failure}", data)
        else:
            yield from reader.event(key, desk.tally.lines, kind, record(body), _bytes(data))
    if reader is not None:
        yield from reader.finish()


def _projections(
    database: Database, desk: Desk, logged: set[str], tables: dict[str, tuple[str, ...]]
) -> Iterator[Item]:
    """Sessions that have no events of their own: told from the tables that hold their last state."""
    columns = tables.get("session", ())
    if not columns or "message" not in tables or "part" not in tables:
        return
    for row in database.rows("select * from session order by id"):
        found = dict(zip(columns, row, strict=True))
        session = words(found.get("id")) or desk.fallback_session(FORMAT)
        if session in logged:
            continue
        reader = SessionReader(desk, FORMAT, session)
        desk.tally.lines += 1
        desk.tally.native["session"] += 1
        times = {"created": found.get("time_created")}
        info = {
            **{name: value for name, value in found.items() if not isinstance(value, bytes)},
            "time": times,
        }
        info |= {"id": session, "parentID": found.get("parent_id")}
        yield from reader.event("session", desk.tally.lines, "session.created", {"info": info}, b"")
        yield from _messages(database, desk, reader, found.get("id"))
        yield from reader.finish()
    lost = "select distinct session_id from message where session_id not in (select id from session)"
    for (name,) in list(database.rows(lost)):  # messages whose session has no row
        if words(name) not in logged:
            reader = SessionReader(desk, FORMAT, words(name) or desk.fallback_session(FORMAT))
            yield from _messages(database, desk, reader, name)
            yield from reader.finish()


def _messages(database: Database, desk: Desk, reader: SessionReader, session: Any) -> Iterator[Item]:
    query = "select id, data from message where session_id is ? order by time_created, id"
    parts = "select id, data from part where message_id = ? order by time_created, id"
    for name, data in database.rows(query, (session,)):
        desk.tally.lines += 1
        desk.tally.native["message"] += 1
        info, failure = _json(data)
        if failure is not None or not isinstance(info, dict):
            reason = f"message {name} of {session}: {failure or 'expected a JSON object'}"
            yield reader.damage(f"message:{name}", desk.tally.lines, reason, data)
            continue
        body = {"info": {**info, "id": words(info.get("id")) or name}}
        yield from reader.event(f"message:{name}", desk.tally.lines, "message.updated", body, b"")
        for part, content in database.rows(parts, (name,)):
            desk.tally.lines += 1
            desk.tally.native["part"] += 1
            value, failure = _json(content)
            if failure is not None or not isinstance(value, dict):
                reason = f"part {part} of {session}: {failure or 'expected a JSON object'}"
                yield reader.damage(f"part:{part}", desk.tally.lines, reason, content)
                continue
            key = f"part:{part}:{words(record(value.get('state')).get('status')) or ''}"
            value = {**value, "id": words(value.get("id")) or part, "messageID": name}
            yield from reader.event(key, desk.tally.lines, "message.part.updated", {"part": value}, b"")


def _json(data: Any) -> tuple[Any, str | None]:
    if not isinstance(data, str | bytes):
        return None, f"expected JSON, found {type(data).__name__}"
    try:
        return decode_json(_bytes(data)), None
    except ValueError as error:
        return None, f"expected JSON, found: {error}"


def _bytes(data: Any) -> bytes:
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
