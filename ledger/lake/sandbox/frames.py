"""What passes between a worker and the one who started it: frames of a kind, a length and bytes.

Requests and notices are JSON, rows are Arrow streams: nothing that runs code when it is read.
"""

import os
import struct
from collections.abc import Callable
from typing import NamedTuple

READY = b"R"
"""The worker is confined and waits; JSON: what confines it."""
PROGRESS = b"P"
"""JSON: percent done."""
ROWS = b"B"
"""An Arrow stream of one batch; the first one is empty and shows the columns."""
END = b"E"
"""JSON: the kind of the stop or null, words, seconds."""
REFUSED = b"X"
"""JSON: why the query was not run."""

_HEAD = struct.Struct(">cI")


class Frame(NamedTuple):
    """One frame."""

    kind: bytes
    """Which one."""
    body: bytes
    """What it holds."""


def write_frame(descriptor: int, kind: bytes, body: bytes) -> None:
    """Write a frame whole."""
    rest = memoryview(_HEAD.pack(kind, len(body)) + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class FrameReader:
    """Takes frames apart as their bytes come in; refuses more bytes than allowed."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Bytes that came in. Raises ValueError beyond the limit."""
        self._left -= len(chunk)
        if self._left < 0:
            raise ValueError("more came than was allowed")
        self._bytes += chunk

    def take(self) -> Frame | None:
        """The next frame that is there whole."""
        if len(self._bytes) < _HEAD.size:
            return None
        kind, length = _HEAD.unpack_from(self._bytes)
        end = _HEAD.size + length
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[_HEAD.size : end])
        del self._bytes[:end]
        return Frame(kind, body)


Send = Callable[[bytes, bytes], None]
"""Writes a frame of a kind."""
