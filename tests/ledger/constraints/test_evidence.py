"""What is no evidence against a rule, each beside a sentence that looks like it and does turn the rule."""

from itertools import product

import pytest

from ledger.constraints.visibility import KEPT, see

ASKED = (
    "Use {a} instead of {b}.",
    "Use {a}, not {b}.",
    "Don't use {b}, use {a}.",
    "Use {a} rather than {b}.",
)
"""Rules that name one thing and refuse another."""

TOLD = (
    "No {b}, {a} throughout.",
    "No {b}; {a} only.",
    "{a} instead of {b}.",
    "{a}, not {b}.",
    "{a} (no {b}).",
    "{a} throughout (no {b}).",
    "Setting: {a}, no {b}.",
    "{a}; {b} is out.",
    "No {b} ({a} throughout).",
)
"""Points of a summary that do so too."""

THINGS = (("composition", "inheritance"), ("linen", "cotton"), ("grams", "ounces"), ("trains", "planes"))


def under_rules(sentence: str) -> str:
    """A summary with a point among the user's rules."""
    return f"## Goal\n- Finish the job.\n\n## Constraints\n- {sentence}\n\n## Progress\n- Half of it is done."


def test_a_contrast_is_read_in_any_order_and_with_any_marks() -> None:
    for (one, other), asked, said in product(THINGS, ASKED, TOLD):
        rule = asked.format(a=one, b=other)
        same, turned = said.format(a=one, b=other), said.format(a=other, b=one)
        assert see(rule, under_rules(same)).visibility in KEPT, (rule, same)
        assert see(rule, under_rules(turned)).visibility not in KEPT, (rule, turned)


@pytest.mark.parametrize(
    ("rule", "same", "turned"),
    [
        ("Don't quote prices unless I ask for them.", "Prices only on request.",
         "Prices are always quoted, asked or not."),
        ("Don't add comments to the code unless I request them.", "No comments in the code except when the user asks.",
         "Code always gets comments, requested or not."),
        ("Prices must never be changed without approval.",
         "Price changes require the category manager's consent, always.",
         "Price changes do not require consent."),
        ("Do not thank me in your replies; just give the result.",
         "The user asked for results straight away with no thanks.",
         "The user asked for thanks and no results."),
        ("Do not mute failing checks to get a release out.",
         "Checks that fail aren't to be muted or turned off just for a release.",
         "Checks that fail are to be muted or turned off for a release."),
        ("Keep the donor list private.", "The donor list is confidential.", "The donor list may be passed around."),
        ("Never alter the files in the archive folder; put new versions into the drafts folder.",
         "`archive/` is read-only; new versions go to `drafts/`.",
         "`drafts/` is read-only; new versions go to `archive/`."),
        ("When you suggest a hotel, always tell me whether it has a lift.",
         "Any hotel suggestion must state if there is a lift.", "Hotel suggestions state the lift if possible."),
        ("Save all prices in euros.", "Decision of the user, valid for everything: prices are saved in euros.",
         "Decision of the user, valid for Spain: prices are saved in euros."),
        ("Any change to invoices needs two signatures.", "Two signatures for an invoice change, whatever the change.",
         "One signature for an invoice change, whatever the change."),
        ("At most one e-mail a day to each customer.", "A customer gets one e-mail per day at the very most.",
         "A customer gets one e-mail per day at the very least."),
        ("Do not write to the bidders yourself; I do that.",
         "Writing to the bidders is the user's job alone, the assistant must not write to them.",
         "Writing to the bidders is the assistant's job alone, the user must not write to them."),
        ("Let Priya publish the posts; you only draft them.", "Publishing is Priya's job, the agent only drafts posts.",
         "Drafting is Priya's job, the agent only publishes posts."),
        ("Call me by my surname, not by my first name.",
         "The user is a retired judge with two dogs and wants to be called by surname rather than by first name.",
         "The user is a retired judge with two dogs and wants to be called by first name rather than by surname."),
        ("Put the summary first in every memo.", "Memos have to lead with the summary.",
         "Memos have to end with the summary."),
        ("Use Celsius instead of Fahrenheit in the lab notes.", "Lab notes carry Celsius values (Fahrenheit is out).",
         "Lab notes carry Fahrenheit values (Celsius is out)."),
        ("Do not rename columns in the source tables.", "Source tables keep their column names.",
         "Columns in the source tables are to be renamed."),
        ("Keep the old file names.", "File names stay the way they were.", "File names are changed."),
        ("Never run the import while users are logged in.", "The import runs only when nobody is logged in.",
         "The import runs only when users are logged in."),
        ("Write the tests before the code.", "Tests first, code second.", "Code first, tests second."),
        ("Round all scores to whole numbers.", "Scores without decimals (rounded).", "Scores without rounding."),
        ("Alert the duty manager if the queue goes above 50 orders.",
         "Should more than 50 orders queue up, the duty manager is to be alerted.",
         "Should more than 50 orders queue up, the duty manager is not to be alerted."),
        ("Never e-mail clients unless I ask you to.", "E-mails to clients only on request.",
         "E-mail clients unless the user asks not to."),
        ("Keep the patient's name out of the file names.", "File names never carry the patient's name.",
         "File names must contain the patient's name."),
    ],
)  # fmt: skip
def test_a_sentence_that_names_what_the_rule_refuses_turns_it_only_if_it_demands_it(
    rule: str, same: str, turned: str
) -> None:
    assert see(rule, under_rules(same)).visibility in KEPT
    assert see(rule, under_rules(turned)).visibility not in KEPT
