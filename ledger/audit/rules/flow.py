"""Data flow: values that stand in a result and, later, in an argument, where they are more than ordinary words."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.audit.reader import texts_in

_TOKEN = re.compile(r"[^\s\"'`<>(){}\[\],;|]{4,300}")
_MARKS = re.compile(r"[0-9@:/._\\-]")
_LONG = 10
_MOST = 50_000
_LONGEST_TEXT = 1_000_000


def values_in(value: Any) -> set[str]:
    """What can be followed: addresses, links, paths, numbers of four digits and more, words of ten letters and more.

    An ordinary word says nothing about where it came from.
    """
    return set(_values(value))


def _values(value: Any) -> Iterator[str]:
    count = 0
    for text in (*texts_in(value), *_numbers(value)):
        for token in _TOKEN.findall(text[:_LONGEST_TEXT]):
            token = token.strip(".,:!?-_*#=").lower()
            if len(token) >= 4 and (len(token) >= _LONG or _MARKS.search(token)):
                yield token
                count += 1
                if count == _MOST:
                    return


def _numbers(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)
        elif isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)


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

    def source_of(self, arguments: Any) -> int | None:
        """The first result that a value among the arguments came out of."""
        return min(
            (self._places[token] for token in values_in(arguments) if token in self._places), default=None
        )

    def crosses(self, source: set[str], arguments: Any) -> bool:
        """Whether a value of a result stands among the arguments, and no person said it."""
        return not source.isdisjoint(values_in(arguments) - self._trusted)
