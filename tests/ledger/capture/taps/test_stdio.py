"""Taps between real processes: bytes, exit status and signals are those without the tap."""

import http.server
import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.capture.taps.codex import CodexTap
from ledger.capture.taps.mcp_http import McpEndpoint
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger

PEER = Path(__file__).with_name("peer.py")
TALK: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"clientInfo": {"name": "client"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": 2}, "_meta": {"claudecode/toolUseId": "toolu_12345"}},
    },
]
LINES = b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in TALK)


def tapped(home: Path, *command: str, options: tuple[str, ...] = ()) -> list[str]:
    """The command line of a tap."""
    program = [sys.executable, "-P", "-m", "webui", "--home", str(home), "tap", "mcp", "--server", "shop"]
    return [*program, *options, "--", *command]


def test_bytes_errors_and_exit_status_are_those_of_the_program(tmp_path: Path) -> None:
    command = [sys.executable, str(PEER), "3"]
    bare = subprocess.run(command, input=LINES, capture_output=True, check=False, timeout=120)
    end = subprocess.run(
        tapped(tmp_path / "home", *command), input=LINES, capture_output=True, check=False, timeout=120
    )
    assert (end.stdout, end.stderr, end.returncode) == (bare.stdout, bare.stderr, 3)
    with open_ledger(tmp_path / "home") as ledger:
        records = [one for name in ledger.store.sessions() for one in ledger.store.read(name)]
    kinds = [one.type for one in records]
    assert kinds[0] == "session.started"
    assert kinds.count("capability.loaded") == 2
    asked = next(one.event for one in records if isinstance(one.event, ToolCallRequested))
    settled = next(one.event for one in records if isinstance(one.event, ToolCallSettled))
    # The model's id of the call, which the client passes on, joins it with what others tell.
    assert (asked.call_id, settled.call_id, settled.outcome) == ("toolu_12345", "toolu_12345", "returned")
    assert isinstance(records[-1].event, SessionEnded)
    assert records[-1].event.outcome == "failed"


def test_a_signal_reaches_the_program_and_its_end_is_the_taps_end(tmp_path: Path) -> None:
    with subprocess.Popen(
        tapped(tmp_path / "home", sys.executable, str(PEER)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as tap:
        assert tap.stdin is not None and tap.stdout is not None
        tap.stdin.write(LINES)
        tap.stdin.flush()
        for _ in range(3):
            assert tap.stdout.readline()
        tap.send_signal(signal.SIGTERM)
        assert tap.wait(120) == -signal.SIGTERM


def test_a_tap_that_recorded_nothing_says_so(tmp_path: Path) -> None:
    end = subprocess.run(
        tapped(tmp_path / "home", sys.executable, "-c", "pass"),
        input=b"",
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert end.returncode == 0
    assert b"recorded NOTHING" in end.stderr


@pytest.mark.parametrize(("options", "status"), [((), 2), (("--fail-open",), 0)])
def test_a_ledger_that_fails_stops_the_program_unless_the_user_chose_otherwise(
    tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    home = tmp_path / "home"
    open_ledger(home).close()
    database = home / "ledger.sqlite"
    # The program behind the tap takes the tables away before it reads: what comes then cannot be recorded.
    breaks = f"import sqlite3; c = sqlite3.connect({str(database)!r}); c.execute('drop table stored_events')"
    runs = f"{breaks}; c.commit(); import runpy; runpy.run_path({str(PEER)!r}, run_name='__main__')"
    with subprocess.Popen(
        tapped(home, sys.executable, "-c", runs, options=options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as tap:
        assert tap.stderr is not None
        assert tap.stderr.readline() == b"peer says hello\n"
        out, err = tap.communicate(LINES, timeout=120)
    assert tap.returncode == status
    assert b"cannot be written" in err
    assert bool(out) == (status == 0)


def test_codex_approvals_are_kept_granted_ones_too(ledger: Ledger) -> None:
    tap = CodexTap(ledger.recorder)

    def passes(to_server: bool, **message: Any) -> None:
        tap.take(json.dumps(message).encode() + b"\n", to_server=to_server)

    def item(method: str, name: str, **fields: Any) -> None:
        params = {"item": {"type": "commandExecution", "id": name, "command": "touch x", **fields}}
        passes(False, method=method, params={**params, "threadId": "thread-1"})

    passes(True, id=1, method="initialize", params={"clientInfo": {"name": "editor"}})
    passes(True, id=2, method="thread/start", params={"approvalPolicy": "untrusted"})
    passes(False, id=2, result={"thread": {"id": "thread-1"}, "approvalPolicy": "untrusted"})
    rule = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch"]}}
    for number, decision in enumerate(["accept", rule, "decline", "something else"]):
        name = f"call_{number}"
        item("item/started", name, status="inProgress")
        asked = {"threadId": "thread-1", "itemId": name, "command": "touch x"}
        passes(False, id=number, method="item/commandExecution/requestApproval", params=asked)
        passes(True, id=number, result={"decision": decision})
        passes(False, method="serverRequest/resolved", params={"threadId": "thread-1", "requestId": number})
        item("item/completed", name, status="declined" if number == 2 else "completed", exitCode=0)
    tap.end(0)
    records = list(ledger.store.read("thread-1.tap"))
    decided = [one.event for one in records if isinstance(one.event, ApprovalDecided)]
    assert [(one.outcome, one.scope, one.decider) for one in decided] == [
        ("approved", "once", "editor"),
        ("approved", "rule", "editor"),
        ("denied", "once", "editor"),
        ("unknown", "unknown", "editor"),
    ]
    assert decided[1].rule is not None
    assert sum(isinstance(one.event, ApprovalAsked) for one in records) == 4
    assert [one.event.outcome for one in records if isinstance(one.event, ToolCallSettled)] == [
        "returned",
        "returned",
        "denied",
        "returned",
    ]


class _Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a call with a stream, anything else with a body."""
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {"content": []}}).encode()
        if message["method"] == "tools/call":
            answer = b"event: message\ndata: " + answer + b"\n\n"
        self.send_response(200)
        is_stream = message["method"] == "tools/call"
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Mcp-Session-Id", "session-1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        """Tests need no log."""


@pytest.fixture
def upstream() -> Iterator[str]:
    """URL of an MCP server behind HTTP."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


def test_an_endpoint_passes_bodies_and_streams_on_and_records_them(ledger: Ledger, upstream: str) -> None:
    warnings: list[str] = []
    endpoint = McpEndpoint(ledger.recorder, upstream, server="shop", warn=warnings.append)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()

    def post(message: dict[str, Any], **headers: str) -> bytes:
        kinds = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(endpoint.address, json.dumps(message).encode(), kinds)
        with urllib.request.urlopen(request, timeout=120) as response:
            content: bytes = response.read()
        return content

    post(TALK[0])
    stream = post(TALK[3], **{"Mcp-Session-Id": "session-1"})
    assert stream.startswith(b"event: message\ndata: {")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        post(TALK[3], Host="evil.example")
    endpoint.shutdown()
    endpoint.close()
    (session,) = ledger.store.sessions()
    records = list(ledger.store.read(session))
    assert sum(isinstance(one.event, ToolCallRequested) for one in records) == 1
    assert [one.event.outcome for one in records if isinstance(one.event, ToolCallSettled)] == ["returned"]
    assert warnings == []
