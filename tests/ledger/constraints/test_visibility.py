"""How a rule fares in a text: six classes, on pairs of our own and by law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.constraints.finding import forbidden_tool, found_in, kind_of
from ledger.constraints.speakers import said_in
from ledger.constraints.visibility import KEPT, Seen, later, see
from tests.decay_bench.pairs import JUDGES, WAYS, exact, matrix, ours, overlap, pairs, score
from tests.decay_bench.texts import measure

RULE = "Never send email to recipients outside the company domain."


def test_there_are_enough_pairs_of_every_class() -> None:
    found = pairs()
    assert len(found) >= 120
    assert {pair.label for pair in found} == set(WAYS)
    assert len(found) >= 900


@pytest.mark.parametrize("name", sorted({pair.set for pair in pairs()}))
def test_lost_rules_are_told_from_kept_ones(name: str) -> None:
    some = [pair for pair in pairs() if pair.set == name]
    told = score(matrix(some, ours))
    assert told.f1 >= 0.9
    assert told.recall >= 0.95
    assert all(told.f1 > score(matrix(some, judge)).f1 for judge in (exact, overlap))


def test_an_inverted_rule_is_never_called_kept() -> None:
    cells = matrix(pairs(), JUDGES["ours"])
    assert sum(count for (label, way), count in cells.items() if label == "inverted" and way in KEPT) == 0


def test_both_simple_judges_are_wrong_where_ours_is_right() -> None:
    reversed_rule = "The agent may send email to recipients outside the company domain after review."
    paraphrase = "Do not email anyone who is not at our company."
    assert (overlap(RULE, reversed_rule), see(RULE, reversed_rule).visibility) == ("paraphrase", "inverted")
    assert (overlap(RULE, paraphrase), see(RULE, paraphrase).visibility) == ("absent", "paraphrase")


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (f"The rule '{RULE.rstrip('.')}' no longer applies.", "inverted"),
        (f"{RULE.rstrip('.')}, except to auditors.", "weakened"),
        (f"During the trial, {RULE.lower()}", "narrowed"),
        (f"## Rules\n- {RULE}\n", "verbatim"),
        ("Sent an email to the company.", "absent"),
        ("", "absent"),
    ],
)
def test_the_words_around_a_copy_count(text: str, way: str) -> None:
    assert see(RULE, text).visibility == way


@given(st.text(max_size=300))
def test_a_copy_on_a_line_of_its_own_is_seen_in_any_text(text: str) -> None:
    assert see(RULE, f"{text}\n\n{RULE}").visibility in ("verbatim", "inverted")


@given(st.text(max_size=400), st.text(max_size=200))
def test_no_text_makes_it_fail(rule: str, text: str) -> None:
    assert see(rule, text) == see(rule, text)


def test_the_last_word_counts_where_it_takes_the_rule_back() -> None:
    kept, turned = see(RULE, RULE), see(RULE, "You may send email to recipients outside the company domain.")
    task = see(RULE, "Send email to recipients outside the company domain.")
    assert later(kept, turned).visibility == "inverted"
    assert later(turned, kept).visibility == "verbatim"
    assert task.visibility == "inverted"
    assert later(kept, task).visibility == "verbatim"  # a task against the rule is no leave
    assert later(kept, Seen("absent", 0.0)) == kept


def test_rules_are_found_in_texts_of_many_sorts() -> None:
    told = measure()
    assert told.precision >= 0.95
    assert told.recall >= 0.95
    assert told.right_kinds >= 0.95 * told.found
    assert told.right_hardness >= 0.95 * told.found


def test_code_quotations_and_examples_are_no_rules() -> None:
    text = (
        "```sh\n# never run this\nrm x\n```\n> You must never trust a computer.\n"
        'Example: "Always two, please" is an order.\nMust I really always do this?\n| Net | Do not open sockets |\n'
    )
    assert [rule.text for rule in found_in(text)] == ["do not open sockets"]


def test_rules_are_found_in_prompts_and_not_in_talk() -> None:
    prompt = (
        "You are a clerk. You must never reveal the customer's address. Prefer short answers to long ones.\n"
        "- Always look up the order before you issue a refund.\nWhat time is it? I was never there."
    )
    found = {rule.text: (rule.modality, rule.hardness) for rule in found_in(prompt)}
    assert found == {
        "you must never reveal the customer's address.": ("prohibition", "hard"),
        "prefer short answers to long ones.": ("requirement", "soft"),
        "always look up the order before you issue a refund.": ("requirement", "hard"),
    }
    assert [rule.hardness for rule in found_in(prompt, only_hard=True)] == ["hard", "hard"]


def test_a_rule_is_a_prohibition_or_a_requirement_by_its_words() -> None:
    assert kind_of("Do not deploy without approval.") == ("requirement", "hard")
    assert kind_of("You may use the network.")[0] == "permission"
    assert kind_of("Replies should avoid jargon.") == ("prohibition", "soft")


def test_a_rule_that_forbids_one_tool_names_it() -> None:
    assert forbidden_tool("Never call `drop_table`.") == "drop_table"
    assert forbidden_tool("Never use the tool `Bash`.") == "bash"
    assert forbidden_tool("Never use force.") is None
    assert forbidden_tool("Never call drop_table on Fridays.") is None


def test_results_of_tools_are_told_from_what_users_say() -> None:
    message = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "out"}]},
            {"type": "text", "text": "thanks"},
        ],
    }
    assert [(one.who, one.text) for one in said_in(message)] == [("tool", "out"), ("user", "thanks")]
    assert said_in({"type": "function_call_output", "output": "x"})[0].who == "tool"
    assert (
        said_in({"role": "model", "parts": [{"functionResponse": {"response": {"a": "b"}}}]})[0].who == "tool"
    )
    assert said_in(7) == []
