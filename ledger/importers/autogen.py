"""AutoGen AgentChat: event logs, messages of a team, and saved states of one, each a JSON document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import canonical_json
from ledger.events.record import Grade
from ledger.events.session import SessionEnded, SessionStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._autogen.team import FORMAT, Log, Team, payload_messages
from ledger.importers._files import open_source
from ledger.importers._frameworks.document import Loop, pieces_of
from ledger.importers._harness.values import items, record, words
from ledger.importers._json_pieces import Piece, partial_json
from ledger.importers._plain.scribe import identity
from ledger.protocols.drafting import Place

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "AutoGen AgentChat (0.7.5): event log, team messages, team state"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "The bytes that went over the wire, and retries of model calls.",
    "Parameters of model calls, such as the temperature.",
    "In an event log, times of model and tool calls: only the messages in it carry one.",
    "In an event log, which call a tool ran for: calls are joined by name and arguments.",
    "In messages and states, the requests of model calls: system prompt, messages and tools.",
    "Approvals: the framework records none for tools.",
    "Earlier states of a team: a saved state holds the last one alone.",
)
_ENTRY_FIELDS = {
    "LLMCall": {"messages", "response"},
    "ToolCall": {"tool_name", "arguments"},
    "Message": {"payload", "delivery_stage"},
}


def recognizes(sniff: Sniff) -> bool:
    """A list of log entries or of messages, a result of a run, or a saved state of a team."""
    return _shape(sniff.json) is not None


def _shape(first: Any) -> str | None:
    """`log`, `messages` or `state`, by what a document begins with."""
    if isinstance(first, list):
        entry = record(next(iter(first), None))
        kind = entry.get("type")
        if isinstance(kind, str) and kind in _ENTRY_FIELDS and _ENTRY_FIELDS[kind] <= entry.keys():
            return "log"
        return "messages" if _is_message(entry) else None
    fields = record(first)
    if fields.get("type") == "TeamState" and isinstance(fields.get("agent_states"), dict):
        return "state"
    return "messages" if _is_message(next(iter(items(fields.get("messages"))), None)) else None


def _is_message(value: Any) -> bool:
    return {"source", "models_usage", "metadata", "type"} <= record(value).keys()


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The run of a file."""
    with open_source(path) as stream:
        first = partial_json(stream.read(64 * 1024))
    shape = _shape(first)
    if shape == "state":
        yield from _state(path, desk)
    elif shape == "log":
        yield from _log(path, desk, items(first))
    else:
        yield from _messages(path, desk, first)


def _begin(loop: Loop, shape: str) -> Item:
    place = Place("start")
    return Item(
        loop.session, "start", [loop.scribe.draft(place, SessionStarted(harness=FORMAT, name=shape))], None
    )


def _log(path: Path, desk: Desk, first: list[Any]) -> Iterator[Item]:
    """Entries of a log; named after the first message in it, as no entry names a run."""
    told = [payload_messages(record(entry).get("payload")) for entry in first[:50]]
    name = next((words(message.get("id")) for found in told for message in found), None)
    log = Log(desk, f"autogen-log-{name}" if name else desk.fallback_session(FORMAT))
    yield _begin(log.loop, "event log")
    for piece in pieces_of(path, desk, frozenset(), FORMAT, log.loop.session):
        if isinstance(piece, Item):
            yield piece
        else:
            yield log.entry(piece.value, _index(piece) + 1)
    yield from log.finish()


def _messages(path: Path, desk: Desk, first: Any) -> Iterator[Item]:
    """Messages of a team, or the result of a run that holds them."""
    listed = first if isinstance(first, list) else items(record(first).get("messages"))
    team = Team(desk, _team_name(desk, "messages", next(iter(listed), None)))
    yield _begin(team.loop, "messages")
    for piece in pieces_of(path, desk, frozenset({"messages"}), FORMAT, team.loop.session):
        if isinstance(piece, Item):
            yield piece
            continue
        value, line = piece.value, _index(piece) + 1
        if isinstance(first, list) and {"messages", "stop_reason"} <= record(value).keys():
            yield _ended(team.loop, record(value), line)
        elif isinstance(first, list) or len(piece.path) == 2:
            yield team.message(value, line)
        elif value:
            yield _ended(team.loop, {str(next(iter(piece.path), "value")): value}, None)


def _ended(loop: Loop, result: dict[str, Any], line: int | None) -> Item:
    """The result of a run: it says why the team stopped, and repeats its messages."""
    loop.desk.tally.native["TaskResult"] += 1
    loop.desk.tally.lines += 1
    key = f"result:{identity(result)}"
    loop.scribe.agent = None
    place = Place(key, line)
    drafts = [loop.kept("TaskResult", result, place)]
    reason = loop.scribe.word(result.get("stop_reason"), "stop reason")
    if reason is not None:
        drafts.append(loop.scribe.draft(place, SessionEnded(outcome="completed", reason=reason)))
    return Item(loop.session, key, drafts, line, canonical_json(result))


def _state(path: Path, desk: Desk) -> Iterator[Item]:
    """A saved state, held whole: the thread of its manager, then what each agent holds."""
    state: dict[str, Any] = {}
    damaged: list[Item] = []
    for piece in pieces_of(path, desk, frozenset(), FORMAT, desk.fallback_session(FORMAT)):
        if isinstance(piece, Item):
            damaged.append(piece)
        elif piece.path and isinstance(piece.path[0], str):
            state[piece.path[0]] = piece.value
    states = record(state.get("agent_states"))
    threads = [thread for one in states.values() if (thread := items(record(one).get("message_thread")))]
    first = next(iter(threads[0]), None) if threads else None
    team = Team(desk, _team_name(desk, "state", first))
    yield _begin(team.loop, "state")
    line = 0
    for thread in threads:
        for message in thread:
            line += 1
            yield team.message(message, line)
    team.loop.scribe.agent = None
    for name, held in states.items():
        fields = record(held)
        body = {key: value for key, value in fields.items() if key != "message_thread"} or held
        kind = words(fields.get("type")) or "none"
        desk.tally.native[kind[:60]] += 1
        key = f"agent:{identity(name, body)}"
        draft = team.loop.kept(kind, {"agent": name, "state": body}, Place(key))
        yield Item(team.loop.session, key, [draft], line or 1, canonical_json(body))
    beside = {name: value for name, value in state.items() if name != "agent_states"}
    if beside:
        key = f"state:{identity(beside)}"
        yield Item(team.loop.session, key, [team.loop.kept("TeamState", beside, Place(key))], line or 1)
    yield from damaged


def _team_name(desk: Desk, shape: str, first: Any) -> str:
    """No record names the run: it is named after its first message, each kind of file apart."""
    name = words(record(first).get("id"))
    return f"autogen-{shape}-{name}" if name else desk.fallback_session(FORMAT)


def _index(piece: Piece) -> int:
    return next((part for part in reversed(piece.path) if isinstance(part, int)), 0)
