"""What of a rule stands in some parts of a sentence. Pure data."""

from typing import NamedTuple

from ledger.constraints.clauses import Term
from ledger.constraints.parts import Part


class Match(NamedTuple):
    """What of a rule stands in some parts of a sentence."""

    share: float
    """How much, from 0 to 1."""

    terms: tuple[Term, ...]
    """What these parts say."""

    matched: dict[str, Term]
    """What stands for which idea of the rule."""

    flips: frozenset[str]
    """The ideas for which their opposite stands."""

    parts: tuple[Part, ...]
    """These parts."""

    is_borrowed: bool = False
    """Whether the last part goes on the one before it and says the rule with its words."""
