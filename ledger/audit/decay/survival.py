"""Survival of rules over compactions: Kaplan and Meier's estimate, with those that the record ends too early for."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Lived(NamedTuple):
    """So many compactions, and whether the last of them was the end."""

    cuts: int
    """Compactions."""

    is_lost: bool
    """Whether the last one took the rule away; else nobody knows what the next would have done."""


class Step(NamedTuple):
    """One compaction."""

    number: int
    """The how manieth since the rule was first seen."""

    at_risk: int
    """Rules that had outlived the ones before and came to this one."""

    lost: int
    """Those of them that it took away."""

    survival: float
    """Share of all rules that outlive it, by the estimate."""

    @property
    def hazard(self) -> float:
        """Share of those at risk that it took away."""
        return self.lost / self.at_risk


def survival(lived: Iterable[Lived]) -> list[Step]:
    """The curve: one step for each compaction that any rule came to."""
    all_of_them = list(lived)
    lost = Counter(one.cuts for one in all_of_them if one.is_lost)
    came: Counter[int] = Counter()
    for one in all_of_them:
        came.update(range(1, one.cuts + 1))
    steps, share = [], 1.0
    for number in sorted(came):
        share *= 1 - lost[number] / came[number]
        steps.append(Step(number, came[number], lost[number], share))
    return steps


def half_life(steps: Iterable[Step]) -> int | None:
    """The first compaction that fewer than half of the rules outlive; None: there is none in the record."""
    return next((step.number for step in steps if step.survival < 0.5), None)
