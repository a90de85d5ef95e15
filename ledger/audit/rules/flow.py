"""Data flow: values that stand in a result and, later, in an argument, where they are more than ordinary words."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

_TOKEN = re.compile(r"[^\s\"'`<>(){}\[\],;|]{4,300}")
_MARKS = frozenset("0123456789@:/._\\-")
_ENDS = ".,:!?-_*#=\\"
_SEPARATORS = re.compile(r"[?&=#]|://")
_PARTS = re.compile(r"[/?&=#:]+")
_ESCAPED = re.compile(r"\\+(?:[nrt](?![a-z])|u[0-9a-f]{4}|.)?", re.DOTALL)
_HALF = re.compile(r"[^\s\"'`<>(){}\[\],;|]{3,150}")
_MOST_HALVES = 100
_LENGTH_OF_CODE = len("u0041")
_SHORT = 4
_LONG = 10
_MOST = 50_000
_LONGEST = 4_000_000


def values_in(value: Any) -> set[str]:
    """What can be followed: addresses, links, paths, numbers of four digits and more, words of ten letters and more.

    An ordinary word says nothing about where it came from. Of a link, what it holds without its scheme and the values
    of its query are values, too.
    """
    tokens = _tokens_in(_texts_in(value))
    found = set(tokens)
    links = [token for token in tokens if "://" in token or "?" in token]
    if links:
        found.update(_followed(_SEPARATORS.split("&".join(links))))
    return found


def values_among(arguments: Any) -> set[str]:
    """What arguments hold: the same, and what is a part of a longer one, or is told in two of them, side by side."""
    texts = _texts_in(arguments)
    tokens = _tokens_in(texts)
    found = set(tokens)
    longer = [token for token in tokens if "/" in token or "=" in token or ":" in token]
    if longer:
        found.update(_followed(_PARTS.split("/".join(longer))))
        found.update(_followed(_SEPARATORS.split("&".join(longer))))
    if len(texts) > 1:
        halves = [text.lower() for text in texts[:_MOST_HALVES] if _HALF.fullmatch(text)]
        for one, two in pairwise(halves):
            if not (one.isalpha() and two.isalpha()):
                found.update((one + two, two + one, f"{one}@{two}", f"{two}@{one}", f"{one}/{two}"))
    return found


def _texts_in(value: Any) -> list[str]:
    """Its texts and numbers."""
    found: list[str] = []
    room = _LONGEST
    waiting = [value]
    while waiting and room > 0:
        one = waiting.pop()
        kind = type(one)
        if kind is dict:
            waiting.extend(reversed(one.values()))
        elif kind is list:
            waiting.extend(reversed(one))
        elif kind is str:
            found.append(one[:room])
            room -= len(one) + 1
        elif kind is int or kind is float:
            found.append(str(int(one) if kind is float and one.is_integer() else one))
            room -= len(found[-1]) + 1
    return found


def _tokens_in(texts: Iterable[str]) -> list[str]:
    """What of them can be followed, in small letters; of what is escaped, as in JSON or a link, what it means, too."""
    text = "\n".join(texts).lower()
    words = dict.fromkeys(_TOKEN.findall(text))
    if "\\" in text:
        words |= dict.fromkeys(_TOKEN.findall(_ESCAPED.sub(_meant, text)))
    if "%" in text:
        words |= dict.fromkeys(_TOKEN.findall(unquote(text)))
    return _followed(words)[:_MOST]


def _meant(escaped: re.Match[str]) -> str:
    """What an escaped character means."""
    last = escaped[0].lstrip("\\")
    if last in ("n", "r", "t"):
        return " "
    if len(last) == _LENGTH_OF_CODE:
        return chr(int(last[1:], 16))
    return f"\\{last}" if last.isalnum() else last or "\\"


def _followed(words: Iterable[str]) -> list[str]:
    """Those that can be followed, without the marks around them."""
    return [
        token
        for word in words
        if len(token := word.strip(_ENDS)) >= _LONG
        or (len(token) >= _SHORT and not token.isalpha() and not _MARKS.isdisjoint(token))
    ]


class Tainted:
    """Values out of results that are not trusted, with the place of each; what a person said is not among them."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, int] = OrderedDict()
        self._trusted: set[str] = set()

    def add(self, found: set[str], seq: int) -> None:
        """What came out of a call that is not trusted."""
        places = self._places
        for token in sorted(found - self._trusted):  # in an order that is always the same: the oldest go
            if token not in places:
                places[token] = seq
                if len(places) > _MOST:
                    places.popitem(last=False)

    def trust(self, values: Iterable[Any]) -> None:
        """What a person said."""
        for value in values:
            found = values_among(value)
            if len(self._trusted) < _MOST:
                self._trusted |= found
            for token in found:
                self._places.pop(token, None)

    def source_of(self, arguments: Iterable[str]) -> int | None:
        """The first result that a value among the arguments came out of."""
        return min((self._places[token] for token in arguments if token in self._places), default=None)

    def crosses(self, source: set[str], arguments: set[str]) -> bool:
        """Whether a value of a result stands among the arguments, and no person said it."""
        return not source.isdisjoint(arguments) and not (source & arguments) <= self._trusted
