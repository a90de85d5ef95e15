"""What governs the agent, and how it changed."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event


class ArtifactChanged(Event, name="governance.artifact_changed"):
    """A governing artifact was created, changed or removed."""

    artifact: str
    """Stable name, such as `system_prompt`, `file:CLAUDE.md` or `tool:Bash`."""

    kind: Literal["prompt", "rule_file", "tool_schema", "policy", "memory", "hook", "mode", "skill", "other"]
    """What sort of artifact it is."""

    old: Digest | None = None
    """Digest before; None when it did not exist or was not seen."""

    content: ContentRef | None = None
    """Content after; None when it was removed."""

    cause: Literal["human", "agent", "harness", "unknown"]
    """By whose act it changed."""

    call_id: str | None = None
    """Tool call that changed it."""


class ConstraintDeclared(Event, name="governance.constraint_declared"):
    """A rule that the agent must keep came into force."""

    constraint: str
    """Stable name of the rule."""

    text: ContentRef
    """The rule in words."""

    modality: Literal["prohibition", "requirement", "permission", "unknown"] = "unknown"
    """What sort of rule it is."""

    hardness: Literal["hard", "soft", "unknown"] = "unknown"
    """Whether it may be outweighed."""

    origin: Literal["system", "user", "file", "tool", "policy", "unknown"]
    """Where it was declared."""

    scope: str | None = None
    """What it covers, in the source's words."""

    check: ContentRef | None = None
    """The constraint as a policy declares it: which calls break it, which it demands before others."""


class ConstraintWithdrawn(Event, name="governance.constraint_withdrawn"):
    """A rule went out of force by somebody's act."""

    constraint: str
    """The rule."""

    reason: str | None = None
    """Why."""


class ModeChanged(Event, name="governance.mode_changed"):
    """The loop's standing permission changed: approval mode, sandbox, plan mode, model."""

    mode: str
    """Which mode: `approval`, `sandbox`, `plan`, `model`, `effort`, ..."""

    old: str | None = None
    """Value before; None when it was not seen."""

    new: str
    """Value after."""

    cause: Literal["human", "agent", "harness", "startup", "unknown"]
    """By whose act."""

    detail: ContentRef | None = None
    """The whole setting, where it is more than a word."""
