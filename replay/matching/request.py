"""A model request as it came over the wire, read. Knows nothing of recordings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ledger.protocols.http_bodies import header, json_of, unpacked
from ledger.protocols.recognition import model_in_path, protocol_of

Headers = Sequence[tuple[str, str]]
"""Names and values in the order of the wire."""

_LISTED = {"openai.responses": "input", "gemini": "contents"}
_OPERATIONS = {
    "anthropic.messages": "messages",
    "openai.chat": "completions",
    "openai.responses": "responses",
    "gemini": "generateContent",
}


class ModelRequest(NamedTuple):
    """A request to a model."""

    protocol: str
    """Shape of the body."""

    operation: str
    """What is asked of the provider: the last word of the path, such as `messages` or `count_tokens`."""

    model: str | None
    """Model asked for, in the body or in the path."""

    headers: Headers
    """Headers."""

    body: dict[str, Any]
    """The body. Not to be changed: canonicalising makes a copy of what it changes."""

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        return header(self.headers, name)

    def messages(self) -> list[Any]:
        """The messages, as the body lists them."""
        listed = self.body.get(messages_name(self.protocol))
        return listed if isinstance(listed, list) else []

    def tools(self) -> list[Any]:
        """The tool schemas."""
        listed = self.body.get("tools")
        return listed if isinstance(listed, list) else []


def read_request(target: str, headers: Headers, raw: bytes) -> ModelRequest | None:
    """The model request in an HTTP request; None for any other traffic."""
    body = json_of(unpacked(raw, headers)) if raw else None
    path = target.partition("?")[0]
    protocol = protocol_of(path, body)
    if protocol is None or not isinstance(body, dict):
        return None
    return model_request(protocol, target, headers, body)


def model_request(protocol: str, target: str | None, headers: Headers, body: dict[str, Any]) -> ModelRequest:
    """A request of a known protocol; without a target where that was not seen."""
    operation = operation_of(protocol, target)
    named = body.get("model")
    model = named if isinstance(named, str) else model_in_path(target or "")
    return ModelRequest(protocol, operation, model, headers, body)


def operation_of(protocol: str, target: str | None) -> str:
    """The last word of a path: what is asked of the provider."""
    if not target:
        return _OPERATIONS.get(protocol, protocol)
    path = target.partition("?")[0].rstrip("/")
    return path.rpartition("/")[2].rpartition(":")[2]


def messages_name(protocol: str) -> str:
    """The field of a body that lists the messages."""
    return _LISTED.get(protocol, "messages")


def message_count(protocol: str, body: dict[str, Any]) -> int:
    """How many messages the ledger would count: without a system prompt at the head of a chat, a lone text as one."""
    listed = body.get(messages_name(protocol))
    if not isinstance(listed, list):
        return 0 if listed is None else 1
    first = listed[0] if listed else None
    if protocol == "openai.chat" and isinstance(first, dict) and first.get("role") in ("system", "developer"):
        return len(listed) - 1
    return len(listed)
