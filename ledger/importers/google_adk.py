"""Google ADK: session databases, session and event JSON, evalsets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.events.canonical import canonical_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._google_adk.database import database_items, is_database, session_name
from ledger.importers._google_adk.evalset import case_items, is_old_turn, old_items
from ledger.importers._google_adk.fields import FORMAT, get
from ledger.importers._google_adk.teller import SessionFacts, Teller
from ledger.importers._harness.values import record, words
from ledger.importers._json_pieces import Piece, Torn, json_pieces, partial_json
from ledger.importers._sqlite import MAGIC, tables_of

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "Google ADK (2.13): session databases of both services, session and event JSON, evalsets"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Requests as they were sent: instructions, tool schemas, configuration, and how turns of other agents are quoted.",
    "Model calls inside an agent that was called as a tool: they are in a session that is not kept.",
    "Which tool is an agent: such a call looks like any other.",
    "Provider's ids of responses, retries, and with Gemini the provider's ids of calls.",
    "The request by which a compaction was summarised.",
    "Who answered a confirmation, beyond the user of the session.",
    "In databases of the older schema, transfers, confirmations, compactions and rewinds: pickled, never loaded.",
    "Evalsets show expected conversations, not ones that took place.",
)

_SPREAD = frozenset({"events", "event_logs", "eval_cases", "evalCases"})
_LOGS_KEPT = 20_000


def recognizes(sniff: Sniff) -> bool:
    """A database with ADK's tables, or its JSON."""
    if sniff.start.startswith(MAGIC):
        return is_database(tables_of(sniff))
    return _shape(sniff.json) is not None


def _shape(first: Any) -> str | None:
    """`session`, `events`, `evalset` or `turns`, by what a document begins with."""
    if isinstance(first, list):
        if first and _is_event(first[0]):
            return "events"
        return "turns" if first and is_old_turn(first[0]) else None
    fields = record(first)
    if get(fields, "eval_cases") is not None and isinstance(get(fields, "eval_cases"), list):
        return "evalset"
    if not isinstance(fields.get("id"), str):
        return None
    if isinstance(get(fields, "app_name"), str) and isinstance(get(fields, "user_id"), str):
        return "session"
    events = fields.get("events")
    is_early = "context" in fields and isinstance(events, list) and bool(events) and _is_event(events[0])
    return "session" if is_early else None


def _is_event(value: Any) -> bool:
    return (
        isinstance(get(value, "invocation_id"), str)
        and isinstance(get(value, "author"), str)
        and bool(record(value).keys() & {"content", "actions"})
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The sessions of a file."""
    with open_source(path) as stream:
        start = stream.read(64 * 1024)
    if start.startswith(MAGIC):
        yield from database_items(path, desk)
        return
    shape = _shape(partial_json(start))
    if shape == "evalset":
        yield from _evalset(path, desk, record(partial_json(start)))
    elif shape == "turns":
        turns = []
        for piece in _pieces(path, desk):
            if isinstance(piece, Item):
                yield piece
            else:
                turns.append(piece.value)
        yield from old_items(turns, desk)
    else:
        yield from _session(path, desk, record(partial_json(start)))


def _pieces(path: Path, desk: Desk) -> Iterator[Piece | Item]:
    """The parts of a document; a damaged rest as an item."""
    with open_source(path) as stream:
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Piece):
                yield piece
                continue
            event = desk.damage(None, piece.reason, piece.raw)
            draft = Draft(event, source=Source(FORMAT, desk.file, "damage"), grade=GRADE)
            key = f"damage:{desk.keep.digest(piece.raw)[:16]}"
            yield Item(desk.fallback_session(FORMAT), key, [draft], None, piece.raw)


def _session(path: Path, desk: Desk, first: dict[str, Any]) -> Iterator[Item]:
    """A session, or a list of events that names none."""
    app, user, named = get(first, "app_name"), get(first, "user_id"), first.get("id")
    if isinstance(app, str) or isinstance(user, str):
        name = session_name(app, user, named, desk)
    else:
        name = words(named) or desk.fallback_session(FORMAT)
    teller = Teller(desk, SessionFacts(name, words(app), words(user)))
    logs = _logs(path) if "event_logs" in first or "context" in first else {}
    yield teller.begin(1)
    for piece in _pieces(path, desk):
        if isinstance(piece, Item):
            yield piece
            continue
        match piece.path:
            case (int() as index,) | ("events", int() as index):
                desk.tally.lines += 1
                event = record(piece.value)
                log = logs.get(words(get(event, "id")) or "")
                yield teller.event(
                    event if event else {"value": piece.value}, index + 1, canonical_json(piece.value), log
                )
            case ("event_logs", int()):
                desk.tally.native["event_log"] += 1
                yield teller.beside("event_log", piece.value, None)
            case (str() as field,) if piece.value not in (None, "", [], {}):
                if field not in ("id", "app_name", "appName", "user_id", "userId"):
                    yield teller.beside(field, piece.value, None)
            case _:
                pass


def _logs(path: Path) -> dict[str, Any]:
    """Requests and responses by the event that they led to: early versions wrote these after the events."""
    found: dict[str, Any] = {}
    with open_source(path) as stream:
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Torn) or len(found) >= _LOGS_KEPT:
                break
            if len(piece.path) == 2 and piece.path[0] == "event_logs":
                name = words(get(piece.value, "event_id"))
                if name is not None:
                    found[name] = piece.value
    return found


def _evalset(path: Path, desk: Desk, first: dict[str, Any]) -> Iterator[Item]:
    """The cases of an evalset, each a session."""
    name = words(get(first, "eval_set_id"))
    for piece in _pieces(path, desk):
        if isinstance(piece, Item):
            yield piece
        elif len(piece.path) == 2 and isinstance(piece.path[1], int):
            desk.tally.native["eval_case"] += 1
            yield from case_items(piece.value, piece.path[1] + 1, desk, name)
