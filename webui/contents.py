"""Contents of a record for people: a piece of each at a time, so that a large one opens like a small one."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import orjson

from ledger.cli.records import is_content, record_data
from ledger.cli.terminal import json_text
from ledger.errors import LedgerError
from ledger.events import Record
from ledger.events.canonical import decode_json
from ledger.store import EventStore
from webui.fitting import fit, weight
from webui.page import Context

PIECE = 4_000
"""Characters of a content that are shown at once, where a record has no other."""

_SIZES = ((1, PIECE), (2, 3_000), (5, 1_500), (20, 500))
MOST_BYTES = 12_000
"""Bytes of a page that contents take at most."""

_LEAST_BYTES, _AROUND = 120, 700
_MOST_CONTENTS = 20
_PARSED_BYTES = 256 * 1024
_DEEPEST = 200

Form = Literal["text", "json"]
"""`text`: as people read it; `json`: as it is kept."""


class Content(Context):
    """A piece of one content."""

    path: str
    """Field of the record that points to it."""

    digest: str
    """Digest."""

    size: int | None
    """Its length in bytes."""

    kind: str
    """`json`, `text` or `bytes`."""

    text: str
    """The piece."""

    piece: int
    """Number of the piece, from 0."""

    pieces: int
    """How many there are."""

    is_cut: bool = False
    """Whether the piece goes on: its characters take more bytes than a page has for them."""

    missing: str | None = None
    """Why it cannot be shown."""


def contents_of(
    store: EventStore,
    record: Record,
    form: Form,
    path: str = "",
    piece: int = 0,
    room: int = MOST_BYTES,
) -> list[Content]:
    """The contents of a record; of the one at `path` the given piece, of others the first. `room`: bytes of a page."""
    refs = list(islice(references(record), _MOST_CONTENTS))
    size = next(size for most, size in _SIZES if len(refs) <= most)
    found: list[Content] = []
    left = min(MOST_BYTES, room - _AROUND * len(refs))
    for name, ref in refs:
        content = _content(store, name, ref, form, piece if name == path else 0, size)
        text = fit(content.text, max(_LEAST_BYTES, left))
        found.append(content.model_copy(update={"text": text, "is_cut": len(text) < len(content.text)}))
        left -= weight(text)
    return found


def first_content(store: EventStore, record: Record) -> Content | None:
    """The first content of a record: its arguments, its result, its message; None where it has none."""
    for name, ref in references(record):
        return _content(store, name, ref, "text", 0, PIECE)
    return None


def references(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and reference of all content that a record points to."""
    waiting: list[tuple[str, Any]] = [("", record_data(record))]
    while waiting:
        path, value = waiting.pop()
        if is_content(value):
            yield path, value
        elif isinstance(value, dict):
            waiting.extend((f"{path}.{name}" if path else name, value[name]) for name in reversed(value))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{index}]", value[index]) for index in range(len(value) - 1, -1, -1))
    if record.source is not None and record.source.rest is not None:
        yield "source.rest", {"digest": record.source.rest, "size": None, "kind": "json"}


def _content(store: EventStore, path: str, ref: dict[str, Any], form: Form, piece: int, size: int) -> Content:
    facts = {"path": path, "digest": ref["digest"], "size": ref["size"], "kind": ref["kind"]}
    try:
        text = readable(store.content(ref["digest"]), str(ref["kind"]), form)
    except (LedgerError, ValueError) as error:
        return Content(**facts, text="", piece=0, pieces=0, missing=str(error))
    pieces = max(1, -(-len(text) // size))
    piece = min(piece, pieces - 1)
    return Content(**facts, text=text[piece * size : (piece + 1) * size], piece=piece, pieces=pieces)


def readable(body: bytes, kind: str, form: Form) -> str:
    """A content as text. What is large is not taken apart: it is shown as it is kept."""
    if kind != "json" or len(body) > _PARSED_BYTES:
        return body.decode("utf-8", "backslashreplace")
    value = decode_json(body)
    if form == "text":
        if isinstance(value, str):
            return value
        plain = plain_text(value)
        if plain is not None:
            return plain
    return pretty(value)


def plain_text(value: Any) -> str | None:
    """The words of a message or of blocks of text; None where there is more than words."""
    if isinstance(value, dict) and isinstance(value.get("content"), str | list):
        return plain_text(value["content"]) if value.keys() <= {"role", "content"} else None
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        words = [
            block["text"]
            for block in value
            if isinstance(block, dict)
            and isinstance(block.get("text"), str)
            and block.keys() <= {"type", "text", "cache_control"}
        ]
        return "\n\n".join(words) if len(words) == len(value) else None
    return None


def pretty(value: Any) -> str:
    """JSON over several lines; in one line where it is too deep or too odd for that."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except (orjson.JSONEncodeError, RecursionError):
        return json_text(value)
