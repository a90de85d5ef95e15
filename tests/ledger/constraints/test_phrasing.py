"""Laws of phrasing: how English forbids, demands, sets in order, limits and enumerates, whatever it speaks of."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger.constraints import phrasal
from ledger.constraints.enumerating import members
from ledger.constraints.visibility import KEPT, see
from ledger.constraints.wording import sentences


class Deed(NamedTuple):
    """Something that may be forbidden or demanded."""

    do: str
    """Its verb."""

    doing: str
    """The verb as a noun."""

    done: str
    """The verb as it stands with `is`."""

    what: str
    """What it is done to."""

    how: str
    """Where, or with what."""


DEEDS = (
    Deed("share", "sharing", "shared", "customer records", "with third parties"),
    Deed("disable", "disabling", "disabled", "alarms", "at the plant"),
    Deed("publish", "publishing", "published", "photos", "of children"),
    Deed("archive", "archiving", "archived", "tickets", "in the weekly folder"),
    Deed("verify", "verifying", "verified", "addresses", "against the register"),
)

FORBIDDEN = (
    "{doing} {what} {how} is off limits.",
    "{doing} {what} {how} is a no-no.",
    "{doing} {what} {how} is something the agent must not do.",
    "{doing} {what} {how} is not an option.",
    "{doing} {what} {how}: no.",
    "There is to be no {doing} of {what} {how}.",
    "No {what} are to be {done} {how}.",
    "In no event are {what} to be {done} {how}.",
    "The user insists that no {what} be {done} {how}.",
    "The user does not want {what} {done} {how}.",
    "The agent refrains from {doing} {what} {how}.",
    "The agent has no permission to {do} {what} {how}.",
    "The ban on {doing} {what} {how} stands.",
    "Forbidden: {doing} {what} {how}.",
    "Do not: {do} {what} {how}.",
    "Do not:\n- {do} {what} {how}\n- waste paper",
    "## Not allowed\n- waste of paper\n- {doing} {what} {how}",
    "- Never:\n  - {do} {what} {how}\n- Save paper",
)
"""Prohibitions."""

LEFT = (
    "{doing} {what} {how} is fine.",
    "{doing} {what} {how} is not ruled out.",
    "Never refrain from {doing} {what} {how}.",
    "Nothing speaks against {doing} {what} {how}.",
    "The user does not mind {doing} {what} {how}.",
    "The ban on {doing} {what} {how} has been lifted.",
    "The rule against {doing} {what} {how} no longer stands.",
    "Allowed: {doing} {what} {how}.",
    "Allowed:\n- {doing} {what} {how}\n- use of paper",
    "Always:\n- {do} {what} {how}\n- save paper",
    "{doing} {what} {how}: yes.",
)
"""Leaves."""

DEMANDED = (
    "{doing} {what} {how} is imperative.",
    "{doing} {what} {how} is not optional.",
    "{doing} {what} {how} is the user's wish.",
    "{what} are {done} {how}, across the board.",
    "{what} are {done} {how} (no exceptions).",
    "{what}: to be {done} {how}.",
    "The user insists on {doing} {what} {how}.",
    "The user expects {what} to be {done} {how}.",
    "It is imperative to {do} {what} {how}.",
    "Never fail to {do} {what} {how}.",
    "Required: {doing} {what} {how}.",
    "Must:\n- {do} {what} {how}\n- save paper",
)
"""Demands."""

RELEASED = (
    "{doing} {what} {how} is superfluous.",
    "{doing} {what} {how}: not required.",
    "The user no longer insists on {doing} {what} {how}.",
    "Do not:\n- {do} {what} {how}\n- waste paper",
    "Not required:\n- {doing} {what} {how}\n- paper",
    "- No longer required:\n  - {do} {what} {how}\n- Save paper",
    "Never: {do} {what} {how}.",
    "Some {what} are {done} {how}.",
)
"""What takes a demand back, or a part of it."""


def said(form: str, deed: Deed) -> str:
    """A summary in which a form says something of a deed."""
    return f"The second part is done.\n\n{form.format(**deed._asdict())}\n\nPart three comes next.\n"


@pytest.mark.parametrize("form", FORBIDDEN)
def test_a_prohibition_is_kept_however_english_says_it(form: str) -> None:
    for deed in DEEDS:
        assert see(f"Never {deed.do} {deed.what} {deed.how}.", said(form, deed)).visibility in KEPT, deed


@pytest.mark.parametrize("form", LEFT + DEMANDED)
def test_a_leave_or_demand_never_says_a_prohibition(form: str) -> None:
    for deed in DEEDS:
        assert see(f"Never {deed.do} {deed.what} {deed.how}.", said(form, deed)).visibility not in KEPT, deed


@pytest.mark.parametrize("form", DEMANDED)
def test_a_demand_is_kept_however_english_says_it(form: str) -> None:
    for deed in DEEDS:
        assert see(f"Always {deed.do} {deed.what} {deed.how}.", said(form, deed)).visibility in KEPT, deed


@pytest.mark.parametrize("form", RELEASED + FORBIDDEN)
def test_a_release_or_prohibition_never_says_a_demand(form: str) -> None:
    for deed in DEEDS:
        assert see(f"Always {deed.do} {deed.what} {deed.how}.", said(form, deed)).visibility not in KEPT, deed


@pytest.mark.parametrize(
    ("rule", "kept", "turned"),
    [
        (
            "Never deploy without the lead's approval.",
            "Deployments are fine as long as the lead has approved.",
            "Deploying is allowed whether or not the lead has approved.",
        ),
        (
            "Never deploy without the lead's approval.",
            "As long as the lead's approval is missing, no deploying.",
            "The lead's approval is not a prerequisite for deployments.",
        ),
        (
            "Get the lead's approval before deploying.",
            "The lead's approval is a precondition for deployments.",
            "Deployments first, the lead's approval afterwards.",
        ),
        (
            "Never deploy without the lead's approval.",
            "Deployments are on hold until the lead has approved.",
            "Deployments do not have to wait until the lead has approved.",
        ),
        (
            "Prefer buses over taxis.",
            "Buses take precedence over taxis.",
            "Taxis take precedence over buses.",
        ),
        ("Prefer buses over taxis.", "Buses come first, taxis second.", "Taxis come first, buses second."),
        ("Prefer buses over taxis.", "In place of taxis: buses.", "In place of buses: taxis."),
        (
            "Only store invoices in the finance vault.",
            "Invoices are stored in the finance vault and nowhere else.",
            "Invoices are stored anywhere except in the finance vault.",
        ),
        (
            "Only use the staging database.",
            "Any database except staging is off limits.",
            "Only the staging database is off limits.",
        ),
        (
            "Keep summaries under 100 words.",
            "Summaries have an upper limit of 100 words.",
            "There is no limit of 100 words for summaries.",
        ),
        (
            "Reports need at least three charts.",
            "Lower limit for reports: three charts.",
            "There is no minimum of three charts for reports.",
        ),
        (
            "Send the report by Friday at the latest.",
            "Deadline for the report: Friday.",
            "The report is not to be sent before Friday.",
        ),
        ("Check the totals twice.", "The totals have to be checked two times.", "Check the totals once."),
    ],
)
def test_order_choice_and_limits_are_read_in_many_turns_of_phrase(rule: str, kept: str, turned: str) -> None:
    assert see(rule, kept).visibility in KEPT
    assert see(rule, turned).visibility not in KEPT


ENUMERATED = {
    "Never push to main.": "no pushes to main",
    "Run the tests before every commit.": "tests before every commit",
    "Answer in German.": "answers in German",
    "Use metric units.": "metric units throughout",
    "Do not mention competitors.": "competitors not to be mentioned",
}
"""Rules, and how a list in one sentence says them."""


@pytest.mark.parametrize("mark", [", ", "; "])
@pytest.mark.parametrize("lead", ["User constraints: ", "The user's rules (all still valid): "])
@pytest.mark.parametrize("rule", ENUMERATED)
def test_a_rule_is_seen_among_those_that_one_sentence_enumerates(rule: str, lead: str, mark: str) -> None:
    others = [text for name, text in ENUMERATED.items() if name != rule]
    for place in range(3):
        some = [*others[:place], ENUMERATED[rule], *others[place:3]]
        text = f"{lead}{mark.join(some[:-1])} and {some[-1]}."
        assert see(rule, text).visibility in KEPT, text
        without = f"{lead}{mark.join(others[:-1])} and {others[-1]}."
        assert see(rule, without).visibility not in KEPT, without


@pytest.mark.parametrize(
    "text",
    [
        "Constraints: metric units, no pushes to main except on Fridays, answers in German.",
        "Constraints: metric units, no pushes to main, if possible, answers in German.",
        "Constraints: metric units, no pushes to main, on Fridays only, answers in German.",
        "Constraints that no longer apply: metric units, no pushes to main, answers in German.",
        "Optional: metric units, no pushes to main, answers in German.",
        "Constraints: metric units, no pushes to main, answers in German; all of this is now void.",
        "Constraints: metric units, no pushes to main, pushes to main are fine after all.",
    ],
)
def test_what_takes_back_one_or_all_of_an_enumeration_is_not_cut_off(text: str) -> None:
    assert see("Never push to main.", text).visibility not in KEPT


def test_what_only_goes_on_stays_with_its_piece() -> None:
    some = members("rules: no pushes to main, except on fridays, metric units and answers in german")
    assert some.texts == ("no pushes to main, except on fridays", "metric units", "answers in german")
    assert members("write reports in german, french and italian").texts == ()


def test_a_heading_that_leads_reaches_to_the_end_of_its_list() -> None:
    some = [
        one.text
        for one in sentences("Do not:\n- push to main\n- delete files\nThe build is green.\n- Ship it")
    ]
    assert some == ["do not: push to main", "do not: delete files", "the build is green.", "ship it"]


def test_a_turn_of_phrase_puts_back_only_what_each_of_its_ways_has_read() -> None:
    """Ways are tried side by side and count their groups one after the other."""
    file = Path(phrasal.__file__).with_name("rule_phrases.toml")
    for phrase in tomllib.loads(file.read_text("utf-8"))["phrases"]:
        put = {int(number) for number in re.findall(r"\\(\d)", phrase["say"])}
        before = 0
        for way in phrase["for"]:
            count = re.compile(way).groups
            assert not put or put & set(range(before + 1, before + count + 1)), (phrase["say"], way)
            before += count


@pytest.mark.parametrize(
    "text",
    ["You contact the bank; the user does not.", "The agent contacts the bank, and the user must not."],
)
def test_user_and_agent_do_not_change_their_parts(text: str) -> None:
    assert see("I will contact the bank; you must not.", text).visibility not in KEPT


def test_what_is_to_be_treated_as_confidential_keeps_its_name() -> None:
    rule = "Treat the salary data as confidential; do not share it with anyone but me."
    assert (
        see(rule, "The salary data is confidential; do not share it with anyone but the user.").visibility
        in KEPT
    )
    assert see(rule, "The patient data is confidential; share it with nobody.").visibility not in KEPT
