"""OpenAI Chat Completions: POST /v1/chat/completions."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..script import Ask, Error, JsonObject, Text, Thinking
from .reply import Reply, arguments_text, compact, pieces, texts

NAME = "chat"

FINISH = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "stop"}


def serves(path: str) -> bool:
    """True for the completions path."""
    return path.endswith("/chat/completions")


def counts(path: str) -> bool:
    """This protocol counts no tokens."""
    return False


def count(body_size: int) -> JsonObject:
    """Never asked for."""
    return {}


def ask(path: str, headers: Mapping[str, str], body: JsonObject) -> Ask:
    """What the request asks."""
    messages = body.get("messages", [])
    system = [texts(m.get("content")) for m in messages if m["role"] in ("system", "developer")]
    return Ask(
        protocol=NAME,
        path=path,
        model=str(body.get("model", "")),
        system="\n".join(system),
        tools=[str(tool.get("function", tool).get("name", "")) for tool in body.get("tools", [])],
        users=[texts(m.get("content")) for m in messages if m["role"] == "user"],
        stream=bool(body.get("stream")),
        headers=headers,
    )


def whole(path: str, body: JsonObject, reply: Reply) -> Any:
    """A completion object with one choice."""
    message: JsonObject = {"role": "assistant", "content": _joined(reply, Text) or None}
    if thought := _joined(reply, Thinking):
        message["reasoning_content"] = thought
    if reply.calls:
        message["tool_calls"] = [_call(reply, index) for index in range(len(reply.calls))]
    choice = {"index": 0, "message": message, "finish_reason": FINISH[reply.stop]}
    return _envelope(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply)}


def stream(path: str, body: JsonObject, reply: Reply) -> Iterator[str]:
    """Server-sent data lines; usage comes last, and only to those who asked for it."""
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for piece in pieces(_joined(reply, Thinking)):
        yield _chunk(reply, {"reasoning_content": piece})
    for piece in pieces(_joined(reply, Text)):
        yield _chunk(reply, {"content": piece})
    for index, call in enumerate(reply.calls):
        whole_call = _call(reply, index)
        empty = {"name": call.name, "arguments": ""}
        yield _chunk(reply, {"tool_calls": [{"index": index, **whole_call, "function": empty}]})
        for piece in pieces(arguments_text(call)):
            part = {"index": index, "function": {"arguments": piece}}
            yield _chunk(reply, {"tool_calls": [part]})
    yield _chunk(reply, {}, FINISH[reply.stop])
    if (body.get("stream_options") or {}).get("include_usage"):
        last = _envelope(reply, "chat.completion.chunk") | {"choices": [], "usage": _usage(reply)}
        yield f"data: {compact(last)}\n\n"
    yield "data: [DONE]\n\n"


def error(error: Error) -> JsonObject:
    """The error envelope of this protocol."""
    return {"error": {"message": error.message, "type": error.type, "code": error.type}}


def _joined(reply: Reply, kind: type[Text] | type[Thinking]) -> str:
    return "".join(block.text for block in reply.blocks if isinstance(block, kind))


def _call(reply: Reply, index: int) -> JsonObject:
    call = reply.calls[index]
    function = {"name": call.name, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def _envelope(reply: Reply, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": 0, "model": reply.model}


def _chunk(reply: Reply, delta: JsonObject, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {compact(_envelope(reply, 'chat.completion.chunk') | {'choices': [choice]})}\n\n"


def _usage(reply: Reply) -> JsonObject:
    usage = reply.usage
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": given,
        "completion_tokens": usage.output_tokens,
        "total_tokens": given + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
