"""The recording proxy around the calls: runs, side traffic, refusals, crashes, certificates."""

import http.client
import json
import sqlite3
import ssl
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ledger.errors import InputError
from ledger.events.http import HttpAnswered, HttpRequested
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
)
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.home import open_ledger
from replay.raw import raw_pieces
from tests.scripted_model import Script, ScriptedModel, Step, Text
from tests.webui.proxied import (
    RUN,
    asked_raw,
    encoded,
    messages,
    proxy_process,
    proxying,
    recorded,
    script,
    send,
    waited,
)
from webui.app import create_app
from webui.listening import bound_socket
from webui.upstreams import Upstreams


def test_other_traffic_goes_through_and_is_recorded(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model, proxying(tmp_path, model.url) as base:
        assert send(base, "/api/hello", None, method="HEAD")[0] == 200
        assert send(base, "/v1/models", None, method="GET")[0] == 200
        assert send(base, "/v1/nothing", b"\xff\x00", headers={"content-type": "x/y"})[0] == 404
        assert send(base, "/v1/messages/count_tokens", encoded(messages("hi")))[0] == 200
    asked = recorded(tmp_path, HttpRequested)
    assert [(one.method, one.target) for one in asked] == [
        ("HEAD", "/api/hello"),
        ("GET", "/v1/models"),
        ("POST", "/v1/nothing"),
    ]
    assert [one.status for one in recorded(tmp_path, HttpAnswered)] == [200, 200, 404]
    (count,) = recorded(tmp_path, ModelCallRequested)
    assert count.purpose == "token-count"


def test_runs_are_told_apart_and_lanes_are_named(tmp_path: Path) -> None:
    with ScriptedModel(Script()) as model, proxying(tmp_path, model.url) as base:
        raw = encoded(messages("hi"))
        send(f"{base}/run/other", "/v1/messages", raw, headers={"x-claude-code-session-id": "s1"})
        named = {
            "x-loopledger-run": "third",
            "x-claude-code-session-id": "s1",
            "x-claude-code-agent-id": "a7",
        }
        send(base, "/v1/messages", raw, headers=named)
        assert send(f"{base}/run/..%2f", "/v1/messages", raw)[0] == 400
        assert "x-loopledger-run" not in model.exchanges[1].headers
    with open_ledger(tmp_path) as ledger:
        found = {
            record.session: (record.event.lane, record.agent, record.depth)
            for record in ledger.store.read_all()
            if isinstance(record.event, ModelCallRequested)
        }
    assert found == {"other": ("s1", None, 0), "third": ("s1/a7", "a7", 1)}


def test_nobody_upstream_is_told_and_recorded(tmp_path: Path) -> None:
    with proxying(tmp_path, "http://127.0.0.1:9") as base:
        status, _, answer = send(base, "/v1/messages", encoded(messages("hi")))
    assert status == 502 and json.loads(answer)["error"]["type"] == "upstream_unreachable"
    (failed,) = recorded(tmp_path, ModelCallFailed)
    assert failed.status is None and failed.error.startswith("upstream unreachable")


def test_what_cannot_be_recorded_is_not_sent(tmp_path: Path) -> None:
    with ScriptedModel(Script()) as model, proxying(tmp_path, model.url) as base:
        assert send(base, "/v1/messages", encoded(messages("hi")))[0] == 200
        blocker = sqlite3.connect(tmp_path / "ledger.sqlite")
        for (name,) in blocker.execute("select name from sqlite_master where type = 'table'").fetchall():
            if "event" in name:
                blocker.execute(f"alter table {name} rename to gone_{name}")
        blocker.commit()
        blocker.close()
        status, _, answer = send(base, "/v1/messages", encoded(messages("again")))
        assert status == 503 and json.loads(answer)["error"]["type"] == "not_recorded"
        assert len(model.exchanges) == 1


def test_too_large_a_request_is_refused(tmp_path: Path) -> None:
    with ScriptedModel(Script()) as model, proxying(tmp_path, model.url, most_bytes=1000) as base:
        assert send(base, "/v1/messages", encoded(messages("x" * 2000)))[0] == 413
        assert model.exchanges == []


def test_a_kill_in_the_middle_of_a_stream_keeps_what_had_arrived(tmp_path: Path) -> None:
    step = Step([Text("some words that come slowly " * 1000)], pace_s=0.02)
    with ScriptedModel(script(step)) as model, proxy_process(tmp_path, model.url) as (url, child):
        body = encoded(messages("hi", stream=True))
        thread = threading.Thread(target=_ignoring, args=(url, body))
        thread.start()
        waited(lambda: b"words" in _kept(tmp_path))
        child.kill()
        thread.join()
    kept = _kept(tmp_path)
    assert kept.startswith(b"event: message_start") and b"words" in kept
    assert recorded(tmp_path, ModelCallAnswered) == []


def _kept(home: Path) -> bytes:
    """What is recorded of the streams that have not ended."""
    chunks = recorded(home, ModelCallChunk)
    with open_ledger(home) as ledger:
        return b"".join(piece for one in chunks for _, piece in raw_pieces(ledger.store, one.chunks))


def _ignoring(url: str, body: bytes) -> None:
    try:
        send(url, "/v1/messages", body)
    except (OSError, http.client.HTTPException):
        return


def test_a_stopped_proxy_ends_its_sessions_and_a_new_one_goes_on(tmp_path: Path) -> None:
    raw = encoded(messages("hi"))
    with ScriptedModel(Script()) as model:
        for _ in range(2):
            with proxying(tmp_path, model.url) as base:
                send(base, "/v1/messages", raw, headers={"user-agent": "claude-cli/2.1 (x)"})
    (started,) = recorded(tmp_path, SessionStarted)
    assert (started.harness, started.harness_version, started.name) == ("claude-cli", "2.1", RUN)
    assert len(recorded(tmp_path, SessionResumed)) == 1
    assert len(recorded(tmp_path, SessionEnded)) == 2


def test_a_moving_cache_mark_costs_only_the_messages_that_it_touches(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = []
    bodies = []
    for turn in range(30):
        text = {"type": "text", "text": f"turn {turn} " + "words that fill " * 40}
        said.append({"role": "user", "content": [text]})
        marked = [*said[:-1], {"role": "user", "content": [{**text, "cache_control": {"type": "ephemeral"}}]}]
        bodies.append(encoded({"model": "m", "max_tokens": 1, "system": "rules " * 500, "messages": marked}))
    with ScriptedModel(Script()) as model, proxying(tmp_path, model.url) as base:
        for body in bodies:
            send(base, "/v1/messages", body)
    assert asked_raw(tmp_path) == bodies
    added = [event.raw_added for event in recorded(tmp_path, ModelCallRequested)]
    assert max(added) <= 2


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the loopback address that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return paths


class _Secure(BaseHTTPRequestHandler):
    """Answers everything with the same."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_certificates_upstream_are_verified(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Secure) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        upstream = f"https://127.0.0.1:{server.server_address[1]}"
        body = encoded(messages("hi"))
        with proxying(tmp_path / "home", upstream) as base:
            status, _, answer = send(base, "/v1/messages", body)
        assert status == 502 and "certificate" in json.loads(answer)["error"]["message"].lower()
        with proxying(tmp_path / "home", upstream, upstream_ca=cert) as base:
            assert send(base, "/v1/messages", body)[::2] == (200, b"{}")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("target", "headers", "address"),
    [
        ("/v1/messages?beta=true", [], "https://api.anthropic.com/v1/messages?beta=true"),
        ("/v1/models", [("anthropic-version", "1")], "https://api.anthropic.com/v1/models"),
        ("/v1/models", [("authorization", "Bearer x")], "https://api.openai.com/v1/models"),
        ("/v1/responses/compact", [], "https://api.openai.com/v1/responses/compact"),
        (
            "/v1beta/models/g:generateContent",
            [],
            "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
        ),
    ],
)
def test_the_provider_is_told_by_path_and_headers(
    target: str, headers: list[tuple[str, str]], address: str
) -> None:
    assert Upstreams().address(target, headers) == address


def test_an_upstream_that_names_the_version_too_is_not_asked_for_it_twice() -> None:
    upstreams = Upstreams(["openai=https://example.org/api/v1", "anthropic=http://127.0.0.1:1/anthropic/"])
    assert upstreams.address("/v1/chat/completions", []) == "https://example.org/api/v1/chat/completions"
    assert upstreams.address("/v1/messages", []) == "http://127.0.0.1:1/anthropic/v1/messages"
    with pytest.raises(InputError, match="upstream"):
        Upstreams(["mistral=nowhere"])


def test_the_web_application_records_under_the_path_of_a_run(tmp_path: Path) -> None:
    with (
        ScriptedModel(Script()) as model,
        open_ledger(tmp_path) as ledger,
        bound_socket("127.0.0.1", 0) as held,
    ):
        application = create_app(ledger, upstreams=Upstreams([model.url]))
        server = uvicorn.Server(uvicorn.Config(application, log_level="critical"))
        thread = threading.Thread(target=server.run, args=([held],))
        thread.start()
        base = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert send(f"{base}/run/mine", "/v1/messages", encoded(messages("hi")))[0] == 200
        assert send(base, "/v1/messages", encoded(messages("hi")))[0] == 404
        server.should_exit = True
        thread.join()
    assert [event.name for event in recorded(tmp_path, SessionStarted)] == ["mine"]


def test_an_answer_that_cannot_be_recorded_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Step([Text("some words that come slowly " * 1000)], pace_s=0.02)
    with (
        ScriptedModel(script(step)) as model,
        open_ledger(tmp_path) as ledger,
        bound_socket("127.0.0.1", 0) as held,
    ):
        application = create_app(ledger, upstreams=Upstreams([model.url]))
        server = uvicorn.Server(
            uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, args=([held],))
        thread.start()
        base = f"http://127.0.0.1:{held.getsockname()[1]}"
        client = threading.Thread(
            target=_ignoring, args=(f"{base}/run/mine", encoded(messages("hi", stream=True)))
        )
        client.start()
        waited(lambda: b"words" in _kept(tmp_path))
        assert json.loads(send(base, "/healthz", None, method="GET")[2]) == {
            "status": "ok",
            "lost_answers": 0,
        }
        ledger.store.close()
        lost = waited(lambda: json.loads(send(base, "/healthz", None, method="GET")[2])["lost_answers"])
        server.should_exit = True
        thread.join()
        client.join()
    assert lost > 0
    assert "an answer could not be recorded: the store is closed" in capsys.readouterr().err


def test_raw_prints_the_bytes(tmp_path: Path) -> None:
    raw = b'{ "model":"m", "max_tokens":1,  "messages":[ {"content":"h\\u0069","role":"user"} ] }'
    with ScriptedModel(Script()) as model, proxying(tmp_path, model.url) as base:
        assert send(base, "/v1/messages", raw)[0] == 200
    command = [sys.executable, "-m", "webui", "--home", str(tmp_path), "request", RUN, "3", "--raw"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == raw
