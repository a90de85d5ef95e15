"""The server: reads a request, finds its lane, writes the next step, keeps the exchange."""

import gzip
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from .protocols import PROTOCOLS, Reply, WireProtocol
from .script import Ask, Block, Error, Script, Step, Text, Thinking, ToolCall
from .wire import Exchange, WireLog, open_headers, open_query


class Turn(NamedTuple):
    """The step chosen for a request, and where in the script it stands."""

    step: Step
    lane: str | None
    place: int | None


class ScriptedModel:
    """A model on loopback that says what the script says; use it in a `with` statement."""

    def __init__(
        self,
        script: Script,
        *,
        log: Path | None = None,
        port: int = 0,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._script = script
        self._clock = clock
        self._log = WireLog(log)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._taken: Counter[str] = Counter()
        self._closing = threading.Event()
        self._arrivals = self._kept = 0
        self._answers = 0
        self._calls = 0
        self._server = _Server(("127.0.0.1", port), self)
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port, also when any free one was asked for."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Root of the server, without a trailing slash; a client appends `/v1/...`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def exchanges(self) -> list[Exchange]:
        """What has gone over the wire so far; waits a while for requests under way."""
        with self._idle:
            self._idle.wait_for(lambda: self._arrivals == self._kept, timeout=60)
        return self._log.exchanges()

    @property
    def unused(self) -> dict[str, int]:
        """Steps not yet taken, by lane; empty when the script was played to its end."""
        with self._lock:
            taken = dict(self._taken)
        left = {lane.name: len(lane.steps) - taken.get(lane.name, 0) for lane in self._script.lanes}
        return {name: count for name, count in left.items() if count > 0}

    def arrived(self) -> tuple[int, int]:
        """Number of a new request, and its time."""
        with self._lock:
            self._arrivals += 1
            return self._arrivals, self._clock()

    def now(self) -> int:
        """The time of the clock that was given."""
        return self._clock()

    def pause(self, seconds: float) -> None:
        """Wait so long, at most until the model is closed."""
        self._closing.wait(seconds)

    def keep(self, exchange: Exchange) -> None:
        """Keep an exchange that has ended."""
        self._log.keep(exchange)
        with self._idle:
            self._kept += 1
            self._idle.notify_all()

    def turn(self, ask: Ask) -> Turn:
        """Take the next step of the first lane that fits."""
        with self._lock:
            for lane in self._script.lanes:
                if not lane.match.fits(ask):
                    continue
                index = self._taken[lane.name]
                if index < len(lane.steps):
                    self._taken[lane.name] += 1
                    return Turn(lane.steps[index], lane.name, index)
                return Turn(self._script.default, lane.name, None)
        return Turn(self._script.default, None, None)

    def reply(self, step: Step, model: str, raw_body: str) -> Reply:
        """Give ids to a step and fill in what it captures from the request."""
        found = {name: _last(pattern, raw_body) for name, pattern in step.captures.items()}
        with self._lock:
            self._answers += 1
            number = f"{self._script.prefix}{self._answers:04d}"
            blocks = [self._settled(block, found) for block in step.blocks]
        calls = any(isinstance(block, ToolCall) for block in blocks)
        stop = step.stop or ("tool_use" if calls else "end_turn")
        return Reply(number, model, blocks, step.usage, stop)

    def _settled(self, block: Block, found: dict[str, str]) -> Block:
        match block:
            case Text() | Thinking():
                return replace(block, text=_filled(block.text, found))
        self._calls += 1
        id_ = block.id or f"call_{self._script.prefix}{self._calls:04d}"
        return replace(block, id=id_, arguments=_filled(block.arguments, found))


def _last(pattern: str, text: str) -> str:
    matches = list(re.finditer(pattern, text))
    if not matches:
        return ""
    return matches[-1].group(1) if matches[-1].re.groups else matches[-1].group(0)


def _filled(value: Any, found: dict[str, str]) -> Any:
    match value:
        case str():
            for name, text in found.items():
                value = value.replace(f"${{{name}}}", text)
            return value
        case dict():
            return {name: _filled(item, found) for name, item in value.items()}
        case list():
            return [_filled(item, found) for item in value]
    return value


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        self.model = model
        super().__init__(address, _Handler)


@dataclass
class _Answer:
    """What a handler writes, and then what it has written."""

    status: int
    content_type: str
    parts: Iterator[str]
    protocol: str | None = None
    lane: str | None = None
    step: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    pace_s: float = 0.0
    streamed: bool = False
    packed: bool = False
    chunks: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    aborted: bool = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a small write waits for the client to acknowledge the one before
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing; the exchanges are the log."""

    def _serve(self) -> None:
        model = self.server.model
        number, started = model.arrived()
        path, _, query = self.path.partition("?")
        raw = self._body()
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        answer = self._answer(path, raw, body)
        answer.headers["request-id"] = f"req_{number:04d}"
        answer.headers["x-request-id"] = f"req_{number:04d}"
        try:
            self._write(answer)
        except OSError:
            answer.aborted = True
            self.close_connection = True
        model.keep(
            Exchange(
                number=number,
                protocol=answer.protocol,
                lane=answer.lane,
                step=answer.step,
                method=self.command,
                path=path,
                query=open_query(query),
                headers=open_headers(dict(self.headers.items())),
                raw_body=raw.decode("latin-1"),
                body=body,
                status=answer.status,
                response_headers={"content-type": answer.content_type, **answer.headers},
                chunks=answer.chunks,
                chunk_times_ns=answer.times,
                started_ns=started,
                ended_ns=model.now(),
                aborted=answer.aborted,
            )
        )

    do_GET = do_HEAD = do_POST = _serve

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def _answer(self, path: str, raw: bytes, body: Any) -> _Answer:
        if self.command == "POST" and isinstance(body, dict):
            for protocol in PROTOCOLS:
                if protocol.counts(path):
                    return _json(200, protocol.count(len(raw)), protocol=protocol.NAME)
                if protocol.serves(path):
                    return self._model_answer(protocol, path, raw, body)
        if path.endswith("/models"):
            return _json(200, {"object": "list", "data": [], "models": []})
        if self.command == "HEAD":
            return _json(200, {})
        return _json(404, {"error": {"message": f"nothing is served at {path}"}})

    def _model_answer(self, protocol: WireProtocol, path: str, raw: bytes, body: dict[str, Any]) -> _Answer:
        model = self.server.model
        ask = protocol.ask(path, open_headers(dict(self.headers.items())), body)
        turn = model.turn(ask)
        place: dict[str, Any] = {"protocol": protocol.NAME, "lane": turn.lane, "step": turn.place}
        if turn.step.delay_s:
            model.pause(turn.step.delay_s)
        if isinstance(turn.step.error, Error):
            error = turn.step.error
            answer = _json(error.status, protocol.error(error), **place)
            answer.headers.update(error.headers)
            return answer
        reply = model.reply(turn.step, ask.model, raw.decode("utf-8", "replace"))
        if not ask.stream:
            answer = _json(200, protocol.whole(path, body, reply), **place)
            answer.packed = turn.step.gzip
            return answer
        parts = protocol.stream(path, body, reply)
        answer = _Answer(200, "text/event-stream", parts, **place)
        answer.streamed = True
        answer.cut_after, answer.pace_s = turn.step.cut_after, turn.step.pace_s
        return answer

    def _write(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.streamed:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in answer.parts:
                if answer.cut_after is not None and len(answer.chunks) >= answer.cut_after:
                    answer.aborted = self.close_connection = True
                    return
                self.server.model.pause(answer.pace_s)
                data = part.encode()
                self._send(b"%x\r\n%s\r\n" % (len(data), data), part, answer)
            self.wfile.write(b"0\r\n\r\n")
            return
        text = "".join(answer.parts)
        data = text.encode()
        if answer.packed:
            data = gzip.compress(data)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self._send(data, text, answer)

    def _send(self, data: bytes, text: str, answer: _Answer) -> None:
        self.wfile.write(data)
        self.wfile.flush()
        answer.chunks.append(text)
        answer.times.append(self.server.model.now())


def _json(status: int, value: Any, **place: Any) -> _Answer:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _Answer(status, "application/json", iter([text]), **place)
