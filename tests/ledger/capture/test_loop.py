"""A user's own loop: what is recorded, in what order, and that nothing of the loop changes."""

import contextlib
import sqlite3
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic import BaseModel

from ledger.capture import RecordedLoop, record_loop
from ledger.errors import InputError, LedgerError, NotRecordedError
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.store import open_store
from replay import rebuild_request
from tests.ledger.capture.loops import chat_answer, only, records, scripted, types, value


def test_a_loop_in_order(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop", agent="triage") as run:
        run.message("hello", sender="Ada")
        messages = [{"role": "user", "content": "hello"}]
        assert run.model(scripted, model="scripted-1", messages=messages) == chat_answer("saw 1")
        assert run.tool(lambda text: text.upper(), {"text": "a"}, name="shout") == "A"
    assert types(ledger, run.session) == [
        "session.started",
        "input.message_received",
        "model_call.requested",
        "model_call.answered",
        "tool_call.requested",
        "tool_call.started",
        "tool_call.settled",
        "session.ended",
    ]
    found = records(ledger, run.session)
    assert [record.cause for record in found] == [None, None, None, 3, None, None, 5, None]
    assert found[1].actor is not None
    assert (found[1].actor.kind, found[1].actor.id) == ("human", "Ada")
    assert {record.agent for record in found} == {"triage"}
    answered = only(ledger, run.session, ModelCallAnswered)
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.usage.cache_read_tokens, answered.usage.output_tokens) == (
        6,
        4,
        3,
    )
    assert (answered.stop_reason, answered.response_id, answered.model) == ("stop", "resp-1", "scripted-1.1")
    assert only(ledger, run.session, SessionEnded).outcome == "completed"


def test_durations_come_from_the_clock_that_is_given(ledger: Ledger) -> None:
    ticks = iter([1.0, 1.25, 5.0, 7.5])
    with record_loop(ledger, harness="my-loop", monotonic=lambda: next(ticks)) as run:
        run.model(scripted, messages=[])
        run.tool(dict, {})
    assert only(ledger, run.session, ModelCallAnswered).duration_ms == 250
    assert only(ledger, run.session, ToolCallSettled).duration_ms == 2500


def _growing(run: RecordedLoop, protocol: str, turns: int, **extra: Any) -> None:
    name = {"gemini": "contents", "openai.responses": "input"}.get(protocol, "messages")
    messages: list[dict[str, Any]] = []
    request: dict[str, Any] = {"model": "m", name: messages, **extra}
    for turn in range(turns):
        messages.append({"role": "user", "content": f"turn {turn}", "weight": turn / 7})
        run.model(lambda **given: {"ok": True}, protocol=protocol, **request)


@pytest.mark.parametrize(
    ("protocol", "extra"),
    [
        ("openai.chat", {"tools": [{"type": "function", "function": {"name": "a"}}], "temperature": 0.1}),
        (
            "anthropic.messages",
            {"system": [{"type": "text", "text": "be kind"}], "max_tokens": 5, "tools": []},
        ),
        ("openai.responses", {"instructions": "be kind", "store": False, "ключ": "é"}),
        ("gemini", {"systemInstruction": {"parts": [{"text": "be kind"}]}, "generationConfig": {"topK": 1}}),
    ],
)
def test_every_request_can_be_rebuilt(ledger: Ledger, protocol: str, extra: dict[str, Any]) -> None:
    with record_loop(ledger, harness="my-loop") as run:
        _growing(run, protocol, 4, **extra)
    requests = [
        record for record in records(ledger, run.session) if isinstance(record.event, ModelCallRequested)
    ]
    assert [rebuild_request(ledger.store, run.session, record.seq).body_matches for record in requests] == [
        True
    ] * 4
    added = [
        record.event.context_added for record in requests if isinstance(record.event, ModelCallRequested)
    ]
    assert added == [1, 1, 1, 1]


