"""Decodes values that LangGraph's serializer wrote, into plain data. Never imports a class, never unpickles.

A class stays a name. Everything else becomes JSON: bytes and numbers that JSON does not have become small objects
(`{"__bytes__": base64}`, `{"__float__": "nan"}`), keys that are no text become text.
"""

import base64
import json
import math
import struct
from collections import OrderedDict
from typing import Any, NamedTuple

from ledger.events.canonical import canonical_json, decode_json, spelled

CLASS = "__class__"
"""Field of a decoded object that holds the name of its class."""

_DEEPEST = 10_000
_CACHED_BYTES = 8 * 1024 * 1024
_CACHED_ONE = 1024 * 1024
_KNOWN_CODES = range(8)
_POSITIONAL = 1
_NUMPY = 6
_SNAPSHOT = 7
_LISTS = ("builtins.set", "builtins.frozenset", "collections.deque")
_TEXTS = ("datetime.datetime", "decimal.Decimal", "zoneinfo.ZoneInfo")
_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_NUMBERS = {code: struct.Struct(shape) for code, shape in _FIXED.items()}
_LENGTHS = {1: struct.Struct(">B"), 2: struct.Struct(">H"), 4: struct.Struct(">I")}


class DecodeError(ValueError):
    """The bytes are not what their type says."""


class Constructed:
    """An object of a named class with fields: a message, an interrupt, a state. Shared; not to be changed."""

    __slots__ = ("fields", "memo", "name")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        """Dotted name of its class."""
        self.fields = fields
        """Its fields."""
        self.memo: Any = None
        """Room for what a reader made of it, so that it is made once."""


class Decoder:
    """Decodes values; remembers objects that it decoded lately, since every checkpoint repeats the messages."""

    def __init__(self) -> None:
        self._cache: OrderedDict[bytes, Any] = OrderedDict()
        self._cached_bytes = 0

    def decode(self, kind: Any, content: Any) -> Any:
        """The value of a stored pair of type and bytes. Raises DecodeError for bytes that we may not or cannot read."""
        if kind is None or kind == "null" or kind == "empty":
            return None
        if isinstance(content, str):  # SQLite keeps what it is given
            content = content.encode("utf-8", "surrogateescape")
        if not isinstance(content, bytes):
            raise DecodeError(f"expected bytes, found {type(content).__name__}")
        if kind == "msgpack":
            return _Unpacking(content, self).run()
        if kind == "json":
            try:
                return _constructors(decode_json(content))
            except ValueError as error:
                raise DecodeError(f"no JSON: {error}") from error
        if kind in ("bytes", "bytearray"):
            return _bytes(content)
        raise DecodeError(f"type {str(kind)[:40]!r} is kept unread: only msgpack, json and bytes are decoded")

    def known(self, payload: bytes) -> Any:
        """The object that these bytes were decoded to before, or None."""
        value = self._cache.get(payload)
        if value is not None:
            self._cache.move_to_end(payload)
        return value

    def remember(self, payload: bytes, value: Any) -> None:
        """Keep an object for the next time that the same bytes come."""
        if len(payload) > _CACHED_ONE:
            return
        self._cache[payload] = value
        self._cached_bytes += len(payload)
        while self._cached_bytes > _CACHED_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[0])


def plain(value: Any) -> Any:
    """A copy without `Constructed`: an object becomes its fields and the name of its class."""
    holder = [value]
    waiting: list[tuple[Any, Any]] = [(holder, 0)]
    while waiting:
        container, place = waiting.pop()
        item = container[place]
        if isinstance(item, Constructed):
            item = item.fields | {CLASS: item.name}
        if isinstance(item, dict):
            container[place] = copy = dict(item)
            waiting.extend((copy, key) for key in copy)
        elif isinstance(item, list):
            container[place] = items = list(item)
            waiting.extend((items, index) for index in range(len(items)))
    return holder[0]


