"""Anthropic Messages: POST /v1/messages and /v1/messages/count_tokens."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..script import Ask, Block, Error, JsonObject, Text, Thinking
from .reply import Reply, arguments_text, compact, pieces, texts

NAME = "anthropic"


def serves(path: str) -> bool:
    """True for the Messages path."""
    return path.endswith("/messages")


def counts(path: str) -> bool:
    """True for the path that only counts tokens."""
    return path.endswith("/messages/count_tokens")


def count(body_size: int) -> JsonObject:
    """Four bytes to the token."""
    return {"input_tokens": body_size // 4}


def ask(path: str, headers: Mapping[str, str], body: JsonObject) -> Ask:
    """What the request asks; a user message of tool results alone has an empty text."""
    return Ask(
        protocol=NAME,
        path=path,
        model=str(body.get("model", "")),
        system=texts(body.get("system", "")),
        tools=[str(tool.get("name", "")) for tool in body.get("tools", [])],
        users=[texts(m.get("content")) for m in body.get("messages", []) if m["role"] == "user"],
        stream=bool(body.get("stream")),
        headers=headers,
    )


def whole(path: str, body: JsonObject, reply: Reply) -> Any:
    """A message object."""
    return _message(reply) | {
        "content": [_block(block) for block in reply.blocks],
        "stop_reason": reply.stop,
        "usage": _usage(reply, reply.usage.output_tokens),
    }


def stream(path: str, body: JsonObject, reply: Reply) -> Iterator[str]:
    """Server-sent events; the first usage has one output token, the last one the true number."""
    start = _message(reply) | {"usage": _usage(reply, 1)}
    yield _event({"type": "message_start", "message": start})
    for index, block in enumerate(reply.blocks):
        at = {"index": index}
        yield _event({"type": "content_block_start", **at, "content_block": _empty(block)})
        for delta in _deltas(block):
            yield _event({"type": "content_block_delta", **at, "delta": delta})
        yield _event({"type": "content_block_stop", **at})
    yield _event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop, "stop_sequence": None},
            "usage": _usage(reply, reply.usage.output_tokens),
        }
    )
    yield _event({"type": "message_stop"})


def error(error: Error) -> JsonObject:
    """The error envelope of this protocol."""
    return {"type": "error", "error": {"type": error.type, "message": error.message}}


def _event(data: JsonObject) -> str:
    return f"event: {data['type']}\ndata: {compact(data)}\n\n"


def _message(reply: Reply) -> JsonObject:
    return {
        "id": f"msg_{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(reply: Reply, output_tokens: int) -> JsonObject:
    return {
        "input_tokens": reply.usage.input_tokens,
        "cache_creation_input_tokens": reply.usage.cache_write_tokens,
        "cache_read_input_tokens": reply.usage.cache_read_tokens,
        "output_tokens": output_tokens,
    }


def _block(block: Block) -> JsonObject:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}


def _empty(block: Block) -> JsonObject:
    match block:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}


def _deltas(block: Block) -> Iterator[JsonObject]:
    match block:
        case Text():
            for piece in pieces(block.text):
                yield {"type": "text_delta", "text": piece}
        case Thinking():
            for piece in pieces(block.text):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block.signature}
        case _:
            for piece in pieces(arguments_text(block)):
                yield {"type": "input_json_delta", "partial_json": piece}
