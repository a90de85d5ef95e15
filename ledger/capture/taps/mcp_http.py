"""A small endpoint in front of an MCP server behind HTTP: passes requests and streams on, and records the messages.

Listens on the loopback address and refuses other hosts' names, so that no page of a browser reaches the server behind
it under this name. Bodies go on as they came; an event of a stream goes on when it is whole and recorded.
"""

import http.client
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ledger.capture.taps.mcp import McpTap
from ledger.capture.taps.stdio import LONGEST_LINE, Guard
from ledger.errors import InputError
from ledger.events.canonical import decode_json
from ledger.recorder import Recorder

_OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade".split()
)
_SESSION = "Mcp-Session-Id"
_CONNECTIONS_KEPT = 1000
_PIECE = 1 << 16


class _Connection:
    """One MCP session behind HTTP."""

    def __init__(self, tap: McpTap, guard: Guard) -> None:
        self.tap = tap
        self.guard = guard


class McpEndpoint(ThreadingHTTPServer):
    """Listens, passes on, records. Use `serve_forever()` and `close()`."""

    daemon_threads = True

    def __init__(
        self,
        recorder: Recorder,
        url: str,
        *,
        port: int = 0,
        server: str | None = None,
        run: str | None = None,
        fail_open: bool = False,
        warn: Callable[[str], None],
    ) -> None:
        target = urlsplit(url)
        if target.scheme not in ("http", "https") or not target.hostname:
            raise InputError(f"expected an http or https URL of an MCP server, found {url!r}")
        self.target = target
        self._recorder = recorder
        self._name = server
        self._run = run
        self._fail_open = fail_open
        self._warn = warn
        self._lock = threading.Lock()
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        self._recorded = False
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(f"port {port} cannot be listened on: {error.strerror}") from error

    @property
    def address(self) -> str:
        """URL to give to the client in the server's place."""
        return f"http://127.0.0.1:{self.server_port}{self.target.path or '/'}"

    def connection(self, name: str | None, *, is_new: bool = False) -> _Connection:
        """The connection that a request belongs to; without a name, the latest that has none either."""
        with self._lock:
            found = self._connections.get(name or "")
            if found is None or is_new:
                host = self.target.hostname
                about = {"url": f"{self.target.scheme}://{host}{self.target.path}"}
                tap = McpTap(self._recorder, server=self._name or host, run=self._run, about=about)
                found = _Connection(tap, Guard(tap, fail_open=self._fail_open, warn=self._warn))
                self._keep(name or "", found)
            return found

    def named(self, connection: _Connection, name: str) -> None:
        """The server gave the connection a name."""
        with self._lock:
            self._connections = OrderedDict(
                (key, one) for key, one in self._connections.items() if one is not connection
            )
            self._keep(name, connection)

    def ended(self, name: str) -> None:
        """The client closed the connection."""
        with self._lock:
            connection = self._connections.pop(name, None)
        if connection is not None:
            self._finish(connection)

    def close(self) -> None:
        """Stop listening; end what is open. Says so when nothing was recorded."""
        self.server_close()
        while self._connections:
            self._finish(self._connections.popitem()[1])
        if not self._recorded:
            self._warn("the tap recorded NOTHING: no message that it knows passed through it")

    def _keep(self, name: str, connection: _Connection) -> None:
        if (before := self._connections.pop(name, None)) is not None:
            self._finish(before)
        self._connections[name] = connection
        if len(self._connections) > _CONNECTIONS_KEPT:
            self._finish(self._connections.popitem(last=False)[1])

    def _finish(self, connection: _Connection) -> None:
        self._recorded = self._recorded or connection.tap.recorded > 0
        if connection.tap.recorded:
            connection.guard.finish(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: McpEndpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Messages to the server, and its answers."""
        if not self._is_for_us():
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LONGEST_LINE:
            self._refuse(413 if length.isdigit() else 411, "expected a Content-Length that is not too large")
            return
        body = self.rfile.read(int(length))
        connection = self.server.connection(self.headers.get(_SESSION), is_new=_opens(body))
        if not connection.guard.may_pass(body, to_server=True):
            self._refuse(503, "the ledger cannot be written")
            return
        self._pass_on(connection, body)

    def do_GET(self) -> None:
        """The stream of messages that the server sends by itself."""
        if self._is_for_us():
            self._pass_on(self.server.connection(self.headers.get(_SESSION)), None)

    def do_DELETE(self) -> None:
        """The end of a session."""
        if self._is_for_us():
            name = self.headers.get(_SESSION)
            self._pass_on(self.server.connection(name), None)
            if name:
                self.server.ended(name)

    def _is_for_us(self) -> bool:
        """Whether the client means this machine: a page that had its own name point here does not."""
        if urlsplit(f"//{self.headers.get('Host', '')}").hostname in _OWN_HOSTS:
            return True
        self._refuse(403, "expected the host name of this machine")
        return False

    def _pass_on(self, connection: _Connection, body: bytes | None) -> None:
        upstream = _connect(self.server.target)
        try:
            upstream.request(self.command, self._path(), body, self._headers())
            response = upstream.getresponse()
            self._answer(connection, response)
        except (OSError, http.client.HTTPException) as error:
            self.close_connection = True
            self._refuse(502, f"the server behind the tap did not answer: {error}")
        finally:
            upstream.close()

    def _answer(self, connection: _Connection, response: http.client.HTTPResponse) -> None:
        name = response.getheader(_SESSION)
        if name and name != self.headers.get(_SESSION):
            self.server.named(connection, name)
        kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            self._head(response, None)
            for event, message in _events(response):
                if message and not connection.guard.may_pass(message, to_server=False):
                    break
                self._chunk(event)
            self._chunk(b"")
            return
        content = response.read(LONGEST_LINE + 1)
        if len(content) > LONGEST_LINE:
            self._refuse(502, "the answer is larger than the tap holds")
            return
        is_message = kind == "application/json" and content
        if is_message and not connection.guard.may_pass(content, to_server=False):
            self._refuse(503, "the ledger cannot be written")
            return
        self._head(response, len(content))
        self.wfile.write(content)

    def _head(self, response: http.client.HTTPResponse, length: int | None) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP and name.lower() != "content-length":
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _headers(self) -> dict[str, str]:
        own = {"host", "content-length", "accept-encoding", *_HOP_BY_HOP}
        return {name: value for name, value in self.headers.items() if name.lower() not in own}

    def _path(self) -> str:
        """The client's path and query; the path that the URL names stands for the root."""
        path, _, query = self.path.partition("?")
        target = self.server.target
        path = (target.path or "/") if path in ("", "/") else path
        query = "&".join(part for part in (target.query, query) if part)
        return f"{path}?{query}" if query else path

    def _refuse(self, status: int, reason: str) -> None:
        content = f"loopledger: {reason}\n".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        """The ledger is the log."""


def _opens(body: bytes) -> bool:
    """Whether a request opens a connection."""
    if b'"initialize"' not in body:
        return False
    try:
        message = decode_json(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _connect(target: SplitResult) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    return kind(target.hostname or "", target.port)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[bytes, bytes]]:
    """The events of a stream as they come: their bytes, and the message in their data lines."""
    held = bytearray()
    data: list[bytes] = []
    while line := response.readline(LONGEST_LINE):
        held += line
        content = line.rstrip(b"\r\n")
        if content.startswith(b"data:"):
            data.append(content[5:].removeprefix(b" "))
        if not content or len(held) > LONGEST_LINE:
            yield bytes(held), b"\n".join(data)
            held.clear()
            data.clear()
    if held:
        yield bytes(held), b"\n".join(data)
