"""Bytes of request bodies: kept cheaply, and rebuilt as they were, whatever they are."""

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events import Draft
from ledger.events.canonical import decode_json
from ledger.events.model_call import ModelCallRequested
from ledger.home import Ledger, open_ledger
from ledger.protocols.requests import RequestTaker
from ledger.protocols.spelling import RawTaker
from ledger.recorder.spelling import base_of, pack_spelling, unpack_spelling
from replay.raw import raw_matches, raw_request

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_BODIES = st.fixed_dictionaries(
    {"messages": st.lists(_VALUES, max_size=5)},
    optional={"model": st.just("m"), "system": st.text(max_size=700), "tools": _VALUES, "x": _VALUES},
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path) as opened:
        yield opened


def taken(ledger: Ledger, bodies: list[bytes]) -> list[ModelCallRequested]:
    """The bodies of one conversation, kept."""
    keeper = ledger.recorder.keeper()
    taker, parts = RawTaker(keeper), RequestTaker(keeper)
    found = []
    for number, body in enumerate(bodies):
        kept: set[str] = set()
        try:
            value = decode_json(body)
        except ValueError:
            value = None
        if isinstance(value, dict):
            whole = parts.take("anthropic.messages", value)
            kept = {ref.digest for ref in (*whole.messages, whole.system, whole.tools) if ref is not None}
        facts = taker.take(body, "messages", kept)
        event = ModelCallRequested(
            call_id=str(number), protocol="anthropic.messages", completeness="body", **facts
        )
        ledger.recorder.append("session", [Draft(event)], keeper)
        found.append(event)
    return found


def rebuilt(ledger: Ledger, event: ModelCallRequested) -> bytes:
    raw = raw_request(ledger.store, event)
    assert raw is not None and raw_matches(ledger.store, event, raw)
    return raw


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(_BODIES, min_size=1, max_size=4),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]),
)
def test_any_json_body_comes_back_byte_for_byte(
    ledger: Ledger, bodies: list[dict[str, Any]], indent: int | None, ascii_only: bool, marks: tuple[str, str]
) -> None:
    raws = [
        json.dumps(body, indent=indent, ensure_ascii=ascii_only, separators=marks).encode(
            "utf-8", "surrogatepass"
        )
        for body in bodies
    ]
    assert [rebuilt(ledger, event) for event in taken(ledger, raws)] == raws


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.binary(max_size=200))
def test_any_bytes_come_back(ledger: Ledger, raw: bytes) -> None:
    assert [rebuilt(ledger, event) for event in taken(ledger, [raw])] == [raw]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages":[ ]}',
        b'{"messages":[1,2 , "a"],"messages":[3]}',
        b'{"messages":[' + b"[" * 3000 + b"]" * 3000 + b"]}",
        b'{"messages":[{"a":1}]} trailing',
        b'{"messages":[{"a":1}',
        b'{"messages":[1e400]}',
        b'\xef\xbb\xbf{"messages":[]}',
        b"",
        b"null",
    ],
)
def test_odd_bodies_come_back(ledger: Ledger, raw: bytes) -> None:
    assert [rebuilt(ledger, event) for event in taken(ledger, [raw])] == [raw]


def test_a_deep_body_leaves_the_stack_to_what_the_garbage_collector_calls(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finalizer that runs while a library stands at the end of the stack fails, and nobody can catch it."""
    failed: list[Any] = []

    def called(phase: str, info: dict[str, int]) -> None:
        assert json.dumps([phase, info])

    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    before = gc.get_threshold()
    gc.callbacks.append(called)
    try:
        for threshold in (1, 2, 3, 5):
            gc.set_threshold(threshold)
            assert decode_json(b"[" * 3000 + b"]" * 3000)
            assert decode_json(b'{"a":' * 3000 + b"1" * 30 + b"}" * 3000)
        gc.set_threshold(5)
        raw = b'{"messages":[' + b"[" * 1500 + b"]" * 1500 + b"]}"
        assert [rebuilt(ledger, event) for event in taken(ledger, [raw])] == [raw]
    finally:
        gc.callbacks.remove(called)
        gc.set_threshold(*before)
    assert failed == []


def test_a_message_that_grows_by_its_end_is_not_taken_for_the_one_before(ledger: Ledger) -> None:
    raws = [b'{"messages":[1,12]}', b'{"messages":[12,1]}', b'{"messages":[1,123]}']
    assert [rebuilt(ledger, event) for event in taken(ledger, raws)] == raws


def test_a_secret_that_only_its_name_betrays_is_in_no_spelling(ledger: Ledger) -> None:
    secret = "correct-horse-7-battery"
    body = {"messages": [{"role": "user", "content": [{"input": {"password": secret}}]}], "api_key": secret}
    (event,) = taken(ledger, [json.dumps(body, indent=1).encode()])
    assert secret.encode() not in rebuilt(ledger, event)
    for digest in ledger.store.recorder.list_blobs(b"", 1000):
        assert secret.encode() not in ledger.store.content(digest.hex())


def test_a_spelling_of_a_kept_value_is_small() -> None:
    value = {"role": "user", "content": "words that go on and on, " * 400}
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    raw = json.dumps(value, indent=2).encode()
    blob = pack_spelling(raw, b"d" * 32, canonical)
    assert len(blob) < 200 and base_of(blob) == b"d" * 32
    assert unpack_spelling(blob, canonical) == raw
    assert base_of(pack_spelling(raw, None, b"")) is None
    with pytest.raises(ValueError, match="spelling"):
        unpack_spelling(b"?", None)
