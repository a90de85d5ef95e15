"""Bodies of export requests into records, and what is wrong with those that cannot be read."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from ledger.errors import LedgerError
from ledger.events.canonical import canonical_json, decode_json
from ledger.otlp import json_form, protobuf_form
from ledger.otlp.records import Record

JSON = "application/json"
"""Content type of one encoding."""

PROTOBUF = "application/x-protobuf"
"""Content type of the other."""

MOST_BYTES = 256 * 1024 * 1024
"""Largest request by default, unpacked."""


class UndecodableError(LedgerError):
    """Nothing of a request can be read."""


class TooLargeError(LedgerError):
    """A request is larger than this receiver takes."""


class UnknownTypeError(LedgerError):
    """A request's content type or encoding is none that OTLP/HTTP has."""


class BusyError(LedgerError):
    """The receiver holds as much as it may: try again later."""


@dataclass(frozen=True)
class Broken:
    """Something in a request that could not be read."""

    reason: str
    """What was expected and found."""

    raw: bytes
    """Its bytes."""

    is_rejected: bool = True
    """Whether it is a span or log record; False for what is none, such as metrics."""


Entry = Record | Broken
"""What a request gives."""


def unpacked(body: bytes, encoding: str, most: int = MOST_BYTES) -> bytes:
    """A body without its packing. Raises UndecodableError, or TooLargeError before it holds more than `most`."""
    if encoding in ("", "identity"):
        content = body
    elif encoding == "gzip":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            content = unpacker.decompress(body, most + 1)
        except zlib.error as error:
            raise UndecodableError(f"expected a gzip body, found: {error}") from error
        if len(content) <= most and not unpacker.eof:
            raise UndecodableError(f"expected a whole gzip body, found one cut after {len(body)} bytes")
    else:
        raise UnknownTypeError(f"expected content encoding gzip or none, found {encoding[:80]!r}")
    if len(content) > most:
        raise TooLargeError(f"expected at most {most} bytes, found more")
    return content


def decoded(body: bytes, content_type: str) -> list[Entry]:
    """The entries of a request. Raises UndecodableError when nothing of it can be read."""
    if content_type == JSON:
        return list(_from_json(body))
    if content_type != PROTOBUF:
        raise UnknownTypeError(f"expected {PROTOBUF} or {JSON}, found {content_type[:80]!r}")
    entries: list[Entry] = []
    is_request = not body
    for entry in protobuf_form.request_records(body):
        if isinstance(entry, protobuf_form.Torn):
            entries.append(Broken(entry.reason, entry.raw))
            is_request = is_request or entry.reason.startswith("expected a span or log record")
        else:
            entries.append(entry)
            is_request = True
    if entries and not is_request:
        first = entries[0]
        raise UndecodableError(first.reason if isinstance(first, Broken) else "expected an export request")
    return entries


def _from_json(body: bytes) -> Iterator[Entry]:
    try:
        value = decode_json(body)
    except ValueError as error:
        raise UndecodableError(f"expected a JSON export request, found: {error}") from error
    if not isinstance(value, dict):
        raise UndecodableError(f"expected an export request, found {type(value).__name__}")
    records = list(json_form.request_records(value))
    for record in records:
        record.size = len(body) // len(records)
        yield record
    if others := json_form.others_of(value):
        is_torn = not (others.keys() - {"resourceSpans", "resource_spans", "resourceLogs", "resource_logs"})
        names = ", ".join(sorted(others))[:100]
        reason = f"expected spans or log records, found others in {names}"
        yield Broken(reason, canonical_json(others), is_torn)
