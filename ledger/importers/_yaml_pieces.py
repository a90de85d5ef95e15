"""Reads one large YAML document piece by piece, as `_json_pieces` does with JSON. Makes plain values only.

No tag of a document makes an object, and an alias cannot swell: what is aliased holds no alias and is small.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, BinaryIO

import yaml

from ledger.importers._json_pieces import Piece, Torn, Walk

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST_ANCHOR = 10_000
_MOST_ALIASES = 10_000
_DAMAGE_PIECE = 8 * 1024 * 1024
_ERRORS = (yaml.YAMLError, ValueError, RecursionError, UnicodeError)


def yaml_pieces(stream: BinaryIO, spread: frozenset[str] = frozenset()) -> Iterator[Piece | Torn]:
    """The members of a document in order; a list under a name in `spread` item by item."""
    walk = Walk(spread, keeps=False)
    maker = _Maker(walk)
    start = stream.tell()
    try:
        for event in yaml.parse(stream, Loader=_LOADER):
            maker.take(event)
            while walk.ready:
                yield walk.ready.popleft()
        return
    except _ERRORS as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        reason = f"expected the rest of a YAML document, found: {said}"
    stream.seek(start)
    while raw := stream.read(_DAMAGE_PIECE):
        yield Torn(walk.place, reason, raw)


class _Maker:
    """Turns YAML's events into those that `Walk` takes."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._loader: Any = yaml.SafeLoader("")
        self._open: list[tuple[bool, str | None, int]] = []
        self._keys: list[bool] = []
        self._anchors: dict[str, Any] = {}
        self._swollen: set[int] = set()
        self._events = 0
        self._aliases = 0

    def take(self, event: Any) -> None:
        """The next event."""
        self._events += 1
        match event:
            case yaml.ScalarEvent():
                value = self._scalar(event)
                if event.anchor:
                    self._anchors[event.anchor] = value
                self._value(value)
            case yaml.AliasEvent():
                self._alias(str(event.anchor))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(isinstance(event, yaml.MappingStartEvent), event.anchor)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()

    def _begin(self, is_map: bool, anchor: str | None) -> None:
        if self._keys and self._keys[-1]:
            raise ValueError("a key that is no text")
        self._walk.take("start_map" if is_map else "start_array", None)
        self._open.append((is_map, anchor, self._events))
        self._keys.append(is_map)

    def _end(self) -> None:
        is_map, anchor, began = self._open.pop()
        self._keys.pop()
        if anchor is not None:
            holds_alias = began in self._swollen
            small = self._events - began <= _LARGEST_ANCHOR and not holds_alias
            self._anchors[anchor] = self._walk.latest if small else _REFUSED
        self._walk.take("end_map" if is_map else "end_array", None)
        self._turn()

    def _alias(self, anchor: str) -> None:
        self._aliases += 1
        value = self._anchors.get(anchor, _REFUSED)
        if value is _REFUSED or self._aliases > _MOST_ALIASES:
            raise ValueError(f"an alias {anchor!r} of something unknown, large, or made of aliases")
        self._swollen.update(began for _, _, began in self._open)
        self._value(_copy(value))

    def _value(self, value: Any) -> None:
        if self._keys and self._keys[-1]:
            self._walk.take("map_key", value if isinstance(value, str) else str(value))
            self._keys[-1] = False
            return
        self._walk.take("value", value)
        self._turn()

    def _turn(self) -> None:
        """In a mapping a value is followed by a key."""
        if self._open and self._open[-1][0]:
            self._keys[-1] = True

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag in (None, "!"):
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == "tag:yaml.org,2002:binary":
            try:
                return base64.b64decode(event.value)
            except (binascii.Error, ValueError):
                return str(event.value)
        if tag in _PLAIN:
            made = self._loader.construct_object(yaml.ScalarNode(tag, event.value))
            return made if isinstance(made, bool | int | float) or made is None else str(event.value)
        return str(event.value)


_REFUSED = object()
_PLAIN = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))


def _copy(value: Any) -> Any:
    """A copy of a small plain value, so that nobody changes both."""
    root: list[Any] = [value]
    stack: list[tuple[Any, Any]] = [(root, 0)]
    while stack:
        container, key = stack.pop()
        item = container[key]
        if isinstance(item, dict | list):
            container[key] = copied = item.copy()
            stack.extend(
                (copied, one) for one in (copied if isinstance(copied, dict) else range(len(copied)))
            )
    return root[0]
