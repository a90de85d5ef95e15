"""Shares with their uncertainty: the Wilson interval, good for few cases and for shares near 0 and 1."""

import math
from typing import NamedTuple

Z_95 = 1.959963984540054
"""The normal quantile of a 95 % interval."""


class Share(NamedTuple):
    """So many of so many."""

    hits: int
    """Cases that count."""

    of: int
    """All cases."""

    @property
    def value(self) -> float | None:
        """The share; None of no cases."""
        return None if self.of == 0 else self.hits / self.of

    def interval(self, z: float = Z_95) -> tuple[float, float]:
        """The Wilson interval; 0 to 1 of no cases."""
        if self.of == 0:
            return 0.0, 1.0
        share, count = self.hits / self.of, self.of
        weight = 1 + z * z / count
        middle = (share + z * z / (2 * count)) / weight
        reach = z / weight * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
        return max(0.0, middle - reach), min(1.0, middle + reach)

    def as_json(self) -> dict[str, object]:
        """Share and interval, to four places."""
        low, high = self.interval()
        value = self.value
        return {
            "hits": self.hits,
            "of": self.of,
            "share": None if value is None else round(value, 4),
            "low": round(low, 4),
            "high": round(high, 4),
        }
