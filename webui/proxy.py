"""The recording proxy over HTTP: records a request, sends it on, passes the answer back piece by piece.

A plain ASGI application. Nothing is sent before it is recorded; nothing of an answer waits for its record.
"""

import asyncio
import io
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from yarl import URL

from ledger.capture.proxy import LiveExchange, Runs
from ledger.errors import InputError, LedgerError
from ledger.protocols.http_bodies import header
from ledger.protocols.wire import HttpExchange, Pairs
from webui.asgi import Receive, Scope, Send, has_left
from webui.upstreams import Upstreams

MOST_BYTES = 64 * 1024 * 1024
"""Largest request body."""

RUN_HEADER = "x-loopledger-run"
"""Names the run of a request that has no `/run/<id>/` before its path."""

_HELD_BYTES = 512 * 1024 * 1024
_CONNECT_S = 30
_HELD_POLL_S = 0.2
_STATUS_OK = range(200, 300)
_AT_ONCE = 1 << 20
_HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    " upgrade".split()
)
_NOT_SENT_ON = _HOP_BY_HOP | {"host", "accept-encoding", "content-length", "expect", RUN_HEADER}
_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)


class _RefusedError(Exception):
    """A request that is not sent on."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class ProxyApp:
    """The application. `default_run` takes what names no run; without one, such requests are refused."""

    def __init__(
        self,
        runs: Runs,
        upstreams: Upstreams,
        *,
        default_run: str | None = None,
        upstream_ca: Path | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._runs = runs
        self._upstreams = upstreams
        self._default_run = default_run
        self._most_bytes = most_bytes
        self._tls = _tls(upstream_ca)
        self._client: aiohttp.ClientSession | None = None
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        held = 0
        try:
            run, target = self._run_of(scope)
            if run is None:
                await _answer(send, 200, {"status": "ok"})
                return
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
            body = bytearray()
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                part = message.get("body", b"")
                held += len(part)
                self._held += len(part)
                body += part
                if len(body) > self._most_bytes:
                    raise _RefusedError(413, "too_large", f"a request has at most {self._most_bytes} bytes")
                if self._held > _HELD_BYTES:
                    raise _RefusedError(503, "busy", "too many large requests at once; try again")
                if not message.get("more_body"):
                    break
            await self._exchange(scope["method"], run, target, headers, bytes(body), receive, send)
        except _RefusedError as error:
            await _answer(send, error.status, _error(error.kind, str(error)))
        finally:
            self._held -= held

    async def close(self) -> None:
        """Give the connections back; the runs stay open."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _run_of(self, scope: Scope) -> tuple[str | None, str]:
        """The run of a request, and its path and query there; no run for a question after our health."""
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        query = scope["query_string"].decode("latin-1")
        run: str | None = None
        if path.startswith("/run/"):
            run, _, rest = path.removeprefix("/run/").partition("/")
            path = f"/{rest}"
        else:
            named = [value for name, value in scope["headers"] if name == RUN_HEADER.encode()]
            run = named[0].decode("latin-1") if named else self._default_run
            if path == "/healthz" and not named:
                return None, path
            if run is None:
                raise _RefusedError(400, "no_run", f"expected a path /run/<id>/… or a header {RUN_HEADER}")
        return run, f"{path}?{query}" if query else path

    async def _exchange(
        self, method: str, run: str, target: str, headers: Pairs, body: bytes, receive: Receive, send: Send
    ) -> None:
        address = self._upstreams.address(target, headers)
        told = [(name, value) for name, value in headers if name != RUN_HEADER]
        host = urlsplit(address).hostname
        exchange = HttpExchange(target, method, told, body, host=host)
        try:
            live = self._runs.exchange(run, exchange)
        except InputError as error:
            raise _RefusedError(400, "bad_run", str(error)) from error
        work = asyncio.ensure_future(self._pass_on(live, method, address, told, body, send))
        gone = asyncio.ensure_future(has_left(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            await work
        except asyncio.CancelledError:
            work.cancel()
            live.end("aborted", "client went away")
        finally:
            gone.cancel()

    async def _pass_on(
        self, live: LiveExchange, method: str, address: str, headers: Pairs, body: bytes, send: Send
    ) -> None:
        begun = live.begin()
        try:
            await asyncio.wrap_future(begun)
        except LedgerError as error:
            raise _RefusedError(
                503, "not_recorded", f"not sent: it could not be recorded: {error}"
            ) from error
        except Exception as error:
            raise _RefusedError(
                503, "not_recorded", f"not sent: it could not be recorded: {error!r}"
            ) from error
        live.begun(begun)
        if live.changed is not None:  # a rule that the model could not see was put back
            body = live.changed
            headers = [pair for pair in headers if pair[0].lower() != "content-encoding"]
        while live.is_held:  # the hand brake, or a budget that is used up
            await asyncio.sleep(_HELD_POLL_S)
            await _recorded(live.listen())
        live.sent()
        try:
            response = await self._send_on(method, address, headers, body)
        except _ERRORS as error:
            reason = f"upstream unreachable: {str(error) or type(error).__name__}"
            await _recorded(live.end("cut", reason))
            raise _RefusedError(502, "upstream_unreachable", reason) from error
        try:
            if live.is_checked and response.status in _STATUS_OK:
                await _pass_back_checked(live, response, send)
            else:
                await _pass_back(live, response, send)
        finally:
            response.close() if response.content.exception() else response.release()

    async def _send_on(
        self, method: str, address: str, headers: Pairs, body: bytes
    ) -> aiohttp.ClientResponse:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                read_bufsize=1 << 18,
                max_line_size=1 << 16,
                max_field_size=1 << 16,
            )
        named = {part.strip().lower() for part in (header(headers, "connection") or "").split(",")}
        sent = [pair for pair in headers if pair[0].lower() not in _NOT_SENT_ON | named]
        sent.append(("accept-encoding", "identity"))
        data: bytes | io.BytesIO | None = body if body or header(headers, "content-length") else None
        if len(body) > _AT_ONCE:
            data = io.BytesIO(body)  # sent in pieces: other connections get their turn
        return await self._client.request(
            method,
            URL(address, encoded=True),
            data=data,
            headers=sent,
            allow_redirects=False,
        )


async def _pass_back(live: LiveExchange, response: aiohttp.ClientResponse, send: Send) -> None:
    """The answer, piece by piece; its end is told to the recorder before the client learns of it."""
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers]
    live.responded(response.status, headers)
    passed = [
        (name, value) for name, value in response.raw_headers if name.lower().decode() not in _HOP_BY_HOP
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": passed})
    waits = header(headers, "content-length") is not None  # its last byte tells the client of the end
    last = b""
    try:
        async for piece in response.content.iter_any():
            live.chunk(piece)
            if waits:
                piece, last = last, piece
                if not piece:
                    continue
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except _ERRORS as error:
        if last:
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await _recorded(live.end("cut", f"upstream broke off: {str(error) or type(error).__name__}"))
        return  # without an end: the server drops the connection, as upstream did
    live.end("complete")  # written in order: what the client does next is recorded after it
    await send({"type": "http.response.body", "body": last})


async def _pass_back_checked(live: LiveExchange, response: aiohttp.ClientResponse, send: Send) -> None:
    """The whole answer at once, when it is known that its calls may run; with a refusal where one may not."""
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers]
    live.responded(response.status, headers)
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.content.iter_any():
            live.chunk(piece)
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                await _recorded(live.end("cut", f"the answer is longer than {MOST_BYTES} bytes"))
                raise _RefusedError(502, "too_large", "the answer is too long to be checked")
    except _ERRORS as error:
        reason = f"upstream broke off: {str(error) or type(error).__name__}"
        await _recorded(live.end("cut", reason))
        raise _RefusedError(502, "upstream_broke_off", reason) from error
    await _recorded(live.end("complete"))
    try:
        changed = await live.let_through()
    except LedgerError as error:
        raise _RefusedError(503, "not_recorded", f"an approval could not be recorded: {error}") from error
    dropped = _HOP_BY_HOP if changed is None else _HOP_BY_HOP | {"content-length", "content-encoding"}
    passed = [(name, value) for name, value in response.raw_headers if name.lower().decode() not in dropped]
    body = b"".join(pieces) if changed is None else changed
    if changed is not None:
        passed.append((b"content-length", str(len(changed)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": passed})
    await send({"type": "http.response.body", "body": body})


async def _recorded(written: Any) -> None:
    """Wait for a record; who lost it is told by the exchange, and the client gets its answer all the same."""
    if written is not None:
        await asyncio.wait({asyncio.wrap_future(written)})


async def _answer(send: Send, status: int, value: Any) -> None:
    body = orjson.dumps(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _error(kind: str, message: str) -> dict[str, Any]:
    """An error as the SDKs of all providers show one."""
    return {"type": "error", "error": {"type": kind, "code": kind, "message": f"loopledger proxy: {message}"}}


def _tls(upstream_ca: Path | None) -> ssl.SSLContext:
    """Verification as usual, by the system's authorities or by the given ones."""
    try:
        return ssl.create_default_context(cafile=None if upstream_ca is None else str(upstream_ca))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{upstream_ca} cannot be read as certificates (PEM): {error}") from error
