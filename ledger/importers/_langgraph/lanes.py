"""The message lists of a graph's state, one lane for each channel, and how a step changed them. Makes no events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.importers._langgraph.messages import REMOVE_ALL, Message, Messages
from ledger.importers._langgraph.values import Constructed
from ledger.recorder import ContextChain

_OVERWRITE = "__overwrite__"


@dataclass
class Lane:
    """The messages of one channel."""

    chain: ContextChain
    """The same as a context."""

    messages: list[Message] = field(default_factory=list)
    """First message first."""


class Change(NamedTuple):
    """What a step did to a lane."""

    added: list[Message]
    """Messages that were not there before."""

    changed: list[Message]
    """Messages that were there with other content."""

    removed: list[Message]
    """Messages that are there no more."""


def compare(before: Sequence[Message], after: Sequence[Message]) -> Change:
    """How one list became the other."""
    if len(after) >= len(before) and all(
        old is new or old.ref == new.ref for old, new in zip(before, after, strict=False)
    ):
        return Change(list(after[len(before) :]), [], [])
    known = {message.identity: message for message in before}
    left = {message.identity for message in after}
    added = [message for message in after if message.identity not in known]
    removed = [message for message in before if message.identity not in left]
    for message in [message for message in removed if message.id is None]:
        found = next((one for one in added if _is_named(message, one)), None)
        if found is not None:
            removed.remove(message)
            added.remove(found)
    changed = [message for message in after if known.get(message.identity, message).ref != message.ref]
    return Change(added, changed, removed)


def _is_named(message: Message, later: Message) -> bool:
    """Whether the later one is the same message, which has got its id in between."""
    return later.kind == message.kind and later.data.get("content") == message.data.get("content")


def applied(messages: Sequence[Message], written: Iterable[Any], reader: Messages) -> list[Message]:
    """The list after writes to a channel that stores only these: LangGraph's own rule for adding messages."""
    result = {message.identity: message for message in messages}
    for value in written:
        base = _overwritten(value)
        if base is not None:
            result, value = {}, base
        for message in reader.of_write(value) or ():
            if message.kind != "remove":
                result[message.identity] = message
            elif message.id == REMOVE_ALL:
                result.clear()
            else:
                result.pop(message.identity, None)
    return list(result.values())


def _overwritten(value: Any) -> Any:
    """The new base of a channel, where a write sets one."""
    if isinstance(value, Constructed) and value.name.endswith(".Overwrite"):
        return value.fields.get("value") or []
    if isinstance(value, dict) and value.keys() == {_OVERWRITE}:
        return value[_OVERWRITE] or []
    return None