def test_a_request_with_a_lone_text(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop", protocol="openai.responses") as run:
        run.model(lambda **request: {}, model="m", input="what is new?")
    rebuilt = rebuild_request(ledger.store, run.session, 2)
    assert rebuilt.body == {"model": "m", "input": "what is new?"}
    assert rebuilt.body_matches
    assert rebuilt.messages == [{"role": "user", "content": "what is new?"}]


def test_a_system_message_and_its_tools_are_artifacts_where_they_change(ledger: Ledger) -> None:
    tools = [{"type": "function", "function": {"name": "a"}}]
    first = {"role": "system", "content": "be kind"}
    with record_loop(ledger, harness="my-loop") as run:
        for messages in ([first], [first], [{"role": "system", "content": "be brief"}]):
            run.model(scripted, messages=messages, tools=tools)
    requested = [
        record.event for record in records(ledger, run.session) if record.type == "model_call.requested"
    ]
    named = [
        [one.artifact for one in event.artifacts]
        for event in requested
        if isinstance(event, ModelCallRequested)
    ]
    assert named == [["system_prompt", "tool:a"], [], ["system_prompt"]]


def test_side_calls_do_not_cut_the_conversation(ledger: Ledger) -> None:
    messages = [{"role": "user", "content": str(number)} for number in range(5)]
    with record_loop(ledger, harness="my-loop") as run:
        run.model(scripted, messages=messages)
        run.model(scripted, messages=[{"role": "user", "content": "title?"}], purpose="title")
        run.model(scripted, messages=[*messages, {"role": "user", "content": "more"}])
    requested = [
        record.event for record in records(ledger, run.session) if record.type == "model_call.requested"
    ]
    assert [event.context_added for event in requested if isinstance(event, ModelCallRequested)] == [5, 1, 1]


class Message(BaseModel):
    """Stands for an SDK's object."""

    role: str
    content: str


@dataclass
class Odd:
    """Something that is not JSON."""

    path: Path
    inner: Any


def test_objects_of_sdks_and_odd_values_are_kept_as_json(ledger: Ledger) -> None:
    loop: list[Any] = []
    loop.append(loop)
    odd = Odd(Path("/x"), {1, 2})
    with record_loop(ledger, harness="my-loop") as run:
        answer = run.model(
            lambda **request: Message(role="assistant", content="hi"),
            protocol="my.own",
            messages=[Message(role="user", content="hello")],
            limit=float("nan"),
        )
        assert isinstance(answer, Message)
        assert run.tool(lambda **given: odd, {"loop": loop, "bytes": b"\x00", "money": Decimal("1.5")}) is odd
    assert value(ledger, only(ledger, run.session, ModelCallAnswered).message) == {
        "role": "assistant",
        "content": "hi",
    }
    arguments = value(ledger, only(ledger, run.session, ToolCallRequested).arguments)
    assert arguments == {"loop": ["<circular reference>"], "bytes": {"base64": "AA=="}, "money": "1.5"}
    assert value(ledger, only(ledger, run.session, ToolCallSettled).result) == {"path": "/x", "inner": [1, 2]}


def test_errors_pass_through_and_are_recorded(ledger: Ledger) -> None:
    def broken(**request: Any) -> None:
        raise ValueError("no such model")

    def loop(run: RecordedLoop) -> None:
        with run:
            with pytest.raises(ValueError, match="no such model"):
                run.tool(broken, {"a": 1})
            run.model(broken, messages=[])

    run = record_loop(ledger, harness="my-loop")
    with pytest.raises(ValueError, match="no such model"):
        loop(run)
    assert only(ledger, run.session, ModelCallFailed).error == "ValueError"
    settled = only(ledger, run.session, ToolCallSettled)
    assert (settled.outcome, settled.error, settled.result) == ("failed", "ValueError", None)
    assert value(ledger, settled.details) == {"type": "ValueError", "message": "no such model"}
    ended = only(ledger, run.session, SessionEnded)
    assert (ended.outcome, ended.reason) == ("failed", "ValueError")


def test_an_interrupted_tool_is_unknown_not_failed(ledger: Ledger) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), record_loop(ledger, harness="my-loop") as run:
        run.tool(interrupted, {})
    assert only(ledger, run.session, ToolCallSettled).outcome == "unknown"
    assert only(ledger, run.session, SessionEnded).outcome == "aborted"


