"""The texts of a request body by what they are: system prompt, user text, tool result. Must not fail on any value."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ledger.protocols.tool_use import calls_in, text

Kind = Literal["system", "user", "assistant", "result", "tool"]
"""Who a text is from: the harness' instructions, the user, the model, a tool that ran, a tool's schema."""

_ROLES: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "result",
    "function": "result",
}


class Place(NamedTuple):
    """One text in a body, which can be replaced."""

    kind: Kind
    """What it is."""

    holder: Any
    """The list or object that holds it."""

    key: Any
    """Its place there."""

    message: int
    """Number of its message; -1 outside messages."""

    @property
    def text(self) -> str:
        """The text."""
        found: str = self.holder[self.key]
        return found

    def put(self, value: str) -> bool:
        """Replace the text; tells whether that changed it."""
        if self.holder[self.key] == value:
            return False
        self.holder[self.key] = value
        return True


def places(protocol: str, body: dict[str, Any]) -> Iterator[Place]:
    """Every text of a body that a model reads, in the order of the body."""
    match protocol:
        case "anthropic.messages":
            yield from _texts("system", body, "system", -1)
            yield from _messages(body, "messages")
        case "openai.responses":
            yield from _texts("system", body, "instructions", -1)
            yield from _items(body)
        case "gemini":
            yield from _parts("system", body.get("systemInstruction"), -1)
            contents = body.get("contents")
            for index, content in enumerate(contents if isinstance(contents, list) else ()):
                role = content.get("role") if isinstance(content, dict) else None
                yield from _parts(_ROLES.get(str(role), "user"), content, index)
        case _:
            yield from _messages(body, "messages")
    tools = body.get("tools")
    if isinstance(tools, list):
        yield from strings("tool", tools, -1)


def strings(kind: Kind, value: Any, message: int) -> Iterator[Place]:
    """Every text inside a value, whatever its shape."""
    stack: list[Any] = [value]
    while stack:
        holder = stack.pop()
        pairs: list[tuple[Any, Any]] = (
            list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
        )
        for key, inner in pairs:
            if isinstance(inner, str):
                yield Place(kind, holder, key, message)
        stack.extend(inner for _, inner in reversed(pairs) if isinstance(inner, dict | list))


def call_order(messages: list[Any]) -> dict[str, int]:
    """Id of each tool call in messages -> its number."""
    order: dict[str, int] = {}
    for message in messages:
        for call in calls_in(message):
            if call.call_id is not None:
                order.setdefault(call.call_id, len(order))
    return order


def result_blocks(message: Any) -> list[dict[str, Any]]:
    """The `tool_result` blocks of a message of Anthropic's."""
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if is_result(block)] if isinstance(content, list) else []


def is_result(block: Any) -> bool:
    """Whether a block is a tool result of Anthropic's."""
    return isinstance(block, dict) and (text(block.get("type")) or "").endswith("tool_result")


def _messages(body: dict[str, Any], name: str) -> Iterator[Place]:
    listed = body.get(name)
    for index, message in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(message, dict):
            continue
        kind = _ROLES.get(str(message.get("role")), "user")
        yield from _texts(kind, message, "content", index)


def _texts(kind: Kind, holder: dict[str, Any], key: str, message: int) -> Iterator[Place]:
    """A text, or the texts in a list of blocks; those inside a tool result are results."""
    value = holder.get(key)
    if isinstance(value, str):
        yield Place(kind, holder, key, message)
    for index, block in enumerate(value if isinstance(value, list) else ()):
        if isinstance(block, str):
            yield Place(kind, value, index, message)
        elif is_result(block):
            inner = block.get("content")
            if isinstance(inner, str):
                yield Place("result", block, "content", message)
            for one in inner if isinstance(inner, list) else ():
                if isinstance(one, dict) and isinstance(one.get("text"), str):
                    yield Place("result", one, "text", message)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            yield Place(kind, block, "text", message)


def _items(body: dict[str, Any]) -> Iterator[Place]:
    listed = body.get("input")
    if isinstance(listed, str):
        yield Place("user", body, "input", 0)
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(item, dict):
            continue
        if "role" in item:
            yield from _texts(_ROLES.get(str(item["role"]), "user"), item, "content", index)
        elif (text(item.get("type")) or "").endswith("_output"):
            yield from _texts("result", item, "output", index)


def _parts(kind: Kind, content: Any, message: int) -> Iterator[Place]:
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            yield Place(kind, part, "text", message)
        answer = part.get("functionResponse")
        if isinstance(answer, dict) and isinstance(answer.get("response"), dict | list):
            yield from strings("result", answer["response"], message)
