"""Finds secrets inside what is written in base64 or in hexadecimal digits: `cat .env | base64`, `xxd -p key.pem`.

The literals of secrets are known in their packed forms as well: base64 has three, by where among three bytes a literal
begins. So nothing is unpacked but what stands around such a form. Must not unpack twice what was packed twice.
"""

import base64
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ledger.redaction.findings import Span
from ledger.redaction.rules import Rule

_NAMES = (
    "password passwd secret token api_key apikey api-key credential private_key accountkey accesskey cookie eyJhbGci"
    " postgres:// postgresql:// mysql:// redis:// rediss:// mongodb:// mongodb+srv:// amqp:// amqps:// ftp:// https://"
).split()
_SHORTEST = 5
_SHORT = frozenset(("akia", "asia", "AIza"))
_ODD = re.compile(r"[^A-Za-z0-9]")
_BACK, _AHEAD = 4096, 8192
_LINE_END = rb"(?:\r?\n|\\+r\\+n|\\+n)[ \t]*"
_END_OF_LINE = re.compile(_LINE_END)
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/\-_]|" + _LINE_END + rb"(?=[A-Za-z0-9+/\-_]))+={0,2}")
_HEX = re.compile(rb"(?:[0-9A-Fa-f]|" + _LINE_END + rb"(?=[0-9A-Fa-f]))+")
_OF_ANOTHER_ALPHABET = bytes.maketrans(b"-_", b"+/")
_TEXT = re.compile(rb"[\x09\x0a\x0d\x20-\x7e\x80-\xff]*")
_TAIL = 2048

Finds = Callable[[bytes], Iterable[Span]]


class Packing(NamedTuple):
    """How a literal is packed."""

    form: bytes
    """Its characters that are the same whatever stands around it."""

    lead: int
    """So many characters before them begins the group that a reader unpacks at once."""

    is_hex: bool
    """Whether it is in hexadecimal digits, else in base64."""


def packings(rules: Iterable[Rule]) -> dict[str, list[Packing]]:
    """What to look for, in small letters, and what it may be: the literals of some rules and the names of secrets."""
    found: dict[str, list[Packing]] = defaultdict(list)
    for literal in sorted({one for spelled in _literals(rules) for one in _spellings(spelled)}):
        for packing in _packed(literal.encode()):
            found[packing.form.decode().lower()].append(packing)
    return dict(found)


class Unpacker:
    """Finds what is packed in one text. Each stretch is unpacked once for each way its groups may begin."""

    def __init__(self, data: bytes, find: Finds) -> None:
        """`find`: what finds secrets in bytes."""
        self._data = data
        self._find = find
        self._runs: dict[bool, _Run] = {}

    def secrets(self, start: int, packing: Packing) -> Iterator[Span]:
        """The secrets in what is packed around a form that stands there, but for those that it gave before."""
        if not packing.is_hex and not self._data.startswith(packing.form, start):
            return
        run = self._runs.get(packing.is_hex)
        if run is None or start >= run.enough:
            run = self._runs[packing.is_hex] = _run(self._data, start, is_hex=packing.is_hex)
        at = bisect_left(run.places, start)
        group, size = (2, 1) if packing.is_hex else (4, 3)
        first = (at - packing.lead) % group
        if first in run.done:
            return
        run.done.add(first)
        places = run.places[first:]
        places = places[: len(places) - len(places) % group] if packing.is_hex else places
        packed = bytes(map(self._data.__getitem__, places))
        plain = bytes.fromhex(packed.decode()) if packing.is_hex else _from_base64(packed)
        for span in self._find(plain):
            if _TEXT.fullmatch(plain, span.start, span.end) is None:
                continue  # it has its shape by chance: this is no text
            begin, end = span.start // size * group, min(len(places), -(-span.end // size) * group)
            secret = plain[span.start : span.end]
            yield Span(places[begin], places[end - 1] + 1, span.kind, span.rank, secret)


class _Run(NamedTuple):
    """A stretch of packed text."""

    places: list[int]
    """Where its characters stand, ends of lines left out."""

    enough: int
    """Forms before this place have enough of it after them."""

    done: set[int]
    """Where its groups began when it was unpacked: after so many characters."""


def _literals(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        for literal in rule.literals:
            is_odd = len(literal) == _SHORTEST - 1 and _ODD.search(literal)
            if len(literal) >= _SHORTEST or is_odd or literal in _SHORT:
                yield literal
    yield from _NAMES


def _spellings(literal: str) -> tuple[str, ...]:
    """In small letters a literal may stand for others; packed, the case counts."""
    if literal != literal.lower():
        return (literal,)
    return literal, literal.upper(), literal.capitalize()


def _packed(literal: bytes) -> Iterator[Packing]:
    yield Packing(literal.hex().encode(), 0, is_hex=True)
    for before in range(3):
        whole = base64.b64encode(bytes(before) + literal)
        lead = -(-before * 8 // 6)
        form = whole[lead : (before + len(literal)) * 8 // 6]
        yield Packing(form, lead, is_hex=False)


def _run(data: bytes, start: int, *, is_hex: bool) -> _Run:
    pattern = _HEX if is_hex else _BASE64
    last = start + _AHEAD
    found = next(one for one in pattern.finditer(data, max(0, start - _BACK), last) if one.end() > start)
    begin, end = found.span()
    places: list[int] = []
    for cut in _END_OF_LINE.finditer(data, begin, end):
        places.extend(range(begin, cut.start()))
        begin = cut.end()
    places.extend(range(begin, begin + len(data[begin:end].rstrip(b"="))))
    return _Run(places, end if end < last else end - _TAIL, set())


def _from_base64(packed: bytes) -> bytes:
    """What base64 says, in any of its two alphabets; a single character at the end says nothing."""
    some = packed[: len(packed) - 1] if len(packed) % 4 == 1 else packed
    return base64.b64decode(some.translate(_OF_ANOTHER_ALPHABET) + b"=" * (-len(some) % 4))
