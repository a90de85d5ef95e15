"""Tools, skills and servers that came into and went out of the model's reach."""

from typing import Literal

from ledger.events.record import ContentRef, Event

CapabilityKind = Literal["tool", "skill", "mcp_server", "agent", "plugin", "other"]
"""What sort of capability it is."""


class CapabilityLoaded(Event, name="capability.loaded"):
    """A capability came into the model's reach."""

    kind: CapabilityKind
    """What it is."""

    capability: str
    """Its name."""

    when: Literal["on_demand", "always", "unknown"] = "unknown"
    """Loaded when it was needed, or riding along on every turn."""

    definition: ContentRef | None = None
    """Its schema or text as shown to the model."""

    server: str | None = None
    """Server that offers it."""


class CapabilityUnloaded(Event, name="capability.unloaded"):
    """A capability went out of the model's reach."""

    kind: CapabilityKind
    """What it is."""

    capability: str
    """Its name."""
