"""The answer to how a rule fares in a text. Pure data."""

from typing import Literal, NamedTuple

Visibility = Literal["verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent"]
"""How a rule fares."""

KEPT: tuple[Visibility, ...] = ("verbatim", "paraphrase")
"""Those in which the rule is still there."""


class Seen(NamedTuple):
    """How a rule fares in a text, and where it shows."""

    visibility: Visibility
    """How."""

    share: float
    """How much of what the rule says stands there, from 0 to 1."""

    words: str = ""
    """The sentence, normalised."""

    is_leave: bool = False
    """Whether it is reversed by a leave, and not by an order to do the opposite once."""
