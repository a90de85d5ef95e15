"""The seam of all hooks: what callbacks tell is recorded once, in order, and silence is loud."""

import threading

import pytest

from ledger.capture.hooks._run import HookRun
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallFailed,
    ModelCallRetried,
    Usage,
)
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from replay import rebuild_request
from tests.ledger.capture.hooks.told import ASKED, events, sessions
from tests.ledger.capture.loops import chat_answer, only, records, types, value


def test_a_run_told_by_callbacks_in_order(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame", harness_version="1.2") as run:
        session = run.session("run-1", conversation="talk-7", agent="buyer")
        session.message("hello")
        session.model_begun("span-1", "openai.chat", ASKED)
        run.model_answered("span-1", chat_answer("I look.", id="chatcmpl-1"))
        session.tool_begun("span-2", "look", {"at": 1}, call_id="call_1")
        run.tool_returned("span-2", "nothing")
        run.ended("run-1")
    assert session.session == "frame-talk-7"
    assert types(ledger, "frame-talk-7") == [
        "session.started",
        "input.message_received",
        "model_call.requested",
        "model_call.answered",
        "tool_call.requested",
        "tool_call.started",
        "tool_call.settled",
        "session.ended",
    ]
    answered = only(ledger, "frame-talk-7", ModelCallAnswered)
    assert (answered.call_id, answered.response_id) == ("span-1", "chatcmpl-1")
    assert only(ledger, "frame-talk-7", ToolCallSettled).call_id == "call_1"
    found = records(ledger, "frame-talk-7")
    assert {record.grade for record in found} == {"semantic"}
    assert {record.correlation for record in found} == {"frame-talk-7"}
    assert all(record.occurred_at for record in found)
    assert rebuild_request(ledger.store, "frame-talk-7", 3).body == ASKED


def test_the_same_conversation_goes_on_in_the_same_session(ledger: Ledger) -> None:
    for key in ("run-1", "run-2"):
        with HookRun(ledger, harness="frame") as run:
            run.session(key, conversation="talk 1 #a")
            run.ended(key)
            run.session(f"{key}-again", conversation="talk 1 #a", how="a new question")
            run.ended(f"{key}-again")
    (session,) = sessions(ledger)
    assert session.startswith("frame-")
    assert types(ledger, session).count("session.started") == 1
    assert [event.how for event in events(ledger, session, SessionResumed)] == [
        "a new question",
        "the framework",
        "a new question",
    ]


def test_the_same_key_begins_and_ends_once(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        assert run.session("run") is session
        session.model_begun("m", "openai.chat", ASKED)
        for _ in range(2):
            run.model_answered("m", chat_answer("yes"))
            session.model_begun("m", "openai.chat", ASKED)
        for _ in range(2):
            session.tool_begun("t", "look", {}, call_id="call_1")
        for _ in range(2):
            run.tool_returned("t", 1)
            session.tool_denied("call_2", "buy", {}, reason="too dear")
        for _ in range(2):
            run.ended("run")
    counted = types(ledger, session.session)
    assert {name: counted.count(name) for name in set(counted)} == {
        "session.started": 1,
        "model_call.requested": 1,
        "model_call.answered": 1,
        "tool_call.requested": 2,
        "tool_call.started": 1,
        "tool_call.settled": 2,
        "session.ended": 1,
    }
    assert (run.counts.model_calls, run.counts.tool_calls, run.counts.unmatched) == (1, 2, 0)


def test_threads_that_tell_the_same_at_once_are_heard_once(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        barrier = threading.Barrier(4)

        def tell() -> None:
            barrier.wait(timeout=120)
            session = run.session("run", conversation="one")
            for number in range(10):
                session.tool_begun(number, "look", {"at": number})
                run.tool_returned(number, number)

        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        run.ended("run")
    counted = types(ledger, "frame-one")
    assert [counted.count(f"tool_call.{name}") for name in ("requested", "started", "settled")] == [10] * 3


def test_a_streamed_answer_keeps_its_chunks(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        session.model_begun("m", "frame", ASKED)
        for text in ("Good ", "day"):
            run.model_chunk("m", text)
        usage = Usage(input_tokens=5, output_tokens=2)
        message = {"type": "ai", "content": "Good day", "id": "not-the-response"}
        run.model_answered("m", message, usage=usage, response_id="resp_9", stop_reason="stop")
        session.model_begun("cut", "frame", ASKED)
        run.model_chunk("cut", "Half of ")
        run.model_failed("cut", ConnectionError("gone"))
        run.ended("run")
    whole, half = events(ledger, session.session, ModelCallAnswered)
    assert value(ledger, whole.message) == message
    assert [text for _, text in value(ledger, whole.stream)] == ['"Good "', '"day"']
    assert (whole.response_id, whole.usage, whole.completeness) == ("resp_9", usage, "complete")
    assert (value(ledger, half.message), half.completeness) == ("Half of ", "partial")


def test_a_secret_that_comes_in_pieces_is_not_kept(ledger: Ledger) -> None:
    secret = "sk-ant-api03-" + "Zx9Qw3Er7Ty1Ui5Op2As" * 4
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        session.model_begun("m", "frame", ASKED)
        for start in range(0, len(secret), 10):
            run.model_chunk("m", secret[start : start + 10])
        run.model_answered("m", {"content": secret})
        run.ended("run")
    answered = only(ledger, session.session, ModelCallAnswered)
    assert answered.stream is None
    assert secret not in str(value(ledger, answered.message))


def test_failures_and_retries(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        session.model_begun("m1", "openai.chat", ASKED)
        run.model_failed("m1", "status 503", kind="APIStatusError", will_retry=True)
        session.model_begun("m2", "openai.chat", ASKED, attempt=2, retry_of="m1")
        run.model_answered("m2", chat_answer("yes"))
        session.tool_begun("t1", "look", {})
        run.tool_failed("t1", ValueError("no shelf"), shown="Error: no shelf")
        session.tool_begun("t2", "look", {})
        run.tool_failed("t2", "no shelf", kind="ShelfError")
        session.tool_begun("t3", "look", {})
        run.tool_refused("t3", "not now")
        run.ended("run", "failed", reason="ValueError")
    failed = only(ledger, session.session, ModelCallFailed)
    assert (failed.error, failed.will_retry) == ("APIStatusError", True)
    retried = only(ledger, session.session, ModelCallRetried)
    assert (retried.call_id, retried.failed_call_id) == ("m2", "m1")
    settled = events(ledger, session.session, ToolCallSettled)
    assert [(event.outcome, event.error) for event in settled] == [
        ("failed", "ValueError"),
        ("failed", "ShelfError"),
        ("denied", "not now"),
    ]
    assert value(ledger, settled[0].result) == "Error: no shelf"
    assert only(ledger, session.session, SessionEnded).outcome == "failed"


def test_what_is_open_when_the_session_ends_is_unknown(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        session.model_begun("m", "openai.chat", ASKED)
        session.model_begun("s", "frame", ASKED)
        run.model_chunk("s", "Half")
        session.tool_begun("t", "send", {})
        child = run.delegate(session, "sub", agent="expert", payload="look", how="tool", call_id="call_5")
        child.tool_begun("u", "look", {})
    assert types(ledger, child.session)[-2:] == ["tool_call.settled", "session.ended"]
    assert only(ledger, child.session, ToolCallSettled).outcome == "unknown"
    assert only(ledger, session.session, ToolCallSettled).outcome == "unknown"
    assert only(ledger, session.session, ModelCallFailed).error == "unknown"
    assert only(ledger, session.session, ModelCallAnswered).completeness == "aborted"
    assert only(ledger, session.session, SessionEnded).outcome == "unknown"
    assert only(ledger, session.session, DelegationReturned).outcome == "aborted"


def test_a_question_is_answered_in_another_process_and_its_answer_used(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run-1", conversation="order")
        session.asked("q1", tool="buy", arguments={"total": 5}, call_id="call_1")
        session.asked("q1", tool="buy", arguments={"total": 5}, call_id="call_1")
        run.waits("run-1")
    assert "session.ended" not in types(ledger, "frame-order")
    with HookRun(ledger, harness="frame", effects={"buy": "irreversible"}) as run:
        session = run.session("run-2", conversation="order", how="resume")
        session.decided("q1", True, decider="Ada", how="edit", arguments={"total": 4}, call_id="call_1")
        session.tool_begun("t", "buy", {"total": 4}, call_id="call_1")
        run.tool_returned("t", "bought")
        run.ended("run-2")
    asked = only(ledger, "frame-order", ApprovalAsked)
    decided = only(ledger, "frame-order", ApprovalDecided)
    used = only(ledger, "frame-order", ApprovalUsed)
    assert {asked.approval_id, decided.approval_id, used.approval_id} == {"q1"}
    assert (decided.outcome, decided.decider, decided.how) == ("approved", "Ada", "edit")
    assert asked.arguments_digest != decided.arguments_digest == used.arguments_digest
    assert only(ledger, "frame-order", ToolCallRequested).effect_class == "irreversible"


def test_a_tool_that_stops_to_ask_and_begins_again_is_one_call(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run-1", conversation="order")
        session.tool_begun("t1", "buy", {"total": 5}, call_id="call_1")
        session.asked("q1", tool="buy", call_id="call_1")
        run.waits("run-1")
        session = run.session("run-2", conversation="order", how="resume")
        session.decided("q1", "approved")
        session.tool_begun("t2", "buy", {"total": 5}, call_id="call_1")
        run.tool_returned("t2", "bought")
        run.ended("run-2")
    assert only(ledger, "frame-order", ToolCallRequested).call_id == "call_1"
    assert len(events(ledger, "frame-order", ToolCallStarted)) == 2
    assert only(ledger, "frame-order", ToolCallSettled).outcome == "returned"


@pytest.mark.parametrize("is_new_process", [False, True])
def test_what_waits_is_gone_on_with_at_every_depth(ledger: Ledger, is_new_process: bool) -> None:
    first = HookRun(ledger, harness="frame")
    parent = first.session("run-1", conversation="order")
    parent.tool_begun("t1", "ask_expert", {}, call_id="call_1")
    child = first.delegate(
        parent, "sub-1", agent="expert", conversation="tools:1", how="tool", call_id="call_1"
    )
    child.tool_begun("t2", "buy", {}, call_id="call_2")
    child.asked("q1", tool="buy", call_id="call_2")
    first.waits("sub-1")
    first.waits("run-1")
    second = HookRun(ledger, harness="frame") if is_new_process else first
    parent = second.session("run-2", conversation="order")
    parent.tool_begun("t3", "ask_expert", {}, call_id="call_1")
    again = second.delegate(
        parent, "sub-2", agent="expert", conversation="tools:1", how="tool", call_id="call_1"
    )
    assert again.session == child.session
    assert [question.approval_id for question in again.questions] == ["q1"]
    again.decided("q1", True)
    again.tool_begun("t4", "buy", {}, call_id="call_2")
    second.tool_returned("t4", "bought")
    second.ended("sub-2", result="bought")
    second.tool_returned("t3", "bought")
    second.ended("run-2")
    for run in (first, second):
        run.close()
    assert types(ledger, child.session) == [
        "session.started",
        "tool_call.requested",
        "tool_call.started",
        "approval.asked",
        "session.resumed",
        "approval.decided",
        "approval.used",
        "tool_call.started",
        "tool_call.settled",
        "session.ended",
    ]
    started, returned = events(ledger, parent.session, DelegationStarted, DelegationReturned)
    assert (started.delegation_id, started.to_session) == (returned.delegation_id, child.session)
    settled = only(ledger, parent.session, ToolCallSettled)
    assert (settled.call_id, settled.outcome) == ("call_1", "returned")
    assert only(ledger, child.session, ApprovalDecided).call_id == "call_2"


def test_delegated_work_is_a_session_of_its_own(ledger: Ledger) -> None:
    with HookRun(ledger, harness="frame", run_id="run-77") as run:
        parent = run.session("run", agent="boss", trace="ab" * 16)
        child = run.delegate(parent, "sub", agent="expert", payload={"question": "good?"}, how="handoff")
        child.model_begun("m", "openai.chat", ASKED)
        run.model_answered("m", chat_answer("yes"))
        run.ended("sub", result="they are good")
        parent.report_usage(13)
        run.ended("run")
    started = only(ledger, parent.session, DelegationStarted)
    assert (started.to_session, started.to_agent, started.how) == (child.session, "expert", "handoff")
    assert value(ledger, started.payload) == {"question": "good?"}
    returned = only(ledger, parent.session, DelegationReturned)
    assert (returned.outcome, returned.returned) == ("returned", "result")
    assert only(ledger, child.session, SessionStarted).parent == parent.session
    assert {record.correlation for record in records(ledger, child.session)} == {"run-77"}
    environment = only(ledger, parent.session, SessionStarted).environment
    assert value(ledger, environment) == {"run": "run-77", "trace": "ab" * 16}


def test_the_run_id_comes_from_the_environment(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPLEDGER_RUN", "run-5")
    with HookRun(ledger, harness="frame") as run:
        session = run.session("run")
        run.ended("run")
    assert {record.correlation for record in records(ledger, session.session)} == {"run-5"}
