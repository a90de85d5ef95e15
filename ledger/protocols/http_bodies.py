"""Bodies of HTTP messages: unpacked, cut into events where they stream, put together as one answer.

Must not fail on any bytes, and holds no more than a fixed size of what swells.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import zstandard

from ledger.events.canonical import decode_json, spelled
from ledger.protocols.assembly import assemble

_LARGEST_BODY = 256 * 1024 * 1024
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LAST_EVENTS = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})

Headers = Iterable[tuple[str, str]]
"""Names and values in the order of the wire."""


class Answer(NamedTuple):
    """What a response body says."""

    body: Any
    """The answer as one value: JSON, or a text where it is none."""

    chunks: list[Any] | None
    """The events it came in; None when it did not stream."""

    is_whole: bool
    """Whether it came to its end."""


def pairs_of(headers: Any) -> list[tuple[str, str]]:
    """Headers as pairs, from a mapping, from pairs, or from objects with a name and a value."""
    if isinstance(headers, Mapping):
        listed = [(name, one) for name, value in headers.items() for one in _each(value)]
    elif isinstance(headers, list):
        listed = [pair for entry in headers for pair in _pair(entry)]
    else:
        listed = []
    return [(str(name), _word(value)) for name, value in listed]


def header(headers: Headers, name: str) -> str | None:
    """The first value of a header, whatever the case of its name."""
    return next((value for given, value in headers if given.lower() == name), None)


def unpacked(raw: bytes, headers: Headers) -> bytes:
    """A body without its content encoding; as it is where that is unknown, or not what the bytes are."""
    coding = (header(headers, "content-encoding") or "").strip().lower()
    try:
        if coding in ("gzip", "x-gzip") or (not coding and raw.startswith(b"\x1f\x8b")):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                return stream.read(_LARGEST_BODY)
        if coding == "deflate":
            return zlib.decompressobj(15 if raw[:1] == b"\x78" else -15).decompress(raw, _LARGEST_BODY)
        if coding == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as unzipped:
                return bytes(unzipped.read(_LARGEST_BODY))
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return raw
    return raw


def json_of(raw: bytes | str) -> Any:
    """A body as JSON; None when it is none."""
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    try:
        return orjson.loads(data) if len(data) < 4096 and not _has_long_number(data) else decode_json(data)
    except ValueError:
        return None


def events_of(raw: bytes) -> list[Any]:
    """The data of each server-sent event, as JSON where it is JSON; a last one that was cut is left out."""
    found: list[Any] = []
    whole = _EVENT_END.split(raw.removeprefix(b"\xef\xbb\xbf"))
    for block in whole:
        data = [line[5:].lstrip(b" ") for line in block.splitlines() if line.startswith(b"data:")]
        if data:
            joined = b"\n".join(data)
            value = json_of(joined)
            if value is not None:
                found.append(value)
            elif joined.strip() == b"[DONE]":
                found.append("[DONE]")
    return found


def is_stream(raw: bytes, headers: Headers) -> bool:
    """Whether a body is a stream of server-sent events."""
    kind = header(headers, "content-type") or ""
    start = raw[:64].lstrip()
    return "text/event-stream" in kind or start.startswith((b"event:", b"data:", b": "))


def answer_of(protocol: str, raw: bytes, headers: Headers) -> Answer:
    """What the response to a model request says, streamed or not."""
    headers = list(headers)
    if is_stream(raw, headers):
        events = events_of(raw)
        chunks = [event for event in events if event != "[DONE]"]
        body = assemble(protocol, chunks)
        return Answer(body, chunks, _ends(events))
    value = json_of(raw)
    if value is None:
        text = raw.decode("utf-8", "replace")
        return Answer(text, None, not text.lstrip().startswith(("{", "[")))
    if protocol == "gemini" and isinstance(value, list):
        return Answer(assemble(protocol, value), value, _ends(value))
    return Answer(value, None, True)


def _ends(events: list[Any]) -> bool:
    """Whether a stream told its end."""
    for event in reversed(events[-8:]):
        match event:
            case "[DONE]":
                return True
            case {"type": str() as kind} if kind in _LAST_EVENTS:
                return True
            case {"choices": [{"finish_reason": str()}, *_]}:
                return True
            case {"candidates": [{"finishReason": str()}, *_]}:
                return True
    return False


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _pair(entry: Any) -> list[tuple[Any, Any]]:
    match entry:
        case {"name": name, "value": value}:
            return [(name, value)]
        case [name, value] | (name, value):
            return [(name, one) for one in _each(value)]
    return []


def _word(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else spelled(value)


def _has_long_number(data: bytes) -> bool:
    return re.search(rb"\d{19}", data) is not None
