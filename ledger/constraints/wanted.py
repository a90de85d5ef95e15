"""A rule, taken apart once: its ideas with their weights, what it names only to refuse it, what it enumerates. Pure."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ledger.constraints.clauses import Clause, Term, clause
from ledger.constraints.lexicon import idea, is_deed, is_function, opposites, weight
from ledger.constraints.signals import has_modal, orders
from ledger.constraints.wording import bare, normal, sentences

_PLACES = re.compile(
    r"\b(?:in|on|at|to|from|for|by|with) ((?:[\w'-]+ ){1,4}?)(?:or|nor) "
    r"(?:in|on|at|to|from|for|by|with) ((?:[\w'-]+ ){0,3}[\w'-]+)"
)
_LIST = re.compile(
    r"(\w[\w-]*)((?:, (?:\w[\w-]* ?){1,3})*),? (?:and|or) (?:to )?(?:any |the |an? |all |other |similar )*(\w[\w-]*)"
)
_DETERMINED = frozenset("every each all any a an the your our its their this these".split())
_WHO_DOES = frozenset(("i", "you", "we"))
_GOES_ON = frozenset("to and or not never , nor then".split())
_ANY = re.compile(r"\b(?:any|all|every|each) (\w+)")
_REFUSED = 0.35
_ON_CONDITION = 0.8
_EXCEPTED = 0.6
_EVEN = 0.25
_AT_ALL = re.compile(r"(not )?even\b")
_LETS_OUT = re.compile(r"\b(unless|except)\b")


class Wanted(NamedTuple):
    """A rule, taken apart once."""

    text: str
    """Its words."""

    bare: str
    """They, without marks."""

    sentences: int
    """How many sentences it has, or orders that could each have one."""

    ideas: dict[str, float]
    """What it says, each idea with its weight."""

    signs: dict[str, int]
    """Each idea: demanded or refused."""

    whole: Clause
    """All of it as one sentence."""

    deeds: frozenset[str]
    """What is to be done, or not."""

    amounts: tuple[tuple[str, float], ...]
    """Its amounts."""

    conditions: frozenset[str]
    """Ideas that only say when."""

    has_both: bool
    """Whether it names something and its opposite: `keep ... then erase`."""

    any_of: frozenset[str]
    """Of which things it speaks of all: `any file or folder`."""

    lists: tuple[tuple[str, ...], ...]
    """What it enumerates."""

    homes: dict[str, frozenset[int]]
    """In which of its parts each idea stands."""

    def has_apart(self, one: str, other: str) -> bool:
        """Whether two ideas stand in different orders of it, neither in a condition."""
        return self.homes[one].isdisjoint(self.homes[other]) and not {one, other} & self.conditions


@lru_cache(maxsize=2048)
def wanted(text: str) -> Wanted:
    """Take a rule apart."""
    some = [one.text for one in sentences(text)] or [normal(text)]
    count = len(some)
    whole = clause(" ; ".join([*(one.rstrip(".!;") for one in some[:-1]), some[-1]]), is_ruled=True)
    ideas: dict[str, float] = {}
    signs: dict[str, int] = {}
    for term in whole.terms:
        heavy = weight(term.idea)
        part = whole.parts[term.segment]
        if (part.sign < 0 and part.is_elliptic) or _is_aside(whole, term):
            heavy *= _REFUSED
        elif term.is_condition:
            heavy *= _EVEN if _AT_ALL.match(part.text) else _ON_CONDITION
            if _LETS_OUT.search(part.text):
                heavy *= _EXCEPTED
        if heavy > ideas.get(term.idea, 0.0):
            ideas[term.idea] = heavy
        signs[term.idea] = signs.get(term.idea) or term.sign
    amounts = tuple((term.idea, term.value) for term in whole.terms if term.value is not None)
    demanded = {term.idea for term in whole.terms if not term.is_condition}
    lists = tuple(_lists(whole))
    return Wanted(
        text,
        bare(text),
        max(1, count, _orders(whole)),
        ideas,
        signs,
        whole,
        deeds_in(whole, whole.terms),
        amounts,
        frozenset(ideas.keys() - demanded),
        any(opposites(one) & ideas.keys() for one in ideas),
        frozenset(_any_of(whole, lists)),
        lists,
        {one: frozenset(term.segment for term in whole.terms if term.idea == one) for one in ideas},
    )


def _is_aside(whole: Clause, term: Term) -> bool:
    """Whether it only says which, in a clause without a word that begins it: `every report you write`."""
    before = whole.words[max(0, term.place - 2) : term.place]
    return (
        len(before) == 2
        and before[1] in _WHO_DOES
        and before[0].isalpha()
        and not is_function(before[0])
        and is_deed(term.idea)
    )


def _orders(whole: Clause) -> int:
    """How many of its parts each order something by themselves."""
    return sum(
        not part.is_condition
        and not part.is_elliptic
        and (has_modal(part.text) or orders(part.text) or part.sign < 0)
        for part in whole.parts
    )


def deeds_in(whole: Clause, terms: Iterable[Term]) -> frozenset[str]:
    """What a sentence demands or refuses to do: the first verb of each of its parts."""
    found: dict[int, str] = {}
    general: dict[int, int] = {}  # where a part has a verb that says little, and the verb's objects after it
    for term in terms:
        if is_deed(term.idea) and weight(term.idea) < 1:
            general.setdefault(term.segment, term.place)
        if general.get(term.segment, term.place) < term.place and term.before not in _GOES_ON:
            continue
        if term.segment in found or term.is_condition or not is_deed(term.idea) or weight(term.idea) < 1:
            continue
        if not _DETERMINED.isdisjoint(whole.words[max(0, term.place - 2) : term.place]):
            continue  # `every SQL query`: a thing
        found[term.segment] = term.idea
    return frozenset(found.values())


def _any_of(whole: Clause, lists: tuple[tuple[str, ...], ...]) -> Iterable[str]:
    some = {idea(found[1]) for found in _ANY.finditer(whole.text)}
    return some.union(*(names for names in lists if some.intersection(names)))


def _lists(whole: Clause) -> Iterable[tuple[str, ...]]:
    known = {term.idea for term in whole.terms}
    for part in whole.parts:
        for found in _LIST.finditer(part.text.replace(" ,", ",")):
            names = [
                found[1],
                *(piece.split()[-1] for piece in found[2].split(",") if piece.strip()),
                found[3],
            ]
            ideas = tuple(
                dict.fromkeys(
                    one
                    for name in names
                    if not is_function(name) and (one := idea(name)) in known and weight(one) >= 1
                )
            )
            if len(ideas) > 1:
                yield ideas
        for found in _PLACES.finditer(part.text):
            ideas = tuple(dict.fromkeys(idea(name.split()[-1]) for name in found.groups()))
            if len(ideas) > 1 and known.issuperset(ideas):
                yield ideas
