"""How far a word that turns a rule reaches: its own part and no further; labels, and what has one name."""

import pytest

from ledger.constraints.visibility import KEPT, see

KEPT_RULES = [
    (
        "Don't post anything for me; write the text and I'll post it myself.",
        "The user does all posting; texts are only written.",
    ),
    (
        "The diagnosis is confidential; do not share it with anyone but me.",
        "The diagnosis is confidential, to be disclosed to the user only.",
    ),
    (
        "The diagnosis is confidential; do not share it with anyone but me.",
        "The diagnosis is to be shared only with the user.",
    ),
    ("Do not edit the files in dist/, they are generated.", "Leave `dist/` alone (generated code)."),
    ("If a build fails, stop and tell me.", "Failed builds: stop, then tell the user."),
    (
        "Only book trains that have free cancellation.",
        "Trains: must be freely cancellable, no others to be booked.",
    ),
    ("Give the client at least two quotes.", "The client must never be shown a single quote only."),
    (
        "Do not store keys on the same server.",
        "Keys have to be stored on a different server, never on the same one.",
    ),
    ("Your migrations must be safe to run twice.", "Migrations have to be idempotent."),
    ("Take a snapshot of the virtual machine before each upgrade.", "Upgrades only after a VM snapshot."),
    (
        "Do not close a case until the client confirms that the fault is fixed.",
        "A case stays open up to the moment when the client has confirmed that the fault is fixed.",
    ),
    (
        "Use the standard library rather than third-party packages.",
        "The stdlib is favoured over external packages.",
    ),
    ("Never mention competitors in the newsletter.", "In the newsletter, rival brands may not be named."),
    ("Never suggest meals with animal products.", "Meals must be fully vegan: nothing from animals."),
    ("Never delete a single record.", "No record is to be deleted."),
    ("The agent must stop after three failed attempts.", "No more than three failed attempts; then stop."),
    ("Treat compiler warnings as errors.", "Compiler warnings have the status of errors."),
    ("Always attach the invoice to the claim.", "A claim is never sent without its invoice attached."),
]
"""Rules, and what says the same."""

LOST_RULES = [
    (
        "Don't post anything for me; write the text and I'll post it myself.",
        "The agent does all the posting; the user writes the texts.",
    ),
    (
        "The diagnosis is confidential; do not share it with anyone but me.",
        "The diagnosis may be shared with everyone.",
    ),
    (
        "The diagnosis is confidential; do not share it with anyone but me.",
        "The diagnosis must be shared with the family.",
    ),
    ("Never share the salary data with the user.", "The salary data is to be shared with the user only."),
    ("Do not edit the files in dist/, they are generated.", "Edit `dist/` freely (generated code)."),
    ("If a build fails, stop and tell me.", "Failed builds: do not stop, do not tell the user."),
    ("Only book trains that have free cancellation.", "Trains: must not be freely cancellable."),
    ("Give the client at least two quotes.", "The client must be shown a single quote only."),
    (
        "Do not store keys on the same server.",
        "Keys have to be stored on the same server, never on a different one.",
    ),
    ("Your migrations must be safe to run twice.", "Migrations need not be idempotent."),
    ("Take a snapshot of the virtual machine before each upgrade.", "VM snapshots only after the upgrades."),
    (
        "Do not close a case until the client confirms that the fault is fixed.",
        "A case is closed before the client has confirmed that the fault is fixed.",
    ),
    (
        "Use the standard library rather than third-party packages.",
        "External packages are favoured over the stdlib.",
    ),
    ("Sort the list of articles with the most recent first.", "Articles run in chronological order."),
    ("Never mention competitors in the newsletter.", "In the newsletter, rival brands must be named."),
    ("Ask patients for consent by letter.", "Ask new patients for consent by letter."),
    ("Ask patients for consent by letter.", "Consent is asked for by letter from new patients."),
    ("Suggest only vegan meals.", "Suggest meals with animal products."),
    ("Never suggest meals with animal products.", "Meals with animal products are fine."),
    ("Keep backups in a different region.", "Keep backups in the same region."),
    ("Never delete a single record.", "Delete at least two records."),
    ("The agent must stop after three failed attempts.", "The agent must go on after three failed attempts."),
    ("Treat compiler warnings as errors.", "Compiler warnings do not have the status of errors."),
    ("Always attach the invoice to the claim.", "A claim is sent without its invoice attached."),
]
"""Rules, and what has their words and says something else."""


PLACES = ("{}", "## Constraints & Preferences\n- {}\n")
"""Where a sentence stands."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("rule", "said"), KEPT_RULES)
def test_a_rule_is_kept_whose_word_turns_only_its_own_part(rule: str, said: str, place: str) -> None:
    assert see(rule, place.format(said)).visibility in KEPT


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("rule", "said"), LOST_RULES)
def test_a_rule_is_lost_whose_part_is_turned(rule: str, said: str, place: str) -> None:
    assert see(rule, place.format(said)).visibility not in KEPT


def test_a_sentence_that_says_a_rule_is_not_turned_by_one_on_something_else_beside_it() -> None:
    rule = "Don't send any email for me; write a draft and I'll send it myself."
    said = "## Constraints & Preferences\n- Emails are drafts only; the user does all sending.\n- Replies are brief."
    assert see(rule, said).visibility in KEPT
