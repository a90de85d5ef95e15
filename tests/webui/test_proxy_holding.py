"""The proxy as a gate: answers with calls that need a yes wait for it, and a held run sends nothing."""

import asyncio
import contextlib
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ledger.capture.proxy.holding import AnswerGate
from ledger.effects.loop_policy import ApprovalRule, Budget, LoopPolicy
from ledger.events import Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.model_call import ModelCallAnswered
from ledger.events.policy import BreakerTripped, PolicyEvaluated
from ledger.events.tool_call import ToolCallSettled
from ledger.home import open_ledger
from ledger.protocols.http_bodies import answer_of
from ledger.protocols.responses import take_apart
from ledger.protocols.tool_use import calls_in
from tests.commands import answer
from tests.ledger.capture.gates.test_approvals import waits_for
from tests.scripted_model import ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import RUN, encoded, messages, proxying, recorded, script, send

POLICY = LoopPolicy(approvals=(ApprovalRule(tool="send_*", deciders=("alice",)),))
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
RESPONSES = {"model": "m", "input": [{"role": "user", "content": "hi"}]}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "anthropic": ("anthropic.messages", "/v1/messages", messages("hi")),
    "anthropic stream": ("anthropic.messages", "/v1/messages", messages("hi", stream=True)),
    "chat": ("openai.chat", "/v1/chat/completions", messages("hi")),
    "chat stream": ("openai.chat", "/v1/chat/completions", messages("hi", stream=True)),
    "responses": ("openai.responses", "/v1/responses", RESPONSES),
    "responses stream": ("openai.responses", "/v1/responses", {**RESPONSES, "stream": True}),
    "gemini": ("gemini", "/v1beta/models/m:generateContent", GEMINI),
    "gemini stream": ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI),
}
STEP = Step([Text("I will write."), ToolCall("send_mail", {"to": "a"}), ToolCall("read", {"path": "b"})])


def asked(home: Path) -> Any:
    """The question that waits."""
    return waits_for(lambda: next(iter(answer(home, "approvals")), None))


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_an_answer_waits_for_a_person(name: str, verdict: str, tmp_path: Path) -> None:
    protocol, path, body = REQUESTS[name]
    with (
        ScriptedModel(script(STEP)) as model,
        proxying(tmp_path, model.url, policy=POLICY) as base,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(send, base, path, encoded(body))
        question = asked(tmp_path)
        assert not sent.done()
        assert (question["tool"], question["context"]["arguments"]) == ("send_mail", {"to": "a"})
        answer(tmp_path, verdict, question["id"], "--by", "alice")
        status, headers, got = sent.result(120)
        upstream = "".join(model.exchanges[0].chunks).encode()
    assert status == 200
    said = take_apart(protocol, answer_of(protocol, got, list(headers.items())).body).message
    told = [use.tool for use in calls_in(said)]
    assert len(recorded(tmp_path, ModelCallAnswered)) == 1  # what the model said is kept as it was
    if verdict == "approve":
        assert got == upstream
        assert told == ["send_mail", "read"]
        (used,) = recorded(tmp_path, ApprovalUsed)
        assert used.arguments_digest == question["arguments_digest"]
        return
    assert told == ["read"]
    assert b"was not allowed: denied" in got
    assert b"I will write." in got
    assert [one.outcome for one in recorded(tmp_path, ToolCallSettled)] == ["denied"]
    (evaluated,) = recorded(tmp_path, PolicyEvaluated)
    assert (evaluated.verdict, evaluated.detail is not None) == ("deny", True)


def test_an_answer_without_such_calls_goes_through_untouched(tmp_path: Path) -> None:
    step = Step([Text("fine"), ToolCall("read", {"path": "b"})])
    with ScriptedModel(script(step)) as model, proxying(tmp_path, model.url, policy=POLICY) as base:
        got = send(base, "/v1/messages", encoded(messages("hi", stream=True)))[2]
        assert got == "".join(model.exchanges[0].chunks).encode()
    assert recorded(tmp_path, ApprovalAsked) == []


def test_other_choices_do_not_smuggle_a_call(tmp_path: Path) -> None:
    def choice(index: int, tool: str) -> dict[str, Any]:
        call = {"id": f"c{index}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"index": index, "message": message, "finish_reason": "tool_calls"}

    with open_ledger(tmp_path) as ledger:
        gate = AnswerGate(ledger.recorder, RUN, POLICY)
        body = {"id": "x", "choices": [choice(0, "read"), choice(1, "send_mail")]}
        let = asyncio.run(gate.let_through("e", "openai.chat", body))
        assert let == {"id": "x", "choices": [choice(0, "read")]}
        harmless = {"id": "x", "choices": [choice(0, "read"), choice(1, "read")]}
        assert asyncio.run(gate.let_through("e", "openai.chat", harmless)) is harmless


def test_a_question_outlives_the_proxy_and_its_client(tmp_path: Path) -> None:
    body = encoded(messages("hi"))

    def ask(base: str) -> None:
        with contextlib.suppress(
            OSError, http.client.HTTPException
        ):  # its connection may break with the proxy
            send(base, "/v1/messages", body)

    with ScriptedModel(script(STEP, STEP)) as model:
        with proxying(tmp_path, model.url, policy=POLICY) as base:
            lost = threading.Thread(target=ask, args=(base,))
            lost.start()
            question = asked(tmp_path)
        lost.join()
        answer(tmp_path, "approve", question["id"], "--by", "alice")
        with proxying(tmp_path, model.url, policy=POLICY) as base:
            assert b"send_mail" in send(base, "/v1/messages", body)[2]
    assert len(recorded(tmp_path, ApprovalAsked)) == len(recorded(tmp_path, ApprovalDecided)) == 1


def test_a_held_run_sends_nothing_until_it_is_released(tmp_path: Path) -> None:
    with (
        ScriptedModel(script(Step([Text("one")]), Step([Text("two")]))) as model,
        proxying(tmp_path, model.url) as base,
        ThreadPoolExecutor() as pool,
    ):
        send(base, "/v1/messages", encoded(messages("hi")))
        answer(tmp_path, "hold", RUN, "--reason", "look")
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi", "one", "go")))
        waits_for(lambda: types(tmp_path).count("model_call.requested") == 2)
        assert len(model.exchanges) == 1
        answer(tmp_path, "release", RUN)
        assert b"two" in sent.result(120)[2]


def types(home: Path) -> list[str]:
    """Names of all events."""
    return [event.TYPE for event in recorded(home, Event)]


def test_a_budget_holds_the_next_request(tmp_path: Path) -> None:
    policy = LoopPolicy(budgets=(Budget(name="b", tokens=Decimal(1)),))
    with (
        ScriptedModel(script(Step([Text("one")]), Step([Text("two")]))) as model,
        proxying(tmp_path, model.url, policy=policy) as base,
        ThreadPoolExecutor() as pool,
    ):
        send(base, "/v1/messages", encoded(messages("hi")))
        waits_for(lambda: recorded(tmp_path, BreakerTripped))
        sent = pool.submit(send, base, "/v1/messages", encoded(messages("hi", "one", "go")))
        waits_for(lambda: types(tmp_path).count("model_call.requested") == 2)
        assert len(model.exchanges) == 1
        answer(tmp_path, "release", RUN)
        assert b"two" in sent.result(120)[2]
