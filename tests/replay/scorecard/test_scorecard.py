"""The six questions: each answered from records that show it, and "no evidence" where none does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.importers._intake import import_paths
from replay.scorecard.answer import NO_EVIDENCE, QUESTIONS, Answer
from replay.scorecard.card import by_harness, card_of
from tests.audit.labelled import call
from tests.commands import FIXTURES
from tests.ledger.audit.histories import History, Told

START: Told = {"type": "session.started", "harness": "own"}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A ledger of the test's own."""
    with History(tmp_path) as opened:
        yield opened


def asked(number: int, messages: list[Any], **more: Any) -> Told:
    """A request."""
    return {
        "type": "model_call.requested",
        "call_id": f"m{number}",
        "protocol": "anthropic.messages",
        "completeness": "messages",
        "@context": messages,
        **more,
    }


def answered(number: int, content: Any = "well", **more: Any) -> Told:
    """An answer."""
    return {
        "type": "model_call.answered",
        "call_id": f"m{number}",
        "message": {"role": "assistant", "content": content},
        **more,
    }


def ask(history: History, events: list[Told], question: str) -> Answer:
    """The answer to one question about a session of these events."""
    history.add([START, *events])
    card = card_of(history.ledger.store, "main")
    assert [answer.question for answer in card.answers] == list(QUESTIONS)
    return next(answer for answer in card.answers if answer.question == question)


def places(answer: Answer) -> list[str]:
    """Where its witnesses are."""
    return [one.place for one in answer.witnesses]


USER = {"role": "user", "content": "count the leaves"}
ENDED: Told = {"type": "session.ended", "outcome": "aborted"}
BASH = list(call(1, "bash", {"command": "ls"}))
CHECKPOINT: Told = {"type": "recovery.checkpoint_taken", "checkpoint_id": "c"}

RESTART = {
    "survives": [ENDED, {"type": "session.resumed"}, asked(1, [USER]), answered(1)],
    "survives in part": [
        *call(1, "pay", {}, outcome="unknown"),
        {"type": "session.resumed"},
        asked(1, [USER]),
        answered(1),
    ],
    "kept, not shown": [CHECKPOINT],
    "lost": [asked(1, [USER]), ENDED],
    NO_EVIDENCE: [
        asked(1, [USER]),
        answered(1),
        {"type": "recovery.rolled_back", "reason": "rewind"},  # nothing had stopped
        asked(2, [USER]),
        answered(2),
    ],
}


@pytest.mark.parametrize("word", RESTART)
def test_whether_work_survives_a_restart(history: History, word: str) -> None:
    found = ask(history, RESTART[word], "restart")
    assert found.answer == word
    assert bool(found.witnesses) == (word != NO_EVIDENCE)


def test_a_restart_names_the_record_that_shows_it(history: History) -> None:
    found = ask(history, RESTART["survives"], "restart")
    assert places(found) == ["main#2", "main#3", "main#5"]
    assert found.facts["answers_after"] == 1


def sandbox(mode: str) -> Told:
    """A sandbox, set."""
    return {"type": "governance.mode_changed", "mode": "sandbox", "new": mode, "cause": "startup"}


SIGHT = {
    "open": [sandbox("danger-full-access"), *BASH],
    "confined": [sandbox("workspace-write"), *BASH],
    "partly known": [{"type": "session.started", "harness": "own", "cwd": "/work"}, *BASH],
    NO_EVIDENCE: [sandbox("workspace-write"), *call(1, "look_up", {"word": "leaf"})],
}


@pytest.mark.parametrize("word", SIGHT)
def test_what_executing_code_can_see(history: History, word: str) -> None:
    found = ask(history, SIGHT[word], "sight")
    assert found.answer == word
    assert found.facts["code_calls"] == (word != NO_EVIDENCE)


def test_code_that_ran_in_several_sandboxes_is_counted_by_them(history: History) -> None:
    modes = [sandbox("read-only"), *BASH, *BASH, sandbox("danger-full-access"), *BASH, sandbox("off"), *BASH]
    found = ask(history, modes, "sight")
    assert found.answer == "open"
    assert found.facts["calls_by_sandbox"] == {"read-only": 2, "danger-full-access": 1, "off": 1}
    assert "code ran 4 times" in found.told
    assert "2 without a sandbox, 2 in the sandbox read-only" in found.told


def test_code_that_was_refused_did_not_run(history: History) -> None:
    refused = call(1, "bash", {"command": "rm"}, outcome="denied")
    found = ask(
        history,
        [sandbox("off"), *refused, sandbox("read-only"), *call(2, "bash", {"command": "ls"})],
        "sight",
    )
    assert (found.answer, found.facts["code_calls"]) == ("confined", 1)
    assert "main#5" in places(found) and "main#3" not in places(found)


