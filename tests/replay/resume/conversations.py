"""Conversations of any shape, spoken in each protocol, and recorded."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from ledger.capture import record_loop
from ledger.home import Ledger
from replay.resume.runtimes._openai import as_text
from replay.resume.turns import Call, Result, Text, Turn

PROTOCOLS = ("anthropic.messages", "openai.chat", "openai.responses")
CWD = "/work/a project"
SESSION = "talk"

_ANSWERS: dict[str, Any] = {
    "anthropic.messages": lambda name, said: {"id": name, "type": "message", "model": "m", **said[0]},
    "openai.chat": lambda name, said: {"id": name, "choices": [{"index": 0, "message": said[0]}]},
    "openai.responses": lambda name, said: {"id": name, "output": said},
}


@dataclass(frozen=True)
class Asked:
    """A call, and what came of it."""

    tool: str
    arguments: dict[str, Any]
    result: str | None
    """None: nobody saw one."""


@dataclass(frozen=True)
class Exchange:
    """A prompt, and the steps of the answer to it: words and calls."""

    prompt: str
    steps: list[tuple[str, list[Asked]]]


def _words() -> st.SearchStrategy[str]:
    letters = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
    return st.text(letters, min_size=1, max_size=12).map(lambda text: f"w{text}.")


def _asked() -> st.SearchStrategy[Asked]:
    values = st.one_of(_words(), st.integers(-1000, 1000), st.booleans(), st.none())
    arguments = st.dictionaries(st.sampled_from(["path", "text", "count"]), values, max_size=3)
    return st.builds(Asked, st.sampled_from(["read", "write", "bash"]), arguments, _words())


def _steps() -> st.SearchStrategy[list[tuple[str, list[Asked]]]]:
    return st.lists(st.tuples(_words(), st.lists(_asked(), max_size=3)), min_size=1, max_size=3)


CONVERSATIONS = st.lists(st.builds(Exchange, _words(), _steps()), min_size=1, max_size=3)
"""Conversations in which every call has a result."""


_NAMES = ["role", "content", "type", "text", "parts", "id", "call_id", "tool_calls", "state", "toolCallId"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["tool", "assistant", "text", "function_call", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)
"""JSON values that look a little like messages."""


def spoken(protocol: str, talk: Iterable[Exchange], *, open_calls: int = 0) -> list[list[dict[str, Any]]]:
    """What each side says in turn: lists of messages or items. The last `open_calls` results are left out."""
    turns: list[list[dict[str, Any]]] = []
    number = 0
    for exchange in talk:
        turns.append([_user(protocol, exchange.prompt)])
        for words, asked in exchange.steps:
            named = [(f"call_{number + index}", one) for index, one in enumerate(asked)]
            number += len(asked)
            turns.append(_answer(protocol, words, named))
            if named:
                turns.append(_results(protocol, named))
    if open_calls and len(turns[-1]) and len(turns) % 2:
        turns[-1] = _without_last(turns[-1], open_calls)
    return [turn for turn in turns if turn]


def _without_last(messages: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    content = messages[0].get("content")
    if isinstance(content, list):
        left = content[: max(0, len(content) - count)]
        return [{**messages[0], "content": left}] if left else []
    return messages[: max(0, len(messages) - count)]


def _user(protocol: str, words: str) -> dict[str, Any]:
    if protocol == "openai.responses":
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
    return {"role": "user", "content": words}


def _answer(protocol: str, words: str, asked: list[tuple[str, Asked]]) -> list[dict[str, Any]]:
    if protocol == "anthropic.messages":
        calls = [
            {"type": "tool_use", "id": name, "name": one.tool, "input": one.arguments} for name, one in asked
        ]
        return [{"role": "assistant", "content": [{"type": "text", "text": words}, *calls]}]
    if protocol == "openai.chat":
        chat = [
            {
                "id": name,
                "type": "function",
                "function": {"name": one.tool, "arguments": json.dumps(one.arguments)},
            }
            for name, one in asked
        ]
        return [{"role": "assistant", "content": words, **({"tool_calls": chat} if chat else {})}]
    text = {"type": "output_text", "text": words, "annotations": []}
    items = [
        {"type": "function_call", "call_id": name, "name": one.tool, "arguments": json.dumps(one.arguments)}
        for name, one in asked
    ]
    return [{"type": "message", "role": "assistant", "content": [text]}, *items]


def _results(protocol: str, asked: list[tuple[str, Asked]]) -> list[dict[str, Any]]:
    if protocol == "anthropic.messages":
        blocks = [{"type": "tool_result", "tool_use_id": name, "content": one.result} for name, one in asked]
        return [{"role": "user", "content": blocks}]
    if protocol == "openai.chat":
        return [{"role": "tool", "tool_call_id": name, "content": one.result} for name, one in asked]
    return [{"type": "function_call_output", "call_id": name, "output": one.result} for name, one in asked]


def record(
    ledger: Ledger,
    protocol: str,
    turns: list[list[dict[str, Any]]],
    *,
    harness: str = "my-loop",
    session: str = SESSION,
    **request: Any,
) -> int:
    """Record the conversation, one model call for each answer; give the last seq."""
    field = "input" if protocol == "openai.responses" else "messages"
    said: list[dict[str, Any]] = []
    with record_loop(ledger, harness=harness, session=session, protocol=protocol, cwd=CWD, model="m") as loop:
        for turn in turns:
            if turn[0].get("role") == "assistant":
                response = _ANSWERS[protocol](f"answer_{len(said)}", turn)
                given: dict[str, Any] = {field: list(said), **request}
                loop.model(lambda _response=response, **_: _response, model="m", **given)
            else:
                for message in turn:
                    loop.message(message)
            said += turn
    return ledger.store.head(session).seq


def told(turns: Iterable[Turn]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """The conversation as what any protocol can carry: sides, words, calls, results."""
    sides: list[tuple[str, list[tuple[str, ...]]]] = []
    for turn in turns:
        pieces = [_told(piece) for piece in turn.pieces if isinstance(piece, Text | Call | Result)]
        if turn.role == "system" or not pieces:
            continue
        if sides and sides[-1][0] == turn.role:
            sides[-1][1].extend(pieces)
        else:
            sides.append((turn.role, pieces))
    return sides


def _told(piece: Text | Call | Result) -> tuple[str, ...]:
    match piece:
        case Text(words):
            return ("says", words)
        case Call(call_id, tool, arguments, _):
            return ("calls", str(call_id), tool, json.dumps(arguments, sort_keys=True))
        case Result(call_id, _, content, _):
            return ("gave", str(call_id), as_text(content))
