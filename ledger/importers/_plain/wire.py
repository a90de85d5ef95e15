"""HTTP exchanges with model providers: each becomes a model call at grade `wire`. Knows no file format."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place
from ledger.protocols.http_bodies import header
from ledger.protocols.recognition import protocol_of
from ledger.protocols.wire import HttpExchange, session_of
from ledger.protocols.wire_calls import WireCalls, sent_by

__all__ = ["HttpExchange", "WireLog"]

_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-")
_SESSIONS_KEPT = 2_000
_USER_AGENT = re.compile(r"[\w.+-]{2,40}(?:/[\w.+-]{1,40})?")


class _Lane:
    """One session of the file."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self.calls = WireCalls(scribe)
        self.began: str | None = None


class WireLog:
    """The exchanges of one file, by session."""

    def __init__(self, desk: Desk, format_name: str) -> None:
        self._desk = desk
        self._format = format_name
        self._sessions: OrderedDict[str, _Lane] = OrderedDict()

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
        sent = sent_by(exchange)
        body = sent.body
        protocol = protocol_of(urlsplit(exchange.url).path, body)
        tally.native[protocol or "other traffic"] += 1
        place = Place(key, line, exchange.started)
        lane, opened = self._session(exchange, body if protocol and isinstance(body, dict) else None, place)
        yield from opened
        _time(exchange, lane.began)
        name = f"model-{key}" if protocol else key
        asked, drafts = lane.calls.requested(exchange, name, place, sent)
        drafts += lane.calls.answered(asked, exchange, place)
        yield Item(lane.scribe.session, key, drafts, line, check)

    def _session(
        self, exchange: HttpExchange, body: dict[str, Any] | None, place: Place
    ) -> tuple[_Lane, list[Item]]:
        """The session that the client names in headers or body; else, or for no model call, the file's own."""
        named = None if body is None else session_of(exchange.request_headers, body)
        name = self.session if named is None else f"{self._format}-{named}"
        known = self._sessions.get(name)
        opened: list[Item] = []
        if known is None:
            scribe = Scribe(self._desk, self._format, name, "wire")
            known = self._sessions[name] = _Lane(scribe)
            known.began = exchange.started
            if len(self._sessions) > _SESSIONS_KEPT:
                self._sessions.popitem(last=False)
            agent = _USER_AGENT.match(header(exchange.request_headers, "user-agent") or "")
            program, _, version = (agent[0] if agent else "unknown").partition("/")
            started = SessionStarted(
                harness=program,
                harness_version=version or None,
                model=scribe.word((body or {}).get("model"), "model"),
            )
            opened.append(Item(scribe.session, "start", [scribe.draft(place, started)], place.line))
        trace = _TRACE.match(header(exchange.request_headers, "traceparent") or "")
        known.scribe.correlation = trace[1] if trace else None
        return known, opened


def _time(exchange: HttpExchange, began: str | None) -> None:
    """Place an exchange on the clock of its session, where the file tells times."""
    if began is None or exchange.started is None:
        return
    passed = datetime.fromisoformat(exchange.started) - datetime.fromisoformat(began)
    at = round(passed.total_seconds() * 1_000_000)
    if at < 0:
        return
    exchange.at_us = at
    if exchange.chunks:
        exchange.first_byte_at_us = at + exchange.chunks[0][0] * 1000
    if exchange.duration_ms is not None:
        exchange.ended_at_us = at + exchange.duration_ms * 1000
