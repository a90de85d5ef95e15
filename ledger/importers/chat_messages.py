"""Plain lists of chat messages: OpenAI-style with tool calls, AgentDojo and tau-bench records, logs of named agents.

Labels that a benchmark wrote beside its messages (rewards, verdicts, injections) are kept as they are, and no fact is
made of them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Torn, json_pieces, partial_json
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._plain.record import ChatRecord, messages_name
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place

FORMAT = "chat-messages"
TITLE = "Lists of chat messages (OpenAI style; AgentDojo, tau-bench, Invariant, mini-swe-agent, Who&When, Magentic-One)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Model requests as they were sent: tool schemas, parameters, and whether all messages before an answer were sent.",
    "Failed and repeated model calls, tokens and costs, unless a record says so.",
    "Whether anybody was asked before a tool ran, and who answered.",
    "When anything happened, and how long it took.",
    "That a context was shortened: only the messages that were kept are there.",
    "Logs of named agents show who said what: neither the model calls nor the tool calls behind it.",
)

_SPREAD = frozenset({"messages", "traj", "history"})
_OF_OTHERS = frozenset(
    {
        "agents",
        "events",
        "log",
        "mapping",
        "polylogue_capture_kind",
        "provider_family",
        "samples",
        "sessionId",
        "session_id",
        "trajectory",
        "trajectory_format",
    }
)
"""Names beside the messages that tell of another format."""


def recognizes(sniff: Sniff) -> bool:
    """A list of messages with roles, an object that holds one under a known name, or lines of these."""
    first = sniff.json
    if _holds_messages(first):
        return True
    line, _, second = sniff.opening.partition(b"\n")
    if isinstance(first, dict) and "content" in first and _are_messages([first]):
        return _is_whole(line) and second[:1] == b"{"  # a message on every line
    if isinstance(first, dict) and first.keys() == {"metadata"} and isinstance(first["metadata"], dict):
        # Invariant's first line describes the others.
        return _holds_messages(partial_json(second))
    return False


def _holds_messages(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and (
            _are_messages(value) or all(_is_record(one) for one in (value[:-1] or value)[:3])
        )
    return _is_record(value)


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() & _OF_OTHERS:
        return False
    if "suite_name" in value and "user_task_id" in value:
        return True
    name = messages_name(value)
    return name is not None and _are_messages(value[name])


def _are_messages(value: Any) -> bool:
    """Whether these are messages; the last one seen may be cut."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return False
    whole = value[:-1] or value
    return all(
        isinstance(one.get("role"), str)
        and isinstance(one.get("content"), str | list | None)
        and one.keys() & {"content", "tool_calls", "function_call"}
        and not one.keys() & {"parts", "kind", "jsonrpc", "message_type"}
        for one in whole[:20]
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's conversations, message by message."""
    with open_source(path) as stream:
        start = stream.read(64 * 1024)
    first, _, second = start.strip().partition(b"\n")
    if second[:1] in (b"{", b"[") and _is_whole(first):
        yield from _lines(path, desk)
    else:
        yield from _document(path, desk)


def _is_whole(line: bytes) -> bool:
    """Whether a line is a document of its own."""
    line = line.strip()
    return line.endswith((b"}", b"]")) and line[:1] in (b"{", b"[") and len(line) > 2


def _document(path: Path, desk: Desk) -> Iterator[Item]:
    """One JSON document: a record, a list of records, or a list of messages."""
    record = ChatRecord(desk, FORMAT, [])
    with open_source(path) as stream:
        for piece in json_pieces(stream, _SPREAD):
            if isinstance(piece, Torn):
                yield from record.finish(is_whole=False)
                yield _damage(desk, record.session, piece.reason, piece.raw, None)
                continue
            match piece.path:
                case (str() as name, int()):
                    yield from record.message(piece.value, name)
                case (str() as name,):
                    record.field(name, piece.value)
                case (int() as index,) if _is_record(piece.value) and not record.has_messages:
                    yield from _whole(piece.value, desk, [index], index + 1)
                case _:
                    yield from record.message(piece.value, "list")
    yield from record.finish()


def _lines(path: Path, desk: Desk) -> Iterator[Item]:
    """Lines of records, of lists of messages, or of single messages."""
    single = ChatRecord(desk, FORMAT, ["lines"])
    with open_source(path) as stream:
        for entry in json_lines(stream):
            if isinstance(entry, Damage):
                yield _damage(desk, single.session, entry.reason, entry.raw, entry.number)
            elif isinstance(entry.value, list) or _is_record(entry.value):
                yield from _whole(entry.value, desk, ["line", entry.number], entry.number)
            elif isinstance(entry.value, dict) and isinstance(entry.value.get("role"), str):
                yield from single.message(entry.value, "line", entry.number)
            else:
                yield from single.oddity(entry.value, entry.number)
    yield from single.finish()


def _whole(value: Any, desk: Desk, where: list[Any], line: int) -> Iterator[Item]:
    """A record that is in memory already."""
    record = ChatRecord(desk, FORMAT, where)
    if isinstance(value, list):
        for message in value:
            yield from record.message(message, "list", line)
    else:
        name = messages_name(value)
        for field, inner in value.items():
            if field == name:
                for message in inner:
                    yield from record.message(message, field, line)
            else:
                record.field(field, inner)
    yield from record.finish()


def _damage(desk: Desk, session: str, reason: str, raw: bytes, line: int | None) -> Item:
    scribe = Scribe(desk, FORMAT, session, GRADE)
    event = desk.damage(line, reason, raw)
    key = f"damage:{desk.keep.digest(raw)[:16]}:{line or 0}"
    draft: Draft = scribe.draft(Place(key, line), event)
    return Item(scribe.session, key, [draft], line, raw)
