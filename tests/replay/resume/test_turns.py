"""A conversation is the same in every protocol, and what a cut left open is closed."""

import json

from hypothesis import given
from hypothesis import strategies as st

from replay.resume.closing import NO_RESULT, closed
from replay.resume.runtimes._anthropic import messages
from replay.resume.runtimes._openai import chat_messages, items
from replay.resume.turns import Call, Result, Text, Turn, open_calls, turns_of

from .conversations import CONVERSATIONS, PROTOCOLS, VALUES, Exchange, spoken, told


def _turns(protocol: str, talk: list[Exchange], open_calls: int = 0) -> list[Turn]:
    return turns_of(message for turn in spoken(protocol, talk, open_calls=open_calls) for message in turn)


@given(CONVERSATIONS, st.integers(0, 3))
def test_a_conversation_is_told_alike_in_every_protocol(talk: list[Exchange], left_open: int) -> None:
    first, *others = (told(_turns(protocol, talk, left_open)) for protocol in PROTOCOLS)
    assert others == [first, first]


@given(CONVERSATIONS, st.integers(0, 3), st.sampled_from(PROTOCOLS))
def test_every_call_gets_one_result_before_the_next_answer(
    talk: list[Exchange], left_open: int, protocol: str
) -> None:
    turns = _turns(protocol, talk, left_open)
    whole = closed(turns)
    assert open_calls(whole) == []
    waiting: set[str] = set()
    for side, pieces in told(whole):
        names = {piece[1] for piece in pieces if piece[0] in ("calls", "gave")}
        if side == "assistant":
            assert not waiting
            waiting = names
        else:
            assert names == waiting
            waiting = set()
    made_up = {
        piece.call_id
        for turn in whole
        for piece in turn.pieces
        if isinstance(piece, Result) and piece.content == NO_RESULT
    }
    assert made_up == {call.call_id for call in open_calls(turns)}
    assert closed(whole) == whole


def test_a_result_that_a_log_tells_before_its_call_goes_behind_it() -> None:
    call = Call("c", "read", {}, {})
    turns = [
        Turn("user", (Text("go"),)),
        Turn("user", (Result("c", None, "early", None),)),
        Turn("assistant", (call,)),
    ]
    assert closed(turns)[1:] == [
        Turn("assistant", (call,)),
        Turn("user", (Result("c", "read", "early", None),)),
    ]


def test_messages_of_harness_logs_are_told_like_those_of_protocols() -> None:
    deepseek = [
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "id": "c", "name": "read", "arguments": '{"path": "a"}'}],
        },
        {"role": "tool", "toolCallId": "c", "isError": True, "content": [{"type": "text", "text": "no"}]},
    ]
    pi = [
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}}],
        },
        {"role": "toolResult", "toolCallId": "c", "toolName": "read", "isError": True, "content": "no"},
    ]
    state = {"input": {"path": "a"}, "error": "no"}
    opencode = [
        {"role": "assistant", "parts": [{"type": "tool", "callID": "c", "tool": "read", "state": state}]}
    ]
    expected = [
        ("assistant", [("calls", "c", "read", '{"path": "a"}')]),
        ("user", [("gave", "c", "no")]),
    ]
    for said in (deepseek, pi, opencode):
        assert told(turns_of(said)) == expected
    gemini = [
        {
            "role": "model",
            "parts": [{"text": "I read."}, {"functionCall": {"id": "c", "name": "read", "args": {}}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "read", "response": {"ok": 1}}}]},
    ]
    assert told(turns_of(gemini)) == [
        ("assistant", [("says", "I read."), ("calls", "c", "read", "{}")]),
        ("user", [("gave", "c", '{"ok":1}')]),
    ]


@given(VALUES)
def test_no_value_whatever_stops_the_reading_or_the_writing(value: object) -> None:
    turns = closed(turns_of([value]))
    for written in (messages, items, chat_messages):
        json.dumps(written(turns, set()))
