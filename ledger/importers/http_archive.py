"""HTTP archives: HAR files of browsers and proxies, and cassettes of vcrpy as YAML or JSON."""

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import canonical_json
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Piece, Torn, json_pieces
from ledger.importers._plain.scribe import utc_time
from ledger.importers._plain.wire import HttpExchange, WireLog
from ledger.importers._yaml_pieces import yaml_pieces
from ledger.protocols.drafting import Place
from ledger.protocols.http_bodies import pairs_of
from ledger.protocols.tool_use import text

FORMAT = "http-archive"
TITLE = "HTTP archives (HAR 1.2, vcrpy cassettes in YAML and JSON)"
GRADE: Grade = "wire"
CANNOT_SHOW = (
    "What happened between two model calls: tools show only by what the next request brings of them.",
    "Whether anybody was asked before a tool ran.",
    "Which of several loops a request belongs to, unless a header or the body names its session.",
    "Times of the chunks of a stream; in a cassette, any time at all.",
    "What the recorder left out or replaced: cassettes are often filtered, and play back what no provider said.",
    "The bytes below a content encoding, where the recorder unpacked them.",
)

_SPREAD = frozenset({"interactions", "entries"})
_CONTENT_CODED = frozenset({"content-encoding"})


def recognizes(sniff: Sniff) -> bool:
    """A HAR log, or the interactions of a cassette."""
    start = sniff.opening
    if start[:1] == b"{":
        match sniff.json:
            case {"log": {"entries": list()}} | {"log": {"creator": dict(), "version": str()}}:
                return True
            case {"interactions": [{"request": dict() as request}, *_]}:
                return "uri" in request
            case {"version": 1, "interactions": []}:
                return True
        return False
    head = start[:4096]
    return (head.startswith(b"interactions:\n") or b"\ninteractions:\n" in head) and (
        b"\n- request:" in head or b"\n  - request:" in head or b"\ninteractions:\n" in b"\n" + head[:64]
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The exchanges in file order, streaming."""
    log = WireLog(desk, FORMAT)
    number = 0
    with open_source(path) as stream:
        for piece in _pieces(path, stream):
            if isinstance(piece, Torn):
                event = desk.damage(None, piece.reason, piece.raw)
                scribe = log.scribe()
                key = f"damage:{desk.keep.digest(piece.raw)[:16]}"
                yield Item(scribe.session, key, [scribe.draft(Place(key, 1), event)], 1, piece.raw)
                continue
            match piece.path:
                case ("interactions", int()):
                    exchange = _interaction(piece.value)
                case ("entries", int()):
                    exchange = _entry(piece.value)
                case _:
                    name = str(piece.path[0]) if piece.path else "value"
                    body = desk.keep.json(piece.value, name)
                    scribe = log.scribe()
                    kept = SourceKept(native_type=f"archive:{name[:60]}", recognized=True, body=body)
                    key = f"field:{name}"
                    draft = scribe.draft(Place(key, max(1, number)), kept)
                    yield Item(scribe.session, key, [draft], max(1, number), body.digest.encode())
                    continue
            number += 1
            yield from log.items(exchange, f"exchange:{number}", number, _mark(exchange))


def _pieces(path: Path, stream: Any) -> Iterator[Piece | Torn]:
    start = stream.read(64)
    stream.seek(0)
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return json_pieces(stream, _SPREAD, inside="log")
    return yaml_pieces(stream, _SPREAD)


def _mark(exchange: HttpExchange) -> bytes:
    return b"\0".join(
        (exchange.url.encode("utf-8", "surrogatepass"), exchange.request_body, exchange.response_body)
    )


def _entry(value: Any) -> HttpExchange:
    """An entry of a HAR log."""
    entry = _dict(value)
    request, response = _dict(entry.get("request")), _dict(entry.get("response"))
    sent, received = _dict(request.get("postData")), _dict(response.get("content"))
    body = text(received.get("text")) or ""
    raw = _from_base64(body) if received.get("encoding") == "base64" else _encoded(body)
    passed = entry.get("time")
    status = _status(response.get("status"))
    return HttpExchange(
        url=text(request.get("url")) or "",
        method=text(request.get("method")) or "GET",
        request_headers=_plain_headers(pairs_of(request.get("headers"))),
        request_body=_sent(sent),
        status=status,
        response_headers=_plain_headers(pairs_of(response.get("headers")), raw),
        response_body=raw,
        started=utc_time(entry.get("startedDateTime")),
        duration_ms=_milliseconds(passed),
        error=text(response.get("_error")) or text(entry.get("_error")),
    )


def _sent(data: dict[str, Any]) -> bytes:
    body = text(data.get("text")) or ""
    return _from_base64(body) if data.get("encoding") == "base64" else _encoded(body)


def _interaction(value: Any) -> HttpExchange:
    """An interaction of a cassette. vcrpy may have unpacked a body and left the header that says otherwise."""
    interaction = _dict(value)
    request, response = _dict(interaction.get("request")), _dict(interaction.get("response"))
    body = response.get("body")
    raw = _body(body.get("string", body.get("base64_string")) if isinstance(body, dict) else body)
    if isinstance(body, dict) and "base64_string" in body:
        raw = _from_base64(raw.decode("latin-1"))
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else response.get("status_code", status)
    return HttpExchange(
        url=text(request.get("uri")) or "",
        method=text(request.get("method")) or "GET",
        request_headers=pairs_of(request.get("headers")),
        request_body=_body(request.get("body")),
        status=_status(code),
        response_headers=pairs_of(response.get("headers")),
        response_body=raw,
        started=utc_time(interaction.get("recorded_at")),
    )


def _body(value: Any) -> bytes:
    """A body as a cassette holds it: text, bytes, or a value under `string`."""
    if isinstance(value, dict) and "string" in value:
        value = value["string"]
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _encoded(value)
    return b"" if value is None else canonical_json(value)


def _plain_headers(headers: list[tuple[str, str]], raw: bytes | None = None) -> list[tuple[str, str]]:
    """Headers without a content encoding that the archive has undone already."""
    if raw is not None and raw.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return headers
    return [(name, value) for name, value in headers if name.lower() not in _CONTENT_CODED]


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:4])
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1000 else None


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12:
        return round(value)
    return None


def _encoded(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _from_base64(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return _encoded(value)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