def test_a_sandbox_says_nothing_of_code_that_ran_before_it(history: History) -> None:
    found = ask(history, [*BASH, sandbox("read-only"), *BASH], "sight")
    assert found.answer == "partly known"
    assert "what was around the other 1 is not on record" in found.told


def test_code_with_nothing_known_around_it_is_no_evidence(history: History) -> None:
    assert ask(history, BASH, "sight").answer == NO_EVIDENCE


PAY = list(call(1, "pay", {"to": "x"}, effect_class="irreversible"))
QUESTION: list[Told] = [
    {"type": "approval.asked", "approval_id": "q", "call_id": "c1", "tool": "pay"},
    {
        "type": "approval.decided",
        "approval_id": "q",
        "call_id": "c1",
        "outcome": "approved",
        "decided_by": "human",
    },
]
BY_RULE: Told = {
    "type": "approval.decided",
    "approval_id": "r",
    "call_id": "c1",
    "outcome": "approved",
    "decided_by": "policy",
}
NEVER: Told = {"type": "governance.mode_changed", "mode": "approval", "new": "never", "cause": "startup"}
PAUSES = {
    "all that act": [PAY[0], *QUESTION, PAY[1], *call(2, "look", {}, effect_class="read")],
    "some": [PAY[0], *QUESTION, PAY[1], *call(2, "send", {}, effect_class="external")],
    "by rule": [PAY[0], BY_RULE, PAY[1]],
    "none": [NEVER, *PAY],
    NO_EVIDENCE: PAY,
}


@pytest.mark.parametrize("word", PAUSES)
def test_which_actions_pause(history: History, word: str) -> None:
    assert ask(history, PAUSES[word], "pauses").answer == word


@pytest.mark.parametrize(("who", "word"), [("unknown", "all that act"), ("policy", "by rule")])
def test_an_answer_shows_a_pause_whoever_gave_it_but_a_rule(history: History, who: str, word: str) -> None:
    assert ask(history, [PAY[0], BY_RULE | {"decided_by": who}, PAY[1]], "pauses").answer == word


def test_a_question_of_no_one_call_is_a_pause(history: History) -> None:
    found = ask(history, [*PAY, {"type": "approval.asked", "approval_id": "q"}], "pauses")
    assert (found.answer, found.facts["questions_of_no_call"]) == ("some", 1)


def test_pauses_are_counted_by_class_of_effect(history: History) -> None:
    found = ask(history, PAUSES["all that act"], "pauses")
    assert found.facts["by_class"]["irreversible"] == {"calls": 1, "paused": 1, "ruled": 0}
    assert found.facts["by_class"]["read"] == {"calls": 1, "paused": 0, "ruled": 0}
    assert places(found) == ["main#3", "main#4"]


TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
LOADED: Told = {"type": "capability.loaded", "kind": "skill", "capability": "count", "when": "on_demand"}
CAPABILITY = {
    "on demand": [LOADED, asked(1, [USER])],
    "every turn": [asked(1, [USER], tools=TOOLS), asked(2, [USER], tools=TOOLS)],
    "both": [asked(1, [USER], tools=TOOLS), LOADED, asked(2, [USER], tools=TOOLS)],
    NO_EVIDENCE: [asked(1, [USER]), asked(2, [USER])],
}


@pytest.mark.parametrize("word", CAPABILITY)
def test_whether_capability_rides_every_turn(history: History, word: str) -> None:
    assert ask(history, CAPABILITY[word], "capability").answer == word


def test_schemas_that_the_source_does_not_show_are_not_measured(history: History) -> None:
    hidden = {"tools": [], "not_seen": ["system", "tools"]}
    events = [
        asked(1, [USER], **hidden),
        answered(1, usage={"input_tokens": 100}),
        asked(2, [USER], **hidden),
    ]
    found = ask(history, events, "capability")
    assert (found.answer, found.facts["schema_bytes_a_turn"]) == (NO_EVIDENCE, None)
    # tokens of what is not there are not laid on what is
    assert (found.facts["turns"][0]["tokens"], found.facts["turns"][0]["result_tokens"]) == (100, None)


RESULTS: dict[str, Any] = {
    "anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x" * 50}],
    },
    "chat": {"role": "tool", "tool_call_id": "1", "content": "x" * 50},
    "responses": {"type": "function_call_output", "call_id": "1", "output": "x" * 50},
    "gemini": {
        "role": "user",
        "parts": [{"functionResponse": {"name": "look", "response": {"a": "x" * 50}}}],
    },
    "genai": {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "x" * 50}]},
}
CALLS: dict[str, Any] = {
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {}}],
    },
    "chat": {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}],
    },
    "responses": {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
    "gemini": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
    "genai": {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "look"}]},
}


