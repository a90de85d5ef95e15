"""Canonical bytes: RFC 8785 where that has an answer, and no value lost where it has none."""

import json
import math
import random
from typing import Any

import pytest
import rfc8785
from eventsourcing.persistence import Notification
from hypothesis import given
from hypothesis import strategies as st

from ledger.events import Draft
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.model_call import ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.store.mapper import GENESIS, decode_record, encode_state

_SAFE = 2**53 - 1
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_WITH_SURROGATES = st.text(
    st.one_of(st.characters(exclude_categories=[]), st.sampled_from("\ud83d\ude00\udfff"))
)


def _values(text: st.SearchStrategy[str], numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | text | numbers,
        lambda inner: st.lists(inner) | st.dictionaries(text, inner),
        max_leaves=30,
    )


_I_JSON = _values(_TEXT, st.integers(-_SAFE, _SAFE) | st.floats(allow_nan=False, allow_infinity=False))
_ANY_JSON = _values(_WITH_SURROGATES, st.integers() | st.floats(allow_nan=False, allow_infinity=False))


@given(_I_JSON)
def test_it_is_rfc_8785_on_the_values_of_rfc_8785(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


def _as_doubles(value: Any) -> Any:
    """RFC 8785 writes 1e17 as 100000000000000000: it knows one kind of number."""
    if isinstance(value, dict):
        return {key: _as_doubles(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_doubles(inner) for inner in value]
    return float(value) if type(value) is int else value


@given(_I_JSON)
def test_it_comes_back_as_it_was(value: Any) -> None:
    assert _as_doubles(decode_json(canonical_json(value))) == _as_doubles(value)


@given(_ANY_JSON)
def test_any_json_has_one_form(value: Any) -> None:
    once = canonical_json(value)
    assert canonical_json(decode_json(once)) == once


@given(st.dictionaries(_TEXT, st.integers(-9, 9)), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, int], chance: random.Random) -> None:
    shuffled = list(value.items())
    chance.shuffle(shuffled)
    assert canonical_json(dict(shuffled)) == canonical_json(value)


@given(st.integers())
def test_integers_of_any_size_are_kept(number: int) -> None:
    assert decode_json(canonical_json({"n": [number]})) == {"n": [number]}


@given(_WITH_SURROGATES)
def test_lone_surrogates_are_kept(text: str) -> None:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert decode_json(canonical_json([text])) == [joined]


@pytest.mark.parametrize("depth", [199, 200, 201, 255, 2_000, 100_000])
def test_depth_costs_no_stack(depth: int) -> None:
    for opened, closed in ((b"[", b"]"), (b'{"k":', b"}")):
        raw = opened * depth + b"1.5" + closed * depth
        assert canonical_json(decode_json(raw)) == raw


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, b"bytes", {1: 2}, {None: 1}, {"a": {1, 2}}, object()]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    for place in (value, [value], {"k": [1.5, value]}):
        with pytest.raises(TypeError):
            canonical_json(place)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        " ",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        "[1,]",
        "{'a':1}",
        "01",
        "1 2",
        '{"a":1}x',
        "nul",
        '"\n"',
        "[" * 9,
    ],
)
def test_what_is_no_json_text_is_refused(raw: str) -> None:
    for text in (raw, raw.encode()):
        with pytest.raises(ValueError, match=r"."):
            decode_json(text)


@given(st.binary(max_size=40) | st.text('[]{}":,0123456789eE+-.tfn \\ud', max_size=40).map(str.encode))
def test_no_bytes_lead_to_another_error(raw: bytes) -> None:
    try:
        value = decode_json(raw)
    except ValueError:
        return
    assert canonical_json(decode_json(canonical_json(value))) == canonical_json(value)


@given(_ANY_JSON)
def test_what_others_write_is_read(value: Any) -> None:
    assert canonical_json(decode_json(json.dumps(value))) == canonical_json(value)


@given(_WITH_SURROGATES, st.integers())
def test_a_record_keeps_texts_and_numbers_that_few_json_readers_keep(text: str, number: int) -> None:
    request = ModelCallRequested(call_id=text, protocol="x", completeness="none", context_length=number)
    for event in (request, SessionStarted(harness=text)):
        state = encode_state(Draft(event, correlation=text, agent=text), text, "", GENESIS.hex())
        record = decode_record(Notification("s", 1, event.TYPE, state, 1))
        assert (
            encode_state(Draft(record.event, correlation=text, agent=text), text, "", GENESIS.hex()) == state
        )
        assert getattr(record.event, "context_length", number) == number
