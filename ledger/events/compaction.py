"""The context was shortened: what the model no longer sees, and what it sees instead."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event


class CompactionStarted(Event, name="compaction.started"):
    """A compaction began."""

    compaction_id: str
    """Joins start and end."""

    trigger: Literal["auto", "manual", "unknown"]
    """What set it off."""

    tokens_before: int | None = None
    """Tokens in the context before."""


class CompactionDone(Event, name="compaction.done"):
    """The context was replaced by a shorter one."""

    compaction_id: str
    """Joins start and end."""

    trigger: Literal["auto", "manual", "unknown"]
    """What set it off."""

    evidence: Literal["logged", "inferred"]
    """Whether the source logs it or it shows only in the next request."""

    evidence_detail: str | None = None
    """For an inferred one: what it was inferred from."""

    context_before: Digest | None = None
    """Last context node before."""

    context_after: Digest | None = None
    """Last context node after; the first request afterwards extends it."""

    context_added: int = 0
    """Nodes at the end of the new chain that this record answers for."""

    messages_before: int | None = None
    """Messages in the context before."""

    messages_after: int | None = None
    """Messages in the context after."""

    summary: ContentRef | None = None
    """The text that stands in for what was shadowed."""

    model: str | None = None
    """Model that wrote the summary."""

    call_id: str | None = None
    """Model call that wrote the summary."""

    tokens_before: int | None = None
    """Tokens in the context before."""

    tokens_after: int | None = None
    """Tokens in the context after."""

    duration_ms: int | None = None
    """Milliseconds it took."""


class ConstraintPinned(Event, name="compaction.pinned"):
    """A constraint was put back into the context because it was no longer visible."""

    constraint: str
    """The constraint."""

    message: ContentRef
    """The text that was added."""

    tokens: int | None = None
    """Tokens that this cost."""

    request_tokens: int | None = None
    """Tokens of the request that it was added to, estimated as `tokens` is."""

    call_id: str | None = None
    """Model call whose request it was added to."""
