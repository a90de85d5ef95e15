"""Laws of the canonical form, and the rules of each harness at their places."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.matching import Canonical, Folders, canonical, model_request
from replay.matching.canonical import HARNESSES

HEADERS = {
    "claude-code": ("anthropic.messages", {"user-agent": "claude-cli/2.1.332 (external, cli)"}),
    "codex": ("openai.responses", {"originator": "codex_exec"}),
    "deepseek-harness": ("anthropic.messages", {"x-deepseek-harness-session-id": "s"}),
    "opencode": ("openai.chat", {"user-agent": "opencode/1.18"}),
    "pi": ("openai.chat", {"user-agent": "pi/0.73"}),
    "gemini-cli": ("gemini", {"user-agent": "GeminiCLI/0.61.0/m (linux; x64)"}),
}
LOOPS = [*HEADERS.items(), *((f"generic {one}", (one, {})) for one in dict(HEADERS.values()))]
NO_FOLDERS = Folders()
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\u2039\u203a<"), max_size=30)


def form(
    protocol: str, headers: dict[str, str], body: dict[str, Any], folders: Folders = NO_FOLDERS
) -> Canonical:
    """The canonical form of a request."""
    return canonical(model_request(protocol, None, list(headers.items()), body), folders)


def body_of(protocol: str, said: str, result: str = "done") -> dict[str, Any]:
    """A request in which a user said something and a tool was called."""
    match protocol:
        case "openai.responses":
            call: Any = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
            output = {"type": "function_call_output", "call_id": "c1", "output": result}
            items = [{"role": "user", "content": [{"type": "input_text", "text": said}]}, call, output]
            return {"model": "m", "instructions": "Be brief.", "input": items}
        case "gemini":
            call = {"functionCall": {"id": "f_1_0", "name": "f", "args": {}}}
            answer = {"functionResponse": {"id": "f_1_0", "name": "f", "response": {"output": result}}}
            contents = [("user", {"text": said}), ("model", call), ("user", answer)]
            return {"contents": [{"role": role, "parts": [part]} for role, part in contents]}
        case "openai.chat":
            called = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            return {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": said},
                    {"role": "assistant", "content": None, "tool_calls": [called]},
                    {"role": "tool", "tool_call_id": "c1", "content": result},
                ],
            }
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    outcome = {"type": "tool_result", "tool_use_id": "c1", "content": result, "is_error": False}
    listed = [{"type": "text", "text": said, "cache_control": {"type": "ephemeral"}}]
    talk = [("user", listed), ("assistant", [call]), ("user", [outcome])]
    messages = [{"role": role, "content": content} for role, content in talk]
    return {"model": "m", "system": "Be brief.", "messages": messages, "metadata": {"user_id": "x"}}


@pytest.mark.parametrize(("name", "loop"), LOOPS)
def test_a_harness_is_recognised_by_its_request(name: str, loop: tuple[str, dict[str, str]]) -> None:
    assert form(*loop, body_of(loop[0], "Hello")).harness == name.partition(" ")[0]
    assert {one.NAME for one in HARNESSES} == set(HEADERS)


@pytest.mark.parametrize(("name", "loop"), LOOPS)
@settings(max_examples=25)
@given(said=WORDS, result=WORDS)
def test_the_canonical_form_of_a_canonical_form_is_itself(
    name: str, loop: tuple[str, dict[str, str]], said: str, result: str
) -> None:
    once = form(*loop, body_of(loop[0], said, result))
    again = form(*loop, once.body)
    assert again.body == once.body
    assert again.key == once.key


@pytest.mark.parametrize(("name", "loop"), LOOPS)
@settings(max_examples=25)
@given(said=WORDS, other=WORDS)
def test_another_text_of_the_user_is_another_request(
    name: str, loop: tuple[str, dict[str, str]], said: str, other: str
) -> None:
    same = form(*loop, body_of(loop[0], said)).key == form(*loop, body_of(loop[0], other)).key
    assert same == (said == other)


@pytest.mark.parametrize(("name", "loop"), LOOPS)
@settings(max_examples=25)
@given(turn=st.randoms(use_true_random=False))
def test_the_order_of_keys_never_counts(name: str, loop: tuple[str, dict[str, str]], turn: Any) -> None:
    def shuffled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        turn.shuffle(pairs)
        return dict(pairs)

    body = body_of(loop[0], "Hello")
    other = json.loads(json.dumps(body), object_pairs_hook=shuffled)
    assert form(*loop, other).key == form(*loop, body).key


@settings(max_examples=25)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda one: (
            st.lists(one)
            | st.dictionaries(
                st.sampled_from(
                    ["messages", "content", "type", "role", "parts", "tools", "system", "text", "id"]
                ),
                one,
            )
        ),
    )
)
def test_no_value_makes_it_fail(value: Any) -> None:
    for protocol, headers in HEADERS.values():
        form(
            protocol,
            headers,
            {"messages": value, "input": value, "contents": value, "system": value, "tools": value},
        )


def edited(change: Callable[[str], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A change of the JSON text of a body."""
    return lambda body: json.loads(change(json.dumps(body)))


