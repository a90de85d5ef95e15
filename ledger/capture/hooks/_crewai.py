"""Events of CrewAI's bus as requests, answers and arguments of a provider. Records nothing."""

import ast
from collections.abc import Mapping
from typing import Any, Literal

from ledger.events.canonical import decode_json
from ledger.events.model_call import Usage
from ledger.protocols.plain import plain

PROTOCOL = "openai.chat"
"""Shape of the messages, whatever the provider."""

_DEPTH = 5
"""As deep as CrewAI makes JSON of what it emits; what lies there is printed as Python prints it."""

_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "stop_sequences": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "n": "n",
}
_YES = frozenset({"approve", "approved", "accept", "accepted", "yes"})
_NO = frozenset({"reject", "rejected", "deny", "denied", "no"})


def restored(value: Any, depth: int = 0) -> Any:
    """What was emitted, with that decoded which was printed; no deeper than CrewAI goes."""
    if depth == _DEPTH:
        return _unprinted(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {name: restored(part, depth + 1) for name, part in value.items()}
    if isinstance(value, list):
        return [restored(part, depth + 1) for part in value]
    return value


def _unprinted(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def request_of(event: Any) -> dict[str, Any]:
    """The request of `llm_call_started`, without the marks that CrewAI takes off before it sends."""
    given = event.messages
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else restored(given or [])
    for message in messages:
        message.pop("cache_breakpoint", None)
    body: dict[str, Any] = {"model": event.model, "messages": messages}
    if event.tools:
        body["tools"] = restored(event.tools)
    if event.stream:
        body["stream"] = True
    for ours, theirs in _PARAMETERS.items():
        if (setting := getattr(event, ours, None)) is not None:
            body[theirs] = setting
    return body


def answer_of(event: Any) -> dict[str, Any]:
    """The message of `llm_call_completed`: a text, or the tool calls without the text beside them."""
    response = plain(event.response)
    if not isinstance(response, list):
        return {"role": "assistant", "content": response}
    if all(isinstance(one, dict) and "function" in one for one in response):
        calls = [{name: part for name, part in one.items() if name != "index"} for one in response]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    return {"role": "assistant", "content": response}


def chunk_of(event: Any) -> Any:
    """A part of a streamed answer; that of a tool call carries its arguments so far."""
    return event.chunk if event.tool_call is None else {"tool_call": plain(event.tool_call)}


def usage_of(event: Any) -> Usage | None:
    """The tokens of an answer."""
    told = event.usage or {}
    given, written = told.get("prompt_tokens"), told.get("completion_tokens")
    if given is None and written is None:
        return None
    cached = told.get("cached_prompt_tokens")
    return Usage(
        input_tokens=None if given is None else max(0, given - (cached or 0)),
        output_tokens=written,
        cache_read_tokens=cached,
        cache_write_tokens=told.get("cache_creation_tokens"),
        reasoning_tokens=told.get("reasoning_tokens"),
    )


def arguments_of(given: Any) -> Any:
    """The arguments of a tool call."""
    try:
        return decode_json(given) if isinstance(given, str) else plain(given)
    except ValueError:
        return given


def outcome_of(word: str | None) -> Literal["approved", "denied", "unknown"]:
    """What a human's feedback was taken for, where the flow names such outcomes."""
    name = (word or "").strip().lower()
    return "approved" if name in _YES else "denied" if name in _NO else "unknown"
