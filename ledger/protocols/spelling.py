"""Keeps the bytes of JSON request bodies: their messages as a chain that shares what the request before it had.

The body is cut where its top-level fields begin and end. Long fields and messages are kept once, whatever surrounds
them; the rest is the frame, which hardly changes. Costs, but for comparing bytes, only what is new. Must not fail on
any bytes.
"""

import re
from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from ledger.events import ContentRef
from ledger.events.canonical import decode_json
from ledger.recorder import ContextChain, Keeper

_LONG = 512
"""Bytes from which on a field is kept apart from its frame."""

_FIELDS_KEPT = 64
_BLANKS = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARKS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_CLOSING = b'}]"'
_AFTER_ITEM = b",]"
_END_OF_ARRAY = ord("]")


class _Spelling(NamedTuple):
    """Bytes as they came, and what was kept of them."""

    given: bytes
    ref: ContentRef
    kept: bytes
    is_closed: bool = True
    """Whether its own last byte ends it."""


class RawTaker:
    """Keeps the bytes of the requests of one conversation."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._chain = ContextChain(keeper)
        self._messages: list[_Spelling] = []
        self._fields: OrderedDict[str, _Spelling] = OrderedDict()
        self._ended = 0

    def take(self, raw: bytes, messages_name: str, kept: Container[str]) -> dict[str, Any]:
        """Keep a body; give the fields of `ModelCallRequested` that rebuild it.

        `kept` holds the digests of the messages and fields that are kept as values.
        """
        try:
            return self._take(raw, messages_name, kept)
        except (ValueError, RecursionError, LookupError):
            return self._whole(raw)

    def _whole(self, raw: bytes) -> dict[str, Any]:
        """A body that is no JSON object."""
        body = self._keeper.spelled_bytes(raw)
        return {
            "raw": self._keeper.json([0], "request/raw"),
            "raw_parts": (body[0],),
            "raw_digest": self._keeper.digest(body[1]),
        }

    def _take(self, raw: bytes, messages_name: str, kept: Container[str]) -> dict[str, Any]:
        raw.decode()  # JSON is UTF-8, and a frame is kept as text
        keeper = self._keeper
        parts: list[ContentRef] = []
        frame: list[str | int | None] = []
        digested: list[bytes] = []
        literal: list[bytes] = []

        def close() -> None:
            text = keeper.scalar(b"".join(literal).decode(), "request")
            literal.clear()
            frame.append(text)
            digested.append(text.encode())

        messages: list[_Spelling] | None = None
        done = 0
        for name, place in self._walk(raw):
            if name == messages_name and messages is None and _holds_items(raw, place):
                messages, end = self._listed(raw, place, kept)
                literal.append(raw[done : place + 1])
                close()
                frame.append(None)
                digested.append(b",".join([message.kept for message in messages]))
                done = end - 1
            else:
                end = self._end(name, raw, place)
                value = raw[place:end]
                literal.append(raw[done:place])
                done = end
                if len(value) >= _LONG:
                    spelling = self._field(name, value, kept)
                    close()
                    frame.append(len(parts))
                    parts.append(spelling.ref)
                    digested.append(spelling.kept)
                else:
                    literal.append(keeper.spelled(value, decode_json(value), name)[0])
            self._ended = end
        literal.append(raw[done:])
        close()
        told: dict[str, Any] = {
            "raw": keeper.json(frame, "request/raw"),
            "raw_parts": tuple(parts),
            "raw_digest": keeper.digest(b"".join(digested)),
        }
        if messages is not None:
            self._messages = messages
            self._chain.replace([message.ref for message in messages])
            told |= {"raw_context": self._chain.head, "raw_added": self._chain.take_added()}
        return told

    def _walk(self, raw: bytes) -> Iterator[tuple[str, int]]:
        """The top-level fields of an object and where their values begin. Raises ValueError where it is none.

        Goes on behind `_ended`, which tells where the value before ended.
        """
        place = _after_blanks(raw, 0)
        if raw[place : place + 1] != b"{":
            raise ValueError("no JSON object")
        place = _after_blanks(raw, place + 1)
        while raw[place : place + 1] == b'"':
            named = _STRING.match(raw, place)
            if named is None:
                raise ValueError("a name without end")
            colon = _after_blanks(raw, named.end())
            yield str(decode_json(named[0])), _after_blanks(raw, colon + 1)
            place = _after_blanks(raw, self._ended)
            if raw[place : place + 1] != b",":
                return
            place = _after_blanks(raw, place + 1)

    def _end(self, name: str, raw: bytes, place: int) -> int:
        known = self._fields.get(name)
        if known is not None and known.given[-1] in _CLOSING and raw.startswith(known.given, place):
            return place + len(known.given)
        return _value_end(raw, place)

    def _field(self, name: str, value: bytes, kept: Container[str]) -> _Spelling:
        known = self._fields.get(name)
        if known is None or known.given != value:
            known = _Spelling(value, *self._keeper.spelling(value, kept, name))
            self._fields[name] = known
            if len(self._fields) > _FIELDS_KEPT:
                self._fields.popitem(last=False)
        return known

    def _listed(self, raw: bytes, start: int, kept: Container[str]) -> tuple[list[_Spelling], int]:
        """The spellings of the items of an array, blanks around them included, and where it ends."""
        found: list[_Spelling] = []
        place = start + 1
        while True:
            known = self._messages[len(found)] if len(found) < len(self._messages) else None
            if known is not None and raw.startswith(known.given, place):
                end = place + len(known.given)
                if raw[end] in _AFTER_ITEM and known.is_closed:
                    found.append(known)
                    place = end + 1
                    if raw[end] == _END_OF_ARRAY:
                        return found, place
                    continue
            end = _after_blanks(raw, _value_end(raw, _after_blanks(raw, place)))
            given = raw[place:end]
            found.append(
                _Spelling(given, *self._keeper.spelling(given, kept), given.rstrip()[-1] in _CLOSING)
            )
            place = end + 1
            if raw[end] == _END_OF_ARRAY:
                return found, place


def _holds_items(raw: bytes, place: int) -> bool:
    """Whether an array with something in it begins here."""
    return raw[place : place + 1] == b"[" and raw[_after_blanks(raw, place + 1)] != _END_OF_ARRAY


def _after_blanks(raw: bytes, place: int) -> int:
    found = _BLANKS.match(raw, place)
    return found.end() if found else place


def _value_end(raw: bytes, place: int) -> int:
    """Where a JSON value ends. Raises ValueError when it does not."""
    first = raw[place : place + 1]
    if first == b'"':
        text = _STRING.match(raw, place)
        if text is not None:
            return text.end()
    elif first in (b"{", b"["):
        depth = 0
        for mark in _MARKS.finditer(raw, place):
            letter = raw[mark.start()]
            if letter in b"{[":
                depth += 1
            elif letter in b"}]":
                depth -= 1
                if depth == 0:
                    return mark.end()
    elif (scalar := _SCALAR.match(raw, place)) is not None:
        return scalar.end()
    raise ValueError(f"a JSON value that begins at byte {place} does not end")
