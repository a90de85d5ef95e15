"""Turns the HTTP exchanges of one session into drafts, bytes included. Imported or live, they read the same."""

import base64
from collections import OrderedDict
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from ledger.events import ContentRef, Draft
from ledger.events.http import HttpAnswered, HttpRequested
from ledger.events.model_call import ModelCallRetried
from ledger.protocols.drafting import Drafter, Place
from ledger.protocols.exchanges import Ask, Exchanges
from ledger.protocols.http_bodies import answer_of, header, json_of, unpacked
from ledger.protocols.recognition import model_in_path, protocol_of, provider_of
from ledger.protocols.tool_use import text
from ledger.protocols.wire import Client, HttpExchange, client_of

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-goog-request-id", "cf-ray")
_STATUS_OK = range(200, 300)
_FAILED_KEPT = 2_000
_LONGEST_WORD = 2_000
_Outcome = Literal["complete", "cut", "aborted", "unreachable"]


class Asked(NamedTuple):
    """A request that was recorded."""

    key: str
    """Id of the model call, or of the exchange."""

    ask: Ask | None
    """The model call; None for an exchange that is none."""

    client: Client
    """Whose it is."""

    mark: tuple[str | None, str]
    """Equal for the same request sent again."""


class Sent(NamedTuple):
    """A request's body, read once."""

    raw: bytes
    """Its bytes, without a content encoding."""

    body: Any
    """Its value; None when it is no JSON."""

    client: Client
    """Whose it is."""


def sent_by(exchange: HttpExchange) -> Sent:
    """The body of an exchange's request."""
    raw = unpacked(exchange.request_body, exchange.request_headers)
    body = json_of(raw) if raw else None
    return Sent(raw, body, client_of(exchange.url, exchange.request_headers, body))


