"""A conversation in one shape, whatever protocol it was recorded in. What it does not know it keeps whole.

Shapes known: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses items, Gemini contents, those of
`native_shapes`, and the result of a tool as the ledger keeps it (`{"role": "tool", "call_id", "content"}`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from ledger.protocols.tool_use import calls_in, results_in, text
from replay.resume.native_shapes import is_native_result, native_call, native_result, results_in_parts

_TEXTS = ("text", "input_text", "output_text")
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


@dataclass(frozen=True)
class Text:
    """Words."""

    text: str
    """The words."""


@dataclass(frozen=True)
class Thought:
    """Reasoning of a model."""

    text: str
    """As far as it can be read; empty where it is encrypted."""

    block: dict[str, Any]
    """The block or item as recorded: with its signature or encrypted content."""


@dataclass(frozen=True)
class Call:
    """A tool that a model asks for."""

    call_id: str | None
    """Its id; None where the protocol has none."""

    tool: str
    """Name of the tool."""

    arguments: Any
    """Arguments: a JSON value, or a text that is not JSON."""

    block: dict[str, Any]
    """The block or item as recorded."""


@dataclass(frozen=True)
class Result:
    """What came of a tool call."""

    call_id: str | None
    """Id of the call."""

    tool: str | None
    """Name of the tool, where the message or the call before it says so."""

    content: Any
    """As the model is shown it: a text, a list of blocks, or any JSON value."""

    failed: bool | None
    """Whether it is marked as a failure; None where the shape has no mark."""


@dataclass(frozen=True)
class Other:
    """Anything else: an image, a document, a block of a kind that is not known."""

    block: Any
    """As recorded."""


Piece = Text | Thought | Call | Result | Other
"""A piece of what was said."""


@dataclass(frozen=True)
class Turn:
    """What one side said in one message; neighbours of the same side are not joined."""

    role: Literal["user", "assistant", "system"]
    """Who said it. Results of tools come from the `user`."""

    pieces: tuple[Piece, ...]
    """What was said, in order."""

    @property
    def texts(self) -> list[Text]:
        """The words among it."""
        return [piece for piece in self.pieces if isinstance(piece, Text)]


def turns_of(messages: Iterable[Any]) -> list[Turn]:
    """The turns of messages of any known protocol. Raises nothing on any JSON value."""
    return [turn for message in messages for turn in _turns(message) if turn.pieces]


def with_whole_answers(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with neighbours of the assistant's joined: an answer is one, whatever the number of its items."""
    for role, group in groupby(turns, key=lambda turn: turn.role):
        if role == "assistant":
            yield Turn(role, tuple(piece for turn in group for piece in turn.pieces))
        else:
            yield from group


def open_calls(turns: Iterable[Turn]) -> list[Call]:
    """Calls without a result, in order."""
    pieces = [piece for turn in turns for piece in turn.pieces]
    settled = {piece.call_id for piece in pieces if isinstance(piece, Result)}
    return [piece for piece in pieces if isinstance(piece, Call) and piece.call_id not in settled]


def plain_text(content: Any) -> str | None:
    """The words of a content that is nothing but words; None where there is more to it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str)
        for block in content
    ):
        return "\n".join(block["text"] for block in content)
    return None


def _turns(message: Any) -> Iterator[Turn]:
    """A message may be several turns: items of the Responses protocol come in lists."""
    if isinstance(message, list):
        for item in message:
            yield from _turns(item)
        return
    if not isinstance(message, dict):
        yield Turn("user", (Other(message),))
        return
    content, role = message.get("content"), message.get("role")
    if role is None and "type" not in message and isinstance(content, list):
        for item in content:  # an answer as a list of items, or of blocks
            yield Turn(_role(item, "assistant"), tuple(_pieces(item)))
        yield Turn("user", tuple(Result(*one) for one in results_in_parts(content)))
        return
    if role == "tool" and "call_id" in message:
        yield Turn("user", (_kept_result(text(message["call_id"]), content),))
        return
    yield Turn(_role(message, "user"), tuple(_pieces(message)))
    yield Turn("user", tuple(Result(*one) for one in results_in_parts(message.get("parts"))))


def _kept_result(call_id: str | None, content: Any) -> Result:
    """A result as the ledger keeps it: what the model was shown, or the block that showed it."""
    blocks = content if isinstance(content, list) else [content]
    for found in (*results_in({"role": "user", "content": blocks}), *results_in(blocks)):
        if found.call_id == call_id:
            return Result(call_id, None, found.content, found.failed)
    return Result(call_id, None, content, None)


def _role(message: Any, otherwise: Literal["user", "assistant"]) -> Literal["user", "assistant", "system"]:
    if not isinstance(message, dict):
        return otherwise
    role, kind = message.get("role"), message.get("type")
    if role in ("assistant", "model"):
        return "assistant"
    if role in ("system", "developer"):
        return "system"
    if role is None and isinstance(kind, str):
        if kind.endswith("_call") or kind == "reasoning":
            return "assistant"
        return "user" if kind.endswith("_output") else otherwise
    return "user"


def _pieces(message: Any) -> Iterator[Piece]:
    if not isinstance(message, dict):
        yield _piece(message)
        return
    role, kind = message.get("role"), message.get("type")
    if role is None and isinstance(kind, str):
        yield _piece(message)
        return
    if is_native_result(message):
        yield Result(*native_result(message))
        return
    if role in ("tool", "function"):
        yield from (Result(*one) for one in results_in(message))
        return
    reasoning = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    if reasoning is not None:
        yield Thought(reasoning, {"type": "thinking", "thinking": reasoning})
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        if content:
            yield Text(content)
    else:
        for block in content if isinstance(content, list) else [] if content is None else [content]:
            yield _piece(block)
    for call in _listed(message.get("tool_calls")):
        yield from (
            Call(one.call_id, one.tool, one.arguments, call) for one in calls_in({"tool_calls": [call]})
        )


def _piece(block: Any) -> Piece:
    """One block or item."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return Other(block)
    kind, words = block.get("type"), block.get("text")
    if (kind in _TEXTS or (kind is None and block.keys() == {"text"})) and isinstance(words, str):
        return Text(words)
    if isinstance(kind, str) and kind in _THOUGHTS:
        return Thought(_thought(block), block)
    asked_natively = native_call(block)
    if asked_natively is not None:
        return Call(*asked_natively, block)
    wrapped = block if isinstance(kind, str) and "role" not in block and _is_item(kind) else _wrapped(block)
    for asked in calls_in(wrapped):
        return Call(asked.call_id, asked.tool, asked.arguments, block)
    for came in results_in(wrapped):
        return Result(came.call_id, came.tool, came.content, came.failed)
    return Other(block)


def _is_item(kind: str) -> bool:
    return kind.endswith(("_call", "_call_output"))


def _wrapped(block: dict[str, Any]) -> dict[str, Any]:
    """The message that holds only this block."""
    return {"content": [block]} if "type" in block else {"parts": [block]}


def _thought(block: dict[str, Any]) -> str:
    if isinstance(words := block.get("thinking"), str):
        return words
    parts = [*_listed(block.get("summary")), *_listed(block.get("content"))]
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
