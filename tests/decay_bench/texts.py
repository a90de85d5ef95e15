"""Prompts, rule files, policies and talk, each line labelled: which are rules, and how well they are found."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ledger.constraints.finding import FoundRule, found_in
from ledger.constraints.wording import bare

_FILE = Path(__file__).parents[2] / "fixtures" / "constraints" / "rule_texts.txt"
_KINDS = {"P": "prohibition", "R": "requirement"}
_HARDNESS = {"!": "hard", "~": "soft"}
_MARKUP = re.compile(r"^[-|# >]+|\|$")


class Line(NamedTuple):
    """One line of a text."""

    label: str
    """P or R: a prohibition or requirement, `!` hard, `~` soft; M: a permission; `-`: no rule; `?`: either."""

    words: str
    """Its words, without markup."""


class Figures(NamedTuple):
    """How well the rules are found."""

    found: int
    """Rules that were found."""

    missed: int
    """Rules that were not."""

    false: int
    """Other lines that were taken for rules."""

    right_kinds: int
    """Of those found, the ones whose modality is right."""

    right_hardness: int
    """Of those found, the ones whose hardness is right, or not labelled."""

    @property
    def precision(self) -> float:
        """Of those taken for rules, the rules."""
        return self.found / (self.found + self.false)

    @property
    def recall(self) -> float:
        """Of the rules, those found."""
        return self.found / (self.found + self.missed)


def measure() -> Figures:
    """Over all texts."""
    found = missed = false = kinds = hardness = 0
    for is_talk, text, lines in _texts():
        rules = list(found_in(text, only_hard=is_talk))
        for line in lines:
            hit = _of(line, rules)
            if line.label[0] not in _KINDS:
                false += hit is not None and line.label == "-"
            elif hit is None:
                missed += not (is_talk and line.label.endswith("~"))  # what is soft in talk does not last
            else:
                found += 1
                kinds += hit.modality == _KINDS[line.label[0]]
                hardness += hit.hardness == _HARDNESS.get(line.label[-1], hit.hardness)
    return Figures(found, missed, false, kinds, hardness)


def _of(line: Line, rules: list[FoundRule]) -> FoundRule | None:
    words = [bare(rule.text) for rule in rules]
    return next(
        (rule for rule, its in zip(rules, words, strict=True) if line.words and (its in line.words)), None
    )


def _texts() -> Iterator[tuple[bool, str, list[Line]]]:
    for block in _FILE.read_text(encoding="utf-8").split("@ ")[1:]:
        kind, *rows = block.splitlines()
        told = [row.removeprefix("+").partition("\t") for row in rows if row.strip()]
        lines = [Line(label, bare(_MARKUP.sub("", text).replace("|", " "))) for label, _, text in told]
        yield kind == "user", "\n".join(text for _, _, text in told), lines
