"""Whose protocol a request speaks, by its path and its body. Must not fail on any value."""

import re
from typing import Any

_PATHS = (
    ("anthropic.messages", re.compile(r"/messages(?:/count_tokens)?\Z")),
    ("openai.chat", re.compile(r"/chat/completions\Z")),
    ("openai.responses", re.compile(r"/responses(?:/compact|/input_tokens)?\Z")),
    ("gemini", re.compile(r":(?:generateContent|streamGenerateContent|countTokens)\Z")),
)
_PROVIDERS = (
    ("anthropic", re.compile(r"(?:\A|\.)anthropic\.com\Z")),
    ("openai", re.compile(r"(?:\A|\.)(?:openai\.com|openai\.azure\.com|chatgpt\.com)\Z")),
    ("google", re.compile(r"(?:\A|\.)googleapis\.com\Z")),
    ("aws", re.compile(r"(?:\A|\.)amazonaws\.com\Z")),
    ("openrouter", re.compile(r"(?:\A|\.)openrouter\.ai\Z")),
)
_MODEL_IN_PATH = re.compile(r"/(?:models|deployments|model)/([^/:]+)")


def protocol_of(path: str, body: Any) -> str | None:
    """The protocol of a model request; None for any other traffic."""
    if not isinstance(body, dict):
        return None
    path = path.partition("?")[0].rstrip("/")
    for protocol, pattern in _PATHS:
        if pattern.search(path):
            return protocol if _fits(protocol, body) else None
    return None


def protocol_of_body(body: Any) -> str | None:
    """The protocol of a request of which only the body, or the client's arguments, are known."""
    if not isinstance(body, dict):
        return None
    if isinstance(body.get("contents"), list):
        return "gemini"
    if "input" in body and isinstance(body["input"], str | list) and "messages" not in body:
        return "openai.responses" if _is_text(body.get("model")) else None
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    if "system" in body or any(_has_blocks_of_anthropic(message) for message in messages[:50]):
        return "anthropic.messages"
    return "openai.chat"


def is_count(path: str) -> bool:
    """Whether a request only asks for a number of tokens."""
    path = path.partition("?")[0]
    return path.endswith(("/count_tokens", ":countTokens", "/input_tokens"))


def is_compaction(path: str) -> bool:
    """Whether a request asks the provider to shorten a context."""
    return path.partition("?")[0].endswith("/responses/compact")


def model_in_path(path: str) -> str | None:
    """The model that an address names, as Gemini's and Azure's do."""
    found = _MODEL_IN_PATH.search(path)
    return found[1] if found else None


def provider_of(host: str) -> str | None:
    """Who stands behind a host; None for one that is not known."""
    name = host.partition(":")[0].lower()
    return next((provider for provider, pattern in _PROVIDERS if pattern.search(name)), None)


def _fits(protocol: str, body: dict[str, Any]) -> bool:
    match protocol:
        case "gemini":
            return isinstance(body.get("contents"), list | dict | str) or "generateContentRequest" in body
        case "openai.responses":
            return "input" in body or "previous_response_id" in body or "prompt" in body
        case _:
            return isinstance(body.get("messages"), list)


def _has_blocks_of_anthropic(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result", "thinking")
        for block in content
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
