"""Messages as graph states hold them: LangChain's classes, their JSON forms, chat dictionaries. Makes no events."""

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ledger.events import ContentRef
from ledger.events.canonical import canonical_json, decode_json, spelled
from ledger.events.model_call import Usage
from ledger.importers import Desk
from ledger.importers._langgraph.values import CLASS, Constructed, as_text, plain
from ledger.protocols.langchain import usage_of

Kind = Literal["human", "ai", "tool", "system", "remove", "other"]
"""Who speaks; `remove` is an order to take a message out."""

REMOVE_ALL = "__remove_all__"
"""Id by which an order takes out every message."""

_KINDS: dict[str, Kind] = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
    "remove": "remove",
    "chat": "other",
}
_CLASS_NAME = re.compile(r"(?:\A|\.)(Human|AI|Tool|Function|System|Remove|Chat)Message(?:Chunk)?\Z")
_CHUNK = "MessageChunk"
_PLAIN_KEPT = 5000


class ToolRequest(NamedTuple):
    """One call in an answer."""

    call_id: str
    """Its id, or one made from its place where it has none."""

    tool: str
    """Name of the tool."""

    arguments: Any
    """Arguments, or their text when that is no JSON."""

    error: str | None
    """Why the call could not be read, where the framework says that it could not."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message."""

    kind: Kind
    """Who speaks."""

    id: str | None
    """Its native id."""

    data: dict[str, Any]
    """The message as plain data, in the source's own shape."""

    ref: ContentRef
    """The same, kept."""

    @property
    def identity(self) -> str:
        """What tells it from other messages of its list: its id, else its content."""
        return f"id:{self.id}" if self.id is not None else f"is:{self.ref.digest}"

    @property
    def call_id(self) -> str | None:
        """Call that it is the result of."""
        return text_or_none(self.data.get("tool_call_id"))

    @property
    def response(self) -> dict[str, Any]:
        """What the provider said about an answer."""
        return _dict(self.data.get("response_metadata"))

    def calls(self) -> list[ToolRequest]:
        """The tool calls that an answer asks for; those that nobody could read come last."""
        found = [
            _request(call, f"{self.identity}:{index}", None)
            for index, call in enumerate(_dicts(self.data.get("tool_calls")))
        ]
        for index, call in enumerate(_dicts(self.data.get("invalid_tool_calls"))):
            error = text_or_none(call.get("error")) or "the arguments are no JSON"
            found.append(_request(call, f"{self.identity}:invalid:{index}", error))
        return found

    def usage(self) -> Usage | None:
        """Tokens, each counted once; None where the message does not say."""
        return usage_of(self.data.get("usage_metadata"))

    def is_summary(self) -> bool:
        """Whether the framework's summarising middleware wrote it."""
        return _dict(self.data.get("additional_kwargs")).get("lc_source") == "summarization"


class Messages:
    """Finds messages in decoded values and keeps each once."""

    def __init__(self, desk: Desk) -> None:
        self._keep = desk.keep
        self._plain: OrderedDict[bytes, Message] = OrderedDict()

    def of_list(self, value: Any) -> list[Message] | None:
        """The messages of a channel; None for a value that is no list of messages. An empty list may be one."""
        if not isinstance(value, list) or not all(map(_kind, value)):
            return None
        return [self._message(item) for item in value]

    def of_write(self, value: Any) -> list[Message] | None:
        """The messages that a task writes to a channel: one or a list, pairs and texts allowed in a list."""
        items = value if isinstance(value, list) else [value]
        coerced = [_coerced(item) for item in items]
        if not items or not all(map(_kind, coerced)):
            return None
        return [self._message(item) for item in coerced]

    def _message(self, value: Any) -> Message:
        if isinstance(value, Constructed):
            if value.memo is None:
                value.memo = self._made(value)
            memo: Message = value.memo
            return memo
        key = canonical_json(plain(value))
        known = self._plain.get(key)
        if known is None:
            known = self._plain[key] = self._made(value)
            if len(self._plain) > _PLAIN_KEPT:
                self._plain.popitem(last=False)
        return known

    def _made(self, value: Any) -> Message:
        data: dict[str, Any] = plain(value)
        kind = _kind(value) or "other"
        name = spelled(data.pop(CLASS, ""))
        if "type" not in data and "role" not in data:
            data["type"] = kind
        if name.endswith(_CHUNK) and isinstance(data.get("type"), str):
            data["type"] = data["type"].removesuffix(_CHUNK)
        return Message(kind, text_or_none(data.get("id")), data, self._keep.json(data, "message"))


def _kind(value: Any) -> Kind | None:
    """What kind of message a value is; None when it is none."""
    if isinstance(value, Constructed):
        fields, name = value.fields, value.name
    elif isinstance(value, dict):
        fields, name = value, as_text(value.get(CLASS))
    else:
        return None
    native = fields.get("type")
    by_class = _CLASS_NAME.search(name)
    if by_class is not None:
        return _KINDS[by_class[1].lower()]
    if isinstance(native, str) and "content" in fields and native.removesuffix(_CHUNK).lower() in _KINDS:
        return _KINDS[native.removesuffix(_CHUNK).lower()]
    role = fields.get("role")
    if isinstance(role, str) and ("content" in fields or "tool_calls" in fields):
        return _KINDS.get(role, "other")
    return None


def _coerced(item: Any) -> Any:
    """A pair of role and text, or a text, as the message that the framework makes of it."""
    if isinstance(item, str):
        return {"type": "human", "content": item}
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and item[0] in _KINDS:
        return {"type": _KINDS[item[0]], "content": item[1]}
    return item


def _request(call: dict[str, Any], fallback: str, error: str | None) -> ToolRequest:
    inner = _dict(call.get("function")) or call
    arguments = inner.get("args", inner.get("arguments"))
    if isinstance(arguments, str) and error is None:
        try:
            arguments = decode_json(arguments)
        except ValueError:
            error = "the arguments are no JSON"
    return ToolRequest(
        text_or_none(call.get("id")) or fallback,
        text_or_none(inner.get("name")) or "unknown",
        arguments,
        error,
    )


def text_or_none(value: Any) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
