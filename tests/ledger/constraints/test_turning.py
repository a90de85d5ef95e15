"""Sentences with a rule's own words in another relation: each law in several wordings, turned and faithful."""

from itertools import product

import pytest

from ledger.constraints.relations import relations
from ledger.constraints.visibility import KEPT, see

ORDERS = (
    "The {a} must be checked before the {b}.",
    "Check the {a} first, then the {b}.",
    "The {b} must be checked after the {a}.",
    "Do not check the {b} before the {a}.",
    "The {b} must not be checked until the {a} has been checked.",
)
"""One after the other."""

CHOICES = (
    "Use {a} rather than {b}.",
    "Prefer {a} to {b}.",
    "Use {a} instead of {b}.",
    "Use {a}, not {b}.",
    "Do not use {b} but {a}.",
    "I'd rather have {a} than {b}.",
    "Preference: {a} over {b}.",
)
"""One rather than the other."""

WAYS = (
    "Copy the drawings from the {a} to the {b}.",
    "The drawings must be copied from the {a} to the {b}.",
    "Drawings are to be copied to the {b} from the {a}.",
)
"""From one to the other."""

PAIRS = (
    "Send complaints to the {a} and invoices to the {b}.",
    "Complaints must be sent to the {a}, invoices to the {b}.",
    "Invoices are to be sent to the {b} and complaints to the {a}.",
)
"""To each its own."""

THINGS = (("engine", "brakes"), ("cellar", "attic"))
"""What they speak of."""


def told(sentence: str) -> str:
    """A summary that says something."""
    return f"Two files were read. {sentence} The rest is planned for tomorrow."


@pytest.mark.parametrize("forms", [ORDERS, CHOICES, WAYS, PAIRS], ids=["order", "choice", "way", "pairs"])
def test_a_relation_the_other_way_round_is_never_kept_in_any_wording(forms: tuple[str, ...]) -> None:
    for (one, other), asked, said in product(THINGS, forms, forms):
        rule, turned = asked.format(a=one, b=other), told(said.format(a=other, b=one))
        assert see(rule, turned).visibility not in KEPT, (rule, turned)


@pytest.mark.parametrize("forms", [ORDERS, CHOICES, WAYS, PAIRS], ids=["order", "choice", "way", "pairs"])
def test_a_relation_in_another_wording_is_not_taken_for_the_opposite(forms: tuple[str, ...]) -> None:
    for (one, other), asked, said in product(THINGS, forms, forms):
        rule, same = asked.format(a=one, b=other), told(said.format(a=one, b=other))
        assert see(rule, same).visibility != "inverted", (rule, same)


@pytest.mark.parametrize(
    ("rule", "turned", "same"),
    [
        ("Everyone except trainees may use the printer.", "Only trainees may use the printer.",
         "The printer may be used by everybody but trainees."),
        ("All files except the licence may be changed.", "Changes are restricted to the licence.",
         "Any file other than the licence may be changed."),
        ("Only nurses may open the cabinet.", "Everyone except nurses may open the cabinet.",
         "Nobody except nurses may open the cabinet."),
        ("You need Marta's approval before any refund is issued.",
         "Marta needs the assistant's approval before she issues refunds.",
         "Marta must approve each refund before it is issued."),
        ("Warn the user before the session times out.",
         "The user warns the agent before the session times out.",
         "The user must be warned before the session times out."),
        ("Do not change the schema without telling Lars.",
         "Lars must not change the schema without telling the agent.",
         "Tell Lars before changing the schema."),
        ("Unless I say otherwise, write in British English.", "Write in British English only if told to.",
         "Write in British English unless told otherwise."),
        ("Turn the cameras off whenever guests are staying.",
         "Cameras should be running whenever guests are staying and off otherwise.",
         "Cameras must be off whenever guests are staying."),
        ("Answer in the customer's language, even if I write in English.",
         "Answer in English, whatever the customer's language is.",
         "Always answer in the customer's language, even if the user writes in English."),
        ("Always round prices up.", "Prices must be rounded down.", "Prices must be rounded up."),
        ("Lower the volume after 22:00.", "Turn the volume up after 22:00.",
         "The volume must be lowered after 22:00."),
        ("The alarm must be armed when nobody is home.", "The alarm must be armed when somebody is home.",
         "When nobody is home, the alarm must be armed."),
        ("Lock the door when the last person leaves.", "Lock the door when the first person leaves.",
         "The door must be locked when the last person leaves."),
        ("Feed the fish while I'm away.", "Feed the fish until the user is away.",
         "The fish must be fed while the user is away."),
        ("If the sensor disagrees with the log, believe the sensor.",
         "Believe the log if the sensor disagrees with it.",
         "When the sensor and the log disagree, believe the sensor."),
        ("Make the font larger on slides than on handouts.", "Make the font larger on handouts than on slides.",
         "The font on slides must be larger than on handouts."),
        ("Start with the oldest invoices.", "The oldest invoices are left for the end.",
         "The oldest invoices come first."),
        ("Prioritise accuracy over speed.", "Speed matters more than accuracy.",
         "Accuracy must be prioritised over speed."),
        ("Everyone in the team gets a copy, including the contractors.",
         "Everyone in the team but the contractors gets a copy.",
         "Everyone in the team must get a copy, the contractors included."),
        ("The chef decides the menu and you order the ingredients.",
         "The agent decides the menu and the chef orders the ingredients.",
         "The menu is decided by the chef and the agent orders the ingredients."),
        ("Hold the announcement until the board has voted.", "It has to go out ahead of the board vote.",
         "The announcement must wait until the board has voted."),
        ("Each branch needs its own database.", "All branches use the same database.",
         "Every branch needs a database of its own."),
        ("If the customer is angry, hand over to a human.",
         "When the customer is angry, stay with the bot instead of handing over to a human.",
         "Hand over to a human when the customer is angry."),
        ("No deploys after 4pm.", "Deploys happen after 4pm, never earlier.", "Deploys must not happen after 4pm."),
        ("Cancel the order if the supplier raises the price.", "Keep the order if the supplier raises the price.",
         "The order must be cancelled if the supplier raises the price."),
    ],
)  # fmt: skip
def test_one_word_turns_a_rule_and_other_words_do_not(rule: str, turned: str, same: str) -> None:
    assert see(rule, told(turned)).visibility not in KEPT
    assert see(rule, told(same)).visibility in KEPT


@pytest.mark.parametrize(
    ("rule", "looser"),
    [
        ("Keep meetings to 30 minutes at most.", "Meetings must be around 30 minutes."),
        ("Feed the fish daily.", "The fish must be fed weekly."),
    ],
)
def test_another_rate_or_a_rough_amount_is_weaker(rule: str, looser: str) -> None:
    assert see(rule, told(looser)).visibility == "weakened"


def test_the_same_relation_is_read_from_different_wordings() -> None:
    texts = (
        "feed the cat before the dog",
        "the dog is fed after the cat",
        "never feed the dog before the cat",
    )
    found = [next(one for one in relations(text) if one.kind == "order") for text in texts]
    assert {("cat" in one.first, "dog" in one.second) for one in found} == {(True, True)}
