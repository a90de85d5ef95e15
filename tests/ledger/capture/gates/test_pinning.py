"""A model request that has lost a declared rule: it is put back, or the request waits, as the policy says."""

import asyncio
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.capture.gates.deciding import release
from ledger.capture.gates.pinning import HEADING, Pins, pin
from ledger.constraints.visibility import KEPT, see
from ledger.effects.constraints import Constraint, WhenLost
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import HeldError
from ledger.events.compaction import ConstraintPinned
from ledger.events.governance import ConstraintDeclared
from ledger.events.model_call import ModelCallRequested
from ledger.events.policy import Held, PolicyEvaluated
from ledger.home import Ledger
from replay.context import rebuild_request
from tests.ledger.capture.loops import chat_answer, only, records, types, value

RULE = "Never drop a table in the orders database."
LONG = "Here is a page of the archive about copper and lanterns. " * 400


def policy(way: WhenLost) -> LoopPolicy:
    return LoopPolicy(constraints=(Constraint(name="no-drop", text=RULE),), pinning=way)


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def test_a_rule_that_is_gone_is_put_back_and_its_cost_recorded(ledger: Ledger) -> None:
    sent: list[dict[str, Any]] = []

    def model(**request: Any) -> Any:
        sent.append(request)
        return chat_answer("ok")

    messages = said(LONG)
    with record_loop(ledger, harness="h", policy=policy("pin")) as run:
        run.model(model, model="m", messages=said(RULE, LONG))
        run.model(model, model="m", messages=messages)
    assert messages == said(LONG)  # the loop's own list is as it was
    assert sent[0]["messages"] == said(RULE, LONG)
    assert sent[1]["messages"] == [{"role": "system", "content": HEADING + RULE}, *messages]
    pinned = only(ledger, run.session, ConstraintPinned)
    assert (pinned.constraint, value(ledger, pinned.message)) == ("no-drop", HEADING + RULE)
    assert pinned.tokens is not None and pinned.request_tokens is not None
    assert pinned.tokens / pinned.request_tokens < 0.005
    asked = [one for one in records(ledger, run.session) if isinstance(one.event, ModelCallRequested)][-1]
    rebuilt = rebuild_request(ledger.store, run.session, asked.seq)
    assert (rebuilt.call_id, rebuilt.body_matches) == (pinned.call_id, True)
    assert rebuilt.body == sent[1]  # the ledger has what was sent
    declared = only(ledger, run.session, ConstraintDeclared)
    assert (declared.modality, declared.hardness, declared.origin) == ("prohibition", "hard", "policy")
    assert declared.check is not None


def test_a_request_is_held_until_a_person_releases_it(ledger: Ledger) -> None:
    with record_loop(ledger, harness="h", policy=policy("hold"), when_held="raise") as run:
        with pytest.raises(HeldError, match="no-drop"):
            run.model(lambda **_: chat_answer("ok"), model="m", messages=said("hello"))
        release(ledger.recorder, run.session, "alice", None)
        run._journal.holds.hear()
        assert run.model(lambda **_: chat_answer("ok"), model="m", messages=said("hello"))
    held = only(ledger, run.session, Held)
    assert held.breaker == "constraint no-drop"


def test_it_may_be_told_and_nothing_more(ledger: Ledger) -> None:
    sent: list[Any] = []

    def model(**request: Any) -> Any:
        sent.append(request)
        return chat_answer("ok")

    with record_loop(ledger, harness="h", policy=policy("tell")) as run:
        run.model(model, model="m", messages=said("hello"))
    assert sent[0]["messages"] == said("hello")
    assert only(ledger, run.session, PolicyEvaluated).verdict == "warn"


def test_a_rule_in_other_words_needs_no_pin_and_side_calls_are_left_alone(ledger: Ledger) -> None:
    with record_loop(ledger, harness="h", policy=policy("pin")) as run:
        run.model(
            lambda **_: chat_answer("ok"),
            model="m",
            messages=said("Tables in the orders database must not be dropped."),
        )
        run.model(lambda **_: chat_answer("A title"), model="m", purpose="title", messages=said("hello"))
    assert "compaction.pinned" not in types(ledger, run.session)


def test_rules_that_the_loop_declares_are_watched_until_it_withdraws_them(ledger: Ledger) -> None:
    with record_loop(ledger, harness="h", policy=policy("pin")) as run:
        run.withdraw("no-drop")
        run.constraint("short", "Answers must stay below 100 words each.")
        run.model(lambda **_: chat_answer("ok"), model="m", messages=said("hello"))
    assert only(ledger, run.session, ConstraintPinned).constraint == "short"


def test_an_asynchronous_loop_is_watched_too(ledger: Ledger) -> None:
    async def model(**request: Any) -> Any:
        return chat_answer(str(len(request["messages"])))

    async def go() -> tuple[str, Any]:
        async with record_loop(ledger, harness="h", policy=policy("pin")) as run:
            return run.session, await run.amodel(model, model="m", messages=said("hello"))

    session, answer = asyncio.run(go())
    assert answer["choices"][0]["message"]["content"] == "2"
    assert only(ledger, session, ConstraintPinned).constraint == "no-drop"


@pytest.mark.parametrize(
    ("protocol", "request_body", "where"),
    [
        ("anthropic.messages", {"messages": []}, "system"),
        ("anthropic.messages", {"messages": [], "system": "Be brief."}, "system"),
        ("anthropic.messages", {"messages": [], "system": [{"type": "text", "text": "Be brief."}]}, "system"),
        ("openai.responses", {"input": "hi"}, "instructions"),
        ("openai.responses", {"input": [], "instructions": "Be brief."}, "instructions"),
        ("openai.chat", {"messages": [{"role": "system", "content": "Be brief."}]}, "messages"),
        (
            "openai.chat",
            {"messages": [{"role": "developer", "content": [{"type": "text", "text": "x"}]}]},
            "messages",
        ),
        ("gemini", {"contents": []}, "systemInstruction"),
        (
            "gemini",
            {"contents": [], "system_instruction": {"parts": [{"text": "Be brief."}]}},
            "system_instruction",
        ),
    ],
)
def test_every_protocol_has_a_place_for_it(protocol: str, request_body: dict[str, Any], where: str) -> None:
    before = repr(request_body)
    changed = dict(request_body)
    assert pin(protocol, changed, HEADING + RULE)
    assert repr(request_body) == before
    assert HEADING + RULE in repr(changed[where])
    assert see(RULE, repr(changed[where]).replace("\\n", "\n")).visibility in KEPT


def test_gemini_takes_one_part_and_one_content_without_their_lists() -> None:
    changed: dict[str, Any] = {"system_instruction": {"parts": {"text": "You are kind."}}}
    assert pin("gemini", changed, HEADING + RULE)
    assert changed["system_instruction"]["parts"] == [{"text": "You are kind."}, {"text": HEADING + RULE}]
    pins = Pins.of(policy("pin"))
    assert pins is not None
    assert pins.look("gemini", {"contents": {"role": "user", "parts": [{"text": RULE}]}}) is None


def test_a_request_without_such_a_place_is_left_as_it_is() -> None:
    assert not pin("unheard-of", {"prompt": "x"}, RULE)
    assert not pin("anthropic.messages", {"system": 7}, RULE)
