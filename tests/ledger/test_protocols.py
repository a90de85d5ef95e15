"""Whose body it is, where its answer ends, and what it asks of tools; on any value there may be."""

import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.protocols.assembly import assemble
from ledger.protocols.http_bodies import answer_of, events_of, unpacked
from ledger.protocols.recognition import model_in_path, protocol_of, protocol_of_body, provider_of
from ledger.protocols.responses import facts_of, put_together, take_apart
from ledger.protocols.tool_use import calls_in, results_in

PROTOCOLS = ("anthropic.messages", "openai.chat", "openai.responses", "gemini")
WORDS = st.sampled_from(
    "role content tool_calls function name arguments id type text tool_use tool_result output choices message delta "
    "index candidates parts functionCall functionResponse args usage input_tokens status model error data".split()
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.parametrize(
    ("path", "body", "wanted"),
    [
        ("/v1/messages", {"messages": []}, "anthropic.messages"),
        ("/v1/messages/count_tokens?beta=true", {"messages": []}, "anthropic.messages"),
        ("/openai/deployments/gpt/chat/completions?api-version=1", {"messages": []}, "openai.chat"),
        ("/v1/responses", {"input": "hi"}, "openai.responses"),
        ("/v1beta/models/g:streamGenerateContent?alt=sse", {"contents": []}, "gemini"),
        ("/v1/messages", {"text": "a chat program"}, None),
        ("/api/other", {"messages": []}, None),
        ("/v1/messages", None, None),
    ],
)
def test_a_request_is_known_by_path_and_body(path: str, body: Any, wanted: str | None) -> None:
    assert protocol_of(path, body) == wanted


def test_hosts_and_models_are_read_from_addresses() -> None:
    assert provider_of("api.anthropic.com") == "anthropic"
    assert provider_of("notanthropic.com") is None
    assert model_in_path("/v1beta/models/gemini-2.5:generateContent") == "gemini-2.5"


def test_a_stream_is_read_whatever_ends_its_lines() -> None:
    for end in (b"\n", b"\r\n"):
        raw = end.join([b"event: a", b'data: {"a": 1}', b"", b": ping", b"", b"data: [DONE]", b"", b""])
        assert events_of(raw) == [{"a": 1}, "[DONE]"]


def test_an_answer_in_events_ends_where_its_protocol_says() -> None:
    start = b'data: {"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":3}}}\n\n'
    stop = b'data: {"type":"message_stop"}\n\n'
    headers = [("Content-Type", "text/event-stream")]
    assert answer_of("anthropic.messages", start + stop, headers).is_whole
    assert not answer_of("anthropic.messages", start, headers).is_whole


def test_a_body_that_is_not_what_its_header_says_stays_as_it_is() -> None:
    headers = [("content-encoding", "gzip")]
    assert unpacked(gzip.compress(b"{}"), headers) == b"{}"
    assert unpacked(b"{}", headers) == b"{}"


@given(VALUES, st.sampled_from(PROTOCOLS))
def test_no_value_stops_a_reader_and_an_answer_goes_together_again(value: Any, protocol: str) -> None:
    calls_in(value)
    results_in(value)
    facts_of(value)
    protocol_of_body(value)
    assemble(protocol, value if isinstance(value, list) else [value])
    taken = take_apart(protocol, value)
    assert put_together(protocol, taken.message, taken.envelope) == value


@given(
    st.binary(max_size=200),
    st.sampled_from(PROTOCOLS),
    st.sampled_from(["gzip", "deflate", "zstd", "br", ""]),
)
def test_no_bytes_stop_a_reader(raw: bytes, protocol: str, coding: str) -> None:
    for kind in ("text/event-stream", "application/json"):
        headers = [("content-type", kind), ("content-encoding", coding)]
        answer_of(protocol, unpacked(raw, headers), headers)
