"""Muse Code: transcripts of the Muse Session Protocol, NDJSON of `{"dir": "client"|"server", "raw": frame}`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import decode_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._harness.lines import Entry, damage_item, entries
from ledger.importers._harness.values import record, words
from ledger.importers._muse.session import SessionReader

FORMAT = "muse-code"
TITLE = "Muse Code transcripts of the Muse Session Protocol (types of 1.4.13; not run)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "System prompt, tool schemas and parameters of model requests; the protocol shows a view, not the log.",
    "The summary that a compaction wrote, and what it left in the context.",
    "The full rule that an approval adds: the protocol carries a preview of it.",
    "Which items belong to which model call, where no report of token usage stands between them.",
    "Whether input tokens include cached ones: they are read as if they did.",
    "What happened while no client was connected, or in a gap that the view reports.",
)

_LINE = re.compile(rb'\A\s*\{\s*"(?:dir"\s*:\s*"(?:client|server)"\s*,\s*"raw|raw)"\s*:\s*"')


def recognizes(sniff: Sniff) -> bool:
    """Lines that hold a direction and a JSON-RPC frame with a method of the protocol."""
    start = sniff.start.removeprefix(b"\xef\xbb\xbf")
    if not _LINE.match(start) or b'"dir"' not in start:
        return False
    methods = (b"session/", b"turn/", b"item/", b"approval/", b"view/", b"initialize")
    return b'\\"jsonrpc\\"' in start and any(
        b'\\"method\\":\\"' + one in start.replace(b" ", b"") for one in methods
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items in file order."""
    readers: dict[str, SessionReader] = {}
    last: SessionReader | None = None
    held: list[tuple[Entry, dict[str, Any], str]] = []
    for entry in entries(path, desk):
        frame, failure = _frame(entry)
        session = _session_of(frame)
        if session is not None and session not in readers:
            readers[session] = SessionReader(desk, FORMAT, session)
        reader = readers.get(session, last) if session is not None else last
        direction = words(record(entry.value).get("dir")) or "none"
        if reader is None:
            if len(held) < 1000 and failure is None:
                held.append((entry, frame, direction))  # what comes before a session has a name
                continue
            reader = readers[""] = SessionReader(desk, FORMAT, desk.fallback_session(FORMAT))
        last = reader
        for one, earlier, way in held:
            yield from reader.frame(earlier, way, one)
        held = []
        if entry.damage is not None or failure is not None:
            reason = entry.damage or failure
            yield damage_item(
                desk, reader.story.session, Entry(entry.line, entry.key, None, entry.raw, reason), FORMAT
            )
            reader.damaged()
        if failure is None and entry.value is not None:
            yield from reader.frame(frame, direction, entry)
    if held:
        reader = SessionReader(desk, FORMAT, desk.fallback_session(FORMAT))
        for one, earlier, way in held:
            yield from reader.frame(earlier, way, one)
    for reader in readers.values():
        yield from reader.finish()


def _frame(entry: Entry) -> tuple[dict[str, Any], str | None]:
    """The frame of a line, or what is wrong with it."""
    if entry.value is None:
        return {}, entry.damage
    raw = entry.value.get("raw")
    if not isinstance(raw, str):
        return {}, f"expected a frame as text in `raw`, found {type(raw).__name__}"
    try:
        frame = decode_json(raw.rstrip("\r\n").encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return {}, f"expected a JSON-RPC frame in `raw`, found: {error}"
    if not isinstance(frame, dict):
        return {}, f"expected a JSON-RPC frame in `raw`, found {type(frame).__name__}"
    return frame, None


def _session_of(frame: dict[str, Any]) -> str | None:
    """The session that a frame is about."""
    for body in (record(frame.get("params")), record(frame.get("result"))):
        found = words(body.get("sessionId")) or words(record(body.get("session")).get("sessionId"))
        if found is not None:
            return found
    return None
