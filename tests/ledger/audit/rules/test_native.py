"""Expressions worked out as closures come to what the library says of them, errors included."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.rules.conditions import Condition, Scope
from ledger.audit.rules.native import build
from ledger.audit.rules.values import NO_ANSWER, ConditionError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([2**63 - 1, -(2**63), 0.0, -0.0, 1.0, 1.5, -2.0, 1e300])
    | st.sampled_from(["", "a", "b", "ab", "A b", "ä€😀", "1", "1.5", "x,y"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
LITERALS = st.sampled_from(
    ("1", "0", "-1", "2.0", "1.5", "0x1F", "1e3", "'a'", '"b"', "''", "'ab'", "r'a'", r"'\u00e4'", "'A b'")
) | st.sampled_from(
    ("'x,y'", "'^a'", "true", "false", "null", "[]", "['a','b']", "[1,2.0]", "[null, 'a', 1]", "[[1], ['a']]")
)
FIELDS = st.sampled_from(
    ("args", "args.a", "args.b", "args.c", "args.a.b", "args.a.b.c", "args . b", "args['a']", "args.a[0]")
) | st.sampled_from(("args.b['a']", "args.c[1].a", "tool", "one"))
BINARY = ["==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "&&", "||"]
METHODS = ["contains", "startsWith", "endsWith", "matches"]
ALONE = ["size", "lowerAscii", "upperAscii", "trim"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of expressions."""
    return st.one_of(
        st.tuples(inner, st.sampled_from(BINARY), inner).map(
            lambda three: f"({three[0]} {three[1]} {three[2]})"
        ),
        st.tuples(inner, st.sampled_from(BINARY), inner).map(" ".join),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})"),
        inner.map(lambda text: f"!({text})"),
        inner.map(lambda text: f"-({text})"),
        st.tuples(inner, st.sampled_from(METHODS), inner).map(
            lambda three: f"({three[0]}).{three[1]}({three[2]})"
        ),
        st.tuples(inner, st.sampled_from(ALONE)).map(lambda two: f"({two[0]}).{two[1]}()"),
        st.tuples(st.sampled_from(["size", "int", "double", "string", "dyn"]), inner).map(
            lambda two: f"{two[0]}({two[1]})"
        ),
        inner.map(lambda text: f"has(({text}).a)"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]})[{two[1]}]"),
        st.tuples(inner, inner).map(lambda two: f"[{two[0]}, {two[1]}]"),
        st.tuples(inner, st.sampled_from(["all", "exists", "exists_one", "filter", "map"]), inner).map(
            lambda three: f"({three[0]}).{three[1]}(one, {three[2]})"
        ),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}).split({two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}).indexOf({two[1]})"),
    )


EXPRESSIONS = st.recursive(LITERALS | FIELDS, larger, max_leaves=6)
TESTS = st.sampled_from(
    [
        "args.a == args.b",
        "args.a > 1",
        "args.b <= 1.5",
        "args.a.contains('b')",
        "args.b.startsWith(args.a)",
        "args.c.matches('^[a-b]+$')",
        "size(args.c) > 1",
        "args.a in ['a', 'b', 1]",
        "'a' in args.c",
        "has(args.a)",
        "has(args.a.b)",
        "args.c.exists(one, one == args.a)",
        "args.c.all(each, each > args.b && each != 3)",
        "args.a + 1 > args.b * 2 - 3",
        "args.b % 2 == 0",
        "args.a / args.b == 0",
        "args.b.lowerAscii() == 'ab'",
        "int(args.b) > 0",
        "tool == 'a'",
        "args.a",
        "args.nothing == 1",
    ]
)
CHOICES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||", "==", "!="]), inner).map(
            lambda three: f"({' '.join(three)})"
        ),
        inner.map(lambda text: f"!({text})"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})"),
    ),
    max_leaves=4,
)
KNOWN = ("args", "tool", "one")


def both(text: str, record: dict[str, Any]) -> tuple[Any, Any]:
    """What an expression comes to, as a closure and through the library."""
    native, library = Condition(text, KNOWN), Condition(text, KNOWN, is_native=False)
    scope = Scope()
    scope.turn_to(record)
    return native.value(scope), library.value(scope)


def spelled(value: Any) -> str:
    """A value as a text that tells 1 from 1.0 and true, and not the order of names."""
    return "none" if value is NO_ANSWER else json.dumps(value, sort_keys=True)


@given(EXPRESSIONS | CHOICES, ARGUMENTS, VALUES)
def test_a_closure_comes_to_what_the_library_says(text: str, arguments: dict[str, Any], one: Any) -> None:
    try:
        closure, library = both(text, {"args": arguments, "tool": "a", "one": one})
    except ConditionError:
        return  # such as a pattern that is none
    if library is NO_ANSWER and (".exists(" in text or ".all(" in text):
        return  # the library lets one item without an answer decide, the language does not
    assert spelled(closure) == spelled(library)


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("args.to.exists(one, one.endsWith('.net'))", {"to": [None, 7, "x.net"]}, True),
        ("args.to.exists(one, one.endsWith('.net'))", {"to": [None, "x.org"]}, NO_ANSWER),
        ("args.to.all(one, one.endsWith('.net'))", {"to": [None, "x.org"]}, False),
        ("args.to.all(one, one.endsWith('.net'))", {"to": [None, "x.net"]}, NO_ANSWER),
        ("args.to.exists(a, args.cc.exists(b, a == b))", {"to": ["x", "y"], "cc": ["z", "y"]}, True),
        ("size(args.name) == 2 && args.name.size() == 2", {"name": "\u00e4\U0001f600"}, True),
        ("args.name.lowerAscii() == '\u00c4b'", {"name": "\u00c4B"}, True),
        ("args.n > 9223372036854775806", {"n": 2**63 - 1}, True),
        ("args.n + 1 > 0", {"n": 2**63 - 1}, NO_ANSWER),
        ("args.n / 0.0 > 1e308", {"n": 1.0}, True),
        ("-7 / 2 == -3 && -7 % 2 == -1", {}, True),
        ("args.a // what comes\n == 1", {"a": 1}, True),
        ("args.words.contains('x')", {"words": ["x"]}, True),
    ],
)
def test_what_the_language_says(text: str, arguments: dict[str, Any], told: Any) -> None:
    condition, scope = Condition(text, KNOWN), Scope()
    scope.turn_to({"args": arguments})
    assert condition.native is not None and condition.value(scope) is told


@pytest.mark.parametrize(
    "text",
    [
        "timestamp('2026-01-01T00:00:00Z') < timestamp(args.at)",
        "type(args.a) == int",
        "args.n == 3u",
        "b'a' == b'a'",
        "{'a': args.a}.a == 1",
        "math.abs(args.n) == 1",
        "(" * 45 + "args.a" + ")" * 45,
        " + ".join(["args.n"] * 50),
    ],
)
def test_what_is_not_known_is_left_to_the_library(text: str) -> None:
    assert build(text, KNOWN, ()) is None


def test_an_expression_is_never_so_long_that_it_ends_the_process() -> None:
    Condition("args" + ".a" * 1900, KNOWN)
    with pytest.raises(ConditionError, match="at most 4000 characters"):
        Condition("args" + ".a" * 20_000, KNOWN)
