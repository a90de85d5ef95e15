"""Gemini CLI chats: `~/.gemini/tmp/<project>/chats/session-*.json` (one object) and `.jsonl` (a log of patches)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._gemini.chat import ChatReader
from ledger.importers._harness.lines import damage_item, entries
from ledger.importers._harness.values import items, record, words

FORMAT = "gemini-cli"
TITLE = "Gemini CLI chats, JSON files and the JSONL patch log (run with 0.61)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "System instruction, tool declarations and parameters of model requests; ids on the wire are others.",
    "Who allowed a tool call, or that nobody was asked: only a cancelled call leaves a mark.",
    "Requests that failed or were retried, requests for titles, routing and summaries.",
    "A compression of the chat, unless the patch that replaces its messages drops some: then it is inferred.",
    "In a chat kept as one JSON object: what an earlier save held and a later one does not.",
)

_KEYS = (b'"sessionId"', b'"projectHash"', b'"startTime"')
_CHAT = re.compile(
    rb'\A\s*\{[^\0]{0,200}?"(?:sessionId|lastUpdated|messages|projectHash|startTime|kind)"\s*:'
)
_NAME = re.compile(r"session-.*\.jsonl?")
_MESSAGE = re.compile(rb'"type"\s*:\s*"(?:user|gemini|info|error|warning)"')
_LARGEST_CHAT = 256 * 1024 * 1024


def recognizes(sniff: Sniff) -> bool:
    """A chat names its session, its project's hash and its start; in a large JSON file these may come last."""
    start = sniff.start.removeprefix(b"\xef\xbb\xbf")
    if not _CHAT.match(start) or b'"mapping"' in start[:500]:
        return False
    first = start.split(b"\n", 1)[0]
    if all(key in first for key in _KEYS) or all(key in start for key in _KEYS):
        return True
    return bool(
        _NAME.fullmatch(sniff.path.name) and sniff.path.parent.name == "chats" and _MESSAGE.search(start)
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items in file order."""
    with open_source(path) as stream:
        start = stream.read(64 * 1024).removeprefix(b"\xef\xbb\xbf").lstrip()
    first = start.split(b"\n", 1)[0].rstrip()
    is_log = first.endswith(b"}") and _is_object(first)
    if is_log and b'"messages"' in first and b"\n{" not in start:
        is_log = False
    yield from _log_items(path, desk) if is_log else _chat_items(path, desk)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(decode_json(line), dict)
    except ValueError:
        return False


def _log_items(path: Path, desk: Desk) -> Iterator[Item]:
    reader: ChatReader | None = None
    for entry in entries(path, desk):
        value = entry.value
        if reader is None:
            native = words(value.get("sessionId")) if value is not None else None
            reader = ChatReader(desk, FORMAT, native or desk.fallback_session(FORMAT))
        if entry.damage is not None:
            yield damage_item(desk, reader.story.session, entry, FORMAT)
        if value is None:
            reader.damaged()
        else:
            yield from reader.row(value, entry.key, entry.line, entry.raw)


def _chat_items(path: Path, desk: Desk) -> Iterator[Item]:
    with open_source(path) as stream:
        content = stream.read(_LARGEST_CHAT + 1)
    if len(content) > _LARGEST_CHAT:
        raise InputError(f"{path}: expected a chat of at most {_LARGEST_CHAT} bytes, found more")
    desk.tally.lines = content.count(b"\n") + 1
    try:
        native: Any = decode_json(content.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise InputError(f"{path}: expected a chat as one JSON object, found: {error}") from error
    chat = record(native)
    reader = ChatReader(desk, FORMAT, words(chat.get("sessionId")) or desk.fallback_session(FORMAT))
    yield from reader.header(
        {name: chat[name] for name in chat if name not in ("messages", "lastUpdated")}, "header", 1
    )
    for index, message in enumerate(items(chat.get("messages"))):
        yield from reader.saved(record(message), index, canonical_json(message))
