"""A rule, taken apart once: its ideas with their weights, what it names only to refuse it, what it enumerates. Pure."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ledger.constraints.clauses import Clause, clause
from ledger.constraints.lexicon import weight
from ledger.constraints.wording import bare, normal, sentences

_LIST = re.compile(r"(\w[\w-]*)((?:, (?:\w[\w-]* ?){1,3})*),? (?:and|or) (\w[\w-]*)")


class Wanted(NamedTuple):
    """A rule, taken apart once."""

    text: str
    """Its words."""

    bare: str
    """They, without marks."""

    clauses: tuple[Clause, ...]
    """Its sentences."""

    ideas: dict[str, float]
    """What it says, each idea with its weight."""

    whole: Clause
    """All of it as one sentence."""

    lists: tuple[tuple[str, ...], ...]
    """What it enumerates."""


@lru_cache(maxsize=2048)
def wanted(text: str) -> Wanted:
    """Take a rule apart."""
    clauses = tuple(clause(one.text, is_ruled=True) for one in sentences(text)) or (
        clause("", is_ruled=True),
    )
    whole = clause(normal(text), is_ruled=True)
    refused = refused_in(whole)
    ideas: dict[str, float] = {}
    for term in whole.terms:
        if not term.idea.replace(".", "").isdigit():
            heavy = weight(term.idea) * (0.35 if term.idea in refused else 1.0)
            ideas[term.idea] = max(heavy, ideas.get(term.idea, 0.0))
    return Wanted(text, bare(text), clauses, ideas, whole, tuple(_lists(whole)))


def refused_in(whole: Clause) -> set[str]:
    """What the rule names only to refuse it: `this, not that`."""
    if not whole.has_contrast:
        return set()
    demanded = {term.idea for term in whole.terms if term.sign > 0}
    return {term.idea for term in whole.terms if term.sign < 0} - demanded


def _lists(whole: Clause) -> Iterable[tuple[str, ...]]:
    for found in _LIST.finditer(whole.text):
        names = [found[1], *(part.split()[-1] for part in found[2].split(",") if part.strip()), found[3]]
        known = {term.idea for term in whole.terms}
        ideas = tuple(
            dict.fromkeys(one for name in names if (one := _known(name, known)) and weight(one) >= 1)
        )
        if len(ideas) > 1:
            yield ideas


def _known(name: str, known: set[str]) -> str | None:
    told = clause(name)
    return next((term.idea for term in told.terms if term.idea in known), None)
