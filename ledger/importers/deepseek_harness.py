"""DeepSeek Harness sessions, log formats 0 to 4: `$DSH_HOME/sessions/--<cwd>--/<id>/session*.jsonl[.zstd]`.

Also what its Python SDK hands over: a JSON list of session events, or of notifications with events in them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._deepseek.session import SessionReader
from ledger.importers._files import open_source
from ledger.importers._harness.lines import damage_item, entries
from ledger.importers._harness.values import number, record, words

FORMAT = "deepseek-harness"
TITLE = "DeepSeek Harness session logs, formats 0 to 4 (run with 0.2.1), and events from its SDK"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "The request on the wire: the log holds messages, tools and settings in the harness's own shape.",
    "That each model request also carries the session's log so far: it shows as one effect per accepted delivery.",
    "Who decided an approval, and which arguments they were shown.",
    "When a request left: times of chunks count from the start of the step or of the retry.",
    "Cost, and the provider's ids of responses.",
    "Before format 4: failed attempts that were not retried.",
)

_HEADER = re.compile(rb'\A\s*\{[^\n]{0,4000}?"createdAt"\s*:\s*\d')
_SESSION = re.compile(rb'"type"\s*:\s*"session"')
_VERSION = re.compile(rb'"version"\s*:\s*\d')
_EVENTS = re.compile(
    rb'\A\s*\[\s*\{\s*"type"\s*:\s*"(?:agent/inbox/spliced|permission/preset|turn/start|user/message)"\s*,'
    rb'\s*"seq"\s*:\s*\d'
)
_NOTICES = re.compile(rb'\A\s*\[\s*\{\s*"method"\s*:\s*"session\.(?:event|status)"')
_LARGEST_LIST = 256 * 1024 * 1024
_NEWEST = 4


def recognizes(sniff: Sniff) -> bool:
    """A log whose first line is a session header with `createdAt`, or a list of session events."""
    start = sniff.start.removeprefix(b"\xef\xbb\xbf")
    if _EVENTS.match(start) or _NOTICES.match(start):
        return True
    first = start.split(b"\n", 1)[0]
    return bool(_HEADER.match(first) and _SESSION.search(first) and _VERSION.search(first))


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items in file order."""
    with open_source(path) as stream:
        start = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    yield from _list_items(path, desk) if start.startswith(b"[") else _log_items(path, desk)


def _log_items(path: Path, desk: Desk) -> Iterator[Item]:
    reader: SessionReader | None = None
    for entry in entries(path, desk):
        value = entry.value
        header = value is not None and value.get("type") == "session" and "seq" not in value
        if reader is None:
            native = words(value.get("id")) if header and value is not None else None
            reader = SessionReader(
                desk, FORMAT, native or _folder_name(path) or desk.fallback_session(FORMAT)
            )
        if entry.damage is not None:
            yield damage_item(desk, reader.story.session, entry, FORMAT)
        if value is None:
            reader.damaged()
        elif header:
            version = number(value.get("version"))
            if version is None or version > _NEWEST:
                desk.tally.notes.append(
                    f"log format {version}: newer than {_NEWEST}, which is the newest that was tested"
                )
            yield from reader.header(value, entry.line, entry.raw)
        else:
            yield from reader.event(value, entry.line, canonical_json(value))
    if reader is not None:
        yield from reader.finish()


def _folder_name(path: Path) -> str | None:
    """The session's id, from the folder that the harness gives it."""
    project = path.parent.parent.name
    return path.parent.name if project.startswith("--") and project.endswith("--") else None


def _list_items(path: Path, desk: Desk) -> Iterator[Item]:
    """Events from the SDK: no header, so the session's name comes from a notification or from a delivery."""
    with open_source(path) as stream:
        content = stream.read(_LARGEST_LIST + 1)
    if len(content) > _LARGEST_LIST:
        raise InputError(f"{path}: expected a list of events of at most {_LARGEST_LIST} bytes, found more")
    try:
        native = decode_json(content)
    except ValueError as error:
        raise InputError(f"{path}: expected a JSON list of events, found: {error}") from error
    if not isinstance(native, list):
        raise InputError(f"{path}: expected a JSON list of events, found {type(native).__name__}")
    rows = [_event_of(one) for one in native]
    named = Counter(
        session
        for _, event in rows
        if (session := words(record(event.get("data")).get("sessionId"))) is not None
        and event.get("type") == "session-log-deepseek/delivery-accepted"
    )
    single = next(iter(named), None) or desk.fallback_session(FORMAT)
    readers: dict[str, SessionReader] = {}
    for index, (session, event) in enumerate(rows, 1):
        desk.tally.lines = index
        name = session or single
        reader = readers.get(name)
        if reader is None:
            reader = readers[name] = SessionReader(desk, FORMAT, name)
        if event:
            yield from reader.event(event, index, canonical_json(event))
        else:
            yield reader.notice(native[index - 1], index)
    for reader in readers.values():
        yield from reader.finish()


def _event_of(native: Any) -> tuple[str | None, dict[str, Any]]:
    """Session and event of a list entry; no event for a notification of another kind."""
    entry = record(native)
    if "method" not in entry:
        return None, entry if "seq" in entry else {}
    payload = record(entry.get("payload"))
    return words(payload.get("sessionId")), record(payload.get("event"))
