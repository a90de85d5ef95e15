"""CrewAI: dumps of the event bus, and checkpoints, which hold the events up to them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import canonical_json
from ledger.events.record import Grade
from ledger.events.session import SessionForked
from ledger.importers import Desk, Item, Sniff
from ledger.importers._crewai.events import FORMAT, Run
from ledger.importers._files import open_source
from ledger.importers._frameworks.document import pieces_of
from ledger.importers._harness.values import items, record, words
from ledger.importers._json_pieces import partial_json
from ledger.importers._plain.scribe import identity
from ledger.protocols.drafting import Place

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "CrewAI (1.15.30): event bus dump, JSON checkpoints"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "The bytes that went over the wire, and retries of model calls.",
    "Tool schemas and tool calls inside requests as they were sent: the dump prints what lies deep.",
    "Which of a model's calls a tool ran for: events of tools carry no call id, they are joined by name and arguments.",
    "Approvals: human input asked for on the terminal leaves no event.",
    "In a checkpoint of which the writing failed, anything: the run goes on without it.",
)


def recognizes(sniff: Sniff) -> bool:
    """A list of events with the bus's fields, or a checkpoint."""
    return _shape(sniff.json) is not None


def _shape(first: Any) -> str | None:
    """`events` or `checkpoint`, by what a document begins with."""
    if isinstance(first, list):
        entry = record(next(iter(first), None))
        return "events" if {"event_id", "timestamp", "type", "previous_event_id"} <= entry.keys() else None
    fields = record(first)
    is_saved = isinstance(fields.get("crewai_version"), str) and "branch" in fields
    return "checkpoint" if is_saved and fields.keys() & {"entities", "event_record"} else None


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The run of a file."""
    with open_source(path) as stream:
        first = partial_json(stream.read(64 * 1024))
    if _shape(first) == "checkpoint":
        yield from _checkpoint(path, desk)
    else:
        yield from _events(path, desk, items(first))


def _name(desk: Desk, events: list[Any]) -> str:
    """A run is named after the event with which its crew began."""
    for event in events:
        fields = record(event)
        if fields.get("type") == "crew_kickoff_started" and (name := words(fields.get("event_id"))):
            return f"crewai-{name}"
    return desk.fallback_session(FORMAT)


def _events(path: Path, desk: Desk, first: list[Any]) -> Iterator[Item]:
    run = Run(desk, _name(desk, first))
    for piece in pieces_of(path, desk, frozenset(), FORMAT, run.loop.session):
        if isinstance(piece, Item):
            yield piece
        else:
            line = next((part for part in piece.path if isinstance(part, int)), 0) + 1
            yield run.event(piece.value, line)


def _checkpoint(path: Path, desk: Desk) -> Iterator[Item]:
    """A checkpoint, held whole: its events, those that are new, then the state that it saves."""
    fields: dict[str, Any] = {}
    damaged: list[Item] = []
    for piece in pieces_of(path, desk, frozenset(), FORMAT, desk.fallback_session(FORMAT)):
        if isinstance(piece, Item):
            damaged.append(piece)
        elif piece.path and isinstance(piece.path[0], str):
            fields[piece.path[0]] = piece.value
    nodes = record(record(fields.get("event_record")).get("nodes"))
    events = [record(node).get("event") for node in nodes.values()]
    base = desk.session_name(_name(desk, events))
    branch = words(fields.get("branch")) or "main"
    session = base if branch == "main" else desk.session_name(f"{base}:{branch}")
    run = Run(desk, session)
    last = 0
    for line, event in enumerate(events, 1):
        item = run.event(event, line)
        if session != base and desk.recorded(base, item.key):
            last = line  # the branch shares it with the run that it left
            continue
        if session != base and line == last + 1 and last:
            yield _forked(run, desk, base, words(record(events[last - 1]).get("event_id")))
        yield item
    saved = {name: value for name, value in fields.items() if name != "event_record"}
    desk.tally.native["checkpoint"] += 1
    key = f"checkpoint:{identity(saved, list(nodes))}"
    run.loop.scribe.agent = None
    draft = run.loop.kept("checkpoint", saved, Place(key))
    yield Item(run.loop.session, key, [draft], len(events) + 1, canonical_json(saved))
    yield from damaged


def _forked(run: Run, desk: Desk, origin: str, last: str | None) -> Item:
    """Where a branch leaves its run."""
    known = desk.lookup(origin, last) if last is not None else None
    event = SessionForked(
        origin=origin, origin_seq=known.seq if known else None, origin_item=run.loop.scribe.word(last)
    )
    return Item(run.loop.session, "fork", [run.loop.scribe.draft(Place("fork"), event)], None)