@pytest.mark.parametrize("protocol", RESULTS)
def test_what_tools_cost_each_turn_is_measured(history: History, protocol: str) -> None:
    events = [
        asked(1, [USER], tools=TOOLS, system="Count."),
        answered(1, usage={"input_tokens": 60, "cache_read_tokens": 40}),
        asked(2, [USER, CALLS[protocol], RESULTS[protocol]], tools=TOOLS, system="Count."),
        answered(2),
    ]
    first, second = ask(history, events, "capability").facts["turns"]
    assert (first["seq"], first["results"], first["calls"], first["tokens"]) == (2, 0, 0, 100)
    assert first["schema_tokens"] == round(100 * first["schemas"] / first["bytes"])
    assert second["results"] >= 50
    assert second["calls"] > 20
    assert second["bytes"] > first["bytes"] + second["results"]
    assert second["result_tokens"] is None


def test_a_long_session_is_measured_in_part_and_says_so(history: History) -> None:
    events = [asked(number, [USER], tools=TOOLS) for number in range(450)]
    facts = ask(history, events, "capability").facts
    assert facts["requests"] == 450
    assert 100 <= facts["measured"] <= 200
    assert len({turn["bytes"] for turn in facts["turns"]}) == 1


def test_a_run_that_can_be_rebuilt_was_rebuilt(history: History) -> None:
    found = ask(history, [asked(1, [USER]), answered(1)], "rebuild")
    assert found.answer == "message for message"
    assert places(found) == ["main#2"]
    assert found.facts["state_verdict"] == found.facts["request_verdict"] == "equal"


def test_a_request_that_is_not_there_in_part_is_said(history: History) -> None:
    lost: Told = {
        "type": "model_call.requested",
        "call_id": "m2",
        "protocol": "openai.chat",
        "completeness": "none",
    }
    found = ask(history, [asked(1, [USER]), answered(1), lost], "rebuild")
    assert found.answer == "in part"
    assert found.facts["not_checked"] == {"its source did not show it": 1}


def test_a_run_that_cannot_be_rebuilt_names_the_place(history: History) -> None:
    found = ask(history, [asked(1, [USER], body_digest="0" * 64)], "rebuild")
    assert found.answer == "no"
    assert places(found) == ["main#2"]


def test_a_run_without_requests_is_no_evidence_of_rebuilding(history: History) -> None:
    assert ask(history, BASH, "rebuild").answer == NO_EVIDENCE


SEALED = [{"type": "thinking", "thinking": "", "signature": "EqRkYmFz"}]
LEAVING = {
    "reasoning that only the provider can read": [asked(1, [USER]), answered(1, SEALED)],
    "the provider holds state: previous_response_id": [
        asked(1, [USER], parameters={"previous_response_id": "resp_1"}),
        answered(1),
    ],
    "the provider ran web_search": [
        *call(1, "web_search", {"q": "x"}, provider_executed=True),
        asked(1, [USER]),
    ],
    "a request that is not on record, or not all of it": [asked(1, [USER], completeness="partial")],
}


@pytest.mark.parametrize("what", LEAVING)
def test_what_would_be_lost_on_leaving(history: History, what: str) -> None:
    found = ask(history, LEAVING[what], "leaving")
    assert found.answer == "something"
    assert what in [one.what for one in found.witnesses]


def test_nothing_known_is_lost_where_every_request_is_whole(history: History) -> None:
    found = ask(history, [asked(1, [USER], completeness="body"), answered(1)], "leaving")
    assert found.answer == "nothing known"


def test_without_a_model_call_nobody_can_say_what_would_be_lost(history: History) -> None:
    assert ask(history, BASH, "leaving").answer == NO_EVIDENCE


def test_sessions_are_put_together_by_harness(history: History) -> None:
    ledger = history.ledger
    import_paths(
        ledger.recorder, [FIXTURES / "claude-code" / "permissions-2.1.332", FIXTURES / "codex" / "subagents"]
    )
    cards = by_harness(card_of(ledger.store, session) for session in ledger.store.sessions())
    told = [card.as_json() for card in cards]
    assert [one["harness"] for one in told] == ["claude-code", "codex"]
    for one in told:
        assert [answer["question"] for answer in one["answers"]] == list(QUESTIONS)
        for answer in one["answers"]:
            assert sum(word["sessions"] for word in answer["answers"]) == one["sessions"]
            for word in answer["answers"]:
                assert bool(word["evidence"]) == (word["answer"] != NO_EVIDENCE)
    assert told[0]["a_turn"]["turns"] > 0
