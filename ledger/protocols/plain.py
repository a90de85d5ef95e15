"""Turns what a loop holds (SDK objects, dataclasses, bytes, ...) into JSON values. Must not fail on any object."""

import base64
import contextlib
import dataclasses
import math
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any

import orjson

_OMITTED = frozenset({"NotGiven", "Omit"})
"""Names of the marks by which SDKs say that an argument was left out."""

_LEVELS = 200

_EXACT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_STRICT = _EXACT | orjson.OPT_SORT_KEYS


def fingerprint(value: Any) -> bytes | None:
    """Bytes that are equal for equal JSON values, quickly made; None for what is not JSON already."""
    try:
        return orjson.dumps(value, option=_STRICT)
    except (orjson.JSONEncodeError, RecursionError):
        return None


def plain(value: Any) -> Any:
    """The value as JSON: a new one where anything had to be changed. Any depth; a circle becomes a text."""
    try:
        copy = orjson.loads(orjson.dumps(value, option=_EXACT))
        if copy == value:  # not so for NaN, a tuple, an enumeration: what the way there and back has changed
            return copy
    except Exception:  # noqa: BLE001, S110 - no JSON, or somebody else's `__eq__`: looked at one by one
        pass
    return walked(value)


def walked(value: Any) -> Any:
    """What `plain` gives, made one by one."""
    root: list[Any] = [None]
    inside: set[int] = set()
    stack: list[tuple[str, Any, Any, Any]] = [("visit", value, root, 0)]
    while stack:
        step, item, into, key = stack.pop()
        if step == "leave":
            inside.discard(item)
            continue
        unpacked = _unpacked(item)
        if isinstance(unpacked, Mapping | list | tuple | set | frozenset):
            if id(item) in inside:
                into[key] = "<circular reference>"
                continue
            inside.add(id(item))
            # The item rides along with its mark, so that its id stays its own until it is left.
            stack.append(("leave", id(item), item, None))
            stack.extend(_opened(unpacked, into, key))
        else:
            into[key] = _scalar(unpacked)
    return root[0]


def is_deep(value: Any) -> bool:
    """Whether a JSON value has more levels than code that recurses can be given, whoever calls it."""
    level = [value]
    for _ in range(_LEVELS):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list | tuple)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def is_omitted(value: Any) -> bool:
    """Whether an argument is an SDK's mark for one that was left out."""
    return type(value).__name__ in _OMITTED


def type_name(value: object) -> str:
    """Name of a value's class, with its module unless it is built in."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _opened(item: Any, into: Any, key: Any) -> list[tuple[str, Any, Any, Any]]:
    """Put an empty copy of a container in its place; give the visits that fill it."""
    if isinstance(item, Mapping):
        members = {_key(name): inner for name, inner in item.items() if not is_omitted(inner)}
        copy: dict[str, Any] = dict.fromkeys(members)
        into[key] = copy
        return [("visit", inner, copy, name) for name, inner in members.items()]
    items = list(item)
    if isinstance(item, set | frozenset):
        items.sort(key=repr)
    filled: list[Any] = [None] * len(items)
    into[key] = filled
    return [("visit", inner, filled, index) for index, inner in enumerate(items)]


def _unpacked(item: Any) -> Any:
    """What an object is made of, where it can tell."""
    if isinstance(item, str | int | float | dict | list | tuple | type) or item is None:
        return item
    for method, arguments in (
        ("to_dict", {"mode": "json"}),  # OpenAI's and Anthropic's objects: what was on the wire
        ("to_json_dict", {}),  # google-genai's
        ("model_dump", {"mode": "json"}),  # pydantic
    ):
        if callable(give := getattr(item, method, None)):
            # Somebody else's method of that name may raise what it likes.
            with contextlib.suppress(Exception):
                return give(**arguments)
    if dataclasses.is_dataclass(item):
        return {field.name: getattr(item, field.name, None) for field in dataclasses.fields(item)}
    return item


def _scalar(item: Any) -> Any:
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, Enum):
        return _scalar(item.value)
    if isinstance(item, str):
        return str(item)
    if isinstance(item, int):
        return int(item)
    if isinstance(item, float):
        return float(item) if math.isfinite(item) else str(item)
    if isinstance(item, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(item)).decode()}
    if isinstance(item, Decimal | PurePath):
        return str(item)
    if callable(moment := getattr(item, "isoformat", None)) and not isinstance(item, type):
        with contextlib.suppress(Exception):
            return str(moment())
    return _described(item)


def _described(item: Any) -> str:
    try:
        return repr(item)
    except Exception as error:  # noqa: BLE001 - a broken repr must not stop the loop
        return f"<{type_name(item)}: {type_name(error)}>"


def _key(name: Any) -> str:
    return name if type(name) is str else str(name)
