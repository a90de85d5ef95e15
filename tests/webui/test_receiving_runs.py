"""Runs as they come over the wire: in pieces, out of order, late, twice, cut."""

import http.client
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import open_ledger
from ledger.store import verify
from tests.commands import answer, run
from tests.webui.otlp_spans import START, agent, logs, model, request, span, tool
from tests.webui.served import PROTOBUF, post, served

_DAY = 86_400 * 10**9


def _send(url: str, *requests: bytes) -> None:
    for body in requests:
        assert post(f"{url}/v1/traces", body)[0] == 200


def _records(home: Path) -> dict[str, list[Record]]:
    with open_ledger(home) as ledger:
        assert verify(ledger.store).ok
        return {session: list(ledger.store.read(session)) for session in ledger.store.sessions()}


def _only(home: Path) -> list[Record]:
    (records,) = _records(home).values()
    return records


def _calls(records: list[Record]) -> list[str]:
    return [record.event.call_id for record in records if isinstance(record.event, ToolCallRequested)]


def test_children_that_come_before_their_parent_are_of_its_session(tmp_path: Path) -> None:
    with served(tmp_path) as (url, _):
        _send(url, request(tool(3, parent=2)), request(tool(2, parent=1)), request(agent(1)))
    records = _only(tmp_path)
    assert sorted(_calls(records)) == ["call-1-2", "call-1-3"]
    assert sum(isinstance(record.event, ToolCallSettled) for record in records) == 2


def test_children_of_a_parent_that_never_comes_are_kept_together(tmp_path: Path) -> None:
    with served(tmp_path) as (url, child):
        _send(url, request(tool(2, parent=77)), request(tool(3, parent=77)))
        child.kill()
    with served(tmp_path) as (url, _):  # another process, that remembers nothing
        _send(url, request(tool(4, parent=77)))
    assert sorted(_calls(_only(tmp_path))) == ["call-1-2", "call-1-3", "call-1-4"]


def test_a_span_seven_days_old_keeps_its_time_and_its_place(tmp_path: Path) -> None:
    with served(tmp_path) as (url, _):
        _send(url, request(agent(1), tool(2)))
        _send(url, request(tool(3, start=START - 7 * _DAY)))
    records = _only(tmp_path)
    assert _calls(records) == ["call-1-2", "call-1-3"]
    assert records[-1].occurred_at is not None and records[0].occurred_at is not None
    assert records[-1].occurred_at[:10] == "2026-09-14" and records[0].occurred_at[:10] == "2026-09-21"


def test_the_same_batch_twice_adds_nothing_in_any_order_and_after_a_restart(tmp_path: Path) -> None:
    batches = [request(agent(1), tool(2)), request(tool(3), model(4, [{"type": "text", "content": "x"}]))]
    with served(tmp_path) as (url, _):
        _send(url, *batches)
        before = _records(tmp_path)
        _send(url, *reversed(batches))
    with served(tmp_path) as (url, _):
        _send(url, batches[1] + batches[0])
    assert _records(tmp_path) == before


@pytest.mark.parametrize(
    "names",
    [
        ("gen_ai.conversation.id", "gen_ai.conversation.id"),
        ("session.id", "session.id"),
        ("thread_id", "thread_id"),
        ("traceloop.association.properties.thread_id", "traceloop.association.properties.session_id"),
        ("langsmith.metadata.thread_id", "gen_ai.conversation.id"),
        ("metadata", "session.id"),
    ],
)
def test_traces_of_one_conversation_are_one_session(tmp_path: Path, names: tuple[str, str]) -> None:
    with served(tmp_path) as (url, child):
        for trace, name in enumerate(names, 1):
            said = {"thread_id": "talk-1"} if name == "metadata" else "talk-1"
            root = span(1, {"openinference.span.kind": "AGENT", name: said}, trace=trace)
            _send(url, request(root, tool(2, trace=trace)))
        _send(url, request(span(1, {names[0]: "talk-2"}, trace=3)), request(agent(1, trace=4)))
        child.kill()
    with served(tmp_path) as (url, _):
        _send(url, request(tool(5, trace=2)))  # its root, which names the conversation, came long ago
    found = _records(tmp_path)
    assert len(found) == 3
    assert sorted(map(len, map(_calls, found.values()))) == [0, 0, 3]


def test_a_conversation_that_only_roots_name_is_one_session_though_roots_come_last(tmp_path: Path) -> None:
    def root(trace: int) -> bytes:
        return request(agent(1, trace=trace), span(9, {"session.id": "talk"}, trace=trace, parent=1))

    with served(tmp_path) as (url, child):
        _send(url, request(tool(2, trace=1)), root(1))
        _send(url, root(2), request(tool(2, trace=2)))
        child.kill()
    with served(tmp_path) as (url, _):
        _send(url, root(3), request(tool(2, trace=3)), request(tool(3, trace=1)))
    assert sorted(_calls(_only(tmp_path))) == ["call-1-2", "call-1-3", "call-2-2", "call-3-2"]


_CUT = {
    "type": "tool_call",
    "id": "call-9",
    "name": "write",
    "arguments": '{"path": "a.txt", "content": "Dear S',
}
_WHOLE = {"type": "tool_call", "id": "call-9", "name": "write", "arguments": '{"path": "a.txt"}'}


