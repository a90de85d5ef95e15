"""Session databases: of SqliteSessionService, and of DatabaseSessionService in both of its schemas.

The older schema pickles the actions of an event; such bytes are kept as they are and never loaded.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import decode_json
from ledger.events.keeping import SourceKept
from ledger.importers import Desk, Item
from ledger.importers._google_adk.fields import FORMAT
from ledger.importers._google_adk.teller import SessionFacts, Teller
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import record, words
from ledger.importers._plain.scribe import utc_time
from ledger.importers._sqlite import Database, Tables, open_database

_SESSIONS = {"app_name", "user_id", "id", "state", "create_time"}
_EVENTS = {"id", "app_name", "user_id", "session_id", "invocation_id", "timestamp"}
_JSON_COLUMNS = ("content", "grounding_metadata", "custom_metadata", "usage_metadata", "citation_metadata")
_OLD_COLUMNS = (
    "id",
    "invocation_id",
    "author",
    "branch",
    "partial",
    "turn_complete",
    "error_code",
    "error_message",
    "interrupted",
)
_SESSIONS_SAVED = """
select app_name, user_id, id, state, create_time from sessions
union all
select distinct app_name, user_id, session_id, null, null from events
where not exists (
    select 1 from sessions
    where sessions.app_name is events.app_name and sessions.user_id is events.user_id
        and sessions.id is events.session_id
)
order by 1, 2, 3
"""  # events whose session has no row are told all the same


def is_database(tables: Tables) -> bool:
    """Whether the tables are ADK's."""
    events = set(tables.get("events", ()))
    return (
        set(tables.get("sessions", ())) >= _SESSIONS
        and events >= _EVENTS
        and bool(events & {"event_data", "actions"})
    )


def database_items(path: Path, desk: Desk) -> Iterator[Item]:
    """The sessions of a database, one after the other, and the states that they share."""
    with open_database(path) as database:
        tables = database.tables()
        for app, user, session, state, created in database.rows(_SESSIONS_SAVED):
            desk.tally.native["session"] += 1
            facts = SessionFacts(
                session_name(app, user, session, desk), words(app), words(user), utc_time(created)
            )
            teller = Teller(desk, facts)
            yield teller.begin(None)
            yield teller.beside("state", _json(state), None)
            yield from _events(database, tables["events"], (app, user, session), teller, desk)
        yield from _shared(database, tables, desk)


def session_name(app: Any, user: Any, session: Any, desk: Desk) -> str:
    """A session's name: its id is unique for a user of an app alone."""
    named = [part if isinstance(part, str) and part else "-" for part in (app, user, session)]
    return ":".join(named) if isinstance(session, str) and session else desk.fallback_session(FORMAT)


def _json(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return decode_json(value)
        except ValueError:
            return value
    return value if not isinstance(value, bytes) else {"bytes": len(value)}


def _events(
    database: Database, columns: tuple[str, ...], session: tuple[Any, ...], teller: Teller, desk: Desk
) -> Iterator[Item]:
    """Events in the order in which they were written."""
    where = (
        "where events.app_name is ? and events.user_id is ? and events.session_id is ? order by events.rowid"
    )
    if "event_data" in columns:
        for name, data in database.rows(f"select events.id, events.event_data from events {where}", session):  # noqa: S608
            desk.tally.lines += 1
            yield _one(name, data, teller, desk)
        return
    wanted = [name for name in (*_OLD_COLUMNS, *_JSON_COLUMNS, "timestamp", "actions") if name in columns]
    listed = ", ".join(f"events.{name}" for name in wanted)
    for row in database.rows(f"select {listed} from events {where}", session):  # noqa: S608
        desk.tally.lines += 1
        yield from _old(dict(zip(wanted, row, strict=True)), teller, desk)


def _one(name: Any, data: Any, teller: Teller, desk: Desk) -> Item:
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    line = desk.tally.lines
    try:
        event = decode_json(raw) if isinstance(raw, bytes) else None
        if not isinstance(event, dict):
            raise ValueError(f"found {type(event).__name__}")
    except ValueError as error:
        kept = raw if isinstance(raw, bytes) else None
        damage = desk.damage(line, f"expected a JSON object in event {words(name)}: {error}", kept)
        teller.story.place = Place(f"damage:{words(name) or line}", line, None, kept or b"")
        return teller.story.item([teller.story.draft(damage)])
    return teller.event(event, line, raw)


def _old(row: dict[str, Any], teller: Teller, desk: Desk) -> Iterator[Item]:
    """An event of the older schema, whose fields are columns and whose actions are a pickle."""
    pickled = row.pop("actions", None)
    event = {name: value for name, value in row.items() if value is not None and name not in _JSON_COLUMNS}
    for name in _JSON_COLUMNS:
        if row.get(name) is not None:
            event[name] = _json(row[name])
    event["timestamp"] = utc_time(row.get("timestamp"))
    event = {name: value for name, value in event.items() if not isinstance(value, bytes)}
    if isinstance(event.get("partial"), int):
        event["partial"] = event["partial"] == 1
    item = teller.event(event, desk.tally.lines, b"")
    if isinstance(pickled, bytes):
        body = teller.story.keep.raw(pickled, "pickled actions")
        kept = SourceKept(native_type="event:pickled actions", recognized=False, body=body)
        desk.tally.unknown["event:pickled actions"] += 1
        item.drafts.append(teller.story.draft(kept))
    yield item


def _shared(database: Database, tables: Tables, desk: Desk) -> Iterator[Item]:
    """States of apps and users, which belong to no session."""
    story = Story(desk, FORMAT, desk.fallback_session(FORMAT), "gemini")
    for table, owner in (("app_states", "app_name"), ("user_states", "user_id")):
        if not {owner, "state"} <= set(tables.get(table, ())):
            continue
        for name, state in database.rows(f"select {owner}, state from {table} order by rowid"):  # noqa: S608
            body = _json(state)
            if not record(body):
                continue
            desk.tally.native[table] += 1
            kept: Draft = story.kept(table, {owner: words(name), "state": body})
            digest = story.keep.json(body, table).digest[:32]
            story.place = Place(f"{table}:{words(name)}:{digest}")
            yield story.item([kept])
