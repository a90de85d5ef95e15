"""Rules in prompts, files and messages: sentences that demand or forbid something for more than a step. Pure."""

import hashlib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ledger.constraints.clauses import clause
from ledger.constraints.wording import bare, sentences

Modality = Literal["prohibition", "requirement", "permission", "unknown"]
"""What sort of rule it is."""

Hardness = Literal["hard", "soft", "unknown"]
"""Whether it may be outweighed."""

MOST = 60
"""So many rules are taken from one text at most."""

_LASTING = re.compile(
    r"\b(never|always|must( not)?|do not|forbidden|prohibited|not allowed|not permitted|under no circumstances"
    r"|require[sd]?|mandatory|without (my|your|the|a|an|prior|explicit|written)? ?(approval|permission|confirmation)"
    r"|only (use|edit|write|answer|reply|respond|send)|every (reply|answer|response|message|time|commit))\b"
)
_MILD = re.compile(r"\b(should( not)?|avoid|prefer|preferably|try (not )?to|refrain)\b")
_FEWEST = 3
_LONGEST = 60
_NO_RULE = re.compile(
    r"\?\s*$|^(i|we|it|there|this|that) (am|are|is|was|were|do|did|have|had)\b|\bfor example\b|\be\.g\."
)
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
        return f"found:{hashlib.sha256(bare(self.text).encode()).hexdigest()[:12]}"


def found_in(text: str, *, only_hard: bool = False) -> Iterator[FoundRule]:
    """The rules of a text in order, each once. `only_hard`: no `should`, as in a message about one task."""
    known: set[str] = set()
    for sentence in sentences(text):
        words = sentence.text.split()
        if not _FEWEST <= len(words) <= _LONGEST or _NO_RULE.search(sentence.text):
            continue
        is_hard = _LASTING.search(sentence.text) is not None
        if not is_hard and (only_hard or _MILD.search(sentence.text) is None):
            continue
        modality, hardness = kind_of(sentence.text)
        if modality in ("prohibition", "requirement"):
            rule = FoundRule(sentence.text, modality, hardness)
            if rule.name not in known:
                known.add(rule.name)
                yield rule
                if len(known) >= MOST:
                    return


def kind_of(text: str) -> tuple[Modality, Hardness]:
    """What sort of rule a sentence is, by its words."""
    told = clause(bare_sentence(text), is_ruled=True)
    modality: Modality = "requirement"
    if told.force in ("permit", "release"):
        modality = "permission"
    elif told.force == "forbid" and not told.is_gate and not told.has_contrast:
        modality = "prohibition"
    return modality, "soft" if (told.is_soft or told.is_mild) and not told.is_strict else "hard"


def bare_sentence(text: str) -> str:
    """A rule of one or several sentences as one."""
    return " ; ".join(one.text.rstrip(".!?;") for one in sentences(text))


def forbidden_tool(text: str) -> str | None:
    """The tool that a rule forbids, and nothing else: `never call the tool drop_table`."""
    found = _TOOL.match(bare_sentence(text).replace('"', ""))
    return found[1] if found is not None and ("_" in found[1] or "." in found[1] or "`" in text) else None
