"""Damage-tolerant JSON lines: each record that can be read arrives, each place that cannot is reported.

Lines end at `\\n` and nowhere else. What real logs hold is dealt with here: records that share a line, raw
newlines and control characters inside strings, NUL padding, marks, bytes that are not UTF-8, torn writes,
endless lines. Knows no format.
"""

import json
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from ledger.events.canonical import decode_json

_LONGEST_LINE = 256 * 1024 * 1024
_PIECE = 8 * 1024 * 1024
_JOINED_BYTES = 64 * 1024 * 1024
_JOINED_LINES = 10_000
_JOINS_TRIED = 200_000
_PADDING = b" \t\r\n\0"
_MARK = b"\xef\xbb\xbf"
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else 1 for byte in range(256))
_ENDLESS = b"a line longer than any that is read whole"
_HUGE_INTEGER = b"0" * 20  # orjson rounds an integer beyond 64 bits, which has at least 20 digits


class Line(NamedTuple):
    """One record that was read."""

    number: int
    """Line on which it begins, from 1. Records that share a line have the same number."""

    value: Any
    """The record."""

    raw: bytes
    """Its bytes; for a record over several lines, all of them."""

    repaired: str | None
    """What was wrong with it and mended in reading; None for a clean record."""


class Damage(NamedTuple):
    """A place that could not be read."""

    number: int
    """Line, from 1. A line may hold several damaged places, and records beside them."""

    reason: str
    """What was expected and found."""

    raw: bytes
    """The bytes."""


def json_lines(stream: BinaryIO) -> Iterator[Line | Damage]:
    """The records and damaged places of a stream, in order, in memory that does not grow with it."""
    return _Reader(stream).entries()


