"""Looks into messages of all shapes for what they ask and answer. Never changes one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ledger.otlp.values import structured, text


class Ask(NamedTuple):
    """A tool call in a model's answer."""

    call_id: str | None
    """Its id, where the source gives one."""
    tool: str
    """Name of the tool."""
    arguments: Any
    """Arguments: a value, or text that is no JSON; None when they were not captured."""


class Shown(NamedTuple):
    """A tool result in a model's input."""

    call_id: str
    """Id of the call."""
    result: Any
    """What the model was shown; None when it was not captured."""


def role_of(message: Any) -> str | None:
    """Who said it."""
    return text(message.get("role")) if isinstance(message, dict) else None


def _blocks(message: Any) -> Iterator[dict[str, Any]]:
    """Parts or content blocks."""
    if not isinstance(message, dict):
        return
    for name in ("parts", "content", "contents"):
        held = structured(message.get(name))
        for block in held if isinstance(held, list) else ():
            if isinstance(block, dict):
                inner = block.get("message_content")
                yield inner if isinstance(inner, dict) else block


def asks(message: Any) -> Iterator[Ask]:
    """The tool calls that a message makes."""
    if not isinstance(message, dict):
        return
    for block in _blocks(message):
        kind = block.get("type")
        if kind in ("tool_call", "tool_use", "function_call", "tool-call"):
            named = text(block.get("name")) or text(block.get("toolName"))
            given = next((block[n] for n in ("arguments", "input", "args") if block.get(n) is not None), None)
            if named:
                call_id = _any(block, ("id", "call_id", "toolCallId"))
                yield Ask(call_id, named, structured(given))
    calls = structured(message.get("tool_calls")) or structured(message.get("toolCalls"))
    for entry in calls if isinstance(calls, list) else ():
        if not isinstance(entry, dict):
            continue
        inner = entry.get("tool_call")
        call = inner if isinstance(inner, dict) else entry
        held = call.get("function")
        function = held if isinstance(held, dict) else call
        named = text(function.get("name")) or text(function.get("toolName"))
        if named:
            given = next(
                (function[n] for n in ("arguments", "args", "input") if function.get(n) is not None), None
            )
            yield Ask(_any(call, ("id", "toolCallId")), named, structured(given))


def results(message: Any) -> Iterator[Shown]:
    """The tool results that a message shows."""
    if not isinstance(message, dict):
        return
    for block in _blocks(message):
        if block.get("type") in ("tool_call_response", "tool_result", "function_call_output", "tool-result"):
            call_id = _any(block, ("id", "tool_use_id", "call_id", "toolCallId"))
            shown = next(
                (block[n] for n in ("response", "result", "content", "output") if block.get(n) is not None),
                None,
            )
            if call_id:
                yield Shown(call_id, shown)
    if message.get("role") == "tool":
        call_id = _any(message, ("tool_call_id", "id"))
        if call_id:
            yield Shown(call_id, message.get("content"))


_QUOTED = "For context:"
"""How ADK begins a message that quotes another agent under the role of the user."""


def last_said(messages: list[Any]) -> list[Any]:
    """The messages at the end that came from outside the loop: those of a user, with no tool result in them."""
    said: list[Any] = []
    for message in reversed(messages):
        if role_of(message) == "system":
            continue
        if role_of(message) not in ("user", "human") or next(results(message), None) is not None:
            break
        if not _is_quote(message):
            said.append(message)
    return said[::-1]


def _is_quote(message: Any) -> bool:
    block = next(_blocks(message), None)
    told = (block or {}).get("content") or (block or {}).get("text")
    return isinstance(told, str) and told.startswith(_QUOTED)


def _any(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((said for name in names if (said := text(value.get(name)))), None)


def joined(outputs: list[Any]) -> Any:
    """The messages of one answer as one: some sources give a message for each item of it."""
    if len(outputs) == 1:
        return outputs[0]
    if outputs and all(isinstance(one, dict) and isinstance(one.get("parts"), list) for one in outputs):
        parts = [part for one in outputs for part in one["parts"]]
        return {"role": "assistant", "parts": parts}
    return {"role": "assistant", "messages": outputs}
