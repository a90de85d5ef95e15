"""JSON-RPC messages as they lie about: one in a file, a list, or lines of a tap with direction and time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.canonical import canonical_json, decode_json, spelled
from ledger.importers._files import open_source
from ledger.importers._json_pieces import Piece, Torn, json_pieces
from ledger.importers._jsonl import Damage, Line, json_lines
from ledger.importers._plain.scribe import utc_time
from ledger.protocols.json_rpc import Rpc, is_message
from ledger.protocols.tool_use import text

_TO_SERVER = frozenset(
    {"client_to_server", "client->server", "c2s", "out", "outgoing", "sent", "send", "request", ">"}
)
_TO_CLIENT = frozenset(
    {"server_to_client", "server->client", "s2c", "in", "incoming", "received", "recv", "response", "<"}
)
_FRAMES = ("message", "msg", "payload", "data", "rpc", "body", "raw", "line")
_TIMES = ("ts", "time", "timestamp", "at")


def rpc_messages(path: Path) -> Iterator[Rpc | Damage]:
    """All messages of a file in its order. A value that is no message comes as one without method and result."""
    number = 0
    for found in _values(path):
        if isinstance(found, Damage):
            yield found
            continue
        number = found.number
        for value in found.value if isinstance(found.value, list) else [found.value]:
            yield _rpc(value, number, found.raw)


def framed(value: Any) -> Any:
    """The message that a line of a tap holds; the value itself when it is one; None when there is none."""
    if is_message(value):
        return value
    if isinstance(value, dict):
        for name in _FRAMES:
            inner = value.get(name)
            if isinstance(inner, str) and inner.lstrip().startswith("{"):
                try:
                    inner = decode_json(inner)
                except ValueError:
                    continue
            if is_message(inner):
                return inner
    return None


def _values(path: Path) -> Iterator[Line | Damage]:
    with open_source(path) as stream:
        start = stream.read(64 * 1024).strip()
    first, _, rest = start.partition(b"\n")
    with open_source(path) as stream:
        if rest.lstrip()[:1] in (b"{", b"[") and first.strip().endswith((b"}", b"]")) and len(first) > 2:
            yield from json_lines(stream)
            return
        if start[:1] == b"[":
            for piece in json_pieces(stream):
                yield _line(piece)
            return
        whole: dict[str, Any] = {}
        lone: list[Line | Damage] = []
        for piece in json_pieces(stream):
            if isinstance(piece, Piece) and piece.path and isinstance(piece.path[0], str):
                whole[piece.path[0]] = piece.value
            else:
                lone.append(_line(piece))
        if whole:
            yield Line(1, whole, canonical_json(whole), None)
        yield from lone


def _line(piece: Piece | Torn) -> Line | Damage:
    number = piece.path[0] + 1 if piece.path and isinstance(piece.path[0], int) else 1
    if isinstance(piece, Torn):
        return Damage(number, piece.reason, piece.raw)
    return Line(number, piece.value, canonical_json(piece.value), None)


def _rpc(value: Any, number: int, raw: bytes) -> Rpc:
    message = framed(value)
    around: dict[str, Any] = {}
    if message is None:
        message = value if isinstance(value, dict) else {"value": value}
    elif message is not value and isinstance(value, dict):
        around = {name: part for name, part in value.items() if name not in _FRAMES}
    way = spelled(around.get("direction") or around.get("dir") or "").lower().replace(" ", "_")
    to_server = True if way in _TO_SERVER else False if way in _TO_CLIENT else None
    time = next((utc_time(around[name]) for name in _TIMES if name in around), None)
    named = around.get("server") or around.get("server_name")
    session = text(around.get("session_id")) or text(around.get("session"))
    return Rpc(number, message, to_server, time, text(named), session, around, raw)
