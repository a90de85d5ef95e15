"""Outside inputs that a replay must give back: clock, randomness, identifiers, environment."""

from typing import Literal

from ledger.events.record import ContentRef, Event


class Drawn(Event, name="draw.drawn"):
    """The loop read something that a second run would read differently."""

    kind: Literal["clock", "random", "identifier", "environment", "other"]
    """What was read."""

    label: str
    """Name of the draw in the loop, such as the variable's name."""

    value: ContentRef
    """What was read."""