def as_text(value: Any) -> str:
    """A name as text, whatever stands in its place."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "" if value is None else spelled(value)[:200]


class _Collecting:
    """A list or map whose values are still to come."""

    __slots__ = ("is_map", "items", "missing")

    def __init__(self, missing: int, is_map: bool) -> None:
        self.missing = missing
        self.items: list[Any] = []
        self.is_map = is_map

    def value(self) -> Any:
        """The finished list or map."""
        if not self.is_map:
            return self.items
        keys = self.items[::2]
        return {
            key if isinstance(key, str) else _key(key): value
            for key, value in zip(keys, self.items[1::2], strict=True)
        }


class _Extension(NamedTuple):
    """An extension whose payload is being read."""

    code: int
    end: int
    payload: bytes | None


class _Unpacking:
    """Reads one msgpack value with a stack of its own: depth costs no interpreter stack, a length no memory."""

    def __init__(self, data: bytes, decoder: Decoder) -> None:
        self._data = data
        self._place = 0
        self._decoder = decoder
        self._stack: list[_Collecting | _Extension] = []
        self._extensions = 0

    def run(self) -> Any:
        """The value. Raises DecodeError when there is none or more than one."""
        try:
            value = self._whole()
        except (IndexError, struct.error) as error:
            raise DecodeError(f"the value ends early, at byte {len(self._data)}") from error
        if self._place != len(self._data):
            raise DecodeError(f"the value ends at byte {self._place}, its bytes at {len(self._data)}")
        return value

    def _whole(self) -> Any:
        while True:
            opened, value = self._token()
            if opened is not None:
                if len(self._stack) >= _DEEPEST:
                    raise DecodeError(f"nested deeper than {_DEEPEST} levels")
                self._stack.append(opened)
                if isinstance(opened, _Extension):
                    self._extensions += 1
                    continue
                if opened.missing:
                    continue
                value = self._close()
            while self._stack:
                top = self._stack[-1]
                if isinstance(top, _Collecting):
                    top.items.append(value)
                    top.missing -= 1
                    if top.missing:
                        break
                    value = self._close()
                else:
                    value = self._extension(top, value)
            else:
                return value

    def _close(self) -> Any:
        top = self._stack.pop()
        assert isinstance(top, _Collecting)
        return top.value()

    def _extension(self, top: _Extension, value: Any) -> Any:
        if self._place != top.end:
            raise DecodeError(f"an extension ends at byte {top.end}, its value at {self._place}")
        self._stack.pop()
        self._extensions -= 1
        made = _object(top.code, value)
        if self._extensions:
            return plain(made)
        if top.payload is not None:
            self._decoder.remember(top.payload, made)
        return made

    def _token(self) -> tuple[_Collecting | _Extension | None, Any]:
        """The next scalar, or the list, map or extension that begins here."""
        code = self._data[self._place]
        self._place += 1
        if code < 0x80:
            return None, code
        if code >= 0xE0:
            return None, code - 0x100
        if code < 0x90:
            return _Collecting((code & 0x0F) * 2, is_map=True), None
        if code < 0xA0:
            return _Collecting(code & 0x0F, is_map=False), None
        if code < 0xC0:
            return None, self._text(code & 0x1F)
        if code in _NUMBERS:
            return None, self._number(_NUMBERS[code])
        if code <= 0xC3:
            if code == 0xC1:
                raise DecodeError(f"byte 0xc1 at {self._place - 1} begins no value")
            return None, (None, None, False, True)[code - 0xC0]
        if code <= 0xC6:
            return None, _bytes(self._take(self._length(1 << (code - 0xC4))))
        if code <= 0xC9:
            return self._open_extension(self._length(1 << (code - 0xC7)))
        if code <= 0xD8:
            return self._open_extension(1 << (code - 0xD4))
        if code <= 0xDB:
            return None, self._text(self._length(1 << (code - 0xD9)))
        missing = self._length(2 if code in (0xDC, 0xDE) else 4)
        is_map = code >= 0xDE
        return _Collecting(missing * 2 if is_map else missing, is_map), None

    def _open_extension(self, length: int) -> tuple[_Extension | None, Any]:
        code = struct.unpack_from(">b", self._data, self._place)[0]
        self._place += 1
        if code not in _KNOWN_CODES:
            return None, {"__ext__": code, **_bytes(self._take(length))}
        if self._extensions:
            return _Extension(code, self._place + length, None), None
        payload = self._take(length)
        known = self._decoder.known(payload)
        if known is not None:
            return None, known
        self._place -= length
        return _Extension(code, self._place + length, payload), None

    def _take(self, length: int) -> bytes:
        end = self._place + length
        if end > len(self._data):
            raise IndexError(end)
        content = self._data[self._place : end]
        self._place = end
        return content

    def _text(self, length: int) -> str:
        return self._take(length).decode("utf-8", "surrogateescape")

    def _length(self, size: int) -> int:
        length: int = _LENGTHS[size].unpack_from(self._data, self._place)[0]
        self._place += size
        return length

    def _number(self, shape: struct.Struct) -> Any:
        number = shape.unpack_from(self._data, self._place)[0]
        self._place += shape.size
        if isinstance(number, float) and not math.isfinite(number):
            return {"__float__": str(number)}
        return number


def _bytes(content: bytes) -> dict[str, str]:
    return {"__bytes__": base64.b64encode(content).decode()}


def _key(key: Any) -> str:
    return (
        json.dumps(key)
        if key is None or isinstance(key, bool | int | float)
        else canonical_json(plain(key)).decode()
    )


def _object(code: int, value: Any) -> Any:
    """What an extension says, as data. LangGraph writes `[module, class, argument, method]`."""
    if code == _SNAPSHOT:
        return value
    if code == _NUMPY and isinstance(value, list) and len(value) == 4:
        kind, shape, order, content = value
        return {CLASS: "numpy.ndarray", "dtype": kind, "shape": shape, "order": order, "data": content}
    if not isinstance(value, list) or len(value) < 3 or not all(isinstance(part, str) for part in value[:2]):
        return {"__ext__": code, "value": value}
    name, argument = f"{value[0]}.{value[1]}", value[2]
    if name == "uuid.UUID" and isinstance(argument, str) and len(argument) == 32:
        return "-".join((argument[:8], argument[8:12], argument[12:16], argument[16:20], argument[20:]))
    if name in _LISTS and isinstance(argument, list):
        return argument
    if name in _TEXTS and isinstance(argument, str):
        return argument
    if name.endswith((".SecretStr", ".SecretBytes")):
        return {CLASS: name, "secret": argument}  # a name that redaction takes the value away from
    if isinstance(argument, dict):
        return Constructed(name, argument)
    return {CLASS: name, "arguments" if code == _POSITIONAL else "value": argument}


def _constructors(value: Any) -> Any:
    """Objects of the older JSON form (`{"lc": 2, "type": "constructor", "id": [...], "kwargs": {...}}`)."""
    holder = [value]
    waiting: list[tuple[Any, Any]] = [(holder, 0)]
    while waiting:
        container, place = waiting.pop()
        item = container[place]
        if isinstance(item, dict):
            name = item.get("id")
            if item.get("type") == "constructor" and "lc" in item and isinstance(name, list):
                fields = item.get("kwargs")
                fields = fields if isinstance(fields, dict) else {"arguments": item.get("args")}
                container[place] = Constructed(".".join(map(str, name)), fields)
                item = fields
            waiting.extend((item, key) for key in item)
        elif isinstance(item, list):
            waiting.extend((item, index) for index in range(len(item)))
    return holder[0]