class _Reader:
    """Reads lines, with a few of them held back while a broken record looks for its end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held: deque[tuple[int, bytes]] = deque()
        self._pieces: deque[bytes] = deque()
        self._number = 0
        self._joins = 0

    def entries(self) -> Iterator[Line | Damage]:
        """All entries to the end of the stream."""
        while (line := self._next()) is not None:
            number, raw = line
            if raw is _ENDLESS:
                yield from self._endless(number)
                continue
            text = raw.strip(_PADDING)
            if text.startswith(_MARK):
                text = text[len(_MARK) :].strip(_PADDING)
            if not text:
                if b"\0" in raw:
                    yield Damage(number, "expected a JSON record, found NUL bytes only", raw)
                continue
            try:
                value = decode_json(text) if _HUGE_INTEGER in text.translate(_DIGITS) else orjson.loads(text)
            except ValueError:
                yield from self._mended(number, raw, text)
            else:
                yield Line(number, value, raw.rstrip(b"\r\n"), None)

    def _next(self) -> tuple[int, bytes] | None:
        if self._held:
            return self._held.popleft()
        raw = self._stream.readline(_PIECE)
        if not raw:
            return None
        self._number += 1
        if len(raw) == _PIECE and not raw.endswith(b"\n"):
            pieces = [raw]
            size = len(raw)
            while size <= _LONGEST_LINE and (raw := self._stream.readline(_PIECE)):
                pieces.append(raw)
                size += len(raw)
                if raw.endswith(b"\n"):
                    break
            if size > _LONGEST_LINE:
                self._pieces = deque(pieces)
                return self._number, _ENDLESS
            raw = b"".join(pieces)
        return self._number, raw

    def _endless(self, number: int) -> Iterator[Damage]:
        """A line beyond all measure, piece by piece."""
        reason = (
            f"expected a line of at most {_LONGEST_LINE} bytes, found a longer one; this is a piece of it"
        )
        ended = False
        while self._pieces:
            piece = self._pieces.popleft()
            ended = piece.endswith(b"\n")
            yield Damage(number, reason, piece)
        while not ended and (piece := self._stream.readline(_PIECE)):
            ended = piece.endswith(b"\n")
            yield Damage(number, reason, piece)

    def _mended(self, number: int, raw: bytes, text: bytes) -> Iterator[Line | Damage]:
        """A line that is no clean record: deep, shared, torn, broken, or not UTF-8."""
        try:
            yield Line(number, decode_json(text), raw.rstrip(b"\r\n"), None)
            return
        except ValueError:
            pass
        found = _records(text)
        if found.open_string and (joined := self._join(number, raw)):
            yield from joined
            return
        alone = len(found.parts) == 1
        for part in found.parts:
            kept = raw.rstrip(b"\r\n") if alone else part.raw
            if part.failure is None:
                yield Line(number, part.value, kept, part.repaired)
            else:
                yield Damage(number, part.failure, kept)

    def _join(self, number: int, raw: bytes) -> list[Line]:
        """The record that begins on this line and ends on a later one; empty when there is no such end."""
        taken: list[tuple[int, bytes]] = []
        size = len(raw)
        scan = _Scan()
        scan.feed(raw)
        while size < _JOINED_BYTES and len(taken) < _JOINED_LINES and self._joins < _JOINS_TRIED:
            line = self._next()
            if line is None:
                break
            taken.append(line)
            self._joins += 1
            if line[1] is _ENDLESS or _is_record(line[1]):
                break
            size += len(line[1])
            scan.feed(line[1])
            if not scan.closed:
                continue
            whole = b"".join([raw, *(part for _, part in taken)])
            found = _records(whole.strip(_PADDING))
            if all(part.failure is None for part in found.parts):
                self._joins = 0
                last = taken[-1][0]
                return [
                    Line(
                        number,
                        part.value,
                        whole.rstrip(b"\r\n") if len(found.parts) == 1 else part.raw,
                        _and(f"raw newline in a string: lines {number} to {last} joined", part.repaired),
                    )
                    for part in found.parts
                ]
            break
        self._held.extendleft(reversed(taken))
        return []


def _is_record(raw: bytes) -> bool:
    text = raw.strip(_PADDING)
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return False
    try:
        decode_json(text)
    except ValueError:
        return False
    return True


class _Scan:
    """Follows strings and brackets over line ends, to see where a record might be complete."""

    def __init__(self) -> None:
        self._in_string = False
        self._depth = 0

    @property
    def closed(self) -> bool:
        """Whether everything that was opened is closed."""
        return not self._in_string and self._depth <= 0

    def feed(self, raw: bytes) -> None:
        """Take in the next line."""
        parts = raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        for index, part in enumerate(parts):
            if index:
                self._in_string = not self._in_string
            if not self._in_string:
                self._depth += part.count(b"{") + part.count(b"[") - part.count(b"}") - part.count(b"]")


class _Part(NamedTuple):
    value: Any
    raw: bytes
    repaired: str | None
    failure: str | None


class _Found(NamedTuple):
    parts: list[_Part]
    open_string: bool


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is beyond every number that JSON readers can hold")
    return number


_LENIENT = json.JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)
_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _records(data: bytes) -> _Found:
    """The records of one stretch of bytes, mended where that loses nothing, and the damage between them."""
    try:
        text, mended = data.decode(), None
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        mended = f"invalid UTF-8 at byte {error.start + 1}, shown as U+FFFD"
    parts: list[_Part] = []
    at, torn_from = 0, None
    open_string = False
    while at < len(text):
        value, end, repaired, error_at, failure = _decode_at(text, at)
        if failure is None:
            if torn_from is not None:
                parts.append(
                    _damaged(text, torn_from, at, "expected a whole JSON record, found one cut by the next")
                )
                torn_from = None
            parts.append(_Part(value, _bytes(text[at:end]), _and(mended, repaired), None))
            at = _skip(text, end)
            continue
        if torn_from is None:
            torn_from = at
        next_at = text.rfind('{"', at + 1, error_at + 2) if error_at < len(text) else -1
        # A record that cut another one is where reading failed; an object further back is a part of the torn one.
        if next_at > at and error_at - next_at <= len('{"') and len(parts) < 1000:
            at = next_at
            continue
        open_string = failure.startswith("Unterminated string")
        parts.append(_damaged(text, torn_from, len(text), f"expected a JSON record, found: {failure}"))
        break
    if len(parts) == 1 and parts[0].failure is not None:
        parts = [parts[0]._replace(raw=data)]
    return _Found(parts, open_string)


def _decode_at(text: str, at: int) -> tuple[Any, int, str | None, int, str | None]:
    """Value, end, what was repaired, place of the error, and the error."""
    try:
        value, end = _STRICT.raw_decode(text, at)
        return value, end, None, 0, None
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Invalid control character"):
            return None, at, None, error.pos, f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        return None, at, None, len(text), "nesting too deep beside other damage"
    except ValueError as error:
        return None, at, None, len(text), str(error)
    try:
        value, end = _LENIENT.raw_decode(text, at)
        return value, end, "raw control character in a string", 0, None
    except json.JSONDecodeError as error:
        return None, at, None, error.pos, f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        return None, at, None, len(text), "nesting too deep beside other damage"
    except ValueError as error:
        return None, at, None, len(text), str(error)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n\0\ufeff":
        at += 1
    return at


def _damaged(text: str, start: int, end: int, reason: str) -> _Part:
    return _Part(None, _bytes(text[start:end]), None, reason)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _and(first: str | None, second: str | None) -> str | None:
    return f"{first}; {second}" if first and second else first or second
