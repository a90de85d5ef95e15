"""Streamed answers: passed on as they come, kept with their times, kept when they end early."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import RecordedStream, record_loop
from ledger.events.model_call import ModelCallAnswered, ModelCallChunk, ModelCallFailed
from ledger.home import Ledger
from tests.ledger.capture.loops import only, records, types, value


def chat_chunks(*texts: str) -> list[dict[str, Any]]:
    """An answer of a chat completion in pieces, as a provider streams it."""
    head = {"id": "resp-1", "object": "chat.completion.chunk", "model": "scripted-1.1"}
    chunks: list[dict[str, Any]] = [
        {
            **head,
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}],
        }
        for text in texts
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**head, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    return chunks


class Source:
    """A stream of an SDK: an iterator with a `close` and something else of its own."""

    def __init__(self, chunks: list[Any], error: BaseException | None = None) -> None:
        self._chunks = iter(chunks)
        self._error = error
        self.is_closed = False
        self.response = "the HTTP response"

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        for chunk in self._chunks:
            return chunk
        raise self._error or StopIteration

    def close(self) -> None:
        """Hang up."""
        self.is_closed = True


def test_a_stream_is_passed_on_and_kept(ledger: Ledger) -> None:
    chunks = chat_chunks("Wor", "ld ", "you")
    ticks = iter(range(100))
    with record_loop(ledger, harness="my-loop", monotonic=lambda: float(next(ticks))) as run:
        stream = run.model(lambda **request: Source(chunks), messages=[], stream=True)
        assert stream.response == "the HTTP response"
        assert list(stream) == chunks
        assert list(stream) == []
    answered = only(ledger, run.session, ModelCallAnswered)
    assert value(ledger, answered.message) == {"role": "assistant", "content": "World you"}
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.stop_reason, answered.completeness) == (
        7,
        "stop",
        "complete",
    )
    assert answered.first_byte_ms == 1000
    assert [elapsed for elapsed, _ in value(ledger, answered.stream)] == [1000, 2000, 3000, 4000, 5000]


def test_a_long_stream_is_flushed_while_it_runs(ledger: Ledger) -> None:
    chunks = chat_chunks(*(f"word{number} " for number in range(200)))
    with record_loop(ledger, harness="my-loop", monotonic=lambda: 0.0) as run:
        stream = run.model(lambda **request: iter(chunks), messages=[])
        for _ in range(130):
            next(stream)
        assert types(ledger, run.session).count("model_call.chunk") == 2
        assert list(stream) == chunks[130:]
    found = [
        record.event for record in records(ledger, run.session) if isinstance(record.event, ModelCallChunk)
    ]
    flushed = [chunk for event in found for chunk in value(ledger, event.chunks)]
    everything = value(ledger, only(ledger, run.session, ModelCallAnswered).stream)
    assert flushed == everything[: len(flushed)]
    assert len(flushed) >= 128


def test_a_slow_stream_is_flushed_by_time(ledger: Ledger) -> None:
    now = [0.0]
    with record_loop(ledger, harness="my-loop", monotonic=lambda: now[0]) as run:
        stream = run.model(lambda **request: iter(["one ", "two "]), protocol="my.own", messages=[])
        next(stream)
        assert "model_call.chunk" not in types(ledger, run.session)
        now[0] = 5.0
        next(stream)
        assert "model_call.chunk" in types(ledger, run.session)
        assert list(stream) == []
    assert value(ledger, only(ledger, run.session, ModelCallAnswered).message) == "one two "


@pytest.mark.parametrize("how", ["close", "with", "drop", "forget"])
def test_a_stream_that_is_given_up_is_aborted(ledger: Ledger, how: str) -> None:
    source = Source(chat_chunks("Wor", "ld"))
    with record_loop(ledger, harness="my-loop") as run:
        stream: RecordedStream | None = run.model(lambda **request: source, messages=[])
        assert stream is not None
        next(stream)
        if how == "close":
            stream.close()
        elif how == "with":
            with stream:
                pass
        elif how == "drop":
            stream = None
            gc.collect()
            run.message("next")
            assert types(ledger, run.session)[-2:] == ["model_call.answered", "input.message_received"]
    answered = only(ledger, run.session, ModelCallAnswered)
    assert answered.completeness == "aborted"
    assert value(ledger, answered.message)["content"] == "Wor"
    assert source.is_closed is (how in ("close", "with"))


def test_a_stream_that_breaks_is_partial(ledger: Ledger) -> None:
    source = Source(chat_chunks("Wor")[:1], ConnectionError("reset"))
    with record_loop(ledger, harness="my-loop") as run:
        stream = run.model(lambda **request: source, messages=[])
        with pytest.raises(ConnectionError, match="reset"):
            list(stream)
        with pytest.raises(ConnectionError):
            list(run.model(lambda **request: Source([], ConnectionError("refused")), messages=[]))
    answered = only(ledger, run.session, ModelCallAnswered)
    assert answered.completeness == "partial"
    assert value(ledger, answered.envelope)["client_error"] == {"type": "ConnectionError", "message": "reset"}
    assert only(ledger, run.session, ModelCallFailed).error == "ConnectionError"


@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_secret_in_pieces_is_never_kept(ledger: Ledger, tmp_path: Path, size: int) -> None:
    key = "sk-ant-api03-" + "Zx9Qw3Er7Ty1Ui5Op2As" * 4
    text = "a word before " * 40 + key + " and many words after " * 40
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    with record_loop(ledger, harness="my-loop") as run:
        assert "".join(run.model(lambda **request: iter(pieces), protocol="my.own", messages=[])) == text
    answered = only(ledger, run.session, ModelCallAnswered)
    assert answered.stream is None
    assert "[redacted:" in value(ledger, answered.message)
    found = [
        record.event for record in records(ledger, run.session) if isinstance(record.event, ModelCallChunk)
    ]
    kept = "".join(chunk[1:-1] for event in found for _, chunk in value(ledger, event.chunks))
    assert not any(key[at : at + 8] in kept for at in range(len(key) - 8))
    assert text.startswith(kept)


@pytest.fixture
def anthropic_chunks() -> Callable[[], list[dict[str, Any]]]:
    """An Anthropic answer with a text and a tool call, in pieces."""

    def chunks() -> list[dict[str, Any]]:
        return [
            {
                "type": "message_start",
                "message": {"id": "m", "role": "assistant", "usage": {"input_tokens": 4}},
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "t", "name": "a"},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"a'},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '":1}'},
            },
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]

    return chunks


def test_an_anthropic_stream(ledger: Ledger, anthropic_chunks: Callable[[], list[dict[str, Any]]]) -> None:
    with record_loop(ledger, harness="my-loop", protocol="anthropic.messages") as run:
        list(run.model(lambda **request: iter(anthropic_chunks()), messages=[]))
    answered = only(ledger, run.session, ModelCallAnswered)
    assert value(ledger, answered.message) == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "t", "name": "a", "input": {"a": 1}},
        ],
    }
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.usage.output_tokens, answered.stop_reason) == (
        4,
        9,
        "tool_use",
    )
