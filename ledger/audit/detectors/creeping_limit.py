"""A number among the arguments of one tool grows bit by bit: each call a little more than the last."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.effects.words import words_of
from ledger.events import Record
from ledger.events.tool_call import ToolCallRequested

TITLE = "Amount or limit that creeps up"
SEVERITY = "medium"
WHY = "A limit on single calls never sees a budget, a timeout or a payment that grows by a little each time."
MISSES = (
    "Fewer than eight calls; what has not doubled, its last third against its first; amounts inside texts and lists;"
    " growth over several tools or sessions; what grows for a reason that the record does not show; amounts whose names"
    " do not say that they are. Places (page, offset, line, id) grow by nature and are left out by their names."
)
READS = (ToolCallRequested,)
SOURCE = "Mann-Kendall test for a trend, on amounts and limits of one argument; creeping budgets of long-running loops."

FEWEST = 8
"""With fewer values there is no trend."""

Z = 3.29
"""How far the trend is from chance, in standard deviations."""

GROWTH = 2.0
"""And by what the last third must be larger than the first."""

_KEPT = 60
_MOST_FIELDS = 500
_MOST_IN_A_CALL = 50
_AMOUNTS = frozenset(
    "amount budget cap cost count credits deadline fee limit max maximum memory number price quantity quota replicas"
    " size spend sum timeout tokens total value volume".split()
)
_DIGITS = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")
_PLACES = frozenset(
    "page offset line row column cursor start end skip index id position step iteration attempt".split()
)


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._values: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self._told: set[tuple[str, str]] = set()

    def end(self) -> Iterator[Found]:
        """Nothing shows only at the end."""
        yield from ()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        if not isinstance(event, ToolCallRequested):
            return
        for field, value in _amounts(self._reader.value(event.arguments)):
            key = event.tool, field
            if key not in self._values and len(self._values) >= _MOST_FIELDS:
                continue
            values = self._values.setdefault(key, [])
            values.append((record.seq, value))
            del values[:-_KEPT]
            if key not in self._told and creeps([one for _, one in values]):
                self._told.add(key)
                message = (
                    f"{event.tool}: {field[:60]} went from {values[0][1]:g} to {values[-1][1]:g} bit by bit"
                    f" over {len(values)} calls"
                )
                yield Found(values[0][0], message, tuple(seq for seq, _ in values), key=f"{key}")


def _amounts(arguments: Any) -> Iterator[tuple[str, float]]:
    waiting, found = [("", arguments)], 0
    while waiting and found < _MOST_IN_A_CALL:
        name, value = waiting.pop(0)
        if isinstance(value, dict) and len(waiting) < _MOST_IN_A_CALL:
            waiting += [(f"{name}.{one}" if name else one, value[one]) for one in sorted(value)]
        elif (number := _number(value)) is not None:
            words = set(words_of(name))
            if words & _AMOUNTS and not words & _PLACES:
                found += 1
                yield name, number


def _number(value: Any) -> float | None:
    """A number, or a text that is one; None for anything else, and for what is too large to be an amount."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        return float(value)
    return None


def creeps(values: list[float]) -> bool:
    """Whether values rise steadily: by a test of their order, by how much, and without one step that does it all."""
    count = len(values)
    if count < FEWEST:
        return False
    third = count // 3
    first, last = sum(values[:third]) / third, sum(values[-third:]) / third
    if last <= 0 or last < GROWTH * max(first, 0.0):
        return False
    steps = [two - one for one, two in pairwise(values)]
    if max(steps) > 0.5 * (max(values) - min(values)):
        return False  # one jump, not many small steps
    score = sum(
        (values[later] > values[sooner]) - (values[later] < values[sooner])
        for sooner in range(count)
        for later in range(sooner + 1, count)
    )
    return (score - 1) / math.sqrt(count * (count - 1) * (2 * count + 5) / 18) > Z


start = Watch
