"""Data flow: values that stand in a result and, later, in an argument, where they are more than ordinary words."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any

_TOKEN = re.compile(r"[^\s\"'`<>(){}\[\],;|]{4,300}")
_MARKS = re.compile(r"[0-9@:/._\\-]")
_SHORT = 4
_LONG = 10
_MOST = 50_000
_LONGEST_TEXT = 1_000_000


def values_in(value: Any) -> set[str]:
    """What can be followed: addresses, links, paths, numbers of four digits and more, words of ten letters and more.

    An ordinary word says nothing about where it came from.
    """
    found: set[str] = set()
    waiting = [value]
    while waiting and len(found) < _MOST:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(reversed(one.values() if isinstance(one, dict) else one))
        elif isinstance(one, str) or (isinstance(one, int | float) and not isinstance(one, bool)):
            words = dict.fromkeys(_TOKEN.findall(str(one)[:_LONGEST_TEXT].lower()))
            found.update(islice(filter(None, map(_followed, words)), _MOST - len(found)))
    return found


@lru_cache(maxsize=10_000)
def _followed(word: str) -> str:
    """What of a word can be followed; empty for an ordinary one."""
    token = word.strip(".,:!?-_*#=")
    return token if len(token) >= _LONG or (len(token) >= _SHORT and _MARKS.search(token)) else ""


class Tainted:
    """Values out of results that are not trusted, with the place of each; what a person said is not among them."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._trusted: set[str] = set()

    def add(self, value: Any, seq: int, known: Iterable[str]) -> None:
        """A result that is not trusted; `known` is what the call itself had asked with."""
        for token in sorted(values_in(value).difference(known) - self._trusted):
            if len(self._places) < _MOST:
                self._places.setdefault(token, seq)

    def trust(self, values: Iterable[Any]) -> None:
        """What a person said."""
        for value in values:
            found = values_in(value)
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
