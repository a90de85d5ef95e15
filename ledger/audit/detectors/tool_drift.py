"""The mix of what a loop does changes and stays changed, though nobody asked for anything new."""

import math
from collections import Counter
from collections.abc import Iterator

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.events import Record
from ledger.events.input import MessageReceived
from ledger.events.tool_call import ToolCallRequested

TITLE = "Scope drift: another mix of tools than the task began with"
SEVERITY = "low"
WHY = "A loop that left its task does other things than before, each of them allowed."
MISSES = (
    "Drift within the same tools, and in shells, where one tool does everything; fewer than 40 calls since a person"
    " spoke; drift slower than 20 calls. Honest work has phases too, and they look the same."
)
READS = (MessageReceived, ToolCallRequested)
SOURCE = (
    "Agent stability index (arXiv 2601.04170): divergence of tool use by window; Jensen-Shannon, in bits."
)
EXPERIMENTAL = True

WINDOW = 20
"""Calls that are compared with the first ones since a person spoke."""

APART = 0.6
"""Bits of divergence of two windows: 0 for the same mix, 1 for no tool in common."""

STAYS = 10
"""For so many calls it must stay so."""


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._clear()

    def _clear(self) -> None:
        self._first: list[str] = []
        self._last: list[tuple[int, str]] = []
        self._apart: list[int] = []
        self._is_told = False

    def end(self) -> Iterator[Found]:
        """Nothing shows only at the end."""
        yield from ()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        if isinstance(event, MessageReceived) and event.origin == "human":
            self._clear()  # another task, another mix
        if not isinstance(event, ToolCallRequested):
            return
        if len(self._first) < WINDOW:
            self._first.append(event.tool)
            return
        self._last.append((record.seq, event.tool))
        del self._last[:-WINDOW]
        if len(self._last) < WINDOW or self._is_told:
            return
        bits = divergence(Counter(self._first), Counter(tool for _, tool in self._last))
        self._apart = [*self._apart, record.seq] if bits >= APART else []
        if len(self._apart) >= STAYS:
            self._is_told = True
            seqs = tuple(seq for seq, _ in self._last)
            now = ", ".join(tool for tool, _ in Counter(tool for _, tool in self._last).most_common(3))
            then = ", ".join(tool for tool, _ in Counter(self._first).most_common(3))
            yield Found(
                seqs[0], f"it began with {then}; for {WINDOW} calls now it is {now} ({bits:.2f} bits)", seqs
            )


def divergence(one: Counter[str], two: Counter[str]) -> float:
    """Jensen-Shannon divergence of two mixes, in bits."""
    bits = 0.0
    for tool in sorted({*one, *two}):
        share, other = one[tool] / one.total(), two[tool] / two.total()
        middle = (share + other) / 2
        bits += sum(part / 2 * math.log2(part / middle) for part in (share, other) if part > 0)
    return bits


start = Watch
