"""OTLP values as plain JSON, and plain values out of what instrumentations make of them. Iterates, never recurses."""

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from ledger.events.canonical import decode_json, spelled

_LEVELS = 24
"""Levels of a flattened key that are taken apart; what is deeper stays one key."""


class Opened(NamedTuple):
    """One level of a value."""

    scalar: Any = None
    """The value, when it is no container."""
    items: list[Any] | None = None
    """Its items, when it is a list."""
    pairs: list[tuple[str, Any]] | None = None
    """Its entries, when it is a map."""


def plain(root: Any, opened: Callable[[Any], Opened]) -> Any:
    """A value of any depth, given a function that opens one level."""
    holder: list[Any] = [None]
    stack: list[tuple[Any, Any, Any]] = [(root, holder, 0)]
    while stack:
        node, container, place = stack.pop()
        level = opened(node)
        if level.items is not None:
            made: Any = [None] * len(level.items)
            stack.extend((item, made, index) for index, item in enumerate(level.items))
        elif level.pairs is not None:
            made = {}
            for name, item in level.pairs:
                free = free_name(made, name)
                made[free] = None
                stack.append((item, made, free))
        else:
            made = level.scalar
        container[place] = made
    return holder[0]


def free_name(taken: Mapping[str, Any], name: str) -> str:
    """The name, or, where it is taken, the name with a number: a key that comes twice is not lost."""
    if name not in taken:
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def open_message(value: AnyValue) -> Opened:
    """One level of a protobuf value."""
    kind = value.WhichOneof("value")
    if kind is None:
        return Opened()
    if kind == "array_value":
        return Opened(items=list(value.array_value.values))
    if kind == "kvlist_value":
        return Opened(pairs=[(pair.key, pair.value) for pair in value.kvlist_value.values])
    if kind == "bytes_value":
        return Opened(_bytes(base64.b64encode(value.bytes_value).decode()))
    return Opened(_scalar(getattr(value, kind)))


def open_json(value: Any) -> Opened:
    """One level of an OTLP/JSON value; what is none stays as it is."""
    if not isinstance(value, dict) or len(value) != 1:
        return Opened(None if value == {} else finite(value))
    kind, inner = next(iter(value.items()))
    if kind in ("arrayValue", "array_value"):
        values = inner.get("values") if isinstance(inner, dict) else None
        return Opened(items=values if isinstance(values, list) else [])
    if kind in ("kvlistValue", "kvlist_value"):
        values = inner.get("values") if isinstance(inner, dict) else None
        pairs = values if isinstance(values, list) else []
        return Opened(
            pairs=[
                (spelled(pair.get("key", "")), pair.get("value")) for pair in pairs if isinstance(pair, dict)
            ]
        )
    if kind in ("intValue", "int_value"):
        return Opened(integer(inner))
    if kind in ("doubleValue", "double_value"):
        return Opened(_double(inner))
    if kind in ("bytesValue", "bytes_value"):
        return Opened(_bytes(inner))
    if kind in ("stringValue", "string_value", "boolValue", "bool_value"):
        return Opened(inner)
    return Opened(finite(value))


def integer(value: Any) -> Any:
    """A 64-bit integer, which JSON writes as text."""
    try:
        return int(value) if isinstance(value, str) and len(value) < 32 else value
    except ValueError:
        return value


def _double(value: Any) -> Any:
    try:
        return _scalar(float(value)) if isinstance(value, str | int | float) else value
    except (ValueError, OverflowError):
        return value


def _scalar(value: Any) -> Any:
    """A number that JSON cannot hold as the word for it; a float that is whole as the sender meant it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def finite(value: Any) -> Any:
    """A JSON value that another encoder may have filled with what JSON cannot hold."""
    return _scalar(value)


def _bytes(text: Any) -> dict[str, Any]:
    return {"bytesValue": text}


def structured(value: Any) -> Any:
    """A value, or what stands in it when it is a text that holds a JSON object or list."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return decode_json(value)
        except ValueError:
            return value
    return value


def text(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A count."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def first(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these attributes that is there."""
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


class Flattened(NamedTuple):
    """What flattened keys held."""

    values: list[Any]
    """The items by number."""
    has_gaps: bool
    """Whether numbers are missing: some of it was dropped."""
    names: list[str]
    """The keys that it was made of."""


def unflattened(attributes: Mapping[str, Any], prefix: str) -> Flattened:
    """The list that stands in keys such as `prefix.0.message.role`."""
    tree: dict[str, Any] = {}
    names = []
    for name, value in attributes.items():
        if name.startswith(prefix):
            names.append(name)
            levels = name[len(prefix) :].split(".", _LEVELS)
            node = tree
            for level in levels[:-1]:
                inner = node.get(level)
                if not isinstance(inner, _Node):
                    inner = _Node({} if inner is None else {"": inner})
                    node[level] = inner
                node = inner
            last = node.get(levels[-1])
            if isinstance(last, _Node):
                last[""] = value
            else:
                node[levels[-1]] = value
    numbers = sorted(int(level) for level in tree if _is_number(level))
    values = [_grown(tree[str(number)]) for number in numbers]
    return Flattened(values, numbers != list(range(len(numbers))), names)


class _Node(dict[str, Any]):
    """A level that flattened keys made, where a plain dict is a value."""


def _is_number(level: str) -> bool:
    return level.isascii() and level.isdigit() and len(level) < 9 and str(int(level)) == level


def _grown(node: Any) -> Any:
    """A tree of levels with lists where the keys are numbers. Not deeper than `_LEVELS`."""
    return plain(node, _open_node)


def _open_node(node: Any) -> Opened:
    if not isinstance(node, _Node):
        return Opened(node)
    if all(_is_number(level) for level in node):
        return Opened(items=[node[level] for level in sorted(node, key=int)])
    return Opened(pairs=list(node.items()))