@pytest.mark.parametrize(
    ("harness", "said", "result", "old", "new", "rule"),
    [
        ("claude-code", "<system-reminder>Today's date is 2026-11-29.", "", "11-29", "12-01", "date"),
        (
            "claude-code",
            "x",
            "agentId: a75185eb283636f3e (",
            "a75185eb283636f3e",
            "a11185eb283636f3e",
            "random-ids",
        ),
        ("claude-code", "x", "done  ", "done  ", "done", "trailing-blanks"),
        (
            "codex",
            "<environment_context><current_date>2026-11-29</current_date>",
            "",
            "11-29",
            "12-01",
            "date",
        ),
        ("codex", "x", "Chunk ID: 95e142\nWall time: 0.1 seconds\nOutput:", "95e142", "aa00bb", "chunk-ids"),
        ("codex", "x", "Wall time: 0.1234 seconds\nOutput:", "0.1234", "0.4", "wall-times"),
        (
            "deepseek-harness",
            'Your parent agent id is "session-3782dcf3-c7fe-4f29-9e0d-0041cb99336c". Send your result.',
            "",
            "session-3782dcf3",
            "session-8d7be41b",
            "random-ids",
        ),
        (
            "deepseek-harness",
            "x",
            "started subagent f585bb14-4518-492f-84a4-8614844a00dc",
            "f585bb14",
            "d79687f5",
            "random-ids",
        ),
        (
            "gemini-cli",
            "Today's date is Sunday, November 29, 2026.",
            "",
            "Sunday, November 29",
            "Monday, November 30",
            "date",
        ),
        ("gemini-cli", "x", "", "f_1_0", "f_2_7", "random-ids"),
        ("gemini-cli", "x", "Process Group PGID: 41", "PGID: 41", "PGID: 977", "process-groups"),
    ],
)
def test_what_differs_between_two_runs_is_taken_away_by_a_named_rule(
    harness: str, said: str, result: str, old: str, new: str, rule: str
) -> None:
    protocol, headers = HEADERS[harness]
    body = body_of(protocol, said, result)
    other = edited(lambda text: text.replace(old, new))(body)
    assert other != body
    first, second = form(protocol, headers, body), form(protocol, headers, other)
    assert first.key == second.key
    assert rule in first.rules
    generic = [form(protocol, {}, one).key for one in (body, other)]
    assert generic[0] != generic[1]  # for a loop that nobody knows it is a difference


@pytest.mark.parametrize("harness", ["pi", "opencode", "codex"])
def test_a_key_for_the_providers_cache_is_no_part_of_what_is_asked(harness: str) -> None:
    protocol, headers = HEADERS[harness]
    one, other = ({**body_of(protocol, "x"), "prompt_cache_key": key} for key in ("a", "b"))
    assert form(protocol, headers, one).key == form(protocol, headers, other).key
    assert form(protocol, {}, one).key != form(protocol, {}, other).key


def test_a_reminder_hangs_on_the_message_and_not_on_the_tool_that_ended_last() -> None:
    protocol, headers = HEADERS["claude-code"]
    tail = "\n\n<system-reminder>Mind the budget.</system-reminder>"
    forms = []
    for first, second in (("c1", "c2"), ("c2", "c1")):
        calls: list[Any] = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ("c1", "c2")]
        blocks = [{"type": "tool_result", "tool_use_id": one, "content": one} for one in (first, second)]
        blocks[1]["content"] += tail
        talk = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": calls}]
        forms.append(form(protocol, headers, {"messages": [*talk, {"role": "user", "content": blocks}]}))
    assert forms[0].key == forms[1].key
    assert "reminder-tails" in forms[0].rules
    assert forms[1].as_sent("/messages/2/content/0/content") == "/messages/2/content/1/content"


def test_folders_are_mapped_longest_first_and_at_their_borders() -> None:
    folders = Folders.of(home=["/home/dev"], cwd=["/home/dev/work"])
    body = body_of("anthropic.messages", "see /home/dev/work/a and /home/dev/.x but not /home/devil")
    found = form("anthropic.messages", {}, body, folders).body["messages"][0]["content"][0]["text"]
    assert found == "see \u2039folder\u203a/a and \u2039home\u203a/.x but not /home/devil"
