"""What one agent hands to another, and what comes back."""

from decimal import Decimal
from typing import Literal

from ledger.events.record import ContentRef, Event


class DelegationStarted(Event, name="delegation.started"):
    """An agent handed work to another."""

    delegation_id: str
    """Joins start and return."""

    to_session: str | None = None
    """Session that does the work, where it is recorded."""

    to_agent: str | None = None
    """Name or role of the agent that does it."""

    how: Literal["tool", "handoff", "message", "spawn", "unknown"] = "unknown"
    """Way of handing over."""

    call_id: str | None = None
    """Tool call that started it."""

    payload: ContentRef | None = None
    """What crosses."""

    budget_usd: Decimal | None = None
    """What it may cost."""


class DelegationReturned(Event, name="delegation.returned"):
    """Delegated work came back."""

    delegation_id: str
    """Joins start and return."""

    outcome: Literal["returned", "failed", "aborted", "unknown"]
    """How it ended."""

    from_session: str | None = None
    """Session that did the work, where it is recorded."""

    result: ContentRef | None = None
    """What came back."""

    returned: Literal["result", "transcript", "unknown"] = "unknown"
    """Whether only a result or the whole transcript came back."""
