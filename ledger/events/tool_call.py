"""The life of one tool call: requested, started, settled."""

from typing import Literal

from ledger.events.record import ContentRef, Event

EffectClass = Literal["read", "write", "external", "irreversible", "credential"]
"""What a tool call may do outside: look; change files here; reach another system; without return; use a secret."""

Outcome = Literal["returned", "failed", "denied", "not_started", "unknown"]
"""How a tool call ended."""


class ToolCallRequested(Event, name="tool_call.requested"):
    """A model, or the loop, asked for a tool to run."""

    call_id: str
    """Joins request, start and settlement."""

    tool: str
    """Name of the tool."""

    arguments: ContentRef
    """Arguments, as JSON, or as text when they are not valid JSON."""

    effect_class: EffectClass | None = None
    """What it may do outside; None when nobody declared it."""

    effect_declared: Literal["declared", "policy", "inferred"] | None = None
    """Who says so: the tool's own metadata, a policy file, or inference."""

    idempotency_key: str | None = None
    """Key under which a repeated call must act once."""

    server: str | None = None
    """MCP server or other host of the tool."""

    provider_executed: bool = False
    """Whether the model's provider ran the tool on its side."""


class ToolCallStarted(Event, name="tool_call.started"):
    """The tool was about to run: recorded before it acts."""

    call_id: str
    """The call."""


class ToolCallSettled(Event, name="tool_call.settled"):
    """A tool call ended: it returned, failed, was denied, or nobody can say."""

    call_id: str
    """Id given when the call was requested."""

    outcome: Outcome
    """`not_started`: it never began; `unknown`: it began and no result was seen. Never retry that blindly."""

    result: ContentRef | None = None
    """Result as the model was shown it."""

    details: ContentRef | None = None
    """More about the result than the model was shown (exit code, diff, structured output)."""

    error: str | None = None
    """Kind of failure or reason of denial."""

    duration_ms: int | None = None
    """Milliseconds from start to result."""

    orphan: bool = False
    """True when the source holds no request for this call id."""
