"""A rule in other words is kept, by what makes the words others; a sentence that shares its words keeps nothing."""

import json

import pytest

from ledger.constraints.lexicon import PHRASES, covers, idea, near, opposites, rephrased
from ledger.constraints.literals import needed
from ledger.constraints.quantities import counted
from ledger.constraints.visibility import KEPT, see
from ledger.constraints.wording import sentences
from tests.decay_bench.pairs import FILE

AROUND = "The import job is running again.\n- 14 files done, 3 left\n- {}\n- Next: compare the totals"
"""A summary without a heading that announces rules."""

OTHER_WORDS = {
    "a plain statement": [
        ("Round every amount to two decimals.", "Amounts get two decimals."),
        ("Use tabs for indentation.", "Indentation is done with tabs."),
        ("Back up the table first, then drop the column.", "Dropping the column comes after a backup of the table."),
        ("Send the digest to Omar as well as me.", "Digest recipients: the user and Omar."),
        ("Archive tickets older than 90 days.", "Tickets get archived after 90 days."),
        ("Do not use abbreviations in the contract.", "The contract contains no abbreviations."),
        ("Ask the patient about allergies before prescribing.",
         "Nothing is prescribed before the patient has been asked about allergies."),
    ],
    "a label and what it holds": [
        ("Have the charts in PNG rather than SVG.", "Charts: PNG, not SVG."),
        ("Use British spelling in all documents.", "Spelling: British English, everywhere in the docs."),
        ("Don't touch main.go.", "main.go: hands off."),
        ("The drone must never fly higher than 120 metres.", "Altitude ceiling for the drone: 120 m."),
        ("Vacation requests must be answered within 5 working days.",
         "Deadline for answering a vacation request: one working week."),
    ],
    "who does it": [
        ("Invoices are approved by the treasurer only.", "Approving invoices is the treasurer's job."),
        ("Only the treasurer may approve expenses.", "Expenses are approved by the treasurer alone."),
        ("Do not discuss medical questions; refer the patient to a nurse.",
         "The bot must stay away from medical questions, and patients are pointed to a nurse."),
    ],
    "what must come first": [
        ("Wait for legal to approve before publishing.", "Publication is blocked pending approval from legal."),
        ("Never push to main without a review.", "Every change needs a review before it reaches main."),
        ("Ask me before you spend more than $50.", "Any outlay above 50 dollars needs the user's go-ahead first."),
        ("No deployments without a rollback plan.", "A rollback plan is a precondition for deploying."),
        ("Don't book anything without showing me three options.",
         "Before any booking the user wants to see three alternatives."),
    ],
    "positive for negative": [
        ("Never disable TLS verification.", "Keep TLS verification enabled."),
        ("Don't use emojis.", "Emoji-free replies."),
        ("No peanuts in any recipe, my son's allergic.", "Recipes have to be peanut-free."),
        ("Keep personal data in the EU.", "Personal data must not leave the EU."),
        ("Only recommend products that are in stock.", "Products that are not in stock must not be recommended."),
        ("Do not use real names.", "Names have to be fictitious."),
        ("Don't leave the door unlocked.", "The door must be locked at all times."),
    ],
    "amounts": [
        ("Jobs must not be longer than 90 minutes.", "Jobs are limited to an hour and a half."),
        ("Don't book flights with more than one stop.", "Flights: one stop at most."),
        ("Water the plants every two days.", "Plants need watering every other day."),
        ("Don't schedule meetings before 10 a.m.", "No meetings earlier than 10 in the morning."),
        ("Only use data from 2020 onwards.", "Data older than 2020 is not to be used."),
        ("Repairs over 300 EUR need the landlord's approval.",
         "The landlord must approve any repair that costs more than 300 EUR."),
        ("Only deploy on weekdays, and never after 4 p.m.",
         "Deployments are allowed Monday to Friday only, and have to be started by 16:00 at the latest."),
    ],
    "reasons and asides": [
        ("Stop the export, because the disk is full.", "The export has to be stopped."),
        ("Answer in Spanish whatever language the customer writes in.", "Responses are always in Spanish."),
        ("Migrations must be reversible.",
         "Remember the team's requirement that it has to be possible to roll back each migration."),
        ("Give all measurements in metric units.",
         "Measurements are always to be given in metric units, and dates in ISO format."),
    ],
    "two sentences": [
        ("Never give medical advice; refer the patient to a nurse.",
         "I am not allowed to advise on medical matters. Such patients are to be directed to a nurse."),
        ("You don't have to write tests for the prototype.",
         "The prototype accepts uploads. Tests are optional for it."),
    ],
    "one word for many": [
        ("Never write API keys, tokens or passwords to logs.", "Credentials have to be kept out of logs."),
    ],
}  # fmt: skip

