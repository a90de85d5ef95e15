"""Rebuilds what went over the wire, byte for byte: request bodies, pieces of responses, what was around them.

Bytes are those that were recorded: without secrets, and without a content encoding.
"""

import base64
import binascii
from typing import Any

from ledger.errors import ContentMissingError, LedgerError
from ledger.events import ContentRef
from ledger.events.canonical import decode_json
from ledger.events.model_call import ModelCallRequested
from ledger.recorder.spelling import base_of, unpack_spelling
from ledger.store import EventStore
from ledger.store.content import content_digest

Piece = tuple[int, bytes]
"""Milliseconds since the request, and the bytes that came then."""


def raw_request(store: EventStore, event: ModelCallRequested) -> bytes | None:
    """The body as it was sent; None where its bytes were not kept. Raises ContentMissingError, LedgerError."""
    if event.raw is None:
        return None
    frame = _json(store, event.raw)
    pieces: list[bytes] = []
    for part in frame if isinstance(frame, list) else [frame]:
        match part:
            case str():
                pieces.append(part.encode())
            case int() if 0 <= part < len(event.raw_parts):
                pieces.append(_spelling(store, event.raw_parts[part].digest))
            case None:
                digests = store.context(event.raw_context) if event.raw_context is not None else []
                pieces.append(b",".join(_spelling(store, digest) for digest in digests))
            case _:
                raise LedgerError(
                    f"frame {event.raw.digest}: expected texts, numbers of parts and nulls, found {part!r}"
                )
    return b"".join(pieces)


def raw_matches(store: EventStore, event: ModelCallRequested, raw: bytes | None) -> bool | None:
    """Whether rebuilt bytes have the digest that was recorded; None where there is none."""
    if event.raw_digest is None:
        return None
    return raw is not None and content_digest(store.salt, raw).hex() == event.raw_digest


def raw_pieces(store: EventStore, ref: ContentRef) -> list[Piece]:
    """The pieces of a response's body: of a `stream` or of `chunks`. Joined, they are the body."""
    listed = _json(store, ref)
    found: list[Piece] = []
    for entry in listed if isinstance(listed, list) else ():
        match entry:
            case [int() as at, str() as text]:
                found.append((at, text.encode("utf-8", "surrogatepass")))
            case [int() as at, {"base64": str() as packed}]:
                try:
                    found.append((at, base64.b64decode(packed, validate=True)))
                except binascii.Error as error:
                    raise LedgerError(f"stream {ref.digest} holds what is no base64: {error}") from error
            case _:
                raise LedgerError(f"stream {ref.digest}: expected [milliseconds, text], found {entry!r}")
    return found


def http_of(store: EventStore, ref: ContentRef) -> dict[str, Any]:
    """What was around a body: method, target and headers of a request; status, headers and end of a response."""
    value = _json(store, ref)
    return value if isinstance(value, dict) else {}


def _json(store: EventStore, ref: ContentRef) -> Any:
    return decode_json(store.content(ref.digest))


def _spelling(store: EventStore, digest: str) -> bytes:
    blob = store.content(digest)
    base = base_of(blob)
    try:
        return unpack_spelling(blob, None if base is None else store.content(base.hex()))
    except ContentMissingError as error:
        raise ContentMissingError(f"the message spelled by {digest}", error.digest) from error
    except ValueError as error:
        raise LedgerError(f"spelling {digest}: {error}") from error
