"""Canonical JSON bytes (RFC 8785) and JSON reading that survives what real logs hold. Must not lose a value.

Two departures from RFC 8785, both because rounding a fact is worse than leaving I-JSON: integers beyond 2**53 are
written in full, and a lone surrogate (half an emoji, cut by a harness) is written as its escape `\\udXXX`.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import orjson
import rfc8785

_LARGEST_SAFE_INTEGER = 2**53 - 1
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG_NUMBER = b"0" * 17
_TOKEN = re.compile(
    r'[ \t\n\r]*([\[\]{},"]|true|false|null|-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)'
)
_STRINGS = json.JSONDecoder()
_COLON = re.compile(r"[ \t\n\r]*:")
_OPENED: dict[str, Callable[[], Any]] = {"[": list, "{": dict}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = [1 if byte in b"[{" else -1 for byte in range(256)]
_NAMED = {"true": True, "false": False, "null": None}
_FAST_DEPTH = 200  # orjson writes at most 254 levels


def canonical_json(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value, of any depth. Raises TypeError for what is not JSON (NaN included)."""
    if _is_plain(value):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return "".join(_pieces(value)).encode()


def spelled(value: Any) -> str:
    """A JSON value as a text, of any depth: a list or object as canonical JSON, anything else as Python says it."""
    return canonical_json(value).decode() if isinstance(value, dict | list) else str(value)


def decode_json(raw: bytes | str) -> Any:
    """The value of one strict JSON text, of any depth, with integers of any size. Raises ValueError."""
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    if _LONG_NUMBER not in data.translate(_DIGITS):  # ten times as fast as a regular expression
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    if _seems_deep(data):
        return _decode_deep(data)
    try:
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        return _decode_deep(data)


def _seems_deep(data: bytes) -> bool:
    """Whether a text nests too deep for code that recurses, by its brackets; those in its strings may mislead.

    To try and fail is not enough: what the garbage collector calls at the end of the stack fails too, unseen.
    """
    brackets = data.translate(None, _NO_BRACKETS)
    return len(brackets) > _FAST_DEPTH and max(accumulate(map(_STEPS.__getitem__, brackets))) > _FAST_DEPTH


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is beyond every number that a float can hold")
    return number


def _decode_deep(data: bytes) -> Any:
    """Nesting deeper than the interpreter's stack: the same grammar, with a stack of our own."""
    text = data.decode(json.detect_encoding(data), "surrogatepass")
    outermost: list[Any] = []
    stack: list[Any] = [outermost]
    keys: list[str] = []
    wanted, place = "value", 0
    while match := _TOKEN.match(text, place):
        mark, place = match[1], match.end()
        inside = stack[-1]
        value: Any
        if mark == '"' and wanted in ("key", "key or end"):
            key, place = _STRINGS.raw_decode(text, place - 1)
            colon = _COLON.match(text, place)
            if colon is None:
                break
            keys.append(key)
            wanted, place = "value", colon.end()
            continue
        if mark in ("]", "}"):
            if mark != ("}" if isinstance(inside, dict) else "]") or inside is outermost:
                break
            if wanted not in ("comma or end", "value or end", "key or end"):
                break
            stack.pop()
            wanted = "comma or end"
            continue
        if mark == ",":
            if wanted != "comma or end" or inside is outermost:
                break
            wanted = "key" if isinstance(inside, dict) else "value"
            continue
        if wanted not in ("value", "value or end"):
            break
        if mark == '"':
            value, place = _STRINGS.raw_decode(text, place - 1)
        elif mark in _OPENED:
            value = _OPENED[mark]()
        elif mark in _NAMED:
            value = _NAMED[mark]
        else:
            value = int(mark) if match[2] is None and match[3] is None else _finite(mark)
        if isinstance(inside, dict):
            inside[keys.pop()] = value
        else:
            inside.append(value)
        wanted = "comma or end"
        if mark in _OPENED:
            stack.append(value)
            wanted = "key or end" if mark == "{" else "value or end"
    if wanted != "comma or end" or len(stack) != 1 or text[place:].strip(" \t\n\r"):
        raise ValueError(f"expected a {wanted} at character {place} of JSON {len(stack) - 1} levels deep")
    return outermost[0]


def _is_plain(value: Any) -> bool:
    """Whether orjson with sorted keys writes exactly the RFC 8785 form: no float, no large integer, ASCII keys."""
    level: list[Any] = [[value]]
    for _ in range(_FAST_DEPTH):
        deeper: list[Any] = []
        for container in level:
            items = container
            if type(container) is dict:
                items = container.values()
                for key in container:
                    if type(key) is not str or not key.isascii():
                        return False
            for item in items:
                kind = type(item)
                if kind is str:
                    if not item.isascii() and not _is_encodable(item):
                        return False
                elif kind is dict or kind is list:
                    deeper.append(item)
                elif kind is int:
                    if not -_LARGEST_SAFE_INTEGER <= item <= _LARGEST_SAFE_INTEGER:
                        return False
                elif item is not None and kind is not bool:
                    return False
        if not deeper:
            return True
        level = deeper
    return False


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pieces(value: Any) -> Iterator[str]:
    """The canonical text in pieces, by an explicit stack so that depth costs no interpreter stack."""
    stack: list[Any] = [_Value(value)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        inner = item.value
        if isinstance(inner, dict):
            stack.append("}")
            for index, key in enumerate(sorted(inner, key=_utf16, reverse=True)):
                separator = "" if index == len(inner) - 1 else ","
                stack.append(_Value(inner[key]))
                stack.append(f"{separator}{_text(key)}:")
            stack.append("{")
        elif isinstance(inner, list | tuple):
            stack.append("]")
            for index in range(len(inner) - 1, -1, -1):
                stack.append(_Value(inner[index]))
                if index:
                    stack.append(",")
            stack.append("[")
        else:
            yield _scalar(inner)


class _Value:
    """Marks a value still to be written on the stack, where plain strings are finished text."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _utf16(key: Any) -> bytes:
    """RFC 8785 section 3.2.3 sorts keys by UTF-16 code units."""
    if not isinstance(key, str):
        raise TypeError(f"a JSON object key is text, not {type(key).__name__}")
    return key.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> str:
    if _is_encodable(text):
        return orjson.dumps(text).decode()
    return (
        '"'
        + "".join(
            f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else orjson.dumps(char).decode()[1:-1]
            for char in text
        )
        + '"'
    )


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        try:
            return rfc8785.dumps(value).decode()
        except rfc8785.FloatDomainError as error:
            raise TypeError(f"{value} is not JSON") from error
    raise TypeError(f"{type(value).__name__} is not a JSON value")
