"""A file as records and damaged places, whatever its encoding. The only part of the mechanics that knows files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from ledger.events.canonical import decode_json
from ledger.importers._files import UNPACK_ERRORS, open_source
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._otlp.sdk_spans import as_request, is_sdk_span, looks_like_sdk_spans
from ledger.otlp import json_form
from ledger.otlp.protobuf_form import Torn, framing, stream_records
from ledger.otlp.records import Record

_BEGINS = re.compile(
    rb'(?:\A|\n)[\s\[\xef\xbb\xbf]*\{\s*"(?:schemaUrl"\s*:\s*"[^"]*"\s*,\s*")?'
    rb"(?:resourceSpans|resource_spans|resourceLogs|resource_logs)\""
)
_ONE_LINE = 64 * 1024
_PIECE = 1024 * 1024


class Broken(NamedTuple):
    """A damaged place of a file."""

    line: int | None
    """Line, for JSON."""
    reason: str
    """What was expected and found, and where."""
    raw: bytes
    """Its bytes."""
    repaired: bool = False
    """Whether its record was read all the same."""


class Other(NamedTuple):
    """Something that is no damage and holds no span or log record: metrics, unknown fields."""

    line: int | None
    """Line, for JSON lines."""
    value: Any
    """What it is."""


Entry = Record | Broken | Other
"""What a file gives."""


def looks_like_otlp(start: bytes) -> bool:
    """Whether a file that begins so holds traces or logs in OTLP."""
    return bool(_BEGINS.search(start)) or looks_like_sdk_spans(start) or framing(start) is not None


def entries(path: Path) -> Iterator[Entry]:
    """The entries of a file in its order. A damaged archive gives what could be unpacked, then says so."""
    with open_source(path) as raw:
        stream = _Patient(raw)
        start = stream.peek(_ONE_LINE)
        if not _is_text(start):
            for entry in stream_records(cast(BinaryIO, stream)):
                yield Broken(None, entry.reason, entry.raw) if isinstance(entry, Torn) else entry
        elif _is_one_document(start):
            yield from _document(stream)
        else:
            yield from _lines(stream)
        if stream.failure is not None:
            yield Broken(None, f"the archive is damaged after byte {stream.offset}: {stream.failure}", b"")


def _is_text(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _is_one_document(start: bytes) -> bool:
    """Whether the first line is less than a value: then the whole file is one, over many lines."""
    line, newline, _ = start.partition(b"\n")
    if not newline:
        return False
    try:
        decode_json(line.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        head = line.removeprefix(b"\xef\xbb\xbf").strip()
        return len(head) < 4 or head.endswith((b"[", b"{", b",", b":"))
    return False


def _document(stream: "_Patient") -> Iterator[Entry]:
    """One document over many lines: one message, so it is read whole."""
    raw = stream.rest()
    try:
        value = decode_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        yield from json_form.salvaged(raw)
        yield Broken(raw.count(b"\n") + 1, f"expected a JSON document, found: {error}", raw)
    else:
        yield from _requests(value, 1, raw)


def _lines(stream: "_Patient") -> Iterator[Entry]:
    for entry in json_lines(cast(BinaryIO, stream)):
        if isinstance(entry, Damage):
            yield from json_form.salvaged(entry.raw)
            yield Broken(entry.number, entry.reason, entry.raw)
            continue
        if entry.repaired is not None:
            yield Broken(entry.number, entry.repaired, entry.raw, repaired=True)
        yield from _requests(entry.value, entry.number, entry.raw)


def _requests(value: Any, line: int, raw: bytes) -> Iterator[Entry]:
    """One request, or a list of them."""
    requests = value if isinstance(value, list) else [value]
    if requests and all(is_sdk_span(one) for one in requests):
        requests = [as_request(requests)]
    share = len(raw) // max(len(requests), 1)
    for request in requests:
        if not isinstance(request, dict):
            yield Broken(line, f"expected an export request, found {type(request).__name__}", raw)
            return
        records = list(json_form.request_records(request))
        for record in records:
            record.size = share // len(records)
            yield record
        if others := json_form.others_of(request):
            yield Other(line, others)


class _Patient:
    """A stream that ends where its archive is damaged, and remembers why."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._held = b""
        self._ended = False
        self.failure: str | None = None
        self.offset = 0

    def _pull(self) -> bool:
        """Get more; False at the end. One piece at a time, so that a failure costs no piece before it."""
        if self._ended:
            return False
        try:
            piece: bytes = self._raw.read1(_PIECE)  # type: ignore[attr-defined]  # all that open_source gives have it
        except UNPACK_ERRORS as error:
            self.failure, piece = str(error) or type(error).__name__, b""
        self._ended = not piece
        self._held += piece
        self.offset += len(piece)
        return not self._ended

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay."""
        while len(self._held) < size and self._pull():
            pass
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """Up to so many bytes, fewer only at the end."""
        taken = self.peek(size)
        self._held = self._held[len(taken) :]
        return taken

    def readline(self, size: int) -> bytes:
        """A line with its end, or so much of it."""
        seen = 0
        while True:
            found = self._held.find(b"\n", seen)
            if found >= 0:
                return self.read(min(found + 1, size))
            seen = len(self._held)
            if seen >= size or not self._pull():
                return self.read(min(size, len(self._held)))

    def rest(self) -> bytes:
        """Everything that is left."""
        parts = [self._held]
        self._held = b""
        while self._pull():
            parts.append(self._held)
            self._held = b""
        return b"".join(parts)
