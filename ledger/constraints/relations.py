"""Which relations a sentence sets between things: before, rather than, from and to, belongs with. Pure.

`Feed the cat, then the dog` and `the dog is fed after the cat` set the same one; `the dog is fed first` sets it the other
way round. Two sentences with the same words may differ in nothing else.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from ledger.constraints.clauses import Clause
from ledger.constraints.lexicon import idea, is_function, weight
from ledger.constraints.parts import sign_of
from ledger.constraints.signals import tokens
from ledger.constraints.wanted import Wanted

_AGENT = frozenset("you your yours yourself agent agents assistant assistant's agent's bot".split())
_USER = frozenset("i me my mine myself i'd i'm user user's users".split())
_US = frozenset("we us our ours ourselves".split())
_AFTER_LETTER = frozenset(", and or for is are goes to".split())
_LEAST = 0.8
_ANY = 0.3
_ALIKE = 0.7
_SHORTEST = 5

_STATEMENT = re.compile(r"[;:.!?]+(?:\s|$)|\s-\s")
_TIME = re.compile(r"\b(before|until|after|once|followed by|precedes?)\b")
_WAITS = re.compile(r"\b(wait(s|ing)?|holds?|holding|held|pause[sd]?|delay(s|ed)?|defer(s|red)?|park(ed)?|suspend(ed)?)\b")
_GATE = re.compile(r"\b(without|unless)\b")
_NEEDS = re.compile(r"(?<!un)\b(?:needs?|requires?|waits? (?:for|on)|depends? on|hinges? on|is subject to)\b")
_IS_SUBJECT = re.compile(r"^(?:(?:i|we|you|they|he|she|agents?|the agent|the assistant) )?(?:must |do |will )*$")
_LATER = re.compile(
    r"(?:,? and |,? but |, |^)?\b(?:then|afterwards?|later(?: on)?|after that|after (?:it|this)|subsequently|thereafter"
    r"|next|secondly|finally|(?:when|once|as soon as) (?:it|this|that|they|all|everything) (?:is|are|has|have|finish\w*)"
    r"(?: \w+)?)\b"
)
_EARLIER = re.compile(r"(?<!the )\bfirst\b(?! \w+ of)|\bto start with\b")
_BREAK = re.compile(r",? and (?=\w)|, (?:with )?|,? but |; ")
_RATHER = re.compile(
    r"\binstead_of\b|\b(?:in preference|prefer\w* ?|preferabl[ey]|superior) to\b|\b(?:and|but|,) not\b(?! only)|\b(?:never|nor)\b"
    r"|\b(?<!hand )(?<!take )(?<!turn )(?<!carry )(?<!go )over\b(?! to\b)|\bcomes? (?:before|ahead of|above)\b"
    r"|\b(?:takes?|gets?|has|have) (?:precedence|priority) over\b|\babove\b|\bahead of\b"
)
_BEHIND = re.compile(r"\b(?:comes?|goes?|is|are|ranks?) (?:after|behind|below|second to)\b")
_RATHER_THAN = re.compile(r"\b(?:rather|sooner|better|more) (?:\w+ )?(.+?) than (.+)")
_PREFER_TO = re.compile(r"\bprefer\w* (.+?) to (.+)")
_NOT_BUT = re.compile(r"\bnot (.+?),? but (?:rather )?(?!not\b)(.+)")
_FROM_TO = re.compile(r"\bfrom (.+?) (?:in|on)?to (.+)")
_TO_FROM = re.compile(r"\b(?:in|on)?to (.+?) from (.+)")
_INTO = re.compile(r"^(?:\w+ )??(?:translate|convert|turn|change|move|migrate|switch|transform|port|copy)\w* (.+?) (?:in|on)?to (.+)")
_IS_INTO = re.compile(r"^(.+?) (?:must |is |are |be |to |gets? )+(?:translated|converted|turned|changed|transformed|ported) (?:in)?to (.+)")
_PAIRED = re.compile(
    r"\s*(?:;|,|\b(?:and|while|whereas|but|that|which|who|then)\b|\s-\s|:|instead_of)\s*"
)


class Relation(NamedTuple):
    """One thing set in a relation to another."""

    kind: str
    """Which relation."""

    first: frozenset[str]
    """The ideas of the one."""

    second: frozenset[str]
    """The ideas of the other."""


def is_turned(rule: Clause, said: Clause) -> bool:
    """Whether a sentence sets things of a rule in the rule's relation the other way round, and never the rule's way."""
    theirs = relations(said.text)
    for mine in relations(rule.text):
        some = [its for its in theirs if its.kind == mine.kind]
        if any(_is_crossed(mine, its) for its in some) and not any(_is_straight(mine, its) for its in some):
            return True
    return is_repaired(rule, said)


def is_passed_over(rule: Wanted, said: Clause) -> bool:
    """Whether something else is to be, instead of what the rule demands: `me, not the clerk`, `guess instead of asking`."""
    aside = {term.idea for term in rule.whole.terms if term.sign < 0 or term.marks or term.is_condition}
    own = frozenset(term.idea for term in rule.whole.terms if term.sign > 0) - aside
    own = own.difference(*(its.second for its in relations(rule.whole.text)))
    for kind, first, second in relations(said.text, least=_ANY):
        if kind != "choice" or not second or shared(own, first):
            continue
        there = shared(own, second)
        if any(weight(one) >= _LEAST for one in there) or (there and shared(second, own) == second):
            return True
    return False


def _is_crossed(mine: Relation, its: Relation) -> bool:
    crossed = bool(shared(mine.first, its.second)), bool(shared(mine.second, its.first))
    straight = bool(shared(mine.first, its.first)), bool(shared(mine.second, its.second))
    if all(crossed):
        return not all(straight)
    return any(crossed) and not any(straight) and mine.kind == "order"


def _is_straight(mine: Relation, its: Relation) -> bool:
    return bool(shared(mine.first, its.first) and shared(mine.second, its.second))


def is_repaired(rule: Clause, said: Clause) -> bool:
    """Whether it puts together what the rule has apart: `green for losses, red for gains` for the other way round."""
    asked, told = groups(rule.text), groups(said.text)
    if len(asked) < 2 or len(told) < 2:
        return False
    counts: dict[str, int] = {}
    for some in asked:
        for one in some:
            counts[one] = counts.get(one, 0) + 1
    home = {one: at for at, some in enumerate(asked) for one in some if counts[one] == 1}
    where = [{one: place for one in home if (place := _place(one, told)) is not None}][0]
    for a, its in where.items():
        for b in where:
            if home[a] != home[b] or a >= b or where[b] == its:
                continue
            # a and b are together in the rule and apart here: does each stand with something of another group?
            others = [{one for one in where if where[one] == place and home[one] != home[a]} for place in (its, where[b])]
            pairs = [(c, d) for c in others[0] for d in others[1] if home[c] == home[d]]
            if pairs:
                return True
    return False


def _place(one: str, told: tuple[frozenset[str], ...]) -> int | None:
    places = [at for at, some in enumerate(told) if shared(frozenset((one,)), some)]
    return places[0] if len(places) == 1 else None


@lru_cache(maxsize=8192)
def groups(text: str) -> tuple[frozenset[str], ...]:
    """The ideas of each piece of a sentence."""
    return tuple(some for piece in _PAIRED.split(text) if (some := things(piece, with_amounts=True)))


@lru_cache(maxsize=8192)
def relations(text: str, *, least: float = _LEAST) -> tuple[Relation, ...]:
    """Those that a sentence sets."""
    found: list[Relation] = []
    for statement in _STATEMENT.split(text):
        statement = statement.strip()
        if statement:
            for kind, read in _READERS.items():
                for first, second in read(statement):
                    one, other = things(first, least=least), things(second, least=least)
                    if one - other and other - one:
                        found.append(Relation(kind, one - other, other - one))
                    elif kind == "order" and (one - other or other - one):
                        found.append(Relation(kind, one - other, other - one))
    found.extend(_across(text))
    return tuple(found)


def _across(text: str) -> Iterable[Relation]:
    """`A first; then B`."""
    some = [one.strip() for one in _STATEMENT.split(text) if one.strip()]
    for before, after in zip(some, some[1:], strict=False):
        if _EARLIER.search(before) or _LATER.match(after):
            one, other = things(before), things(after)
            if one - other and other - one:
                yield Relation("order", one - other, other - one)


def _orders(text: str) -> Iterable[tuple[str, str]]:
    """What must come first, and what second."""
    marks = list(_TIME.finditer(text))
    for number, mark in enumerate(marks):
        start = marks[number - 1].end() if number else 0
        end = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        left, right = text[start : mark.start()].strip(" ,"), text[mark.end() : end].strip(" ,")
        is_only = left.endswith("only")
        if not things(left):
            right, _, left = right.partition(",")
        else:
            right = right.partition(",")[0]
        if mark[1] in ("after", "once") and not things(right) and (cut := _last_break(left)):
            yield left[:cut], left[cut:]  # `A first, and B only after it is done`
            continue
        is_refused = sign_of(left if len(marks) > 1 or "," in text else text)[0] < 0
        waits = _WAITS.search(left) is not None
        word = mark[1]
        if word in ("before", "precede", "precedes", "followed by"):
            yield (right, left) if is_refused else (left, right)
        elif word == "until":
            if is_refused or waits:
                yield right, left
        elif not is_refused or is_only:
            yield right, left
    for gate in _GATE.finditer(text):
        left, right = text[: gate.start()], text[gate.end() :].partition(",")[0]
        if things(left) and sign_of(left)[0] < 0:
            yield right, left
    for need in _NEEDS.finditer(text):
        left, right = text[: need.start()], text[need.end() :]
        if not marks and things(left) and not _IS_SUBJECT.match(left) and "unneeded" not in text:
            yield right, left
    if not marks:
        yield from _then(text)


def _last_break(text: str) -> int:
    return max((one.start() for one in _BREAK.finditer(text)), default=0)


def _then(text: str) -> Iterable[tuple[str, str]]:
    places = [one.start() for one in _BREAK.finditer(text)]
    later = list(_LATER.finditer(text))
    if later:
        for one in later:
            cut = max((at for at in places if at <= one.start() + 1), default=one.start())
            if things(text[cut : one.start()]) or things(text[one.end() :]):
                yield text[:cut], text[cut:]
                return
    first = _EARLIER.search(text)
    if first is not None:
        cut = min((at for at in places if at >= first.start()), default=0)
        if cut and things(text[cut:]):
            yield text[:cut], text[cut:]


def _choices(text: str) -> Iterable[tuple[str, str]]:
    """What rather than what."""
    for mark in _RATHER.finditer(text):
        left, right = text[: mark.start()].strip(" ,"), text[mark.end() :].strip(" ,")
        if not things(left) and mark[0] == "instead_of":
            right, _, left = right.partition(",")
        left = re.split(r"[,]", left)[-1] if things(re.split(r"[,]", left)[-1]) else left
        yield left, right.partition(",")[0]
    for mark in _BEHIND.finditer(text):
        yield text[mark.end() :].partition(",")[0], text[: mark.start()]
    for pattern in (_RATHER_THAN, _PREFER_TO):
        for found in pattern.finditer(text):
            yield found[1], found[2].partition(",")[0]
    for found in _NOT_BUT.finditer(text):
        yield found[2], found[1]


def _ways(text: str) -> Iterable[tuple[str, str]]:
    """From what to what."""
    for found in _FROM_TO.finditer(text):
        yield found[1], found[2].partition(",")[0]
    for found in _TO_FROM.finditer(text):
        yield found[2].partition(",")[0], found[1]
    for pattern in (_INTO, _IS_INTO):
        for found in pattern.finditer(text):
            if "from" not in found[0]:
                yield found[1], found[2].partition(",")[0]


_READERS: dict[str, Callable[[str], Iterable[tuple[str, str]]]] = {"order": _orders, "choice": _choices, "way": _ways}


@lru_cache(maxsize=16384)
def things(text: str, *, with_amounts: bool = False, least: float = _LEAST) -> frozenset[str]:
    """What a piece of a sentence speaks of: its ideas, and who."""
    found = set()
    words = tokens(text)
    for at, word in enumerate(words):
        if word == "a" and (at + 1 == len(words) or words[at + 1] in _AFTER_LETTER):
            found.add(word)  # `channel a and channel b`
        elif word in _AGENT:
            found.add("@agent")
        elif word in _USER:
            found.add("@user")
        elif word in _US:
            found.add("@us")
        elif word.startswith("#"):
            if with_amounts:
                found.add(word)
        elif word != "," and not is_function(word):
            for piece in word.split("-"):
                one = idea(piece)
                if not is_function(piece) and weight(one) >= least:
                    found.add(one)
    return frozenset(found)


def shared(some: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Those of some ideas that are among others, in whatever form of the word."""
    return frozenset(one for one in some if one in others or any(_is_form(one, other) for other in others))


def _is_form(one: str, other: str) -> bool:
    if len(one) < _SHORTEST or one[:_SHORTEST] != other[:_SHORTEST]:
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= _ALIKE * max(len(one), len(other))
