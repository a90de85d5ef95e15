"""Codex sessions: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, and what `codex exec --json` prints.

Reads all generations of rollouts: flat lines, the envelope of 2025, and the one with ordinals.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._codex.row import row_of
from ledger.importers._codex.session import ThreadReader
from ledger.importers._codex.stream import StreamReader, is_stream
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, Line, json_lines

FORMAT = "codex"
TITLE = "Codex rollouts (2025 flat, 0.4x, 0.171) and codex exec --json"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Tool schemas, and most parameters of a model request.",
    "The exact system prompt: the harness leaves out logged lines about tools that are off.",
    "Who granted an approval: a granted one leaves no trace, a refused one only the text of the refusal.",
    "Requests that failed or were retried, when they left no answer; raw response bytes and chunk times.",
    "The order to summarise that ends the request of a compaction.",
    "Who changed a mode, a model or a rule file; that another process resumed the thread.",
    "Before replacement histories (2025): what a compaction kept beside its summary.",
    "codex exec --json is an outline: one model call stands for all calls of a turn, and call ids are local.",
)

_ENVELOPE = re.compile(
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state|token_usage_record)"'
)
_FLAT = re.compile(
    rb'"record_type"\s*:\s*"state"|"type"\s*:\s*"(?:function_call|function_call_output|reasoning)"'
)
_META = re.compile(rb'\A\{"id"\s*:\s*"[^"]+"\s*,\s*"timestamp"\s*:\s*"[^"]+"\s*,\s*"(?:instructions|git)"')
_STREAM = re.compile(
    rb'"type"\s*:\s*"thread\.started"\s*,\s*"thread_id"|"type"\s*:\s*"turn\.(?:started|completed|failed)"'
)
_OLD_STREAM = re.compile(rb'"id"\s*:\s*"[^"]*"\s*,\s*"msg"\s*:\s*\{\s*"type"\s*:')
_FILE_NAME = re.compile(r"rollout-.*?-?(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_ID = re.compile(r"[\w.:@-]{1,128}")
_HELD = 500


def recognizes(sniff: Sniff) -> bool:
    """JSON lines with the types of a rollout or of an exec stream."""
    start = sniff.start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0\r\n\t ")
    if not start.startswith(b"{"):
        return False
    if _ENVELOPE.search(start) and b'"payload"' in start:
        return True
    if _META.match(start) or (_FLAT.search(start) and b'"record_type"' in start):
        return True
    if _FILE_NAME.search(sniff.path.name) and _FLAT.search(start):
        return True
    return bool(_STREAM.search(start) or _OLD_STREAM.search(start))


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items in file order, streaming."""
    return _File(path, desk).items()


def _session_id(native: Any) -> str | None:
    """A thread's id, if it can name a session."""
    return native if isinstance(native, str) and _ID.fullmatch(native) else None


class _File:
    """One file: finds out which thread it is of, and whether it is a rollout or a stream."""

    def __init__(self, path: Path, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._reader: ThreadReader | StreamReader | None = None
        self._held: list[Line | Damage] = []
        self._place = (0, 0)

    def items(self) -> Iterator[Item]:
        """Everything that the file holds."""
        with open_source(self._path) as stream:
            for entry in json_lines(stream):
                self._desk.tally.lines = max(self._desk.tally.lines, entry.number)
                if self._reader is None and not self._opens(entry) and len(self._held) < _HELD:
                    self._held.append(entry)  # what comes before the line that names the thread
                    continue
                yield from self._release()
                yield from self._entry(entry)
        yield from self._release()
        if self._reader is not None:
            yield from self._reader.finish()

    def _opens(self, entry: Line | Damage) -> bool:
        """Start reading when this line names the thread."""
        if isinstance(entry, Damage) or not isinstance(entry.value, dict):
            return False
        if is_stream(entry.value):
            thread = _session_id(entry.value.get("thread_id"))
            if thread is not None:
                self._reader = StreamReader(self._desk, f"{thread}.exec")
            return thread is not None
        row = row_of(entry.value, entry.number, 0, entry.raw)
        thread = _session_id(row.payload.get("id")) if row.kind == "session_meta" else None
        if thread is not None:
            self._reader = ThreadReader(self._desk, thread, self._path)
        return thread is not None

    def _release(self) -> Iterator[Item]:
        if not self._held:
            return
        self._choose()
        held, self._held = self._held, []
        for entry in held:
            yield from self._entry(entry)

    def _choose(self) -> ThreadReader | StreamReader:
        """The reader; made from the file's name when no line names the thread."""
        if self._reader is None:
            values = [one.value for one in self._held if isinstance(one, Line)]
            if any(isinstance(value, dict) and is_stream(value) for value in values):
                self._reader = StreamReader(self._desk, self._desk.fallback_session(FORMAT))
            else:
                named = _FILE_NAME.search(self._path.name)
                session = named.group("id") if named else self._desk.fallback_session(FORMAT)
                self._reader = ThreadReader(self._desk, session, self._path)
        return self._reader

    def _entry(self, entry: Line | Damage) -> Iterator[Item]:
        reader = self._choose()
        line, index = self._place
        index = index + 1 if entry.number == line else 0
        self._place = (entry.number, index)
        if isinstance(entry, Damage):
            yield self._damage(reader, entry.number, index, entry.reason, entry.raw)
            return
        if not isinstance(entry.value, dict):
            reason = f"expected a JSON object, found {type(entry.value).__name__}"
            yield self._damage(reader, entry.number, index, reason, entry.raw)
            return
        if entry.repaired is not None:
            yield self._damage(reader, entry.number, index, entry.repaired, entry.raw, repaired=True)
        yield from reader.take(row_of(entry.value, entry.number, index, entry.raw))

    def _damage(
        self,
        reader: ThreadReader | StreamReader,
        line: int,
        index: int,
        reason: str,
        raw: bytes,
        *,
        repaired: bool = False,
    ) -> Item:
        event = self._desk.damage(line, reason, raw, repaired=repaired)
        if repaired and "UTF-8" in reason:  # what stood there is lost, though the record was read
            self._desk.tally.quarantined.append({"line": line, "reason": reason})
        if not repaired:
            reader.damaged()
        key = f"damage:{line}" + (f".{index}" if index else "")
        source = Source(FORMAT, self._desk.file, None, line)
        return Item(reader.session, key, [Draft(event, source=source, grade=GRADE)], line, raw)
