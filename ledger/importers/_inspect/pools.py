"""Puts back what Inspect stores once: attachments, and messages that many events share. Iterative, bounded."""

import re
from typing import Any

_REFERENCE = re.compile(r"(?:attachment|tc)://([0-9a-f]{32})")
_MOST_MESSAGES = 200_000
_LARGEST_TEXT = 64 * 1024 * 1024


class Pools:
    """The shared parts of one sample."""

    def __init__(self, sample: dict[str, Any]) -> None:
        attachments = sample.get("attachments")
        self._attachments = attachments if isinstance(attachments, dict) else {}
        data = sample.get("events_data")
        data = data if isinstance(data, dict) else {}
        self._messages = _list(sample.get("message_pool")) or _list(data.get("messages"))
        self._calls = _list(sample.get("call_pool")) or _list(data.get("calls"))

    def resolve(self, value: Any) -> Any:
        """The value with the texts that its references stand for; the very same object where there are none."""
        if not self._attachments or not isinstance(value, dict | list | str):
            return value
        root: list[Any] = [value]
        stack: list[tuple[Any, Any]] = [(root, 0)]
        while stack:
            container, key = stack.pop()
            item = container[key]
            if isinstance(item, str):
                if "://" in item:
                    container[key] = _REFERENCE.sub(self._text, item)
            elif isinstance(item, dict):
                container[key] = copy = dict(item)
                stack.extend((copy, name) for name in copy)
            elif isinstance(item, list):
                container[key] = items = list(item)
                stack.extend((items, index) for index in range(len(items)))
        return root[0]

    def _text(self, found: re.Match[str]) -> str:
        text = self._attachments.get(found[1])
        return text if isinstance(text, str) and len(text) <= _LARGEST_TEXT else found[0]

    def input_of(self, event: dict[str, Any]) -> list[Any]:
        """The messages of a model event."""
        messages = [*_referred(event.get("input_refs"), self._messages), *_list(event.get("input"))]
        return _list(self.resolve(messages))

    def request_of(self, call: dict[str, Any]) -> Any:
        """The request of a call, with the messages that it refers to under the name that it gives."""
        request = call.get("request")
        refs = call.get("call_refs")
        if isinstance(request, dict) and refs is not None:
            name = call.get("call_key")
            pooled = _referred(refs, self._calls)
            request = {**request, name if isinstance(name, str) else "messages": pooled}
        return self.resolve(request)


def _referred(refs: Any, pool: list[Any]) -> list[Any]:
    """The parts of a pool that stretches of `[from, to)` name."""
    found: list[Any] = []
    for ref in _list(refs):
        match ref:
            case [int() as start, int() as end] if 0 <= start <= end and len(found) < _MOST_MESSAGES:
                found.extend(pool[start:end])
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
