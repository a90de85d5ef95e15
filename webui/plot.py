"""Charts as numbers: scales, ticks, and lines as the `d` of an SVG path. Makes no markup."""

import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 440
"""Width of a chart, near that of its column, so that its text is not shrunk."""

LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 24
"""What is left free around the field of a chart."""

Point = tuple[float, float]
"""A value of each axis."""


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    """Where, in the chart."""

    label: str
    """What it says."""


class Scale(NamedTuple):
    """Values of an axis on a stretch of a chart; they may run downwards."""

    low: float
    """The value at the beginning."""

    high: float
    """The value at the end."""

    start: float
    """Where it begins in the chart."""

    end: float
    """Where it ends."""

    def at(self, value: float) -> float:
        """Where a value lies; one beyond the ends, at the end."""
        span = self.high - self.low
        share = 0.0 if span == 0 else (value - self.low) / span
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)

    def ticks(self, most: int) -> list[Tick]:
        """At most so many marks, at round values."""
        return [Tick(self.at(value), shown(value)) for value in round_values(self.low, self.high, most)]


class Field(NamedTuple):
    """The field of a chart: both of its axes."""

    across: Scale
    """Left to right."""

    up: Scale
    """From the ground up."""

    def line(self, points: Sequence[Point]) -> str:
        """From point to point."""
        return _path([(self.across.at(x), self.up.at(y)) for x, y in points])

    def step(self, points: Sequence[Point]) -> str:
        """A value holds until the next point."""
        placed: list[Point] = []
        for x, y in points:
            if placed:
                placed.append((self.across.at(x), placed[-1][1]))
            placed.append((self.across.at(x), self.up.at(y)))
        return _path(placed)

    def band(self, lower: Sequence[Point], upper: Sequence[Point]) -> str:
        """The area between two lines."""
        around = [*upper, *reversed(lower)]
        path = _path([(self.across.at(x), self.up.at(y)) for x, y in around])
        return f"{path}z" if path else ""

    def bar(self, first: float, last: float, low: float, high: float) -> str:
        """A rectangle from one value to another on each axis; never thinner than can be seen."""
        left, right = self.across.at(first), self.across.at(last)
        bottom, top = self.up.at(low), self.up.at(high)
        width = max(1.0, round(right - left, 1))
        return f"M{left:g} {bottom:g}V{top:g}h{width:g}V{bottom:g}z"


def field_of(across: tuple[float, float], up: tuple[float, float], height: int, *, left: int = LEFT) -> Field:
    """The field of a chart of a height."""
    return Field(Scale(*across, left, WIDTH - RIGHT), Scale(*up, height - BOTTOM, TOP))


def round_values(low: float, high: float, most: int) -> list[float]:
    """At most so many round values from low to high, evenly apart; none where there is nothing between."""
    span = high - low
    if not math.isfinite(span) or span <= 0 or most < 1:
        return [low] if math.isfinite(low) and most >= 1 else []
    size = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 5, 10, 20, 50, 100):
        step = size * factor
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first + 1 <= most:
            return [round(place * step, 12) for place in range(first, last + 1)]
    return [low]


def shown(value: float) -> str:
    """A value in few characters."""
    for size, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def _path(points: Sequence[Point]) -> str:
    return "".join(f"{'L' if place else 'M'}{x:g} {y:g}" for place, (x, y) in enumerate(points))
