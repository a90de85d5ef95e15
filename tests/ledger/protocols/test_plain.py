"""What a loop holds, as JSON: the short cut gives what the long way gives, at any depth."""

import math
from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.canonical import canonical_json
from ledger.importers._plain.scribe import identity
from ledger.protocols.plain import fingerprint, is_deep, plain, walked


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Pair(NamedTuple):
    first: Any
    second: Any


class Word(str):
    """A text of another class."""


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([Colour.RED, Number.ONE, Word("w"), b"bytes", 1.0, "\ud83d"])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3) | st.just(Colour.RED), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(OrderedDict, st.dictionaries(st.text(max_size=3), inner, max_size=3))
    ),
    max_leaves=10,
)


def same(one: Any, other: Any) -> bool:
    """Equal, with the same types all the way down: 1, 1.0 and True are three values."""
    return bool(one == other) and repr(one) == repr(other)


@settings(max_examples=400, deadline=None)
@given(_VALUES)
def test_the_short_cut_gives_what_the_long_way_gives(value: Any) -> None:
    assert same(plain(value), walked(value))


@settings(max_examples=200, deadline=None)
@given(_VALUES, _VALUES)
def test_equal_fingerprints_are_of_equal_values(one: Any, other: Any) -> None:
    first, second = fingerprint(one), fingerprint(other)
    assert first is None or first == fingerprint(one)
    if first is not None and first == second:
        assert canonical_json(plain(one)) == canonical_json(plain(other))


def nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(("levels", "deep"), [(0, False), (199, False), (200, True), (20_000, True)])
def test_depth_is_told_without_going_down(levels: int, deep: bool) -> None:
    assert is_deep(nested(levels)) == deep


def test_a_deep_value_has_an_identity_of_its_own() -> None:
    names = {identity(nested(levels)) for levels in (1, 199, 200, 950, 20_000, 20_001)}
    assert len(names) == 6
    assert identity(nested(950)) == identity(nested(950))


def test_numbers_that_are_none_become_texts() -> None:
    assert plain([math.inf, math.nan]) == walked([math.inf, math.nan]) == ["inf", "nan"]
