"""MCP between a client and its server: every message becomes what the importer of such logs would make of it."""

from typing import Any

from ledger.capture.taps._session import TappedSession
from ledger.events import Draft
from ledger.events.canonical import decode_json
from ledger.events.keeping import SourceKept
from ledger.events.recovery import DamageFound
from ledger.protocols.drafting import Place
from ledger.protocols.json_rpc import Rpc
from ledger.protocols.mcp import McpSession
from ledger.recorder import Recorder

FORMAT = "mcp-tap"
"""Name of this source in the records."""

_IGNORED = frozenset({"ping", "answer:ping", "notifications/progress", "notifications/message"})
"""Signs of life and progress: they change nothing, and may come a thousand times a second."""

_DAMAGE_KEPT = 1 << 20


class McpTap:
    """One connection. For one thread at a time."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        server: str | None = None,
        run: str | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        """`server` is the user's name for it; `about` says how it is reached."""
        name = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in server or "server")[:60]
        session = f"mcp-{name}-{recorder.ids()[-12:]}.tap"
        self._session = TappedSession(recorder, session, FORMAT, "near-wire", run)
        self._mapping = McpSession(self._session)
        self._server = server
        self._about = about or {}
        self._number = 0
        self._is_begun = False
        self.recorded = 0
        """Messages recorded so far."""

    @property
    def session(self) -> str:
        """Id of its session."""
        return self._session.session

    def take(self, line: bytes, *, to_server: bool) -> None:
        """Record a line before it goes on: a message, or a list of them."""
        if not line.strip():
            return
        try:
            value = decode_json(line)
        except ValueError as error:
            self._damage(f"expected a JSON-RPC message, found: {error}", line, to_server)
            return
        self.take_value(value, to_server=to_server)

    def take_value(self, value: Any, *, to_server: bool) -> None:
        """Record what a line holds."""
        drafts: list[Draft] = []
        messages = value if isinstance(value, list) else [value]
        for message in messages:
            drafts += self._told(message if isinstance(message, dict) else {"value": message}, to_server)
        self._session.append(drafts)
        self.recorded += bool(drafts)

    def too_long(self, start: bytes, *, to_server: bool) -> None:
        """Record that a line is longer than is held."""
        self._damage(f"a message longer than {len(start)} bytes went on unread", start, to_server)

    def end(self, status: int | None) -> None:
        """The connection is closed."""
        if self._is_begun:
            place = Place("end", self._number)
            reason = "the connection closed before the answer"
            self._session.end(place, status, self._mapping.abandoned(place, reason))

    def _told(self, message: dict[str, Any], to_server: bool) -> list[Draft]:
        self._number += 1
        rpc = Rpc(self._number, message, to_server, None, self._server, None, {}, b"")
        place = Place(f"message:{self._number}", self._number)
        told = self._mapping.tell(rpc, place)
        if told.name in _IGNORED and not told.drafts:
            return []
        self._begin(rpc, place)
        if not told.drafts:
            body = self._session.keep.json(message, told.name)
            kept = SourceKept(native_type=told.name[:80], recognized=told.known, body=body)
            return [self._session.draft(place, kept)]
        return told.drafts

    def _begin(self, rpc: Rpc, place: Place) -> None:
        if self._is_begun:
            return
        about = {**self._about, "server": self._server}
        environment = self._session.keep.json(about, "environment")
        started = self._mapping.started(rpc, agent="mcp", environment=environment)
        self._session.begin(place, started, "tap")
        self._is_begun = True

    def _damage(self, reason: str, raw: bytes, to_server: bool) -> None:
        self._number += 1
        place = Place(f"damage:{self._number}", self._number)
        self._begin(Rpc(self._number, {}, to_server, None, self._server, None, {}, b""), place)
        content = self._session.keep.raw(raw[:_DAMAGE_KEPT], "damage")
        event = DamageFound(reason=reason[:500], content=content)
        self._session.append([self._session.draft(place, event)])
        self.recorded += 1
