"""MCP messages: single JSON-RPC messages, lists of them, and lines of a tap between client and server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._jsonl import Damage
from ledger.importers._plain.json_rpc import framed, rpc_messages
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place
from ledger.protocols.json_rpc import Rpc
from ledger.protocols.mcp import McpSession, is_method

FORMAT = "mcp-messages"
TITLE = "MCP messages (JSON-RPC, 2024-11-05 to 2026-07-28; single, listed, or lines of a tap)"
GRADE: Grade = "near-wire"
CANNOT_SHOW = (
    "Why a tool was called: the model call behind it is the client's, and not on this wire.",
    "Whether the client asked a person before it called a tool.",
    "What a tool did beside its result.",
    "Who a client is beyond the name that it gives itself; headers and tokens of HTTP.",
    "In a file with a single message: what came before and after it.",
)

_OF_MUSE = re.compile(rb'\\"method\\"\s*:\s*\\"(?:session|turn|item)/')
_OPEN_KEPT = 20_000


def recognizes(sniff: Sniff) -> bool:
    """JSON-RPC with a method of MCP, an answer beside such a one, or a bare request of it."""
    value = sniff.json
    if isinstance(value, list):
        value = value[0] if value else None
    message = framed(value)
    if message is None:
        return isinstance(value, dict) and _is_bare(value)
    if value is not message and _OF_MUSE.search(sniff.start):
        return False  # the Muse Session Protocol opens with `initialize` too
    method = message.get("method")
    if isinstance(method, str):
        return is_method(method)
    if value is not message or b'"method"' in sniff.start:
        return b'"tools/' in sniff.start or b'"initialize"' in sniff.start
    result = message.get("result")
    return isinstance(result, dict) and bool(
        result.keys()
        & {"resultType", "content", "tools", "resources", "resourceTemplates", "prompts", "contents"}
        or "protocolVersion" in result
        or "completion" in result
    )


def _is_bare(value: dict[str, Any]) -> bool:
    """A message without its envelope, as documents print it."""
    method = value.get("method")
    return isinstance(method, str) and is_method(method) and value.keys() <= {"method", "params", "id"}


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The messages in file order, streaming."""
    taps = _Taps(desk)
    for index, found in enumerate(rpc_messages(path), start=1):
        desk.tally.lines += 1
        if isinstance(found, Damage):
            scribe = Scribe(desk, FORMAT, taps.session, GRADE)
            event = desk.damage(found.number, found.reason, found.raw)
            draft = scribe.draft(Place(f"damage:{index}", found.number), event)
            yield Item(scribe.session, f"damage:{index}", [draft], found.number, found.raw)
        else:
            yield from taps.of(found).items(found, f"message:{index}")


class _Taps:
    """The sessions of a file: one for each that its lines name, and one for the file."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[str, _Tap] = {}

    @property
    def session(self) -> str:
        """The file's own session."""
        return self._desk.fallback_session(FORMAT)

    def of(self, rpc: Rpc) -> "_Tap":
        """The session of a message."""
        name = self.session if rpc.session is None else f"{FORMAT}-{rpc.session}"
        tap = self._known.get(name)
        if tap is None:
            tap = _Tap(Scribe(self._desk, FORMAT, name, GRADE))
            if len(self._known) < _OPEN_KEPT:
                self._known[name] = tap
        return tap


class _Tap:
    """One session of a file."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._session = McpSession(scribe)
        self._is_begun = False

    def items(self, rpc: Rpc, key: str) -> Iterator[Item]:
        """One message."""
        scribe, message = self._scribe, rpc.message
        place = Place(key, rpc.number, rpc.time)
        tally = scribe.desk.tally
        if not self._is_begun:
            self._is_begun = True
            start = scribe.draft(place, self._session.started(rpc))
            yield Item(scribe.session, "start", [start], rpc.number)
        name, drafts, cause, known = self._session.tell(rpc, place)
        tally.native[name[:80]] += 1
        if not known:
            tally.unknown[name[:80]] += 1
        if not drafts or rpc.around:
            body = scribe.keep.json(rpc.around if drafts else {"message": message, **rpc.around}, name)
            kept = SourceKept(native_type=name[:80], recognized=known, body=body)
            drafts.append(scribe.draft(place, kept))
        yield Item(scribe.session, key, drafts, rpc.number, rpc.raw, cause=cause)
