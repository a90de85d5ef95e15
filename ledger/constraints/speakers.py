"""Who says what in a message of a context, whatever the provider's shape."""

from typing import Any, Literal, NamedTuple

Speaker = Literal["system", "user", "assistant", "tool"]
"""Who speaks."""

_ROLES: dict[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
_OF_TOOLS = (
    "tool_result",
    "function_call_output",
    "custom_tool_call_output",
    "mcp_call_output",
    "functionResponse",
)
_NO_WORDS = frozenset("type role id call_id tool_use_id tool_call_id source signature data".split())
_LONGEST = 200_000


class Said(NamedTuple):
    """What one of them says in one message."""

    who: Speaker
    """Who."""

    text: str
    """What, all texts of it one after the other."""


def said_in(message: Any) -> list[Said]:
    """What a message says, in order; results of tools inside a user's message are the tool's."""
    if isinstance(message, str):
        return [Said("user", message[:_LONGEST])]
    if not isinstance(message, dict):
        return []
    kind = message.get("type")
    who = _ROLES.get(str(message.get("role", "")).lower())
    if who is None:
        who = "tool" if kind in _OF_TOOLS else "assistant"
    content = message.get("content", message.get("parts"))
    if not isinstance(content, list):
        content = [message if content is None else content]
    found: list[Said] = []
    for block in content:
        speaker = "tool" if isinstance(block, dict) and _is_of_tool(block) else who
        text = "\n".join(texts_in(block, _NO_WORDS))[:_LONGEST]
        if not text:
            continue
        if found and found[-1].who == speaker:
            found[-1] = Said(speaker, f"{found[-1].text}\n{text}"[:_LONGEST])
        else:
            found.append(Said(speaker, text))
    return found


def _is_of_tool(block: dict[str, Any]) -> bool:
    return block.get("type") in _OF_TOOLS or "functionResponse" in block


def texts_in(value: Any, without: frozenset[str] = frozenset()) -> list[str]:
    """All texts in a JSON value, in its order, without the keys of objects; nor what stands under some of them."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            waiting.extend(reversed([part for name, part in one.items() if name not in without]))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
    return found
