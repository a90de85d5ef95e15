"""SQLite's binary JSON (JSONB), read without help of SQLite: older libraries do not know it. Knows no format."""

from typing import Any

from ledger.events.canonical import decode_json

_LENGTHS = {12: 1, 13: 2, 14: 4, 15: 8}
_ARRAY, _OBJECT = 11, 12
_DEEPEST = 2000


def decode_jsonb(content: bytes) -> Any:
    """The value that the bytes stand for. Raises ValueError for anything else; never recurses."""
    root: list[Any] = []
    stack: list[tuple[list[Any], int, int, bool]] = []  # children, place, end, is an object
    children, place, end, is_object = root, 0, len(content), False
    while True:
        if place >= end:
            if place > end:
                raise ValueError("expected an element within its container, found one that runs beyond it")
            if not stack:
                break
            value = _closed(children) if is_object else children
            children, place, end, is_object = stack.pop()
            children.append(value)
            continue
        kind, start, stop = _header(content, place, end)
        if kind in (_ARRAY, _OBJECT):
            if len(stack) >= _DEEPEST:
                raise ValueError(f"expected at most {_DEEPEST} levels, found more")
            stack.append((children, stop, end, is_object))
            children, place, end, is_object = [], start, stop, kind == _OBJECT
            continue
        children.append(_scalar(kind, content[start:stop]))
        place = stop
    if len(root) != 1:
        raise ValueError(f"expected one element, found {len(root)}")
    return root[0]


def _header(content: bytes, place: int, end: int) -> tuple[int, int, int]:
    first = content[place]
    kind, size, start = first & 15, first >> 4, place + 1
    if size in _LENGTHS:
        width = _LENGTHS[size]
        size = int.from_bytes(content[start : start + width], "big")
        start += width
    if start + size > end:
        raise ValueError(f"expected an element of {size} bytes, found the end")
    return kind, start, start + size


def _closed(children: list[Any]) -> dict[str, Any]:
    if len(children) % 2 or not all(isinstance(name, str) for name in children[::2]):
        raise ValueError("expected names and values in turn in an object")
    return dict(zip(children[::2], children[1::2], strict=True))


def _scalar(kind: int, content: bytes) -> Any:
    if kind in (0, 1, 2):
        return (None, True, False)[kind]
    if kind in (7, 10):
        return content.decode("utf-8", "replace")
    if kind == 8:
        return decode_json(b'"' + content + b'"')
    if kind in (3, 5):
        return decode_json(content)
    if kind in (4, 6):  # JSON5: a hexadecimal integer, or a float without a digit beside its point
        text = content.decode("ascii", "replace")
        return int(text, 16) if "x" in text.lower() else float(text)
    if kind == 9:
        return content.decode("utf-8", "replace")
    raise ValueError(f"expected a type from 0 to 12, found {kind}")