class WireCalls:
    """The exchanges of one session."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter
        self.exchanges = Exchanges(drafter)
        """The model calls among them."""
        self._failed: OrderedDict[tuple[str | None, str], tuple[int, str]] = OrderedDict()

    def requested(
        self, exchange: HttpExchange, key: str, place: Place, sent: Sent
    ) -> tuple[Asked, list[Draft]]:
        """A request."""
        keep = self._drafter.keep
        raw, body, client = sent
        lane = None if client.lane is None else keep.scalar(client.lane, "lane")
        mark = (client.lane, keep.digest(raw))
        http = keep.json(
            {
                "method": exchange.method,
                "target": self._target(exchange.url),
                "headers": keep.headers(exchange.request_headers, "request headers"),
            },
            "request",
        )
        protocol = protocol_of(urlsplit(exchange.url).path, body)
        if protocol is None or not isinstance(body, dict):
            return Asked(key, None, client, mark), [self._other(exchange, key, place, raw, http, lane)]
        failures, failed = self._failed.get(mark, (0, None))
        ask = self._ask(exchange, protocol, body, key, client, failures + 1)
        drafts = list(
            self.exchanges.requested(ask, body, place, raw=raw, http=http, lane=lane, at_us=exchange.at_us)
        )
        if failed is not None:
            retried = ModelCallRetried(call_id=key, failed_call_id=failed)
            drafts.append(self._drafter.draft(place, retried))
        return Asked(key, ask, client, mark), drafts

    def answered(self, asked: Asked, exchange: HttpExchange, place: Place) -> list[Draft]:
        """The response: an answer, or a failure that a later request of the same bytes tries again."""
        raw = unpacked(exchange.response_body, exchange.response_headers)
        if asked.ask is None:
            return [self._other_answered(asked, exchange, place, raw)]
        if exchange.status is None or exchange.status not in _STATUS_OK:
            return [self._failure(asked, asked.ask, exchange, place, raw)]
        self._failed.pop(asked.mark, None)
        headers = exchange.response_headers
        answer = answer_of(asked.ask.protocol, raw, headers)
        request_id = next((found for name in _REQUEST_ID_HEADERS if (found := header(headers, name))), None)
        completeness = "complete" if answer.is_whole and exchange.ended == "complete" else "partial"
        facts: dict[str, Any] = {
            "duration_ms": exchange.duration_ms,
            "request_id": self._drafter.word(request_id, "request id"),
            "completeness": "aborted" if exchange.ended == "aborted" else completeness,
            "stream": self.stream(exchange, raw, answer.body),
            "http": self._around(exchange),
            "first_byte_at_us": exchange.first_byte_at_us,
            "ended_at_us": exchange.ended_at_us,
            "first_byte_ms": exchange.chunks[0][0] if exchange.chunks else None,
        }
        return list(self.exchanges.answered(asked.ask, answer.body, place, **facts))

    def stream(self, exchange: HttpExchange, raw: bytes, body: Any) -> ContentRef | None:
        """The pieces with their times; as one piece where a secret lies over the seam of two.

        None where a secret came in pieces that only the answer put together shows.
        """
        keep = self._drafter.keep
        if not raw:
            return None
        chunks = exchange.chunks
        is_clean = keep.is_clean(raw.decode("utf-8", "replace"))
        if is_clean and body is not None and not keep.is_clean_value(body):
            return None
        if chunks is None or not is_clean or raw is not exchange.response_body:
            clean = raw if is_clean else keep.cleaned(raw)
            last = chunks[-1][0] if chunks else exchange.duration_ms or 0
            return keep.json([[last, piece_json(clean)]], "stream")
        return keep.json([[at, piece_json(piece)] for at, piece in chunks], "stream")

    def _ask(
        self,
        exchange: HttpExchange,
        protocol: str,
        body: dict[str, Any],
        key: str,
        client: Client,
        attempt: int,
    ) -> Ask:
        host = (
            urlsplit(exchange.url).hostname or exchange.host or header(exchange.request_headers, "host") or ""
        )
        return Ask(
            call_id=key,
            protocol=protocol,
            purpose=client.purpose,
            provider=provider_of(host) or text(host),
            model=model_in_path(exchange.url) if not text(body.get("model")) else None,
            attempt=attempt,
        )

    def _failure(self, asked: Asked, ask: Ask, exchange: HttpExchange, place: Place, raw: bytes) -> Draft:
        count = self._failed.pop(asked.mark, (0, ""))[0]
        self._failed[asked.mark] = (count + 1, asked.key)
        if len(self._failed) > _FAILED_KEPT:
            self._failed.popitem(last=False)
        detail = json_of(raw) if raw else exchange.error
        error = f"HTTP {exchange.status}" if exchange.status is not None else "no response"
        return self.exchanges.failed(
            ask,
            detail if detail is not None else raw.decode("utf-8", "replace"),
            place,
            error=exchange.error or error,
            status=exchange.status,
            duration_ms=exchange.duration_ms,
            http=self._around(exchange),
            stream=self.stream(exchange, raw, None),
            first_byte_at_us=exchange.first_byte_at_us,
            ended_at_us=exchange.ended_at_us,
        )

    def _around(self, exchange: HttpExchange) -> ContentRef | None:
        if exchange.status is None:
            return None
        headers = self._drafter.keep.headers(exchange.response_headers, "response headers")
        told = {"status": exchange.status, "headers": headers, "ended": exchange.ended}
        return self._drafter.keep.json(told, "response")

    def _target(self, url: str) -> str:
        """An address without credentials, whatever the shape of those that always are one."""
        keep = self._drafter.keep
        path, mark, query = url.partition("?")
        pairs = [pair.partition("=") for pair in query.split("&")]
        shown = [
            name + equals + (keep.headers([("x-api-key", value)], "url")[0][1] if _is_secret(name) else value)
            for name, equals, value in pairs
        ]
        return keep.scalar(path + mark + "&".join(shown), "url")

    def _other(
        self,
        exchange: HttpExchange,
        key: str,
        place: Place,
        sent: bytes,
        http: ContentRef,
        lane: str | None,
    ) -> Draft:
        """Traffic that is no model call: kept, for the tools that it may have come from."""
        keep = self._drafter.keep
        event = HttpRequested(
            exchange_id=key,
            method=keep.scalar(exchange.method[:_LONGEST_WORD], "method"),
            target=self._target(exchange.url)[:_LONGEST_WORD],
            http=http,
            body=keep.raw(sent, "http") if sent else None,
            lane=lane,
            at_us=exchange.at_us,
        )
        return self._drafter.draft(place, event)

    def _other_answered(self, asked: Asked, exchange: HttpExchange, place: Place, raw: bytes) -> Draft:
        outcome: _Outcome = exchange.ended if exchange.status is not None else "unreachable"
        if exchange.status is None and exchange.ended == "aborted":
            outcome = "aborted"
        event = HttpAnswered(
            exchange_id=asked.key,
            outcome=outcome,
            status=exchange.status,
            http=self._around(exchange),
            stream=self.stream(exchange, raw, None),
            error=self._drafter.word(exchange.error, "error"),
            first_byte_at_us=exchange.first_byte_at_us,
            ended_at_us=exchange.ended_at_us,
        )
        return self._drafter.draft(place, event)


def _is_secret(parameter: str) -> bool:
    return parameter.lower() in ("key", "api_key", "api-key", "apikey", "access_token", "token")


def piece_json(piece: bytes) -> Any:
    """A piece of a body as a stream keeps it: a text, or bytes in base64 where they are none."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(piece).decode()}
