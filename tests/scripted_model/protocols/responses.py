"""OpenAI Responses: POST /v1/responses and /v1/responses/compact."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..script import Ask, Block, Error, JsonObject, Text, Thinking
from .reply import Reply, arguments_text, compact, pieces, texts

NAME = "responses"


def serves(path: str) -> bool:
    """True for answers and for compactions."""
    return path.endswith(("/responses", "/responses/compact"))


def counts(path: str) -> bool:
    """True for the path that only counts tokens."""
    return path.endswith("/responses/input_tokens")


def count(body_size: int) -> JsonObject:
    """Four bytes to the token."""
    return {"object": "response.input_tokens", "input_tokens": body_size // 4}


def ask(path: str, headers: Mapping[str, str], body: JsonObject) -> Ask:
    """What the request asks; developer messages count as system text."""
    given = body.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [body.get("instructions") or ""]
    system += [texts(i.get("content")) for i in items if i.get("role") in ("developer", "system")]
    return Ask(
        protocol=NAME,
        path=path,
        model=str(body.get("model", "")),
        system="\n".join(system),
        tools=[str(tool.get("name") or tool.get("type")) for tool in body.get("tools", [])],
        users=[texts(item.get("content")) for item in items if item.get("role") == "user"],
        stream=bool(body.get("stream")),
        headers=headers,
    )


def whole(path: str, body: JsonObject, reply: Reply) -> Any:
    """A response object, or for a compaction the window that replaces the old one."""
    if path.endswith("/compact"):
        summary = "\n".join(block.text for block in reply.blocks if isinstance(block, Text))
        kept = [item for item in body.get("input", []) if item.get("role") == "user"]
        done = {"type": "compaction", "id": f"cmp_{reply.number}", "encrypted_content": summary}
        return {
            "id": f"resp_{reply.number}",
            "object": "response.compaction",
            "output": [*kept, done],
            "usage": _usage(reply),
        }
    return _finished(reply)


def stream(path: str, body: JsonObject, reply: Reply) -> Iterator[str]:
    """Server-sent events, numbered."""
    for number, data in enumerate(_events(reply)):
        event = {"type": data["type"], "sequence_number": number, **data}
        yield f"event: {data['type']}\ndata: {compact(event)}\n\n"


def error(error: Error) -> JsonObject:
    """The error envelope of this protocol."""
    return {"error": {"message": error.message, "type": error.type, "code": error.type}}


def _events(reply: Reply) -> Iterator[JsonObject]:
    yield {"type": "response.created", "response": _response(reply, "in_progress")}
    yield {"type": "response.in_progress", "response": _response(reply, "in_progress")}
    for index, block in enumerate(reply.blocks):
        item = _item(reply, index, block)
        at = {"item_id": item["id"], "output_index": index}
        started = {"type": "response.output_item.added", "output_index": index}
        yield started | {"item": _started(item)}
        yield from _deltas(block, at)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    finished = _finished(reply)
    yield {"type": f"response.{finished['status']}", "response": finished}


def _deltas(block: Block, at: JsonObject) -> Iterator[JsonObject]:
    match block:
        case Text():
            part = at | {"content_index": 0}
            kind = "response.output_text"
            yield part | {"type": "response.content_part.added", "part": _text("")}
            for piece in pieces(block.text):
                yield part | {"type": f"{kind}.delta", "delta": piece}
            yield part | {"type": f"{kind}.done", "text": block.text}
            yield part | {"type": "response.content_part.done", "part": _text(block.text)}
        case Thinking():
            part = at | {"summary_index": 0}
            kind = "response.reasoning_summary"
            yield part | {"type": f"{kind}_part.added", "part": _summary("")}
            for piece in pieces(block.text):
                yield part | {"type": f"{kind}_text.delta", "delta": piece}
            yield part | {"type": f"{kind}_text.done", "text": block.text}
            yield part | {"type": f"{kind}_part.done", "part": _summary(block.text)}
        case _:
            custom = isinstance(block.arguments, str)
            name = "custom_tool_call_input" if custom else "function_call_arguments"
            text = arguments_text(block)
            for piece in pieces(text):
                yield at | {"type": f"response.{name}.delta", "delta": piece}
            done = {"input": text} if custom else {"arguments": text}
            yield at | {"type": f"response.{name}.done", **done}


def _text(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": []}


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}


def _item(reply: Reply, index: int, block: Block) -> JsonObject:
    number = f"{reply.number}_{index}"
    match block:
        case Text():
            message = {"id": f"msg_{number}", "type": "message", "status": "completed"}
            return message | {"role": "assistant", "content": [_text(block.text)]}
        case Thinking():
            return {
                "id": f"rs_{number}",
                "type": "reasoning",
                "summary": [_summary(block.text)],
                "encrypted_content": block.signature,
            }
    call = {"status": "completed", "call_id": block.id, "name": block.name}
    if block.namespace is not None:
        call["namespace"] = block.namespace
    if isinstance(block.arguments, str):
        return {"id": f"ctc_{number}", "type": "custom_tool_call", **call, "input": block.arguments}
    arguments = arguments_text(block)
    return {"id": f"fc_{number}", "type": "function_call", **call, "arguments": arguments}


def _started(item: JsonObject) -> JsonObject:
    empty = {"content": [], "summary": [], "arguments": "", "input": ""}
    started = item | {name: value for name, value in empty.items() if name in item}
    return started | ({"status": "in_progress"} if "status" in item else {})


def _response(reply: Reply, status: str) -> JsonObject:
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": reply.model,
        "output": [],
        "usage": None,
    }


def _finished(reply: Reply) -> JsonObject:
    cut = reply.stop == "max_tokens"
    response = _response(reply, "incomplete" if cut else "completed")
    return response | {
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": [_item(reply, index, block) for index, block in enumerate(reply.blocks)],
        "usage": _usage(reply),
    }


def _usage(reply: Reply) -> JsonObject:
    usage = reply.usage
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": given + usage.output_tokens,
    }
