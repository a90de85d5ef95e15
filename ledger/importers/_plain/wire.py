"""HTTP exchanges with model providers: each becomes a model call at grade `wire`. Knows no file format."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ledger.events import Draft
from ledger.events.keeping import SourceKept
from ledger.events.model_call import Purpose
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._plain.exchanges import Ask, Exchanges
from ledger.importers._plain.scribe import Place, Scribe
from ledger.protocols.http_bodies import answer_of, header, json_of, unpacked
from ledger.protocols.recognition import is_compaction, is_count, model_in_path, protocol_of, provider_of
from ledger.protocols.tool_use import text

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "x-deepseek-harness-session-id",
    "x-session-id",
    "session_id",
    "session-id",
    "x-session-affinity",
)
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-goog-request-id", "cf-ray")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-")
_SESSIONS_KEPT = 2_000
_STATUS_OK = range(200, 300)
_USER_AGENT = re.compile(r"[\w.+-]{2,40}(?:/[\w.+-]{1,40})?")

Pairs = list[tuple[str, str]]
"""Header names and values."""


@dataclass
class HttpExchange:
    """A request and its response, as they went over the wire."""

    url: str
    """Address, or path where the host is not known."""
    method: str = "POST"
    """Method."""
    request_headers: Pairs = field(default_factory=list)
    """Headers of the request."""
    request_body: bytes = b""
    """Body of the request, as sent."""
    status: int | None = None
    """Status of the response; None when none came."""
    response_headers: Pairs = field(default_factory=list)
    """Headers of the response."""
    response_body: bytes = b""
    """Body of the response, as received."""
    chunks: list[tuple[int, bytes]] | None = None
    """The body in pieces with milliseconds since the request, where these were seen."""
    started: str | None = None
    """When it was sent."""
    duration_ms: int | None = None
    """Milliseconds until its last byte."""
    error: str | None = None
    """What went wrong on the way, where the source says it."""


class WireLog:
    """The exchanges of one file, by session."""

    def __init__(self, desk: Desk, format_name: str) -> None:
        self._desk = desk
        self._format = format_name
        self._sessions: OrderedDict[str, Exchanges] = OrderedDict()
        self._failed: OrderedDict[tuple[str, str], int] = OrderedDict()

    @property
    def session(self) -> str:
        """The session of what names none: the file's own."""
        return self._desk.fallback_session(self._format)

    def scribe(self) -> Scribe:
        """Makes drafts of what belongs to no call."""
        return Scribe(self._desk, self._format, self.session, "wire")

    def items(self, exchange: HttpExchange, key: str, line: int, check: bytes) -> Iterator[Item]:
        """One exchange."""
        tally = self._desk.tally
        tally.lines += 1
        address = urlsplit(exchange.url)
        sent = unpacked(exchange.request_body, exchange.request_headers)
        body = json_of(sent) if sent else None
        protocol = protocol_of(address.path, body)
        tally.native[protocol or "other traffic"] += 1
        place = Place(key, line, exchange.started)
        if protocol is None or not isinstance(body, dict):
            yield from self._other(exchange, place, check)
            return
        exchanges, opened = self._session(exchange, body, place)
        yield from opened
        scribe = exchanges.scribe
        ask = self._ask(exchange, protocol, body, key, scribe.session)
        drafts = list(exchanges.requested(ask, body, place, rest=self._around(exchange, scribe, sent)))
        drafts += self._answer(exchange, exchanges, ask, place)
        yield Item(scribe.session, key, drafts, line, check)

    def _ask(
        self, exchange: HttpExchange, protocol: str, body: dict[str, Any], key: str, session: str
    ) -> Ask:
        purpose: Purpose = "unknown"
        if is_count(exchange.url):
            purpose = "token-count"
        elif is_compaction(exchange.url):
            purpose = "compaction"
        mark = (session, self._desk.keep.digest(exchange.request_body))
        host = urlsplit(exchange.url).hostname or header(exchange.request_headers, "host") or ""
        return Ask(
            call_id=f"model-{key}",
            protocol=protocol,
            purpose=purpose,
            provider=provider_of(host) or text(host),
            model=model_in_path(exchange.url) if not text(body.get("model")) else None,
            attempt=self._failed.get(mark, 0) + 1,
        )

    def _answer(
        self, exchange: HttpExchange, exchanges: Exchanges, ask: Ask, place: Place
    ) -> Iterator[Draft]:
        """The response: an answer, or a failure that a later request of the same bytes tries again."""
        headers = exchange.response_headers
        raw = unpacked(exchange.response_body, headers)
        mark = (exchanges.scribe.session, self._desk.keep.digest(exchange.request_body))
        if exchange.status is None or exchange.status not in _STATUS_OK:
            self._failed[mark] = self._failed.get(mark, 0) + 1
            if len(self._failed) > _SESSIONS_KEPT:
                self._failed.popitem(last=False)
            detail = json_of(raw) if raw else exchange.error
            error = exchange.error or (
                f"HTTP {exchange.status}" if exchange.status is not None else "no response"
            )
            failed = exchanges.failed(
                ask,
                detail if detail is not None else raw.decode("utf-8", "replace"),
                place,
                error=error,
                status=exchange.status,
                duration_ms=exchange.duration_ms,
            )
            yield failed
            return
        self._failed.pop(mark, None)
        answer = answer_of(ask.protocol, raw, headers)
        request_id = next((found for name in _REQUEST_ID_HEADERS if (found := header(headers, name))), None)
        facts: dict[str, Any] = {
            "duration_ms": exchange.duration_ms,
            "request_id": exchanges.scribe.word(request_id, "request id"),
            "completeness": "complete" if answer.is_whole else "partial",
            "stream": self._stream(exchange, raw) if answer.chunks is not None else None,
        }
        if exchange.chunks and answer.chunks is not None:
            facts["first_byte_ms"] = exchange.chunks[0][0]
        rest = {"status": exchange.status, "headers": self._desk.keep.headers(headers, "response headers")}
        yield from exchanges.answered(ask, answer.body, place, rest=rest, **facts)

    def _stream(self, exchange: HttpExchange, raw: bytes) -> Any:
        """The pieces with their times; as one piece where a secret might lie over the seam of two."""
        keep = self._desk.keep
        if exchange.chunks is not None and header(exchange.response_headers, "content-encoding") is None:
            pieces = [[at, piece.decode("utf-8", "replace")] for at, piece in exchange.chunks]
            whole = "".join(str(piece) for _, piece in pieces)
            if keep.is_clean(whole):
                return keep.json(pieces, "stream")
        return keep.json([[exchange.duration_ms or 0, raw.decode("utf-8", "replace")]], "stream")

    def _around(self, exchange: HttpExchange, scribe: Scribe, sent: bytes) -> dict[str, Any]:
        """What goes around the body: address and headers without secrets, and the digest of the bytes as sent."""
        return {
            "method": exchange.method,
            "url": scribe.keep.scalar(exchange.url, "url"),
            "headers": scribe.keep.headers(exchange.request_headers, "request headers"),
            "body_size": len(sent),
            "body_digest": scribe.keep.digest(sent),
        }

    def _session(
        self, exchange: HttpExchange, body: dict[str, Any], place: Place
    ) -> tuple[Exchanges, list[Item]]:
        """The session that the client names in headers or body; else the file's own."""
        named = _session_name(exchange, body)
        name = self.session if named is None else f"{self._format}-{named}"
        known = self._sessions.get(name)
        opened: list[Item] = []
        if known is None:
            scribe = Scribe(self._desk, self._format, name, "wire")
            known = self._sessions[name] = Exchanges(scribe)
            if len(self._sessions) > _SESSIONS_KEPT:
                self._sessions.popitem(last=False)
            agent = _USER_AGENT.match(header(exchange.request_headers, "user-agent") or "")
            program, _, version = (agent[0] if agent else "unknown").partition("/")
            started = SessionStarted(
                harness=program,
                harness_version=version or None,
                model=scribe.word(body.get("model"), "model"),
            )
            opened.append(Item(scribe.session, "start", [scribe.draft(place, started)], place.line))
        trace = _TRACE.match(header(exchange.request_headers, "traceparent") or "")
        known.scribe.correlation = trace[1] if trace else None
        return known, opened

    def _other(self, exchange: HttpExchange, place: Place, check: bytes) -> Iterator[Item]:
        """Traffic that is no model call: kept, for the tools that it may have come from."""
        scribe, keep = self.scribe(), self._desk.keep
        shown = {
            "method": exchange.method,
            "url": keep.scalar(exchange.url, "url"),
            "request_headers": keep.headers(exchange.request_headers, "request headers"),
            "request_body": exchange.request_body.decode("utf-8", "replace"),
            "status": exchange.status,
            "response_headers": keep.headers(exchange.response_headers, "response headers"),
            "response_body": unpacked(exchange.response_body, exchange.response_headers).decode(
                "utf-8", "replace"
            ),
        }
        event = SourceKept(native_type="http", recognized=True, body=keep.json(shown, "http"))
        yield Item(scribe.session, place.key, [scribe.draft(place, event)], place.line, check)


def _session_name(exchange: HttpExchange, body: dict[str, Any]) -> str | None:
    for name in _SESSION_HEADERS:
        if found := header(exchange.request_headers, name):
            return found
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        for name in ("session_id", "thread_id", "conversation_id"):
            if found := text(metadata.get(name)):
                return found
        user = text(metadata.get("user_id")) or ""
        if "_session_" in user:
            return user.rpartition("_session_")[2] or None
    return text(body.get("prompt_cache_key")) or text(body.get("session_id"))
