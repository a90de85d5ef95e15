"""OpenAI Agents SDK: exported trace spans, saved run states, and session databases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Torn, json_pieces, partial_json
from ledger.importers._openai_agents.items import FORMAT
from ledger.importers._openai_agents.session import is_session_database, session_items
from ledger.importers._openai_agents.spans import is_span_entry, span_items
from ledger.importers._openai_agents.state import state_items
from ledger.importers._sqlite import MAGIC, tables_of

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "OpenAI Agents SDK (0.24): trace spans, RunState JSON, SQLiteSession databases"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Requests as they were sent: system prompt, tool schemas and parameters, but for spans kept with their content.",
    "Retries of model calls: the SDK's own records show one call, however often it was sent.",
    "Who approved or rejected a call, and when: a saved state holds the decision alone.",
    "In exported spans of the Responses API, what was said: only the response id and the usage.",
    "In exported spans, the id of a tool call: calls are joined by name and arguments.",
    "Why a tool failed: by default the model and the spans are given a fixed sentence.",
    "In a session database, agents, models, usage, approvals, and times finer than a second.",
    "In a session database, what a compaction deleted.",
    "In a saved state, the model calls of agents that were called as tools.",
)


def recognizes(sniff: Sniff) -> bool:
    """A database with the SDK's tables, a saved state, or exported spans."""
    if sniff.start.startswith(MAGIC):
        return is_session_database(tables_of(sniff))
    return _shape(sniff.json) is not None


def _shape(first: Any) -> str | None:
    """`state` or `spans`, by what a document begins with."""
    if isinstance(first, dict):
        if "$schemaVersion" in first and {"original_input", "current_agent"} <= first.keys():
            return "state"
        if first.keys() == {"data"} and isinstance(first["data"], list):
            first = first["data"]
    entry = first[0] if isinstance(first, list) and first else first
    return "spans" if is_span_entry(entry) else None


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The runs of a file."""
    with open_source(path) as stream:
        start = stream.read(64 * 1024)
    if start.startswith(MAGIC):
        yield from session_items(path, desk)
    elif _shape(partial_json(start)) == "state":
        yield from _state(path, desk)
    else:
        yield from span_items(path, desk, start)


def _state(path: Path, desk: Desk) -> Iterator[Item]:
    """A saved state is one document, whose parts refer to each other: it is held whole."""
    state: dict[str, Any] = {}
    torn: list[Torn] = []
    with open_source(path) as stream:
        for piece in json_pieces(stream):
            if isinstance(piece, Torn):
                torn.append(piece)
            elif len(piece.path) == 1 and isinstance(piece.path[0], str):
                state[piece.path[0]] = piece.value
    yield from state_items(state, desk)
    for number, place in enumerate(torn):
        event = desk.damage(None, place.reason, place.raw)
        draft = Draft(event, source=Source(FORMAT, desk.file, "damage"), grade=GRADE)
        key = f"damage:{number}:{desk.keep.digest(place.raw)[:16]}"
        yield Item(desk.fallback_session(FORMAT), key, [draft], None, place.raw)