def test_the_intent_is_in_the_store_before_the_function_runs(ledger: Ledger, tmp_path: Path) -> None:
    def look(**ignored: Any) -> list[str]:
        with open_store(f"sqlite:///{tmp_path / 'home' / 'ledger.sqlite'}") as other:
            return [record.type for record in other.read_all()]

    with record_loop(ledger, harness="my-loop") as run:
        assert run.tool(look, {"a": 1}, effect_class="external")[-2:] == [
            "tool_call.requested",
            "tool_call.started",
        ]
        assert run.model(look, messages=[])[-1] == "model_call.requested"
        seen: list[str] = []

        def ask() -> bool:
            seen.extend(look())
            return True

        run.approve(ask)
        assert seen[-1] == "approval.asked"


def _break(home: Path) -> None:
    """From now on, the store takes no record."""
    with contextlib.closing(sqlite3.connect(home / "ledger.sqlite")) as connection:
        connection.execute("alter table stored_events rename to gone")
        connection.commit()


def test_without_a_record_nothing_runs(tmp_path: Path) -> None:
    ran: list[str] = []

    def loop(run: RecordedLoop) -> None:
        with run:
            _break(tmp_path)
            with pytest.raises(
                NotRecordedError, match=r"'danger'.*could not be recorded, so it was not started"
            ):
                run.tool(lambda: ran.append("tool"), {}, name="danger", effect_class="irreversible")
            with pytest.raises(NotRecordedError, match="model call"):
                run.model(lambda **request: ran.append("model"), messages=[])
            with pytest.raises(NotRecordedError, match="question"):
                run.approve(lambda: ran.append("ask"))
            with pytest.raises(LedgerError, match="message"):
                run.message("hello")
            raise RuntimeError("the loop's own")

    with open_ledger(tmp_path) as ledger:
        run = record_loop(ledger, harness="my-loop")
        with pytest.raises(RuntimeError, match="the loop's own") as raised:
            loop(run)
    assert ran == []
    assert "could not record this failure" in raised.value.__notes__[0]


def test_a_result_that_cannot_be_recorded_leaves_the_call_open(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        run = record_loop(ledger, harness="my-loop").__enter__()
        with pytest.raises(LedgerError, match="result of a tool call"):
            run.tool(lambda: _break(tmp_path), {})


def test_a_session_can_be_continued(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop", session="mine"):
        pass
    with record_loop(ledger, harness="my-loop", session="mine"):
        pass
    assert types(ledger, "mine") == ["session.started", "session.ended", "session.resumed", "session.ended"]
    with pytest.raises(InputError, match="cannot name a session"):
        record_loop(ledger, harness="my-loop", session="a#1")


def test_secrets_reach_the_function_and_not_the_disk(ledger: Ledger, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Zx9Qw3Er7Ty1Ui5Op2As" * 4
    with record_loop(ledger, harness="my-loop") as run:
        assert run.tool(lambda token: token, {"token": key}) == key
        run.model(scripted, messages=[{"role": "user", "content": f"use {key}"}])
    head = ledger.store.head(run.session).seq
    rebuilt = rebuild_request(ledger.store, run.session, head)
    assert rebuilt.body_matches
    assert key not in str(rebuilt.body)
    assert "credential.secret_redacted" in types(ledger, run.session)
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert all(key.encode() not in path.read_bytes() for path in files)


def test_threads_may_share_a_loop(ledger: Ledger) -> None:
    with record_loop(ledger, harness="my-loop") as run:
        threads = [
            Thread(target=lambda number=number: [run.tool(dict, {"n": number}) for _ in range(10)])
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert types(ledger, run.session).count("tool_call.settled") == 80


def test_asynchronous_functions_are_refused_by_name(ledger: Ledger) -> None:
    async def later(**given: Any) -> None: ...

    with record_loop(ledger, harness="my-loop") as run:
        with pytest.raises(TypeError, match=r"await run\.amodel"):
            run.model(later, messages=[])
        with pytest.raises(TypeError, match=r"await run\.atool"):
            run.tool(later, {})
