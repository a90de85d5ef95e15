"""Pairs of rules and summaries: a confusion matrix for our classifier, exact match and word overlap beside it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ledger.constraints.visibility import KEPT, see
from tests.decay_bench.summaries import laid_out

FILE = Path(__file__).parents[2] / "fixtures" / "constraints" / "rule_pairs.jsonl"
"""Pairs with short summaries."""

WHOLE = FILE.with_name("rule_summaries.jsonl")
"""Pairs with whole summaries, by four authors who knew neither the classifier nor each other's pairs."""

WAYS = ("verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent")
"""The six classes."""

_OVERLAP = 0.8


class Pair(NamedTuple):
    """One pair."""

    set: str
    """What it was for."""

    rule: str
    """The rule."""

    summary: str
    """What stands in its place."""

    label: str
    """How the rule fares there."""


class Score(NamedTuple):
    """How well lost rules are told from kept ones."""

    precision: float
    """Of those called lost, the lost ones."""

    recall: float
    """Of the lost ones, those called lost."""

    f1: float
    """Harmonic mean of both."""


def pairs() -> list[Pair]:
    """All of them: short ones, whole summaries, and those in which the rule stands among much other matter."""
    lines = [line for file in (FILE, WHOLE) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Pair(**pair) for pair in (*map(json.loads, lines), *laid_out())]


def ours(rule: str, summary: str) -> str:
    """Our classifier."""
    return see(rule, summary).visibility


def exact(rule: str, summary: str) -> str:
    """The rule's own bytes."""
    return "verbatim" if rule in summary else "absent"


def overlap(rule: str, summary: str) -> str:
    """The rule as a part of the text, or four in five of its words anywhere in it."""
    words = set(re.findall(r"\w+", rule.lower()))
    there = words & set(re.findall(r"\w+", summary.lower()))
    is_there = rule.lower() in summary.lower() or len(there) >= _OVERLAP * len(words)
    return "paraphrase" if is_there else "absent"


JUDGES: dict[str, Callable[[str, str], str]] = {"ours": ours, "exact match": exact, "80 % overlap": overlap}
"""Ours and the two that are in use elsewhere."""


def matrix(some: Iterable[Pair], judge: Callable[[str, str], str]) -> Counter[tuple[str, str]]:
    """How often which label was given which answer."""
    return Counter((pair.label, judge(pair.rule, pair.summary)) for pair in some)


def score(found: Counter[tuple[str, str]]) -> Score:
    """Lost against kept: a rule that is weakened, narrowed or inverted is lost."""
    hits = sum(count for (label, told), count in found.items() if label not in KEPT and told not in KEPT)
    false = sum(count for (label, told), count in found.items() if label in KEPT and told not in KEPT)
    missed = sum(count for (label, told), count in found.items() if label not in KEPT and told in KEPT)
    called, lost = hits + false, hits + missed
    return Score(
        hits / called if called else 0.0,
        hits / lost if lost else 0.0,
        2 * hits / max(1, 2 * hits + false + missed),
    )


def show(console: Console) -> None:
    """Print it."""
    found = pairs()
    wrong = ("Inverted, called kept", "Paraphrase, called lost")
    told = Table("Set", "Pairs", "Judge", "Lost: precision", "recall", "F1", *wrong)
    for name in [*dict.fromkeys(pair.set for pair in found), "all"]:
        some = [pair for pair in found if name in (pair.set, "all")]
        for judge, function in JUDGES.items():
            cells = matrix(some, function)
            precision, recall, f1 = score(cells)
            inverted = sum(
                count for (label, way), count in cells.items() if label == "inverted" and way in KEPT
            )
            missed = sum(
                count for (label, way), count in cells.items() if label == "paraphrase" and way not in KEPT
            )
            is_first = judge == "ours"
            told.add_row(
                name if is_first else "",
                str(len(some)) if is_first else "",
                judge,
                f"{precision:.3f}",
                f"{recall:.3f}",
                f"{f1:.3f}",
                str(inverted),
                str(missed),
                end_section=judge == "80 % overlap",
            )
    console.print(told)
    for judge, function in JUDGES.items():
        cells = matrix(found, function)
        table = Table(f"{judge}: label, answer", *WAYS)
        for label in WAYS:
            table.add_row(label, *(str(cells[label, way]) for way in WAYS))
        console.print(table)
