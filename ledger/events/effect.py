"""What a tool call did outside, and what was done about it afterwards."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event
from ledger.events.tool_call import EffectClass


class EffectDone(Event, name="effect.done"):
    """Something outside the loop was changed or reached."""

    effect_id: str
    """Joins effect and compensation."""

    call_id: str | None = None
    """Call that did it."""

    target: str
    """What was changed or reached: path, address, table, host."""

    operation: str
    """What was done: `create`, `edit`, `delete`, `send`, `run`, ..."""

    effect_class: EffectClass
    """Class of the effect."""

    before: Digest | None = None
    """Digest of the target before, where it is known."""

    after: ContentRef | None = None
    """Target after, where it is known."""

    compensation: str | None = None
    """How it could be undone."""

    evidence: Literal["declared", "observed", "inferred"] = "inferred"
    """How we know."""


class EffectCompensated(Event, name="effect.compensated"):
    """An effect was undone by a compensation."""

    effect_id: str
    """The effect."""

    how: str
    """What undid it."""

    call_id: str | None = None
    """Call that undid it."""


class EffectNotUndone(Event, name="effect.not_undone"):
    """A rollback went past an effect that stays."""

    effect_id: str
    """The effect."""

    reason: str
    """Why it stays."""
