"""Bodies of requests and answers: nothing of them is lost, whatever they hold."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.capture import record_loop
from ledger.events.canonical import canonical_json
from ledger.events.model_call import Usage
from ledger.home import Ledger, open_ledger
from ledger.protocols.assembly import assemble
from ledger.protocols.plain import plain
from ledger.protocols.responses import put_together, take_apart, usage_of
from replay import rebuild_request

PROTOCOLS = ("openai.chat", "anthropic.messages", "openai.responses", "gemini", "my.own")

texts = st.text(max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
names = st.sampled_from(
    [
        "choices",
        "message",
        "role",
        "content",
        "output",
        "candidates",
        "id",
        "usage",
        "model",
        "index",
        "parts",
    ]
)
bodies = st.recursive(
    values,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(PROTOCOLS), bodies)
def test_a_response_taken_apart_can_be_put_together(protocol: str, body: Any) -> None:
    taken = take_apart(protocol, body)
    assert put_together(protocol, taken.message, taken.envelope) == body


@given(values)
def test_json_is_plain_already(value: Any) -> None:
    assert plain(value) == value


@given(st.sampled_from(PROTOCOLS), st.lists(bodies | st.dictionaries(names, bodies), max_size=4))
def test_no_chunk_stops_the_assembly(protocol: str, chunks: list[Any]) -> None:
    body: Any = assemble(protocol, chunks)
    take_apart(protocol, body)
    usage_of(body)


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    lists: dict[str, str] = {"gemini": "contents", "openai.responses": "input"}
    for protocol in PROTOCOLS[:4]:
        name = lists.get(protocol, "messages")
        yield protocol, {name: [], "model": "m"}
        yield protocol, {name: [{"role": "system", "content": "s"}, {"role": "user", "content": 1.5}]}
        yield protocol, {name: "a text", "tools": None, "model": None}
        yield protocol, {name: [["odd"], "odd", None], "model": ["odd"], "tools": "odd", "system": None}


@pytest.mark.parametrize(("protocol", "request_body"), list(_requests()))
def test_odd_requests_are_rebuilt(tmp_path: Path, protocol: str, request_body: dict[str, Any]) -> None:
    with open_ledger(tmp_path) as ledger, record_loop(ledger, harness="h", protocol=protocol) as run:
        run.model(dict, **request_body)
        rebuilt = rebuild_request(ledger.store, run.session, 2)
        expected: dict[str, Any] = {
            name: value for name, value in request_body.items() if protocol != "gemini" or name != "model"
        }
        if protocol == "gemini" and request_body.get("model") != "m":
            expected |= {"model": request_body["model"]} if "model" in request_body else {}
        assert rebuilt.body == expected
        assert rebuilt.body_matches


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """One ledger for all examples, each a session of its own."""
    with open_ledger(tmp_path_factory.mktemp("ledger")) as opened:
        yield opened


@given(st.sampled_from(PROTOCOLS[:4]), st.lists(objects, max_size=4), objects)
def test_any_request_is_rebuilt(
    ledger: Ledger, protocol: str, messages: list[Any], extra: dict[str, Any]
) -> None:
    name = {"gemini": "contents", "openai.responses": "input"}.get(protocol, "messages")
    own = {"protocol", "purpose", "provider", "call_id", "attempt", "create", "self"}
    body = {key: value for key, value in extra.items() if key not in own} | {name: messages}
    with record_loop(ledger, harness="h", protocol=protocol) as run:
        run.model(dict, **body)
    rebuilt = rebuild_request(ledger.store, run.session, 2)
    assert rebuilt.body_matches
    assert canonical_json(rebuilt.body) == canonical_json(body)


USAGES: list[tuple[dict[str, Any], Usage]] = [
    (
        {
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 6},
            }
        },
        Usage(input_tokens=4, output_tokens=4, cache_read_tokens=6),
    ),
    (
        {
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 3},
                "output_tokens": 8,
                "output_tokens_details": {"reasoning_tokens": 5},
            }
        },
        Usage(input_tokens=7, output_tokens=8, cache_read_tokens=3, reasoning_tokens=5),
    ),
    (
        {
            "usage": {
                "input_tokens": 10,
                "output_tokens": 2,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 5,
            }
        },
        Usage(input_tokens=10, output_tokens=2, cache_read_tokens=100, cache_write_tokens=5),
    ),
    (
        {
            "usageMetadata": {
                "promptTokenCount": 10,
                "cachedContentTokenCount": 4,
                "candidatesTokenCount": 2,
                "thoughtsTokenCount": 3,
            }
        },
        Usage(input_tokens=6, output_tokens=5, cache_read_tokens=4, reasoning_tokens=3),
    ),
]


@pytest.mark.parametrize(("body", "usage"), USAGES)
def test_tokens_are_counted_once(body: dict[str, Any], usage: Usage) -> None:
    assert usage_of(body) == usage


def test_what_says_nothing_says_nothing() -> None:
    silent: list[Any] = [None, {}, {"usage": []}, {"usage": {"prompt_tokens": "9"}}]
    assert [usage_of(body) for body in silent] == [None] * 4


def _chat(text: str) -> list[Any]:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
    head: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]}]
    return head + [
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": char, "tool_calls": [{"index": 0, "function": {"arguments": char}}]},
                }
            ]
        }
        for char in text
    ]


def _responses(text: str) -> list[Any]:
    item = {"type": "message", "content": []}
    return [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": "response.output_text.delta", "output_index": 0, "delta": char} for char in text),
    ]


def _gemini(text: str) -> list[Any]:
    return [{"candidates": [{"content": {"role": "model", "parts": [{"text": char}]}}]} for char in text]


@pytest.mark.parametrize(
    ("protocol", "chunks", "message"),
    [
        (
            "openai.chat",
            _chat,
            {
                "role": "assistant",
                "content": "abc",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "abc"}}],
            },
        ),
        (
            "openai.responses",
            _responses,
            [{"type": "message", "content": [{"type": "output_text", "text": "abc"}]}],
        ),
        ("gemini", _gemini, {"role": "model", "parts": [{"text": "abc"}]}),
        ("my.own", list, "abc"),
    ],
)
def test_a_stream_that_was_cut_is_put_together(
    protocol: str, chunks: Callable[[str], list[Any]], message: Any
) -> None:
    assert take_apart(protocol, assemble(protocol, chunks("abc"))).message == message
