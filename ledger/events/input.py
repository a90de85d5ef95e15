"""What enters a loop from outside the model."""

from typing import Literal

from ledger.events.record import ContentRef, Event


class MessageReceived(Event, name="input.message_received"):
    """A message entered the loop."""

    origin: Literal["human", "agent", "schedule", "file", "unknown"]
    """Where it came from."""

    trust: Literal["trusted", "untrusted", "unknown"] = "unknown"
    """Whether its instructions may be obeyed."""

    message: ContentRef
    """The message, in the model protocol's own shape."""

    sender: str | None = None
    """Name of the sender, where the source has one."""


class ContextInjected(Event, name="input.context_injected"):
    """The harness put text into the context that nobody had typed."""

    provenance: str
    """Kind of the text: `instructions`, `environment`, `reminder`, `hook`, `skill`, ..."""

    message: ContentRef
    """The text, as message or block."""

    artifact: str | None = None
    """Governing artifact that it shows to the model, such as `file:CLAUDE.md`."""

    trust: Literal["trusted", "untrusted", "unknown"] = "unknown"
    """Whether its instructions may be obeyed."""
