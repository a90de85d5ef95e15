"""Laws of visibility: words that say a rule, take it back, or change how it is written, whatever the rule."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.constraints.lexicon import is_verb
from ledger.constraints.quantities import counted
from ledger.constraints.visibility import KEPT, see
from tests.decay_bench.pairs import pairs

FORBIDDEN_ANYWAY = (
    "Never {}.",
    "Do not {}.",
    "You must not {}.",
    "It is forbidden to {}.",
    "Under no circumstances {}.",
    "The user said never to {}.",
    "Important: do not {}.",
    "You are not allowed to {}.",
    "At no time {}.",
    "You may not {}.",
)
"""Other words for a prohibition."""

ALLOWED = (
    "You may {}.",
    "It is fine to {}.",
    "The user said it is OK to {}.",
    "Always {}.",
    "Make sure to {}.",
    "From now on, {}.",
    "You can {} whenever you like.",
    "Don't hesitate to {}.",
    "Nobody minds if you {}.",
    "It is now allowed to {}.",
    "There is nothing wrong with it if you {}.",
    "You are free to {}.",
)
"""What takes a prohibition back."""

DEMANDED_ANYWAY = (
    "Always {}.",
    "You must {}.",
    "Make sure to {}.",
    "The user asked to always {}.",
    "It is mandatory to {}.",
    "Remember to {}.",
    "I have to {}.",
    "You are required to {}.",
    "Important: {}.",
)
"""Other words for a requirement."""

RELEASED = (
    "Never {}.",
    "Do not {}.",
    "There is no need to {}.",
    "You do not have to {}.",
    "It is not necessary to {}.",
    "Nobody has to {}.",
    "You must not {}.",
    "You no longer need to {}.",
    "The user does not want you to {}.",
    "It is forbidden to {}.",
    "Under no circumstances {}.",
    "You need not {}.",
)
"""What takes a requirement back."""


def _has_two_orders(rule: str) -> bool:
    """Whether it orders two things: whether `never` before it is said of both is anybody's guess."""
    words = rule.lower().split()
    return any(one == "and" and is_verb(other) for one, other in pairwise(words))


RULES = sorted({pair.rule for pair in pairs()})
PLAIN = [rule for rule in RULES if not any(mark in rule.rstrip(".") for mark in '.;:?",')]
PROHIBITIONS = [
    rule.rstrip(".").partition(start)[2]
    for rule in PLAIN
    for start in ("Never ", "Do not ", "Don't ")
    if rule.startswith(start)
]
REQUIREMENTS = [
    rule[0].lower() + rule[1:].rstrip(".")
    for rule in (one.removeprefix("Always ") for one in PLAIN)
    if is_verb(rule.split()[0].lower())
    and not rule.startswith("Do ")
    and " nothing " not in rule
    and " must " not in rule
    and not _has_two_orders(rule)
]


@pytest.mark.parametrize("form", FORBIDDEN_ANYWAY)
def test_a_prohibition_in_other_words_is_kept(form: str) -> None:
    for body in PROHIBITIONS:
        assert see(f"Never {body}.", form.format(body)).visibility in KEPT, body


@pytest.mark.parametrize("form", ALLOWED)
def test_a_leave_is_never_taken_for_the_prohibition(form: str) -> None:
    for body in PROHIBITIONS:
        text = f"## Rules\n- {form.format(body)}\n- Keep charts small.\n"
        assert see(f"Do not {body}.", text).visibility not in KEPT, body


@pytest.mark.parametrize("form", DEMANDED_ANYWAY)
def test_a_requirement_in_other_words_is_kept(form: str) -> None:
    for body in REQUIREMENTS:
        assert see(f"Always {body}.", form.format(body)).visibility in KEPT, body


@pytest.mark.parametrize("form", RELEASED)
def test_a_release_is_never_taken_for_the_requirement(form: str) -> None:
    for body in REQUIREMENTS:
        text = f"Progress notes. {form.format(body)} Charts stay small."
        assert see(f"Always {body}.", text).visibility not in KEPT, body


@pytest.mark.parametrize("rule", RULES[::5])
def test_a_copy_is_seen_in_json_in_a_list_in_a_table_and_over_two_lines(rule: str) -> None:
    words = rule.split()
    broken = " ".join(words[: len(words) // 2]) + "\n  " + " ".join(words[len(words) // 2 :])
    filler = "- The work of the day was long and the notes of it are longer than they were before: "
    assert see(rule, json.dumps({"constraints": ["Be brief.", rule], "done": "All."})).visibility in KEPT
    assert (
        see(rule, json.dumps({"constraints": [rule]}, indent=2)[:-2]).visibility in KEPT
    )  # cut off: no JSON
    assert see(rule, f"| Field | Rule |\n|---|---|\n| Work | {rule} |").visibility in KEPT
    assert see(rule, f"<rules>\n{rule}\n</rules>").visibility in KEPT
    assert see(rule, f"{filler}\n- {broken}").visibility in KEPT


@pytest.mark.parametrize(
    ("rule", "turned"),
    [
        ("Back up the table before you alter it.", "Alter the table before you back it up."),
        ("Close the ticket only after the customer agrees.", "Close the ticket before the customer agrees."),
        ("Nothing may be deployed until the captain approves.", "Never let the captain approve before you deploy."),
    ],
)  # fmt: skip
def test_what_must_come_first_may_not_come_second(rule: str, turned: str) -> None:
    assert see(rule, rule).visibility == "verbatim"
    assert see(rule, turned).visibility not in KEPT


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("two gigabytes", "2 gb"),
        ("4 hours", "240 minutes"),
        ("ten thousand", "10000"),
        ("two hundred and fifty", "250"),
        ("14 days", "two weeks"),
        ("5 pm", "17:00"),
        ("half a year", "6 months"),
        ("$50", "fifty dollars"),
    ],
)
def test_the_same_amount_is_read_the_same(one: str, other: str) -> None:
    assert counted(one).split() == counted(other).split()


def test_a_looser_number_weakens_and_another_unit_does_not() -> None:
    rule = "Uploads must not be larger than 2 GB."
    assert see(rule, "No upload may exceed 2000 MB.").visibility == "paraphrase"
    assert see(rule, "Uploads must not be larger than 20 GB.").visibility == "weakened"
    assert see(rule, "Uploads may be larger than 2 GB.").visibility == "inverted"


@pytest.mark.parametrize(
    "part",
    [
        "1",
        "1,234 ",
        "1.,",
        "€",
        "[",
        "<a ",
        "```\n",
        "keep the ",
        "(no ",
        "\n",
        "> ",
        "un-",
        '"a b c ',
        "and x must ",
    ],
)
def test_a_hostile_text_of_any_sort_is_read_to_its_end(part: str) -> None:
    assert see("Keep test data out of production.", part * (200_000 // len(part))).visibility == "absent"


@given(st.text(max_size=200))
def test_no_text_makes_counting_fail(text: str) -> None:
    assert isinstance(counted(text), str)
