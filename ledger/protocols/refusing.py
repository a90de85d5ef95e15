"""Answers of models from which some tool calls were taken out, with a text in their place; whole or as a stream.

Made for the client of a proxy: what the model said stays in the ledger as it was.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from ledger.protocols.responses import put_together, take_apart
from ledger.protocols.tool_use import ToolUse, calls_in

Refusal = Callable[[ToolUse], str | None]
"""The text that stands in the place of a call; None for one that stays."""

Event = tuple[str | None, Any]
"""Name and data of a server-sent event."""


def without_calls(protocol: str, body: Any, refused: Refusal) -> Any:
    """The response body with a text in the place of each refused call."""
    taken = take_apart(protocol, body)
    match protocol, taken.message:
        case "anthropic.messages", {"content": list() as blocks} as message:
            kept = [_block(block, refused) for block in blocks]
            changed = put_together(protocol, {**message, "content": kept}, taken.envelope)
            has_calls = any(_kind(block) == "tool_use" for block in kept)
            return changed if has_calls else {**changed, "stop_reason": "end_turn"}
        case "openai.chat", dict() as message:
            return _chat(body, message, refused)
        case "openai.responses", list() as items:
            return {**body, "output": [_item(item, refused) for item in items]}
        case "gemini", {"parts": list() as parts} as message:
            kept = [{"text": said} if (said := _said(message, part, refused)) else part for part in parts]
            return put_together(protocol, {**message, "parts": kept}, taken.envelope)
    return body


def as_stream(protocol: str, body: dict[str, Any]) -> bytes:
    """The response body as the server-sent events of its protocol, each part in one piece."""
    events = {
        "anthropic.messages": _anthropic_events,
        "openai.chat": _chat_events,
        "openai.responses": _responses_events,
    }.get(protocol, _one_event)
    return b"".join(_written(name, data) for name, data in events(body))


def _written(name: str | None, data: Any) -> bytes:
    shown = data.encode() if isinstance(data, str) else orjson.dumps(data)
    return (b"" if name is None else b"event: " + name.encode() + b"\n") + b"data: " + shown + b"\n\n"


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None


def _refusal(holder: Any, refused: Refusal) -> str | None:
    """What stands in the place of the one call in a value."""
    return next((said for use in calls_in(holder) if (said := refused(use)) is not None), None)


def _block(block: Any, refused: Refusal) -> Any:
    said = _refusal({"content": [block]}, refused)
    return block if said is None else {"type": "text", "text": said}


def _said(message: dict[str, Any], part: Any, refused: Refusal) -> str | None:
    return _refusal({**message, "parts": [part]}, refused)


def _item(item: Any, refused: Refusal) -> Any:
    said = _refusal([item], refused)
    if said is None:
        return item
    content = [{"type": "output_text", "text": said, "annotations": []}]
    name = f"msg_{item.get('id') or item.get('call_id')}"
    return {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": content}


def _chat(body: dict[str, Any], message: dict[str, Any], refused: Refusal) -> Any:
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    said = {
        place: text
        for place, call in enumerate(listed)
        if (text := _refusal({"tool_calls": [call]}, refused))
    }
    kept = [call for place, call in enumerate(listed) if place not in said]
    texts = [message["content"]] if isinstance(message.get("content"), str) and message["content"] else []
    changed = {**message, "content": "\n\n".join([*texts, *said.values()]), "tool_calls": kept}
    first, *others = body["choices"]
    first = {**first, "message": changed}
    if not kept:
        del changed["tool_calls"]
        first["finish_reason"] = "stop"
    return {**body, "choices": [first, *others]}


# -- streams -----------------------------------------------------------------------------------------------------------


def _one_event(body: dict[str, Any]) -> Iterator[Event]:
    yield None, body


def _anthropic_events(body: dict[str, Any]) -> Iterator[Event]:
    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, **fields}

    yield event("message_start", message={**body, "content": [], "stop_reason": None, "stop_sequence": None})
    for index, block in enumerate(body["content"]):
        match block:
            case {"type": "text", "text": said}:
                begun, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": said}]
            case {"type": "tool_use", "input": given}:
                told = orjson.dumps(given, option=orjson.OPT_NON_STR_KEYS).decode()
                begun, deltas = {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": told}]
            case {"type": "thinking", "thinking": said}:
                begun = {**block, "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": said},
                    {"type": "signature_delta", "signature": block.get("signature", "")},
                ]
            case _:
                begun, deltas = block, []
        yield event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ending = {"stop_reason": body.get("stop_reason"), "stop_sequence": body.get("stop_sequence")}
    yield event("message_delta", delta=ending, usage=body.get("usage") or {})
    yield event("message_stop")


def _chat_events(body: dict[str, Any]) -> Iterator[Event]:
    around = {name: value for name, value in body.items() if name not in ("choices", "usage")}
    around["object"] = "chat.completion.chunk"
    for choice in body["choices"]:
        index, message = choice.get("index", 0), dict(choice["message"])
        if isinstance(message.get("tool_calls"), list):
            message["tool_calls"] = [
                {"index": place, **call} for place, call in enumerate(message["tool_calls"])
            ]
        yield None, {**around, "choices": [{"index": index, "delta": message, "finish_reason": None}]}
        ending = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield None, {**around, "choices": [ending]}
    if body.get("usage") is not None:
        yield None, {**around, "choices": [], "usage": body["usage"]}
    yield None, "[DONE]"


def _responses_events(body: dict[str, Any]) -> Iterator[Event]:
    for number, (kind, fields) in enumerate(_responses_steps(body)):
        yield kind, {"type": kind, "sequence_number": number, **fields}


def _responses_steps(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**body, "output": [], "status": "in_progress"}
    yield "response.created", {"response": begun}
    for index, item in enumerate(body["output"]):
        where = {"output_index": index}
        yield "response.output_item.added", {**where, "item": item}
        if _kind(item) == "message":
            for place, part in enumerate(item.get("content") or []):
                if _kind(part) == "output_text":
                    told = {**where, "item_id": item.get("id"), "content_index": place}
                    yield "response.output_text.delta", {**told, "delta": part["text"]}
                    yield "response.output_text.done", {**told, "text": part["text"]}
        elif _kind(item) == "function_call":
            told = {**where, "item_id": item.get("id")}
            yield "response.function_call_arguments.done", {**told, "arguments": item.get("arguments")}
        yield "response.output_item.done", {**where, "item": item}
    yield "response.completed", {"response": body}
