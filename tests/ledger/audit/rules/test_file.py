"""What is wrong in a file of rules is named with its line; what is hostile in a record does no harm."""

import re
from pathlib import Path
from typing import Any

import cel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.audit import discover
from ledger.audit.rules import load_rules, read_rules
from ledger.audit.rules.conditions import DEEPEST, Condition, Scope, is_shallow
from ledger.audit.rules.values import NO_ANSWER
from ledger.errors import InputError
from tests.ledger.audit.rules.sessions import calls, found, places, rule

HEAD = "rules:\n- name: it\n  title: It\n  steps:\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "r.yaml:1: expected rules, found nothing"),
        (HEAD + "  - call: ''\n", "r.yaml:5: rules.1.steps.1.call.1: expected a text that is not empty"),
        (
            HEAD + "  - result: x\n    outcome: exploded\n",
            "r.yaml:6: rules.1.steps.1.outcome.1: expected 'returned'",
        ),
        (
            HEAD + "  - call: x\n    sum: args.a\n    over: .nan\n",
            "r.yaml:7: rules.1.steps.1.over: expected a number",
        ),
        (
            HEAD + "  - call: x\n    if: args.a.matches('[a')\n",
            "r.yaml:6: if: expected a CEL expression, found",
        ),
        (
            HEAD + "  - call: x\n    if: matches(args.a, r'(?=a)')\n",
            "no regular expression of RE2: invalid perl",
        ),
        (HEAD + "  - call: x\n    if: 1 + 2\n", "it is neither true nor false"),
        ("rules:\n- name: it\n  heading: It\n", "r.yaml:3: rules.1.heading: expected a known word"),
        ("? [a, b]\n: x\n", "r.yaml:1: expected a word, found a sequence"),
        (
            "rules:\n- name: it\n  title: 2026-13-45\n  steps: []\n",
            "r.yaml:4: rules.1.steps: expected at least one",
        ),
        ("rules: " + "9" * 5000, "r.yaml:1: expected a value, found '999"),
        ("rules: [", "r.yaml:1: expected YAML, found an error"),
        ("rules:\n- \x01", "r.yaml:2: expected YAML, found the character"),
        ("rules: []\n", "r.yaml:1: rules: "),
        (
            f"{HEAD}  - call: x\n    iff: y\n",
            "r.yaml:6: rules.1.steps.1.iff: expected a known word, found 'iff'",
        ),
        (
            f"{HEAD}  - call: x\n    if: args.a ==\n",
            "r.yaml:6: if: expected a CEL expression, found 'args.a =='",
        ),
        (f"{HEAD}  - call: x\n    if: arg.a == 1\n", "nothing is named 'arg' here; known are actor, "),
        (f"{HEAD}  - call: x\n    if: shell('ls')\n", "r.yaml:6: if: "),
        (f"{HEAD}  - call: x\n    if: result == 1\n", "nothing is named 'result' here"),
        (f"{HEAD}  - call: x\n    call: y\n", "r.yaml:6: 'call' stands there for the second time"),
        (
            f"{HEAD}  - call: x\n    result: y\n",
            "exactly one of call, ran, result, event, found call, result",
        ),
        (f"{HEAD}  - event: approval.given\n", "no event is named 'approval.given'"),
        (
            f"{HEAD}  - call: x\n    within: {{calls: 1}}\n",
            "r.yaml:6: rules.1.steps.1.within: there is no step before",
        ),
        (f"{HEAD}  - call: x\n    from: untrusted\n", "expected a list `untrusted` of tools"),
        (f"{HEAD}  - call: x\n    from: y\n", "no step before is named 'y'"),
        (f"{HEAD}  - call: x\n    as: args\n", "r.yaml:6: as: expected a name of its own, found 'args'"),
        (f"{HEAD}  - without: {{call: x}}\n", "expected a step that is there, found only absences"),
        (
            f"{HEAD}  - call: x\n    sum: args.n\n",
            "r.yaml:5: rules.1.steps.1: expected sum and over together",
        ),
        (f"{HEAD}  - call: x\n  severity: bad\n", "r.yaml:6: rules.1.severity: expected 'info'"),
        (
            f"{HEAD}  - call: x\n- name: it\n  title: t\n  steps:\n  - call: y\n",
            "r.yaml:6: rules.2.name: a rule before is named 'it'",
        ),
        (f"{HEAD}  - call: x\n    if:\n", "r.yaml:6: expected something after 'if', found nothing"),
        (f"{HEAD}  - call: x\n    if: args.a ? true : false\n", "needs quotes around it"),
        (f"{HEAD}  - call: x\n    if: !args.a\n", "r.yaml:6: expected YAML, found an error"),
        (
            f"{HEAD}  - call: x\n    if: args{'.a' * 30_000}\n",
            "expected at most 4000 characters, found 60004",
        ),
        ("rules: &r\n- *r\n", "nested too deep"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "a: expected a known word"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read_rules("r", text, "r.yaml")
    assert str(caught.value).startswith("r.yaml:") and told in str(caught.value)


def test_the_rules_of_the_readme_can_be_read() -> None:
    text = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    part = text.partition("### Rules over sequences")[2].partition("\n## ")[0]
    shown = part.partition("```yaml\n")[2].partition("```")[0]
    assert [one.name for one in read_rules("readme", shown, "README.md").file.rules] == ["secret_then_sent"]
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| `")]
    steps = [cell for row in rows for cell in re.findall(r"`(\{.*?\})`(?: |$)", row[2])]
    assert len(steps) > 8
    for step in steps:
        more = "" if "without" not in step else "  - call: x\n"
        before = "  - {call: read, as: seen}\n" if "from: seen" in step else ""
        before = "  - call: x\n" if "within" in step and "without" in step else before
        read_rules(
            "row", f"untrusted: [x]\n{HEAD}{before}  - {step}\n{more if not before else ''}", "README.md"
        )


def test_repeated_parts_do_not_blow_up() -> None:
    bomb = "x0: &x0 [a, a, a, a, a, a, a, a, a]\n" + "".join(
        f"x{number}: &x{number} [{', '.join([f'*x{number - 1}'] * 9)}]\n" for number in range(1, 12)
    )
    with pytest.raises(InputError, match="without so many repeated parts"):
        read_rules("r", bomb, "r.yaml")


def test_rules_lie_in_the_home_or_in_a_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "own.yaml").write_text(rule("- call: x"))
    (tmp_path / "more.yaml").write_text(rule("- call: y"))
    found = discover(tmp_path, rules=[tmp_path / "more.yaml"])
    assert found["own"].is_own and found["more"].is_own and not found["policy_order"].is_own
    with pytest.raises(InputError, match="cannot be read"):
        load_rules(tmp_path / "none.yaml")


def deep(levels: int) -> Any:
    """A value nested so deep."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_arguments_that_are_nested_too_deep_are_not_looked_into(tmp_path: Path) -> None:
    assert is_shallow(deep(DEEPEST - 1)) and not is_shallow(deep(DEEPEST + 1))
    text = rule("- call: x\n  if: has(args.a)")
    assert places(tmp_path, text, calls(("x", deep(10)))) == [1]
    assert places(tmp_path, text, calls(("x", deep(100_000)))) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
TEXTS = (
    "args.a.b > 1 || args.size() > 2",
    "args.exists(one, one == 'x')",
    "args.a + args.b == args",
    "args.a.matches(args.b)",
    "math.abs(args) < 3 || args.lowerAscii() == 'x'",
    "args / 0 == 1 || args[9223372036854775807] == 1",
)
LIKE_THE_LIBRARY = (
    "args.a == args.b",
    "args . a.b >= 1 || args.b",
    "has(args.a) && args.a.size() > 1",
    "has(args.a.b) ? args.a.b : args.b",
    "!has(args.a) || !(args.a == 1 && args.b == 'x')",
    "'a' in args && args['a'] == args.b",
    "'a' in args.b || 'b' in args",
    "!('a' in args) && 'args.a' != args.a",
    "args.a.exists(one, one == args.b)",
    "args.a.all(args, args == 1)",
    "args.a.map(one, args.b) == [] || args.a.filter(one, one == 1).size() == 1",
    "[args.a, args.b][0] == args.a && {'a': args.a}.a == args.a",
    "(args.a == 1 && args.b == 2) == false",
    "type(args.a) == int || args.a == null // args.b",
    "size(args) == 1 && args.a != args",
    r"r'\' + args.a != args.b",
    "args.a",
)
FIELDS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "a", "b", "x"])
)
SMALL = st.dictionaries(st.sampled_from("ab"), FIELDS, max_size=2)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), FIELDS | SMALL | st.lists(FIELDS | SMALL, max_size=2))


@given(st.sampled_from(TEXTS), VALUES)
def test_a_condition_has_a_value_or_none_whatever_the_arguments(text: str, value: Any) -> None:
    condition, scope = Condition(text, ("args",)), Scope()
    scope.turn_to({"args": value})
    assert condition.value(scope) in (True, False, NO_ANSWER)


@given(st.sampled_from(LIKE_THE_LIBRARY), st.lists(ARGUMENTS | VALUES, min_size=1, max_size=4))
@example("args.a.all(args, args == 1)", [{"a": {}}])
def test_a_condition_that_is_handed_fields_comes_to_what_the_library_says_of_the_whole(
    text: str, values: list[Any]
) -> None:
    condition, scope = Condition(text, ("args",)), Scope()
    for value in values:
        try:
            expected = cel.evaluate(text, {"args": value})
        except (ValueError, RuntimeError, TypeError, KeyError, IndexError):
            expected = NO_ANSWER
        scope.turn_to({"args": value})
        told = condition.value(scope)
        assert (type(told), repr(told)) == (type(expected), repr(expected))


def test_half_a_character_hides_nothing_from_a_condition(tmp_path: Path) -> None:
    text = rule("- call: x\n  if: args.a.contains('key')")
    assert places(
        tmp_path, text, calls(("x", {"a": "the key \ud800"}), ("x", {"a": "key", "b": "\udc00"}))
    ) == [1, 3]


def test_a_function_that_does_not_suit_a_value_says_nothing_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = rule("- call: x\n  if: args.a.lowerAscii() == 'x' || args.a.matches(args.b)")
    assert places(tmp_path, text, calls(("x", {"a": 3}), ("x", {"a": "X"}))) == [3]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("math.abs(args) == 2", -2),
        ("args.lowerAscii().split(' ').size() == 2", "A B"),
        ("min(args, 3) == 1", 1),
        ("args.exists(one, one > 1)", [1, 2]),
        ("has(args.a) && args.a.b == 1.0", {"a": {"b": 1}}),
    ],
)
def test_functions_of_the_language_and_of_its_library(text: str, value: Any) -> None:
    scope = Scope()
    scope.turn_to({"args": value})
    assert Condition(text, ("args",)).value(scope) is True


def test_a_regular_expression_takes_linear_time() -> None:
    condition, scope = Condition("args.matches('^(a+)+$')", ("args",)), Scope()
    scope.turn_to({"args": "a" * 100_000 + "b"})
    assert condition.value(scope) is False


def test_two_files_of_rules_with_one_name_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "own-rules.yaml" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(HEAD + "  - call: x\n")
    assert "own-rules" in discover(rules=[paths[0], paths[0]])
    with pytest.raises(InputError, match="expected a file of another name"):
        discover(rules=paths)


def test_a_message_of_a_finding_is_utf_8_whatever_a_tool_is_called(tmp_path: Path) -> None:
    (one,) = found(tmp_path, rule("- call: '*'"), calls("pay\ud800" + "x" * 200))
    assert one.message == f"It happened: pay\\ud800{'x' * 96}… (seq 1)"
