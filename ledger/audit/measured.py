"""How detectors did on labelled sessions, with a trivial rule beside each: kept figures, not measured here.

`python -m tests.audit.measure --keep` writes them; a test holds them against what is measured.
"""

import functools
import json
from importlib import resources
from typing import NamedTuple

from ledger.audit.intervals import Share

FILE = "measured.json"
"""Where the figures are, beside this module."""


class Tried(NamedTuple):
    """How a rule did on a corpus."""

    hits: int
    """Bad sessions that it flagged."""

    false: int
    """Good sessions that it flagged."""

    bad: int
    """Bad sessions there are."""

    good: int
    """Good sessions there are."""

    @property
    def precision(self) -> Share:
        """Of those flagged, the bad ones."""
        return Share(self.hits, self.hits + self.false)

    @property
    def recall(self) -> Share:
        """Of the bad ones, those flagged."""
        return Share(self.hits, self.bad)

    @property
    def false_alarms(self) -> Share:
        """Of the good ones, those flagged."""
        return Share(self.false, self.good)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where nothing was hit."""
        return 2 * self.hits / max(1, self.hits + self.false + self.bad)


class Measured(NamedTuple):
    """A detector and its trivial baseline on one corpus."""

    detector: str
    """The detector, or one of its parts, such as `approval.stale`."""

    corpus: str
    """What the corpus holds, in a few words."""

    baseline: str
    """What the baseline does, in a few words."""

    done: Tried
    """The detector."""

    trivial: Tried
    """The baseline."""


@functools.cache
def measured() -> tuple[Measured, ...]:
    """The kept figures, by detector."""
    body = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return tuple(
        Measured(
            one["detector"],
            one["corpus"],
            one["baseline"],
            Tried(one["hits"], one["false"], one["bad"], one["good"]),
            Tried(one["baseline_hits"], one["baseline_false"], one["bad"], one["good"]),
        )
        for one in json.loads(body)
    )
