"""How much of a streamed body can be kept while it streams: whole events, whole words, and nothing of a secret."""

import re

from ledger.capture.streams import spoken
from ledger.protocols.assembly import assemble
from ledger.protocols.http_bodies import events_of
from ledger.protocols.wire_calls import piece_json
from ledger.recorder import Keeper

_FLUSH_CHUNKS = 64
_FLUSH_BYTES = 16 * 1024
_FLUSH_MS = 1000
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_SPACE = re.compile(r"\s")

Chunks = list[tuple[int, bytes]]
"""Milliseconds since the request, and the bytes."""


class Flushing:
    """Tells when to flush a stream, and what."""

    def __init__(self) -> None:
        self._looked_chunks = self._looked_bytes = self._looked_ms = 0
        self._parsed = self._flushed = self._upto = 0
        self._events: list[object] = []

    def is_due(self, count: int, size: int, at_ms: int) -> bool:
        """Whether it is time to look. A long stream is looked at more seldom: each look reads all of it."""
        grown = size - self._looked_bytes
        many = count - self._looked_chunks >= _FLUSH_CHUNKS and grown * 8 >= size
        if not (many or grown >= max(_FLUSH_BYTES, size // 4) or at_ms - self._looked_ms >= _FLUSH_MS):
            return False
        self._looked_chunks, self._looked_bytes, self._looked_ms = count, size, at_ms
        return True

    def take(self, protocol: str, chunks: Chunks, keep: Keeper) -> list[list[object]]:
        """What can be kept now and was not yet, as `model_call.chunk` holds it."""
        raw = b"".join(piece for _, piece in chunks)
        while (end := _EVENT_END.search(raw, self._parsed)) is not None:
            events = events_of(raw[self._parsed : end.end()])
            said = "".join(spoken(event) for event in events if event != "[DONE]")
            self._events += [event for event in events if event != "[DONE]"]
            # A text without a blank may be the beginning of a secret: up to here all words are whole.
            if not said or _SPACE.search(said):
                self._upto = end.end() if not said or said[-1].isspace() else self._parsed
            self._parsed = end.end()
        if self._upto <= self._flushed or not keep.is_clean(raw.decode("utf-8", "replace")):
            return []
        if not keep.is_clean_value(assemble(protocol, self._events)):
            return []
        found = _between(chunks, self._flushed, self._upto)
        self._flushed = self._upto
        return [[at, piece_json(piece)] for at, piece in found]


def _between(chunks: Chunks, start: int, end: int) -> Chunks:
    found: Chunks = []
    place = 0
    for at, piece in chunks:
        part = piece[max(0, start - place) : max(0, end - place)]
        if part:
            found.append((at, part))
        place += len(piece)
    return found
