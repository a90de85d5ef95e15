"""The sizes of what a loop sends out cling together, though none of them and not their mean is unusual.

A monitor that looks at levels (a mean, a maximum, a sum in a window) can be passed by any sequence that keeps the
levels and changes the order alone. Order is what this one looks at: lag-1 autocorrelation and a runs test on ranks,
both of which have a known distribution when steps are independent, and a CUSUM of ranks that says where it began.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.effects.classes import classify
from ledger.events import Record
from ledger.events.tool_call import ToolCallRequested

TITLE = "Outgoing steps that depend on one another"
SEVERITY = "low"
WHY = "Sabotage and leaks that keep every step inside its limits show in how one step follows on another."
MISSES = (
    "Loops with fewer than 60 outgoing calls; what hides in contents and not in sizes. Honest work has phases, and"
    " phases cling together as well: a hint where steps ought to be independent, such as answers to separate customers."
)
READS = (ToolCallRequested,)
SOURCE = "The Distributed Detectability Band (arXiv 2606.10456): level monitors AUC 0.52, order monitors 0.79 to 0.97."
EXPERIMENTAL = True

FEWEST = 60
"""With fewer steps no order shows."""

Z = 3.29
"""How many deviations: one in a thousand sequences of independent steps is so far out to one side or the other."""

_MOST = 2000
_OUT = ("external", "irreversible")


class Order(NamedTuple):
    """How far a sequence is from independence, in standard deviations."""

    lag: float
    """Lag-1 autocorrelation of the ranks."""

    runs: float
    """Runs about the median: negative where there are too few of them."""

    start: int
    """Where the longest swing of the cumulative sum of the ranks begins: a place in the sequence."""

    end: int
    """Where it ends."""


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._steps: list[tuple[int, int]] = []

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        if isinstance(event, ToolCallRequested) and len(self._steps) < _MOST:
            effect = classify(
                event.tool, self._reader.value(event.arguments), declared=event.effect_class
            ).effect_class
            if effect in _OUT:
                self._steps.append((record.seq, event.arguments.size))
        yield from ()

    def end(self) -> Iterator[Found]:
        """A sequence shows its order when it is whole."""
        if len(self._steps) < FEWEST:
            return
        order = order_of([size for _, size in self._steps])
        if abs(order.lag) < Z or (order.lag > 0) == (order.runs > 0):
            return
        seqs = [seq for seq, _ in self._steps[order.start : order.end + 1]]
        how = "cling together" if order.lag > 0 else "alternate"
        message = (
            f"the sizes of {len(self._steps)} outgoing calls {how}: autocorrelation {order.lag:+.1f}, runs"
            f" {order.runs:+.1f} standard deviations from independent ones"
        )
        yield Found(seqs[0], message, tuple(seqs[:50]), key="order")


def order_of(values: list[float] | list[int]) -> Order:
    """How far values are from independence. Ranks take the place of values, so that no single size counts for much."""
    ranks = _ranks(values)
    count = len(ranks)
    middle = (count - 1) / 2
    spread = sum((rank - middle) ** 2 for rank in ranks)
    if spread == 0:
        return Order(0.0, 0.0, 0, count - 1)
    pairs = pairwise(ranks)
    lag = sum((one - middle) * (two - middle) for one, two in pairs) / spread
    above = [rank > middle for rank in ranks]
    many, few = sum(above), count - sum(above)
    runs = 1 + sum(one != two for one, two in pairwise(above))
    mean = 2 * many * few / count + 1
    variance = (mean - 1) * (mean - 2) / (count - 1)
    start, end = _swing([rank - middle for rank in ranks])
    return Order(
        (lag + 1 / count) * math.sqrt(count),
        (runs - mean) / math.sqrt(variance) if variance > 0 else 0.0,
        start,
        end,
    )


def _ranks(values: list[float] | list[int]) -> list[float]:
    """Ranks from 0; equal values share theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    ranks, before = [0.0] * len(values), 0
    for value in sorted(places):
        some = places[value]
        for place in some:
            ranks[place] = before + (len(some) - 1) / 2
        before += len(some)
    return ranks


def _swing(deviations: list[float]) -> tuple[int, int]:
    """The stretch over which the cumulative sum rises most."""
    best, total, start, found = 0.0, 0.0, 0, (0, len(deviations) - 1)
    for place, one in enumerate(deviations):
        if total <= 0:
            total, start = 0.0, place
        total += one
        if total > best:
            best, found = total, (start, place)
    return found


start = Watch
