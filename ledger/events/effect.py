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


class CompensationRegistered(Event, name="effect.compensation_registered"):
    """The loop said, before a call acted, how its effect could be taken back."""

    effect_id: str
    """The effect; that of a whole tool call is the id of the call."""

    call_id: str | None = None
    """The call."""

    how: str
    """In a few words: `tool delete_rows`, `command git revert`."""

    compensation: ContentRef
    """Tool and arguments, or command, as in an effect policy."""


class CompensationStarted(Event, name="effect.compensation_started"):
    """A compensation was about to run: recorded before it acts. One without an end is never run again."""

    effect_id: str
    """The effect."""

    how: str
    """What is to undo it, in a few words."""

    rollback_id: str | None = None
    """Rollback that runs it."""


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
