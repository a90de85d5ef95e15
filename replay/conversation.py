"""The conversation of a state as messages. Loads content only here, so that folding never does."""

from typing import Any, NamedTuple

from ledger.errors import ContentMissingError
from ledger.events.canonical import decode_json
from ledger.store import EventStore
from ledger.store.content import NodeRow
from replay.said import Item
from replay.state import State


class Mention(NamedTuple):
    """A message of a conversation, by its digest. Equal for equal messages, however they came in."""

    digest: str
    """Blob that holds it."""

    role: str | None = None
    """Who said it, where the blob holds less than a whole message."""

    call_id: str | None = None
    """Tool call whose result it is."""


class Conversation(NamedTuple):
    """What a model would see."""

    nodes: list[str]
    """Context nodes of the first messages, one for each."""

    mentions: list[Mention]
    """All messages, first message first."""


def conversation(store: EventStore, state: State) -> Conversation:
    """The conversation of a state, by digests. Raises ContentMissingError when a context node is gone."""
    rows = store.context_nodes(state.node) if state.node is not None else []
    mentions = [Mention(row.message.hex()) for row in rows]
    mentions.extend(_mention(item) for item in state.since())
    return Conversation([row.node.hex() for row in rows], mentions)


class Messages:
    """The messages of a conversation, of which only those are looked up that somebody wants to see."""

    def __init__(self, nodes: list[NodeRow], state: State) -> None:
        self._nodes = nodes
        self._state = state
        self._since = state.since_count()

    def __len__(self) -> int:
        return len(self._nodes) + self._since

    def window(self, first: int, count: int) -> list[Mention]:
        """So many of them, from a place on."""
        mentions = [Mention(row.message.hex()) for row in self._nodes[first : first + count]]
        missing = count - len(mentions)
        if missing > 0:
            items = self._state.window(max(0, first - len(self._nodes)), missing)
            mentions.extend(_mention(item) for item in items)
        return mentions


def messages_of(store: EventStore, state: State) -> Messages:
    """The messages of a state's conversation. Raises ContentMissingError when a context node is gone."""
    return Messages(store.context_nodes(state.node) if state.node is not None else [], state)


def _mention(item: Item) -> Mention:
    if item.role == "tool":
        return Mention(item.digest, "tool", item.call_id)
    return Mention(item.digest, None if item.kind == "json" else item.role)


def load_message(store: EventStore, mention: Mention) -> Any:
    """The message, in its protocol's own shape where it has one; `content_missing` where it was erased."""
    try:
        content = store.content(mention.digest)
    except ContentMissingError:
        value: Any = None
        missing = {"content_missing": mention.digest}
    else:
        value, missing = decode_content(content), {}
    if isinstance(value, dict) and (mention.role is None or "role" in value):
        return value
    message: dict[str, Any] = {}
    if mention.role is not None:
        message["role"] = mention.role
    if mention.call_id is not None:
        message["call_id"] = mention.call_id
    return message | (missing or {"content": value})


def decode_content(content: bytes) -> Any:
    """A blob's value: JSON where it is, text otherwise."""
    try:
        return decode_json(content)
    except ValueError:
        return content.decode("utf-8", "replace")


def tool_names(tools: Any) -> list[str]:
    """Names of the tools in a list of tool schemas of any protocol; a tool without name goes by its type."""
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        declared = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in declared if isinstance(declared, list) else ():
            inner = one.get("function", one) if isinstance(one, dict) else None
            if isinstance(inner, dict):
                names.append(str(inner.get("name") or inner.get("type") or next(iter(inner), "")))
    return names
