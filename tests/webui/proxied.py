"""A recording proxy over HTTP, in a thread or in a process of its own, and what it recorded."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import uvicorn

from ledger.capture.proxy import Runs
from ledger.effects.loop_policy import LoopPolicy
from ledger.events import Event
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.home import open_ledger
from ledger.store import verify
from replay.raw import raw_matches, raw_pieces, raw_request
from tests.scripted_model import Lane, Script, Step
from tests.webui.served import told_address
from webui.listening import bound_socket
from webui.proxy import MOST_BYTES, ProxyApp
from webui.upstreams import Upstreams

RUN = "run-1"
"""The run of the tests."""

PATIENCE_S = 120
"""How long to wait for what must come, on a machine that is busy with other things."""

Kind = TypeVar("Kind", bound=Event)


@contextlib.contextmanager
def proxying(
    home: Path,
    upstream: str,
    *,
    upstream_ca: Path | None = None,
    most_bytes: int = MOST_BYTES,
    runs: Any = None,
    policy: LoopPolicy | None = None,
) -> Iterator[str]:
    """Base URL of a proxy in a thread; what it recorded is complete when the block ends."""
    with open_ledger(home) as ledger, bound_socket("127.0.0.1", 0) as listening:
        held = runs or Runs(ledger.recorder, policy=policy)
        application = ProxyApp(
            held, Upstreams([upstream]), default_run=RUN, upstream_ca=upstream_ca, most_bytes=most_bytes
        )
        config = uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            held.close()


@contextlib.contextmanager
def proxy_process(home: Path, upstream: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Base URL and process of `loopledger proxy`; killed at the end."""
    command = [sys.executable, "-m", "webui", "--home", str(home), "proxy", "--run", RUN]
    command += ["--port", "0", "--upstream", upstream]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            yield told_address(child), child
        finally:
            child.kill()


def recorded(home: Path, kind: type[Kind]) -> list[Kind]:
    """The events of a kind, in order."""
    with open_ledger(home) as ledger:
        return [record.event for record in ledger.store.read_all() if isinstance(record.event, kind)]


def send(
    base: str, path: str, body: bytes | None, *, method: str = "POST", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer; the body as far as it came."""
    place = urlsplit(base)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE_S)
    try:
        connection.request(method, place.path + path, body, headers or {})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        try:
            return answer.status, told, answer.read()
        except http.client.IncompleteRead as cut:
            return answer.status, told, cut.partial
    finally:
        connection.close()


def messages(*texts: str, **fields: Any) -> dict[str, Any]:
    """The body of a request whose messages take turns."""
    said = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate(texts)
    ]
    return {"model": "scripted", "max_tokens": 64, "messages": said, **fields}


def encoded(value: Any, *, indent: int | None = None) -> bytes:
    """JSON as a client of ours writes it."""
    return json.dumps(value, indent=indent).encode()


def script(*steps: Step) -> Script:
    """A model that takes these steps, whatever is asked."""
    return Script(lanes=[Lane("main", list(steps))])


def asked_raw(home: Path) -> list[bytes | None]:
    """The bytes of every request, rebuilt; each has its digest."""
    with open_ledger(home) as ledger:
        found = []
        for record in ledger.store.read_all():
            if isinstance(record.event, ModelCallRequested):
                raw = raw_request(ledger.store, record.event)
                assert raw_matches(ledger.store, record.event, raw)
                found.append(raw)
        assert verify(ledger.store).problems == []
        return found


def everything(home: Path) -> bytes:
    """All bytes of the files, and all content unpacked."""
    with open_ledger(home) as ledger:
        blobs = [
            ledger.store.content(digest.hex()) for digest in ledger.store.recorder.list_blobs(b"", 10_000)
        ]
    return b"".join([*blobs, *(path.read_bytes() for path in home.rglob("*") if path.is_file())])


def answered_raw(home: Path) -> list[bytes]:
    """The bytes of every answer."""
    with open_ledger(home) as ledger:
        return [
            b"".join(piece for _, piece in raw_pieces(ledger.store, record.event.stream))
            for record in ledger.store.read_all()
            if isinstance(record.event, ModelCallAnswered) and record.event.stream is not None
        ]


def waited(check: Callable[[], Any], *, seconds: float = PATIENCE_S) -> Any:
    """What a check finds, as soon as it does."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return found
