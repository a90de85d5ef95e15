"""The front of a replay: answers over HTTP from a player, piece by piece, and hangs up where the recording did.

A plain ASGI application. Nothing is ever sent on.
"""

import asyncio
from typing import Protocol

import orjson

from replay.player import Answer, Player
from webui.asgi import Receive, Scope, Send, has_left
from webui.proxy import MOST_BYTES, RUN_HEADER

_ABORTED_AFTER_S = 5.0
_NO_BODY = frozenset({204, 304})
_UNANSWERED = {
    "type": "error",
    "error": {
        "type": "upstream_unreachable",
        "code": "upstream_unreachable",
        "message": "loopledger replay: no answer came when this was recorded",
    },
}


class LiveSide(Protocol):
    """What answers where the recording was left."""

    async def pass_on(self, scope: Scope, body: bytes, target: str, receive: Receive, send: Send) -> None:
        """Ask a model, and record what goes by."""

    async def keep(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes, answer: Answer
    ) -> None:
        """Record an answer that was given in the place of a recorded one."""

    async def close(self) -> None:
        """Give connections back."""


class TooLargeError(Exception):
    """A request whose body is larger than it may be."""


class PlayerApp:
    """The application. `with_pauses`: pieces come at the times at which they came when they were recorded.

    Where a branch has left its recording, `live` answers; a replay has none.
    """

    def __init__(
        self,
        player: Player,
        *,
        with_pauses: bool = False,
        live: LiveSide | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._player = player
        self._with_pauses = with_pauses
        self._live = live
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        target = _target(scope)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            body = await _whole_body(receive, self._most_bytes)
        except TooLargeError as error:
            refusal = {"type": "error", "error": {"type": "too_large", "message": str(error)}}
            await _send_whole(send, 413, [("content-type", "application/json")], orjson.dumps(refusal))
            return
        if body is None:
            return
        told = [pair for pair in headers if pair[0] != RUN_HEADER]
        answer = await self._player.aanswer(scope["method"], target, told, body)
        try:
            if answer.source == "live" and self._live is not None:
                if answer.status is None:
                    await self._live.pass_on(scope, body, target, receive, send)
                    return
                await self._live.keep(scope["method"], target, told, body, answer)
            gone = asyncio.ensure_future(has_left(receive))
            try:
                await self._write(answer, gone, send)
            finally:
                gone.cancel()
        finally:
            self._player.delivered(answer)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown" and self._live is not None:
                await self._live.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _write(self, answer: Answer, gone: "asyncio.Future[None]", send: Send) -> None:
        """The answer, until its end or until the client has gone."""
        if answer.status is None:
            if answer.ended == "aborted":  # the client did not wait for it then, and does not now
                await asyncio.wait({gone}, timeout=_ABORTED_AFTER_S)
            body = orjson.dumps(_UNANSWERED)
            await _send_whole(send, 502, [("content-type", "application/json")], body)
            return
        headers = [*answer.headers, *_marks(answer)]
        if answer.ended == "complete" and not _streams(answer):
            await _send_whole(send, answer.status, headers, answer.body)
            return
        await send({"type": "http.response.start", "status": answer.status, "headers": _encoded(headers)})
        loop = asyncio.get_running_loop()
        began = loop.time()
        for at_ms, piece in answer.pieces:
            if gone.done():
                return
            if self._with_pauses and (wait := began + at_ms / 1000 - loop.time()) > 0:
                await asyncio.wait({gone}, timeout=wait)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if answer.ended == "complete":
            await send({"type": "http.response.body", "body": b""})
        elif answer.ended == "aborted":
            await asyncio.wait({gone}, timeout=_ABORTED_AFTER_S)
        # Without an end, the server drops the connection.


def _target(scope: Scope) -> str:
    """Path and query, as the provider was asked for."""
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    if path.startswith("/run/"):
        path = f"/{path.removeprefix('/run/').partition('/')[2]}"
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


async def _whole_body(receive: Receive, most_bytes: int) -> bytes | None:
    """The body; None when its sender has gone before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise TooLargeError(f"loopledger replay: a request has at most {most_bytes} bytes")
        if not message.get("more_body"):
            return bytes(body)


async def _send_whole(send: Send, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    length = [] if status in _NO_BODY else [("content-length", str(len(body)))]
    await send({"type": "http.response.start", "status": status, "headers": _encoded([*headers, *length])})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in headers
    ]


def _streams(answer: Answer) -> bool:
    kind = next((value for name, value in answer.headers if name.lower() == "content-type"), "")
    return "event-stream" in kind or len(answer.pieces) > 1


def _marks(answer: Answer) -> list[tuple[str, str]]:
    """Where an answer comes from, for people who look; no SDK reads it."""
    marks: list[tuple[str, str]] = [("x-loopledger-source", answer.source)]
    if answer.match is not None:
        marks.append(("x-loopledger-match", answer.match))
    if answer.seq is not None:
        marks.append(("x-loopledger-seq", str(answer.seq)))
    return marks
