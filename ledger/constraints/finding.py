"""Rules in prompts, files and messages: sentences that demand or forbid something for more than a step. Pure."""

import hashlib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ledger.constraints.clauses import clause
from ledger.constraints.lexicon import FINDING
from ledger.constraints.signals import begins_condition, is_past, orders
from ledger.constraints.wording import bare, sentences

Modality = Literal["prohibition", "requirement", "permission", "unknown"]
"""What sort of rule it is."""

Hardness = Literal["hard", "soft", "unknown"]
"""Whether it may be outweighed."""

Polarity = Literal["negative", "positive"]
"""Whether it is said by a no."""

MOST = 60
"""So many rules are taken from one text at most."""

_ORDERED = re.compile(rf"\b({FINDING['ordered']})\b")
"""What orders or forbids for good, whoever it speaks of."""

_ALWAYS = re.compile(
    r"(?:^|[,;:] |\b(?:and|but|or|please|to|will|must|should|may|shall|you|agents?|assistants?|i|then) )"
    r"(?:never|always)\b(?! (?:was|were|had|did|got|saw|have|has|is|are|know|knew)\b)"
)
"""`never` and `always` where they order: `workers never see the plan` only tells."""

_BELIEVED = re.compile(
    r"\b(it|that|this|there|he|she|they) must\b|\bmust have \w+(ed|en|wn)\b|\bmust be (on|at|the|a|an|in) "
)
"""`must` that guesses."""

_MILD = re.compile(rf"\b({FINDING['mild']})\b")
_TALK = re.compile(
    r"^(we|they|he|she|my|our|his|her) [\w' ]{0,40}\b(should|must|had)\b|\bshould have\b|\bmust have\b"
)
_STAY_OUT = re.compile(r"(please )?(stay|keep) (out|away|clear)\b|(please )?refuse to\b")
_FEWEST = 3
_LONGEST = 60
_NO_RULE = re.compile(FINDING["no_rule"])
_GATE = re.compile(r"\b(before|without|until|unless)\b")
_BARE_NO = re.compile(r"no \w+(?:[ -]\w+){0,4}[.;]?$")
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_NOT_SAID = re.compile(r"^[ \t]*>.*$|^[ \t]*\|?[ \t:|-]{5,}\|?[ \t]*$", re.MULTILINE)
_TOOL = re.compile(
    r"^(?:you must )?(?:never|do not|must not|you must never) (?:use|call|run|invoke) (?:the )?(?:tool )?"
    r"[\"'`]?([a-z][\w.-]*)[\"'`]?(?: tool)?$"
)


class FoundRule(NamedTuple):
    """A rule as it stands in a text."""

    text: str
    """Its words."""

    modality: Modality
    """What sort of rule it is."""

    hardness: Hardness
    """Whether it may be outweighed."""

    @property
    def name(self) -> str:
        """What it is called where nobody named it: the same for the same words."""
        return f"found:{hashlib.sha256(bare(self.text).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def found_in(text: str, *, only_hard: bool = False) -> Iterator[FoundRule]:
    """The rules of a text in order, each once. `only_hard`: only what lasts, as in a message about one task. Code and
    quotations are left out.
    """
    known: set[str] = set()
    for sentence in sentences(_NOT_SAID.sub("", _CODE.sub("", text))):
        words = sentence.text.split()
        if not _FEWEST <= len(words) <= _LONGEST or not _is_rule(sentence.text, only_hard):
            continue
        modality, hardness = kind_of(sentence.text)
        if modality in ("prohibition", "requirement"):
            rule = FoundRule(sentence.text, modality, hardness)
            if rule.name not in known:
                known.add(rule.name)
                yield rule
                if len(known) >= MOST:
                    return


def _is_rule(text: str, only_hard: bool) -> bool:
    if _NO_RULE.search(text):
        return False
    if only_hard and (_BELIEVED.search(text) or _TALK.search(text)):
        return False
    is_hard = _ALWAYS.search(text) is not None or (
        _ORDERED.search(text) is not None and _BELIEVED.search(text) is None
    )
    if is_hard or only_hard:
        return is_hard or _STAY_OUT.match(text) is not None
    if is_past(text) or text.startswith('"'):  # a command, or what someone says
        return False
    first, _, then = text.partition(", ")
    is_order = orders(first) or (begins_condition(first) and orders(then)) or _BARE_NO.match(text) is not None
    return is_order or _MILD.search(text) is not None


def kind_of(text: str) -> tuple[Modality, Hardness]:
    """What sort of rule a sentence is, by its words."""
    told = clause(bare_sentence(text), is_ruled=True)
    modality: Modality = "requirement"
    if told.force in ("permit", "release"):
        modality = "permission"
    elif told.force == "forbid" and not _GATE.search(told.text) and not told.has_contrast:
        modality = "prohibition"
    return modality, "soft" if (told.is_soft or told.is_mild) and not told.is_strict else "hard"


def polarity_of(text: str) -> Polarity:
    """Whether a rule says what must not be, or what must: `never refund without an order` demands by forbidding."""
    return "negative" if clause(bare_sentence(text), is_ruled=True).force == "forbid" else "positive"


def bare_sentence(text: str) -> str:
    """A rule of one or several sentences as one."""
    return " ; ".join(one.text.rstrip(".!?;") for one in sentences(text))


def forbidden_tool(text: str) -> str | None:
    """The tool that a rule forbids, and nothing else: `never call the tool drop_table`."""
    found = _TOOL.match(bare_sentence(text).replace('"', ""))
    return found[1] if found is not None and ("_" in found[1] or "." in found[1] or "`" in text) else None
