"""How a rule fares in what a model sees: worked out from the record, and kept so that queries can ask for it."""

from typing import Literal

from ledger.events.record import ContentRef, Event


class ConstraintSeen(Event, name="review.constraint_seen", ignorable=True):
    """From a model call on, a constraint was visible like this; kept when that changes, by the command `decay`."""

    constraint: str
    """The constraint: its declared name, or `found:` and a digest of its words."""

    at_seq: int
    """The model call's request: from there on, until the next such event of the constraint in this lane."""

    call_id: str
    """The model call."""

    visibility: Literal["verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent", "unknown"]
    """How it stood in the rebuilt request; `unknown`: the request cannot be rebuilt."""

    lane: str | None = None
    """Conversation that the call belongs to."""

    compaction_seq: int | None = None
    """The compaction that lost it; the call itself where the source logs none."""

    text: ContentRef
    """The constraint in words."""

    modality: Literal["prohibition", "requirement", "permission", "unknown"] = "unknown"
    """What sort of rule it is."""

    hardness: Literal["hard", "soft", "unknown"] = "unknown"
    """Whether it may be outweighed."""

    origin: Literal["system", "user", "file", "tool", "policy", "unknown"] = "unknown"
    """Where it was declared or found."""

    declared: bool = False
    """Whether somebody declared it; else it was found in a prompt, a file or a message."""
