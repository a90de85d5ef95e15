"""Texts that a dump printed as Python would. Decodes lone texts, nothing else."""

import re
from typing import Any

from ledger.importers._harness.values import items, record

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SINGLE = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_LAST = 0x10FFFF


def unprinted(value: Any) -> Any:
    """The text that a printed text stands for; any other value as it is."""
    if not isinstance(value, str) or len(value) < 2 or value[0] not in "'\"" or value[-1] != value[0]:
        return value
    return _ESCAPE.sub(_decoded, value[1:-1])


def _decoded(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) > 1 and int(code[1:], 16) <= _LAST:
        return chr(int(code[1:], 16))
    return _SINGLE.get(code, found.group(0))


def calls_of(response: Any) -> list[dict[str, Any]]:
    """The tool calls of a response, their names and arguments as the model wrote them."""
    found = []
    for call in items(response):
        fields = record(call)
        function = {name: unprinted(value) for name, value in record(fields.get("function")).items()}
        if fields:
            found.append({**{name: unprinted(value) for name, value in fields.items()}, "function": function})
    return found


def is_mangled(messages: list[Any]) -> bool:
    """Whether messages hold parts that were printed: what was sent cannot be told from them."""
    for message in messages:
        fields = record(message)
        if not fields or any(isinstance(call, str) for call in items(fields.get("tool_calls"))):
            return True
        if any(isinstance(part, str) for part in items(fields.get("content"))):
            return True
    return False