@pytest.mark.parametrize(
    ("part", "stop", "failed", "expected"),
    [
        (_WHOLE, "tool_calls", "", "complete"),
        (_WHOLE, "", "", "complete"),
        (_CUT, "tool_calls", "", "complete"),  # all of it came: the model wrote it so
        (_CUT, "", "", "partial"),
        (_CUT, "length", "", "partial"),
        (_CUT, "", "APIConnectionError", "partial"),
        (_CUT, "", "asyncio.exceptions.CancelledError", "aborted"),
    ],
)
def test_an_answer_cut_inside_the_arguments_of_a_call_is_kept_and_said(
    tmp_path: Path, part: dict[str, str], stop: str, failed: str, expected: str
) -> None:
    with served(tmp_path) as (url, _):
        _send(url, request(agent(1), model(2, [part], stop=stop, failed=failed)))
    records = _only(tmp_path)
    (answered,) = (record.event for record in records if isinstance(record.event, ModelCallAnswered))
    assert answered.completeness == expected
    (asked,) = (record for record in records if isinstance(record.event, ToolCallRequested))
    assert answer(tmp_path, "show", f"{asked.session}#{asked.seq}")["contents"]["arguments"] in (
        part["arguments"],
        {"path": "a.txt"},
    )
    (row,) = answer(tmp_path, "sessions")
    assert row["completeness"] == expected == answer(tmp_path, "show", row["id"])["completeness"]
    assert (expected[:7] in run(tmp_path, "sessions").output) == (expected != "complete")
    assert expected in run(tmp_path, "show", row["id"]).output


def test_a_sender_that_hangs_up_in_the_middle_costs_nothing(tmp_path: Path) -> None:
    body = request(agent(1), tool(2, result="x" * 1_000_000))
    with served(tmp_path) as (url, child):
        place = urlsplit(url)
        for told in (len(body), None):
            with socket.create_connection((place.hostname, place.port)) as sender:
                length = f"Content-Length: {told}" if told else "Transfer-Encoding: chunked"
                head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\n{length}\r\n\r\n"
                chunk = b"" if told else f"{len(body):x}\r\n".encode()
                sender.sendall(head.encode() + chunk + body[: len(body) // 2])
        _send(url, request(agent(1)))
        assert child.poll() is None
        assert len(_only(tmp_path)) == 2  # the session, and the agent's span: half a request is none
        _send(url, body)
    assert _calls(_only(tmp_path)) == ["call-1-2"]


def test_a_request_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with served(tmp_path, "--max-request", "1") as (url, _):
        place = urlsplit(url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=120)
        connection.putrequest("POST", "/v1/traces")
        connection.putheader("Content-Type", "application/x-protobuf")
        connection.putheader("Content-Length", "4000000")
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        packed = request(tool(1, result="x" * 2_000_000))
        assert post(f"{url}/v1/traces", packed, packed=True)[0] == 413
        _send(url, request(tool(2, parent=0)))
    assert _calls(_only(tmp_path)) == ["call-1-2"]


def test_logs_that_come_before_or_after_their_spans_make_one_call(tmp_path: Path) -> None:
    text = [{"role": "assistant", "parts": [{"type": "text", "content": "said"}]}]
    details = {"gen_ai.input.messages": [{"role": "user", "parts": []}], "gen_ai.output.messages": text}
    bare = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "resp-1"}
    told = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m"}
    name = "gen_ai.client.inference.operation.details"
    with served(tmp_path) as (url, _):
        for trace in (1, 2):
            steps = [
                ("traces", request(agent(1, trace=trace), span(2, bare, trace=trace, parent=1))),
                ("logs", logs((2, name, told | details), trace=trace)),
            ]
            for kind, body in steps if trace == 1 else reversed(steps):
                assert post(f"{url}/v1/{kind}", body)[0] == 200
    found = _records(tmp_path)
    assert len(found) == 2
    for records in found.values():
        answers = [record.event for record in records if isinstance(record.event, ModelCallAnswered)]
        assert len({event.call_id for event in answers}) == 1
        assert (answers[-1].model, answers[-1].response_id) == ("m", "resp-1")
        with open_ledger(tmp_path) as ledger:
            assert b"said" in ledger.store.content(answers[-1].message.digest)
    rows = answer(tmp_path, "sessions")
    assert [(row["model_calls"], row["completeness"]) for row in rows] == [(1, "complete")] * 2


def test_the_list_follows_a_running_server(tmp_path: Path) -> None:
    with served(tmp_path) as (url, _):
        _send(url, request(agent(1), tool(2)))
        deadline = time.monotonic() + 120
        while not answer(tmp_path, "sessions"):
            assert time.monotonic() < deadline
        assert answer(tmp_path, "sessions")[0]["tool_calls"] == 1


def test_a_result_that_a_later_request_showed_first_is_no_second_end(tmp_path: Path) -> None:
    name = "gen_ai.client.inference.operation.details"
    part = {"type": "tool_call", "id": "call-1-3", "name": "write", "arguments": {"line": 3}}
    asked = {"gen_ai.output.messages": [{"role": "assistant", "parts": [part]}]}
    shown = {"type": "tool_call_response", "id": "call-1-3", "response": "done"}
    later = {
        "gen_ai.input.messages": [{"role": "tool", "parts": [shown]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "well"}]}],
    }
    with served(tmp_path) as (url, _):  # exporters send logs each second, and traces each five
        assert post(f"{url}/v1/logs", logs((2, name, asked), (4, name, later)))[0] == 200
        _send(url, request(agent(1), tool(3)))
    records = _only(tmp_path)
    assert _calls(records) == ["call-1-3"]
    kinds = [record.type for record in records]
    assert kinds.count("tool_call.settled") == kinds.count("tool_call.started") == 1
