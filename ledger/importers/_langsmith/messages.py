"""Inputs and outputs of a traced model call: a client's own arguments and response, or LangChain's messages."""

from typing import Any

from ledger.events.canonical import spelled
from ledger.events.model_call import Usage
from ledger.protocols.recognition import protocol_of_body
from ledger.protocols.responses import usage_of

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_CLASSES = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
}
_LARGEST_COUNT = 2**53
_LANGCHAIN = "langchain"


def body_of(inputs: Any) -> tuple[str, dict[str, Any]]:
    """The protocol of a call's inputs, and the inputs in its shape."""
    if not isinstance(inputs, dict):
        return _LANGCHAIN, {"messages": [] if inputs is None else [inputs]}
    messages = inputs.get("messages")
    if isinstance(messages, list) and _is_langchain(messages):
        nested = messages[0] if messages and isinstance(messages[0], list) else messages
        return _LANGCHAIN, {**inputs, "messages": [_flat(message) for message in nested]}
    if isinstance(inputs.get("prompts"), list):
        asked = [{"role": "user", "content": prompt} for prompt in inputs["prompts"]]
        return _LANGCHAIN, {
            **{name: part for name, part in inputs.items() if name != "prompts"},
            "messages": asked,
        }
    protocol = protocol_of_body(inputs)
    if protocol is None:
        return _LANGCHAIN, inputs
    return protocol, {name: part for name, part in inputs.items() if part is not None}


def message_of(protocol: str, outputs: Any) -> tuple[Any, Any]:
    """The answer, and what of the outputs is not in it."""
    match outputs:
        case {"generations": [[dict() as first, *_], *_], **rest} | {
            "generations": [dict() as first, *_],
            **rest,
        }:
            message = first.get("message")
            said = (
                _flat(message)
                if isinstance(message, dict)
                else {"role": "assistant", "content": first.get("text")}
            )
            around = {name: part for name, part in first.items() if name not in ("message", "text", "type")}
            return said, {**rest, **({"generation": around} if around else {})}
        case {"messages": [*_, dict() as last], **rest} if protocol == _LANGCHAIN:
            return _flat(last), rest
        case {"message": dict() as message, **rest} if "choices" not in rest:
            return _flat(message), rest
    return outputs, None


def usage_of_outputs(outputs: Any) -> Usage | None:
    """Tokens, under whichever of its names; those read from a cache are counted apart."""
    if not isinstance(outputs, dict):
        return None
    found = outputs.get("usage_metadata")
    if found is None:
        message, _ = message_of(_LANGCHAIN, outputs)
        found = message.get("usage_metadata") if isinstance(message, dict) else None
    if not isinstance(found, dict):
        return usage_of(outputs) or _old_usage(outputs)
    given = _count(found.get("input_tokens"))
    read = _detail(found, "input_token_details", "cache_read")
    written = _detail(found, "input_token_details", "cache_creation")
    if given is not None:
        given = max(0, given - (read or 0) - (written or 0))
    return Usage(
        input_tokens=given,
        output_tokens=_count(found.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=_detail(found, "output_token_details", "reasoning"),
    )


def _old_usage(outputs: dict[str, Any]) -> Usage | None:
    match outputs.get("llm_output"):
        case {"token_usage": dict() as usage} | {"usage": dict() as usage}:
            return usage_of({"usage": usage})
    return None


def _is_langchain(messages: list[Any]) -> bool:
    first = messages[0] if messages else None
    if isinstance(first, list):
        first = first[0] if first else {"lc": 1}
    return isinstance(first, dict) and ("lc" in first or ("type" in first and "role" not in first))


def _flat(message: Any) -> Any:
    """LangChain's message as its own fields with a role, without the constructor around it."""
    if not isinstance(message, dict):
        return message
    fields, kind = message, message.get("type")
    inner = message.get("kwargs") if "lc" in message else message.get("data")
    if isinstance(inner, dict):
        names = message.get("id")
        fields = inner
        kind = inner.get("type")
        if "lc" in message and isinstance(names, list) and names:
            kind = _CLASSES.get(spelled(names[-1]), kind)
        elif kind is None:
            kind = message.get("type")
    if "role" in fields or not isinstance(kind, str):
        return fields
    return {"role": _ROLES.get(kind, kind), **fields}


def _count(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return value
    return None


def _detail(usage: dict[str, Any], group: str, name: str) -> int | None:
    details = usage.get(group)
    return _count(details.get(name)) if isinstance(details, dict) else None
