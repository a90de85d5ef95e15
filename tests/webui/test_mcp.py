"""The MCP server by raw JSON-RPC: the handshake, each tool, hostile messages and hostile content."""

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.lake import Lake
from tests.commands import HOSTILE, process, record_session
from tests.ledger.lake.feeds import feed_of, golden_rows
from webui.mcp_tools import LABEL

ENDLESS = "select sum(a.range * b.range) from range(100000000000) as a, range(100) as b"


class Talk:
    """A client that says what it likes."""

    def __init__(self, home: Path, *options: object) -> None:
        self.running = process(home, "mcp", *options, stdin=subprocess.PIPE)
        self._number = 0

    def send(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.running.stdin is not None
        self.running.stdin.write(line + b"\n")
        self.running.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message."""
        assert self.running.stdout is not None
        guard = threading.Timer(250, self.running.kill)  # a server that says nothing fails the test
        guard.start()
        try:
            answer: dict[str, Any] = json.loads(self.running.stdout.readline())
        finally:
            guard.cancel()
        return answer

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a request."""
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters}
        self.send(json.dumps(asked).encode())
        answer = self.read()
        assert answer["id"] == self._number
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        result: dict[str, Any] = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return result

    def text(self, tool: str, **arguments: Any) -> str:
        """What a tool says when it goes well."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        return str(result["content"][0]["text"])

    def close(self) -> int:
        """Hang up; gives the exit status of the server."""
        _, errors = self.running.communicate(timeout=120)
        assert errors == b""
        return self.running.returncode


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    home = tmp_path_factory.mktemp("home")
    record_session(home, text=HOSTILE)
    made = Talk(home, "--timeout", 200)
    yield made
    assert made.close() == 0


def rows(text: str) -> dict[str, Any]:
    """The object behind the label."""
    label, _, body = text.partition("\n")
    assert label == LABEL
    answer: dict[str, Any] = json.loads(body)
    return answer


@pytest.mark.parametrize(("asked", "agreed"), [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")])
def test_the_handshake_agrees_on_a_version(talk: Talk, asked: str, agreed: str) -> None:
    result = talk.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "t"})[
        "result"
    ]
    assert result["protocolVersion"] == agreed
    assert result["serverInfo"]["name"] == "loopledger"
    talk.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    assert talk.ask("ping")["result"] == {}
    assert talk.ask("server/discover")["error"]["code"] == -32601


def test_the_tools_say_what_can_be_asked(talk: Talk) -> None:
    tools = {tool["name"]: tool for tool in talk.ask("tools/list")["result"]["tools"]}
    assert list(tools) == ["list_tables", "list_queries", "run_query", "run_sql", "show_session"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
    listed = {table["table"]: table for table in json.loads(talk.text("list_tables"))}
    assert "Place in the whole ledger" in listed["events"]["columns"]["position"]
    assert "input_tokens" in listed["model_calls"]["columns"]
    queries = {query["name"]: query for query in json.loads(talk.text("list_queries"))}
    assert queries["slowest_calls"]["parameters"][0]["name"] == "least"


def test_a_saved_query_runs_with_its_parameters(talk: Talk) -> None:
    found = rows(talk.text("run_query", name="find_text", parameters={"text": "RED"}))
    assert found["rows"]
    assert talk.call("run_query", name="find_text")["isError"]
    assert talk.call("run_query", name="nothing")["isError"]


def test_content_of_traces_is_labelled_and_harmless(talk: Talk) -> None:
    text = talk.text(
        "run_sql", sql="select agent, text from events where text like $what", parameters={"what": "%red%"}
    )
    assert rows(text)["rows"]
    assert all(char.isprintable() or char == "\n" for char in text)
    shown = talk.text("show_session", session="live")
    assert rows(shown)["harness"] == "my-loop"
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_long_answers_are_cut_and_say_so(talk: Talk) -> None:
    many = rows(talk.text("run_sql", sql="select * from range(1000)"))
    assert (len(many["rows"]), many["truncated"]) == (200, True)
    assert many["stopped"] == "more than 200 rows: the rest is left out"
    (long,) = rows(talk.text("run_sql", sql="select repeat('x', 100000)"))["rows"]
    assert long[0].endswith("… (100000 characters in all)") and len(long[0]) < 5000
    big = rows(talk.text("run_sql", sql="select repeat('x', 4000) from range(150)"))
    assert len(big["rows"]) < 60 and "characters: the rest is left out" in big["stopped"]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("run_sql", {"sql": "copy events to '/tmp/a'"}, "expected SELECT"),
        ("run_sql", {"sql": "select * from read_text('/etc/passwd')"}, "read_text is not allowed"),
        ("run_sql", {"sql": "select\u202e"}, "cannot be run"),
        ("run_sql", {}, "needs the argument sql"),
        ("run_sql", {"sql": 1}, "must be a string"),
        ("run_sql", {"sql": "select 1", "more": 1}, "expected one of sql, parameters"),
        ("run_sql", {"sql": "select $a", "parameters": {"a": [1]}}, "parameter a must be"),
        ("show_session", {"session": "nobody"}, "no session has an id"),
    ],
)
def test_a_wrong_call_is_an_error_that_says_why(
    talk: Talk, tool: str, arguments: dict[str, Any], words: str
) -> None:
    result = talk.call(tool, **arguments)
    assert result["isError"]
    assert words in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/nothing"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nothing"}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}', -32602),
        (b"x" * 3_000_000, -32600),
    ],
)
def test_a_hostile_message_is_refused_and_the_server_lives_on(talk: Talk, line: bytes, code: int) -> None:
    talk.send(line)
    assert talk.read()["error"]["code"] == code
    assert talk.ask("ping")["result"] == {}


def test_what_needs_no_answer_gets_none(talk: Talk) -> None:
    for line in (
        b"",
        b'{"jsonrpc": "2.0", "method": "notifications/nothing"}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}',
    ):
        talk.send(line)
    assert talk.ask("ping")["result"] == {}


def test_a_call_is_cancelled_and_others_go_on_meanwhile(tmp_path: Path) -> None:
    Lake(tmp_path / "lake").export(feed_of(golden_rows(20)))
    talk = Talk(tmp_path, "--lake", tmp_path / "lake", "--timeout", 100)
    asked = {"name": "run_sql", "arguments": {"sql": ENDLESS}, "_meta": {"progressToken": "p"}}
    talk.send(json.dumps({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": asked}).encode())
    told = talk.read()
    assert (told["method"], told["params"]["progressToken"]) == ("notifications/progress", "p")
    talk.send(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}')
    talk.send(b'{"jsonrpc": "2.0", "id": "after", "method": "tools/list"}')
    answers = [talk.read()]
    while answers[-1].get("id") != "after":
        answers.append(talk.read())
    assert "show_session" not in {tool["name"] for tool in answers[-1]["result"]["tools"]}  # no store
    assert "slow" not in {one.get("id") for one in answers}
    assert talk.close() == 0


def test_a_client_that_hangs_up_ends_what_runs(tmp_path: Path) -> None:
    Lake(tmp_path / "lake").export(feed_of(golden_rows(20)))
    talk = Talk(tmp_path, "--lake", tmp_path / "lake", "--timeout", 1000)
    asked = {"name": "run_sql", "arguments": {"sql": ENDLESS}}
    talk.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).encode())
    assert talk.close() == 0