KEEPS_NOTHING = [
    ("Speak to the customer in French.", "The customer speaks French."),
    ("Do not share the draft outside the team.", "The team shares the draft in a folder."),
    ("Escalate to a human if the customer is angry.", "The customer is angry and a human agent called her."),
    ("Wait for the user to confirm before paying.", "The user's confirmation page shows the payment."),
    ("You must take a backup before you run a migration.", "Run migration 42 now."),
    ("Log every API call.", "API calls are logged only on failure."),
    ("Never promise a delivery date.", "The delivery date of order 12 is 4 May."),
    (
        "Have every chapter checked by a native speaker.",
        "Only the first chapter needs a check by a native speaker.",
    ),
    ("Limit discounts to 10 percent.", "Discounts start at 10 percent."),
    ("Never disable TLS verification.", "TLS verification is disabled on staging."),
    ("Prices must be shown with two decimals.", "Prices are shown without decimals."),
    ("Run the tests before you push.", "The tests run after each push."),
    ("Do not call the client after 6 pm.", "Calls to the client start after 18:00."),
    ("Only the treasurer may approve expenses.", "Expenses are approved by the secretary."),
    ("Don't touch main.go.", "main.go is the entry point."),
]
"""Sentences with the words of a rule that tell of one case, or demand something else."""


@pytest.mark.parametrize(("rule", "said"), [pair for some in OTHER_WORDS.values() for pair in some])
def test_a_rule_in_other_words_is_kept_without_a_heading(rule: str, said: str) -> None:
    assert see(rule, AROUND.format(said)).visibility in KEPT


@pytest.mark.parametrize(("rule", "said"), KEEPS_NOTHING)
def test_a_sentence_with_the_words_of_a_rule_that_says_something_else_keeps_nothing(
    rule: str, said: str
) -> None:
    assert see(rule, AROUND.format(said)).visibility not in KEPT


def test_what_is_only_stated_takes_back_no_rule_that_is_said_elsewhere() -> None:
    rules = "## Rules\n- Replies have to be in German.\n"
    text = f"{rules}## Done\n- The reply to Kim is in English.\n- Replies are in English."
    assert see("Always reply in German.", text).visibility in KEPT


def test_no_word_stands_for_its_own_opposite_nor_for_what_is_close_to_it() -> None:
    for word in ("keep", "delete", "formal", "open", "enable", "real", "polite", "first", "increase"):
        assert opposites(idea(word))
        assert idea(word) not in opposites(idea(word))
        assert opposites(idea(word)).isdisjoint(near(idea(word)))


def test_no_idea_is_covered_by_its_opposite() -> None:
    for word in ("secret", "message", "data", "media"):
        assert not any(covers({idea(word)}, other) for other in opposites(idea(word)))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\bturn(s|ed|ing)? (down|away)\b", {"turn"}),
        (r"\b(stay|keep) out\b", {"stay", "keep"}),
        (r"\bno more\b|\bnever\b", {"no more", "never"}),
        (r"(?<=to )go(es)? out\b", {" out"}),
        (r"\b\w+ed?\b", set()),
        (r"\b(ok|okay)\b", set()),
        (r"[abc]{3}|text", set()),
        (r"colou?rs? of (?!the )glass", {"glass"}),
    ],
)
def test_a_pattern_needs_words_that_no_match_of_it_can_do_without(pattern: str, words: set[str]) -> None:
    assert needed(pattern) == words


def test_no_turn_of_phrase_is_missed_because_its_words_are_not_there() -> None:
    files = (FILE, FILE.with_name("rule_sentences.jsonl"), FILE.with_name("rule_summaries.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    texts = {counted(one.text) for line in lines[::3] for text in line.values() for one in sentences(text)}
    for text in sorted(texts):
        told = text
        for pattern, put in PHRASES:
            told = pattern.sub(put, told)
        assert rephrased(text) == told
