"""Reads one large JSON document piece by piece, and tells the shape of one from its first bytes. Knows no format."""

import functools
import io
import math
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

import ijson

_LOOKED_AT = 2048
_READ_AT_ONCE = 16 * 1024
_DAMAGE_PIECE = 8 * 1024 * 1024
_DEEPEST = 10_000
_MARK = b"\xef\xbb\xbf"
_ERRORS = (ijson.JSONError, ValueError, UnicodeDecodeError)


class Piece(NamedTuple):
    """A part of the document that was read whole."""

    path: tuple[str | int, ...]
    """Where it stands: `(name,)`, `(index,)`, `(name, index)` or, for a lone value, `()`."""

    value: Any
    """The value."""


class Torn(NamedTuple):
    """The rest of a document that cannot be read."""

    path: tuple[str | int, ...]
    """The part in which reading stopped."""

    reason: str
    """What was expected and found."""

    raw: bytes
    """Its bytes, and some before them; a long rest comes in several of these."""


def json_pieces(
    stream: BinaryIO, spread: frozenset[str] = frozenset(), *, inside: str | None = None
) -> Iterator[Piece | Torn]:
    """The members of a document in order; a list under a name in `spread`, and a list that is all, item by item.

    `inside`: the name of a member that holds all that counts, as `log` in a HAR file; its members are handed out.

    Holds one piece at a time. Reading stops at damage, as nobody knows what what follows belongs to.
    """
    source = _Kept(stream)
    walk = Walk(spread, keeps=False, inside=inside)
    try:
        for event, value in _events(source, _READ_AT_ONCE):
            walk.take(event, value)
            while walk.ready:
                yield walk.ready.popleft()
                source.forget()
        return
    except _ERRORS as error:
        reason = f"expected the rest of a JSON document, found: {_said(error)}"
    yield from (Torn(walk.place, reason, raw) for raw in source.rest())


@functools.lru_cache(maxsize=8)
def partial_json(start: bytes) -> Any:
    """The value that a file begins with, as far as its first bytes go; None when they are no JSON."""
    walk = Walk(frozenset(), keeps=True)
    try:
        for event, value in _events(io.BytesIO(start.removeprefix(_MARK)), _LOOKED_AT, many=True):
            walk.take(event, value)
            if walk.is_whole:
                break
    except _ERRORS:
        pass
    return walk.seen


def _events(stream: Any, at_once: int, *, many: bool = False) -> Iterator[tuple[str, Any]]:
    for event, value in ijson.basic_parse(stream, multiple_values=many, buf_size=at_once):
        if isinstance(value, Decimal):  # the reader gives these so that huge integers stay whole
            value = float(value)
            if not math.isfinite(value):
                raise ValueError("a number beyond every one that JSON readers can hold")
        yield event, value


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


class _Kept:
    """A stream that remembers what was read since the last whole piece."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._read: list[bytes] = []
        self._is_first = True

    def read(self, size: int = -1) -> bytes:
        """More bytes, without a byte-order mark at the start and NUL padding at the end."""
        raw = self._stream.read(size)
        if self._is_first and raw:
            self._is_first = False
            raw = raw.removeprefix(_MARK) or self._stream.read(size)
        self._read.append(raw)
        return raw

    def forget(self) -> None:
        """A piece is out: only the last bytes may still hold something else."""
        del self._read[:-1]

    def rest(self) -> Iterator[bytes]:
        """What was read and gave no piece, then the rest of the stream."""
        held = b"".join(self._read)
        for start in range(0, len(held), _DAMAGE_PIECE):
            yield held[start : start + _DAMAGE_PIECE]
        while raw := self._stream.read(_DAMAGE_PIECE):
            yield raw


class Walk:
    """Builds values from events, without recursion."""

    def __init__(self, spread: frozenset[str], *, keeps: bool, inside: str | None = None) -> None:
        self._spread = spread
        self._inside = inside
        self._base = 1
        self._keeps = keeps
        self._spread_list: Any = None
        self._stack: list[Any] = []
        self._names: list[str] = []
        self._top: str | None = None
        self._opened: str | None = None
        self._index = 0
        self.ready: deque[Piece] = deque()
        """Pieces that are whole."""
        self.seen: Any = None
        """The first value of the document, as far as it was read; empty where pieces are handed out."""
        self.is_whole = False
        """Whether the first value has ended."""

    @property
    def latest(self) -> Any:
        """The container that is open innermost."""
        return self._stack[-1] if self._stack else None

    @property
    def place(self) -> tuple[str | int, ...]:
        """The part that is being read."""
        if self._opened is not None:
            return (self._opened, self._index)
        if self._top == "list":
            return (self._index,)
        return (self._names[self._base - 1],) if len(self._names) >= self._base else ()

    def take(self, event: str, value: Any) -> None:
        """Take in the next event."""
        if event == "map_key":
            self._names[-1] = value
        elif event in ("start_map", "start_array"):
            self._open({} if event == "start_map" else [])
        elif event in ("end_map", "end_array"):
            self._close()
        else:
            self._put(value)

    def _open(self, container: Any) -> None:
        if len(self._stack) >= _DEEPEST:
            raise ValueError(f"a value nested deeper than {_DEEPEST} levels")
        self._put(container, is_open=True)
        self._stack.append(container)
        self._names.append("")

    def _close(self) -> None:
        done = self._stack.pop()
        self._names.pop()
        if not self._stack:
            self._top, self.is_whole = None, True
        elif len(self._stack) < self._base:
            self._base = 1
        elif len(self._stack) == self._base and self._opened is not None and done is self._spread_list:
            self._opened = None
        else:
            self._hand_out(done)

    def _put(self, value: Any, *, is_open: bool = False) -> None:
        if not self._stack:
            if self.seen is None and not self.is_whole:
                self.seen = value
            self._index = 0
            if is_open:
                self._top = "list" if isinstance(value, list) else "map"
            else:
                self.is_whole = True
                self.ready.append(Piece((), value))
            return
        into = self._stack[-1]
        if isinstance(into, list):
            into.append(value)
        else:
            into[self._names[-1]] = value
        if is_open and self._is_root(value):
            self._base = 2
        elif is_open and self._begins_spread(value):
            self._opened, self._index, self._spread_list = self._names[-1], 0, value
        elif not is_open:
            self._hand_out(value)

    def _is_root(self, value: Any) -> bool:
        """Whether a member holds the members that count."""
        at_top = len(self._stack) == 1 == self._base and self._top == "map"
        return at_top and isinstance(value, dict) and self._names[0] == self._inside

    def _begins_spread(self, value: Any) -> bool:
        return (
            len(self._stack) == self._base
            and self._top == "map"
            and isinstance(value, list)
            and self._names[-1] in self._spread
        )

    def _hand_out(self, value: Any) -> None:
        """Hand a finished value out if it is a piece; what is handed out is not held any longer."""
        if self._opened is not None:
            if len(self._stack) == self._base + 1:
                self.ready.append(Piece((self._opened, self._index), value))
                self._index += 1
                self._stack[-1].clear()
        elif len(self._stack) == self._base:
            if self._top == "list":
                self.ready.append(Piece((self._index,), value))
                self._index += 1
            else:
                self.ready.append(Piece((self._names[-1],), value))
            if not self._keeps:
                self._stack[-1].clear()
