"""What speaks against a rule though its words are there: exchange, order, leave, amounts, what narrows or softens."""

import pytest

from ledger.constraints.visibility import KEPT, see
from tests.ledger.constraints.test_laws import PLAIN

NARROWER = ("For new customers, {}", "On weekends, {}", "While the migration is running, {}", "In Norway, {}")
"""What stands before a rule that holds in some cases only."""

NARROWER_AFTER = ("{} written by interns.", "{} for premium accounts.", "{} as long as the audit lasts.")
"""What stands after one."""

SOFTER = ("As a guideline, {}", "Where practical, {}", "Try to stick to this: {}")
"""What stands before a rule that may be outweighed."""

SOFTER_AFTER = ("{}, but use your judgement.", "{}, though exceptions are fine.", "{} most of the time.")
"""What stands after one."""


@pytest.mark.parametrize("form", NARROWER + SOFTER)
def test_what_stands_before_a_copy_may_narrow_or_soften_it(form: str) -> None:
    for rule in PLAIN[::3]:
        text = f"## Rules\n- {form.format(rule[0].lower() + rule[1:])}\n- Keep charts small.\n"
        assert see(rule, text).visibility not in KEPT, rule


@pytest.mark.parametrize("form", NARROWER_AFTER + SOFTER_AFTER)
def test_what_goes_on_after_a_copy_may_narrow_or_soften_it(form: str) -> None:
    for rule in PLAIN[::3]:
        text = f"## Rules\n- {form.format(rule.rstrip('.'))}\n- Keep charts small.\n"
        assert see(rule, text).visibility not in KEPT, rule


@pytest.mark.parametrize(
    ("rule", "turned"),
    [
        ("Mop the kitchen but not the parlour.", "Mop the parlour but not the kitchen."),
        ("Use tabs, not spaces, for indentation.", "Use spaces, not tabs, for indentation."),
        ("The student reads aloud and the tutor listens.", "The tutor reads aloud and the student listens."),
        ("Helpers may only read. All edits are made by the lead.",
         "The lead may only read. All edits are made by helpers."),
        ("Payments are entered by one clerk and released by another.",
         "Payments are entered and released by the same clerk."),
        ("Use metric units in all answers, never imperial.", "Use metric units in all answers, always imperial."),
        ("Take a screenshot after the fix.", "Take a screenshot before the fix."),
        ("Run the tests before you push.", "Push first, and then run the tests."),
        ("Reports must be kept for at least 30 days.", "Reports must be kept for at most 30 days."),
        ("Never contact the press without clearance.", "Contact the press even without clearance."),
        ("Never reply to all unless I ask for it.", "Always reply to all unless I ask for it."),
        ("Restart the service only at night.", "Restart the service also at night."),
        ("Never write keys to logs.", "Keys may be written to logs, and not only in tests."),
        ("Never use customer data for training.", "The rule not to use customer data for training is off."),
        ("Mask phone numbers in exports.", "You can skip it: mask phone numbers in exports."),
        ("Deletions need a confirmation.", "Deletions can go ahead without a confirmation."),
        ("Send the draft to Priya first and to the client afterwards.",
         "The draft goes to the client first and then to Priya."),
        ("Invoices must be checked by Tomasz, not by me.", "The user, not Tomasz, checks the invoices."),
        ("Sort every list from newest to oldest.", "Every list is to be sorted from oldest to newest."),
        ("Copy files from staging to the archive.", "Files must be copied from the archive to staging."),
        ("Reply formally, using Mr Adeyemi as my name.",
         "Reply informally, and never use Mr Adeyemi as the user's name."),
        ("Ask me before you delete any record.",
         "Ask the user before deleting any record; no such check applies to drafts."),
        ("Never include my address in your replies or in any tool call.",
         "Never include the user's address in replies."),
    ],
)  # fmt: skip
def test_a_turned_rule_is_lost_though_all_its_words_are_there(rule: str, turned: str) -> None:
    assert see(rule, rule).visibility == "verbatim"
    assert see(rule, f"## Rules\n- {turned}\n- Keep charts small.\n").visibility not in KEPT


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("Every SQL query must use bound parameters, never string formatting.",
         "Never build SQL queries by string formatting: use bound parameters."),
        ("Do not use photos without the parents' permission.", "No photo is used until the parents have said yes."),
        ("Never put confidential information into emails.", "You may not put confidential information into emails."),
        ("Ask for confirmation before deleting any file or directory.",
         "Nothing gets deleted until the user has said yes."),
        ("Never tell staff before the board has announced it.",
         "At no time tell staff before the board has announced it."),
    ],
)  # fmt: skip
def test_other_words_and_another_order_keep_a_rule(rule: str, told: str) -> None:
    assert see(rule, f"## Rules\n- {told}\n- Keep charts small.\n").visibility in KEPT


def test_a_part_of_the_things_is_not_all_of_them() -> None:
    assert (
        see("Keep all logs for 90 days.", "Audit logs are to be kept for 90 days.").visibility == "narrowed"
    )
    rule = "Every booking must be paid with the company card."
    assert see(rule, "Flights must be paid with the company card.").visibility == "narrowed"
    rule = "Ask for explicit confirmation before deleting any file or directory."
    told = "Deleting directories needs explicit confirmation first; single files do not."
    assert see(rule, told).visibility not in KEPT


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Never deploy until I have approved the plan.", "Deployments require the user's approval of the plan."),
        ("Do not delete branches until I have confirmed.", "Deleting branches requires the user's confirmation."),
        ("Never share patient names outside this chat.",
         "Patient names must stay confidential to this conversation."),
        ("Give the draft to Ann first and to the board afterwards.",
         "The draft must go to Ann first and then to the board."),
        ("Copy files from staging to the archive.", "Files must be copied from staging to the archive."),
    ],
)  # fmt: skip
def test_a_rule_in_other_words_is_kept(rule: str, said: str) -> None:
    assert see(rule, f"## Rules\n- {said}\n- Keep charts small.\n").visibility in KEPT
