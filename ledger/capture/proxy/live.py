"""One exchange while it goes by: begin before it is sent, chunks as they come, and an end. Holds nothing back."""

import re
from collections.abc import Callable
from typing import Any

import orjson

from ledger.capture.proxy.flushing import Flushing
from ledger.capture.proxy.run import Drafts, Run
from ledger.capture.proxy.writer import Writer, Written
from ledger.events import Draft
from ledger.events.http import HttpRequested
from ledger.events.model_call import ModelCallChunk, ModelCallRequested
from ledger.protocols.drafting import Place
from ledger.protocols.http_bodies import answer_of, header, is_stream, unpacked
from ledger.protocols.refusing import as_stream
from ledger.protocols.wire import Ended, HttpExchange, Pairs
from ledger.protocols.wire_calls import Asked, Sent, sent_by

_MOST_KEPT = 256 * 1024 * 1024
_USER_AGENT = re.compile(r"[\w.+-]{1,40}(?:/[\w.+-]{1,40})?")


class LiveExchange:
    """Used by the thread or loop that serves; what it writes is written by the writer's thread."""

    def __init__(self, run: Run, writer: Writer, key: str, exchange: HttpExchange) -> None:
        self._run = run
        self._writer = writer
        self._key = key
        self._exchange = exchange
        self._asked: Asked | None = None
        self._cause: int | None = None
        self._chunks: list[tuple[int, bytes]] = []
        self._size = 0
        self._sent_us = 0
        self._flushing: Flushing | None = None
        self._is_over = False
        self.changed: bytes | None = None
        """The body that is sent in the place of the client's, without a content encoding; known when it has begun."""
        self.lost: Callable[[BaseException], None] = lambda error: None
        """Told when something of it could not be recorded."""

    def begin(self) -> Written:
        """Record the request. It may be sent when this is done, and not when it failed."""
        return self._writer.submit(self._run, self._begin)

    def sent(self) -> None:
        """It is sent now: times of chunks count from here."""
        self._sent_us = self._run.now_us()

    def responded(self, status: int, headers: Pairs) -> None:
        """The head of the response came."""
        self._exchange.status = status
        self._exchange.response_headers = headers
        kind = header(headers, "content-type") or ""
        if "text/event-stream" in kind and header(headers, "content-encoding") is None:
            self._flushing = Flushing()

    def chunk(self, piece: bytes) -> None:
        """A piece of the body came."""
        now = self._run.now_us()
        if self._exchange.first_byte_at_us is None:
            self._exchange.first_byte_at_us = now
        if self._size > _MOST_KEPT:
            self._exchange.error = f"the answer is longer than the {_MOST_KEPT} bytes that are kept of one"
            return
        at_ms = (now - self._sent_us) // 1000
        self._chunks.append((at_ms, piece))
        self._size += len(piece)
        flushing = self._flushing
        if flushing is not None and flushing.is_due(len(self._chunks), self._size, at_ms):
            count = len(self._chunks)
            self._watch(self._writer.submit(self._run, lambda: self._flush(flushing, count)))

    def end(self, ended: Ended, error: str | None = None) -> Written | None:
        """It is over, once; None where it was already."""
        if self._is_over:
            return None
        self._is_over = True
        exchange = self._exchange
        exchange.ended_at_us = self._run.now_us()
        exchange.duration_ms = max(0, (exchange.ended_at_us - self._sent_us) // 1000)
        exchange.ended = ended if exchange.error is None else "cut"
        exchange.error = error or exchange.error
        written = self._writer.submit(self._run, self._end)
        self._watch(written)
        return written

    # -- stops -------------------------------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether the run is held, as far as its writer has heard: then the request may not be sent yet."""
        return bool(self._run.holds.open)

    def listen(self) -> Written:
        """Look whether the run is still held."""
        return self._writer.submit(self._run, self._listen)

    def _listen(self) -> list[Draft]:
        self._run.holds.hear()
        return []

    @property
    def is_checked(self) -> bool:
        """Whether its answer may contain calls that need a person's yes, so that it must be known before it goes on."""
        return self._run.answers is not None and self._asked is not None and self._asked.ask is not None

    async def let_through(self) -> bytes | None:
        """Wait for people's answers; the body that the client gets in the place of ours, None when ours may go on."""
        gate, asked, exchange = self._run.answers, self._asked, self._exchange
        if gate is None or asked is None or asked.ask is None:
            return None
        raw = unpacked(b"".join(piece for _, piece in self._chunks), exchange.response_headers)
        protocol = asked.ask.protocol
        body = answer_of(protocol, raw, exchange.response_headers).body
        changed = await gate.let_through(self._key, protocol, body)
        if changed is body:
            return None
        if is_stream(raw, exchange.response_headers):
            return as_stream(protocol, changed)
        return orjson.dumps([changed] if raw.lstrip().startswith(b"[") else changed)

    # -- in the writer's thread -------------------------------------------------------------------------------------

    def _begin(self) -> list[Draft]:
        exchange, run = self._exchange, self._run
        exchange.at_us = run.now_us()
        sent = sent_by(exchange)
        run.speaks(sent.client)
        agent = _USER_AGENT.match(header(exchange.request_headers, "user-agent") or "")
        program, _, version = (agent[0] if agent else "unknown").partition("/")
        fields: dict[str, Any] = sent.body if isinstance(sent.body, dict) else {}
        drafts = run.opening(program, version or None, fields.get("model"))
        if (sight := run.in_sight(exchange, self._key, sent)) is not None:
            raw, told = sight
            drafts += told
            if raw is not sent.raw:
                sent = self._replaced(raw, sent)
        asked, made = run.calls.requested(exchange, self._key, Place(self._key), sent)
        self._asked = asked
        exchange.request_body = b""  # it is kept; nobody needs it here any more
        return [*drafts, *made]

    def _replaced(self, raw: bytes, sent: Sent) -> Sent:
        """The request with another body: what is recorded is what is sent."""
        self.changed = raw
        kept = [pair for pair in self._exchange.request_headers if pair[0].lower() != "content-encoding"]
        self._exchange.request_headers = [
            (name, str(len(raw)) if name.lower() == "content-length" else value) for name, value in kept
        ]
        return Sent(raw, orjson.loads(raw), sent.client)

    def begun(self, written: Written) -> None:
        """Remember which record stands for the request: what comes later was caused by it."""
        for record in written.result():
            if isinstance(record.event, ModelCallRequested | HttpRequested):
                self._cause = record.seq

    def _flush(self, flushing: Flushing, count: int) -> list[Draft]:
        asked, run = self._asked, self._run
        if asked is None or asked.ask is None:
            return []
        found = flushing.take(asked.ask.protocol, self._chunks[:count], run.keep)
        if not found:
            return []
        run.speaks(asked.client)
        event = ModelCallChunk(call_id=self._key, chunks=run.keep.json(found, "stream"))
        return Drafts([run.draft(Place(self._key), event, "agent")], self._cause)

    def _end(self) -> list[Draft]:
        asked, run, exchange = self._asked, self._run, self._exchange
        if asked is None:
            return []
        run.speaks(asked.client)
        exchange.response_body = b"".join(piece for _, piece in self._chunks)
        exchange.chunks = self._chunks or None
        return Drafts(run.calls.answered(asked, exchange, Place(self._key)), self._cause)

    def _watch(self, written: Written) -> None:
        def look(done: Written) -> None:
            if (error := done.exception()) is not None:
                self.lost(error)

        written.add_done_callback(look)
