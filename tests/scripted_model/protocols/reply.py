"""What every protocol module offers, and the answer that it is given to write."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..script import Ask, Block, Error, JsonObject, ToolCall, Usage

DELTA_SIZE = 24
"""Characters in one streamed piece of text: small, so that even short answers come in several."""


@dataclass(frozen=True)
class Reply:
    """A step with its ids given and its captures filled in."""

    number: str
    """Unique part of the ids of this answer."""
    model: str
    blocks: Sequence[Block]
    usage: Usage
    stop: str

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls in this answer."""
        return [block for block in self.blocks if isinstance(block, ToolCall)]


class WireProtocol(Protocol):
    """A module of this package, seen as an object."""

    @property
    def NAME(self) -> str:
        """Name of the protocol in the wire log."""

    def serves(self, path: str) -> bool:
        """True for paths that ask this protocol for an answer."""

    def ask(self, path: str, headers: Mapping[str, str], body: JsonObject) -> Ask:
        """What the request asks."""

    def counts(self, path: str) -> bool:
        """True for paths that only count tokens."""

    def count(self, body_size: int) -> JsonObject:
        """Answer to a count of tokens."""

    def whole(self, path: str, body: JsonObject, reply: Reply) -> Any:
        """The answer as one JSON value."""

    def stream(self, path: str, body: JsonObject, reply: Reply) -> Iterator[str]:
        """The answer as chunks of text/event-stream."""

    def error(self, error: Error) -> JsonObject:
        """The body of a refusal."""


def pieces(text: str) -> list[str]:
    """A text cut for streaming."""
    return [text[at : at + DELTA_SIZE] for at in range(0, len(text), DELTA_SIZE)]


def compact(value: Any) -> str:
    """JSON without spaces, as the providers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def arguments_text(call: ToolCall) -> str:
    """The arguments as a protocol with textual arguments sends them."""
    return call.arguments if isinstance(call.arguments, str) else compact(dict(call.arguments))


def texts(content: Any) -> str:
    """All text in a message content, be it a string, a block or a list of blocks."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(text for text in map(texts, content) if text)
        case {"text": str(text)}:
            return text
    return ""
