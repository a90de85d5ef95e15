"""Reads a model's response: the message in it, what is around it, usage, ids. Knows shapes, no SDK."""

from decimal import Decimal
from typing import Any, NamedTuple

from ledger.events.model_call import Usage

_LARGEST_COUNT = 2**53


class Taken(NamedTuple):
    """A response taken apart."""

    message: Any
    """The answer as a message, in the protocol's own shape."""

    envelope: Any
    """What is around it; None when the message is all there is."""


def take_apart(protocol: str, body: Any) -> Taken:
    """The message in a response body, and the body without it. `put_together` is the way back."""
    match protocol, body:
        case "openai.chat", {"choices": [{"message": dict() as message, **first}, *others], **rest}:
            return Taken(message, {**rest, "choices": [first, *others]})
        case "anthropic.messages", {"role": role, "content": content, **rest}:
            return Taken({"role": role, "content": content}, rest)
        case "openai.responses", {"output": list() as output, **rest}:
            return Taken(output, rest)
        case "gemini", {"candidates": [{"content": dict() as content, **first}, *others], **rest}:
            return Taken(content, {**rest, "candidates": [first, *others]})
    return Taken(body, None)


def put_together(protocol: str, message: Any, envelope: Any) -> Any:
    """The response body that `take_apart` took apart."""
    if envelope is None:
        return message
    match protocol:
        case "openai.chat":
            first, *others = envelope["choices"]
            return {**envelope, "choices": [{**first, "message": message}, *others]}
        case "anthropic.messages":
            return {**envelope, **message}
        case "openai.responses":
            return {**envelope, "output": message}
        case _:
            first, *others = envelope["candidates"]
            return {**envelope, "candidates": [{**first, "content": message}, *others]}


def usage_of(body: Any) -> Usage | None:
    """Tokens of a response, each counted once; None when it does not say."""
    if not isinstance(body, dict):
        return None
    usage = _first(body, "usage", "usageMetadata", "usage_metadata")
    if not isinstance(usage, dict):
        return None
    output = _count(usage, "output_tokens", "completion_tokens")
    given = _count(usage, "input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count")
    read = _count(usage, "cache_read_input_tokens")
    reasoning = _detail(usage, ("output_tokens_details", "completion_tokens_details"), "reasoning_tokens")
    if read is None:  # Anthropic counts cached tokens apart, the others inside the prompt
        inside = _detail(usage, ("input_tokens_details", "prompt_tokens_details"), "cached_tokens")
        read = (
            inside
            if inside is not None
            else _count(usage, "cachedContentTokenCount", "cached_content_token_count")
        )
        if read is not None and given is not None:
            given = max(0, given - read)
    answered = _count(usage, "candidatesTokenCount", "candidates_token_count")
    if answered is not None:
        reasoning = _count(usage, "thoughtsTokenCount", "thoughts_token_count")
        output = answered + (reasoning or 0)
    found = Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=_count(usage, "cache_creation_input_tokens"),
        reasoning_tokens=reasoning,
    )
    return None if found == Usage() else found


def facts_of(body: Any) -> dict[str, Any]:
    """The fields of `ModelCallAnswered` that a response body tells, usage included."""
    facts: dict[str, Any] = {"usage": usage_of(body)}
    if not isinstance(body, dict):
        return facts
    facts["model"] = _text(_first(body, "model", "modelVersion", "model_version"))
    facts["response_id"] = _text(_first(body, "id", "responseId", "response_id"))
    facts["stop_reason"] = _stop_reason(body)
    usage = body.get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        facts["cost_usd"] = Decimal(str(cost))
    return facts


def _stop_reason(body: dict[str, Any]) -> str | None:
    for name in ("choices", "candidates"):
        match body.get(name):
            case [dict() as first, *_]:
                return _text(_first(first, "finish_reason", "finishReason"))
    match body:
        case {"incomplete_details": {"reason": str() as reason}}:
            return reason
    return _text(_first(body, "stop_reason", "status"))


def _first(fields: dict[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(usage: dict[str, Any], *names: str) -> int | None:
    found = _first(usage, *names)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _LARGEST_COUNT:
        return found
    return None


def _detail(usage: dict[str, Any], groups: tuple[str, ...], name: str) -> int | None:
    details = _first(usage, *groups)
    return _count(details, name) if isinstance(details, dict) else None
