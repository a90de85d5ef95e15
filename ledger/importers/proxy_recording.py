"""Recordings of a plain proxy: a JSON line for each exchange, with headers, bodies and the chunks of the response."""

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._plain.scribe import utc_time
from ledger.importers._plain.wire import HttpExchange, WireLog
from ledger.protocols.drafting import Place
from ledger.protocols.http_bodies import pairs_of
from ledger.protocols.tool_use import text

FORMAT = "proxy-recording"
TITLE = "Proxy recordings (JSON lines with req_body and chunks)"
GRADE: Grade = "wire"
CANNOT_SHOW = (
    "What happened between two model calls: tools show only by what the next request brings of them.",
    "Whether anybody was asked before a tool ran.",
    "Which of several loops a request belongs to, unless a header or the body names its session.",
    "Why a context was shortened, and what wrote the summary in it.",
)


def recognizes(sniff: Sniff) -> bool:
    """Lines with a path, a request body and a status."""
    value = sniff.json
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        return False
    return "req_body" in value and bool(value.keys() & {"req_headers", "ts", "method"})


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The exchanges in file order, streaming."""
    log = WireLog(desk, FORMAT)
    with open_source(path) as stream:
        for entry in json_lines(stream):
            key = f"exchange:{entry.number}"
            if isinstance(entry, Damage):
                desk.tally.lines += 1
                scribe = log.scribe()
                event = desk.damage(entry.number, entry.reason, entry.raw)
                draft = scribe.draft(Place(key, entry.number), event)
                yield Item(scribe.session, key, [draft], entry.number, entry.raw)
            else:
                yield from log.items(_exchange(entry.value), key, entry.number, entry.raw)


def _exchange(value: Any) -> HttpExchange:
    fields: dict[str, Any] = value if isinstance(value, dict) else {}
    chunks = _chunks(fields.get("chunks"))
    status = fields.get("status")
    return HttpExchange(
        url=text(fields.get("path")) or "",
        method=text(fields.get("method")) or "POST",
        request_headers=pairs_of(fields.get("req_headers")),
        request_body=_bytes(fields.get("req_body")),
        status=status
        if isinstance(status, int) and not isinstance(status, bool) and 0 < status < 1000
        else None,
        response_headers=pairs_of(fields.get("resp_headers")),
        response_body=b"".join(piece for _, piece in chunks) or _bytes(fields.get("resp_body")),
        chunks=chunks or None,
        started=utc_time(fields.get("ts")),
        duration_ms=chunks[-1][0] if chunks else None,
        error=text(fields.get("error")),
    )


def _chunks(value: Any) -> list[tuple[int, bytes]]:
    """Pieces of a body as `[seconds since the request, text]`."""
    found: list[tuple[int, bytes]] = []
    for chunk in value if isinstance(value, list) else ():
        match chunk:
            case [int() | float() as at, str() as piece]:
                found.append(
                    (round(at * 1000) if 0 <= at < 10**9 else 0, piece.encode("utf-8", "surrogatepass"))
                )
            case {"text": str() as piece}:
                found.append((0, piece.encode("utf-8", "surrogatepass")))
    return found


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        try:
            return base64.b64decode(value["base64"])
        except (binascii.Error, ValueError):
            return b""
    return b""
