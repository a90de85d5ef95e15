"""Whether a sentence turns a rule that it has the words of: by order, by leave, by amounts, by what it lets out. Pure.

Each of these speaks against a rule by itself. None of them looks at how much of the rule is said.
"""

import re
from collections.abc import Iterable
from math import prod

from ledger.constraints.clauses import Clause, Term
from ledger.constraints.exchanging import is_misplaced
from ledger.constraints.lexicon import idea, is_deed, is_function, opposites, weight
from ledger.constraints.matching import Match
from ledger.constraints.parts import Part
from ledger.constraints.quantities import is_same
from ledger.constraints.reversing import is_set_alike, is_set_apart, is_turned
from ledger.constraints.signals import is_release, is_soft, is_sparing
from ledger.constraints.turning import is_turned_by_word
from ledger.constraints.wanted import Wanted

_MUCH = 0.4
_MOST = 0.6
_LEAST = 0.6
_HEAVY = 0.8
_TIMES = {"before": 1, "until": 1, "after": 2, "once": 2}
_LETS_OUT = frozenset("unless except excepting excluding".split())
_IF = frozenset(("if", "when"))
_PASSING = frozenset("unless except until without".split())
_OTHER = re.compile(r"\b(different|other|another|elsewhere|instead|outside)\b")
_EXCEPTIONS = re.compile(r"(?<!no )\bexceptions?\b")
_ANYWAY = re.compile(r"\b(even|with or) (without|before|if|when|though)\b|\bwith and without\b")
_REQUIRES = re.compile(r"\b(requires?|needs?|only (after|if|when|with|once))\b")
_RATES = frozenset("perhour perday perweek permonth".split())
_ROUGHLY = re.compile(r"\b(around|about|roughly|approximately|circa|some) #")
_ALSO = re.compile(r"\b(also|too|as well|not only)\b")


def opposes(rule: Wanted, said: Clause, found: Match) -> bool:
    """Whether it does."""
    terms, matched = found.terms, found.matched
    return (
        is_misplaced(rule, said, terms, matched)
        or is_turned(rule.whole, said)
        or is_turned_by_word(rule.whole, said)
        or is_early(rule, said, terms, matched)
        or is_measured_otherwise(rule, said, terms, found.flips)
        or is_opened(rule, said, terms, matched)
        or (
            turns_a_part(rule, said)
            and not is_set_alike(rule.whole, said, "order", "choice")
            and not (not found.flips and is_set_apart(rule.whole, said))
        )
        or is_all_against(rule, said)
        or is_led_off(said, terms[0].segment)
        or is_granted(rule, found.parts, said, matched)
    )


def is_early(rule: Wanted, said: Clause, terms: tuple[Term, ...], matched: dict[str, Term]) -> bool:
    """Whether it says `before` the same as that after which it must be, both being demanded or both refused; or demands
    until then what the rule refuses until then.
    """
    asked = _times(rule.whole, rule.whole.terms)
    told = _times(said, terms)
    for one, term in matched.items():
        mine, its = asked.get(one), told.get(term.idea)
        if mine and its and (mine[0] != its[0]) == (mine[1] == its[1]):
            return True
    return False


def _times(said: Clause, terms: Iterable[Term]) -> dict[str, tuple[int, int]]:
    """For what stands after `before` or `after`: which of them, and whether that part demands or refuses."""
    return {
        term.idea: (time, said.parts[term.segment].sign)
        for term in terms
        if (time := _time(said, term)) and "only" not in said.parts[term.segment].text
    }


def _time(said: Clause, term: Term) -> int:
    """1: `before` or `until` stands right before it, over small words and verbs; 2: `after` or `once`; 0: neither."""
    for at in range(term.place - 1, max(-1, term.place - 6), -1):
        word = said.words[at]
        if word in _TIMES:
            return _TIMES[word]
        if not is_function(word) and not is_deed(idea(word)):
            return 0
    return 0


def is_measured_otherwise(rule: Wanted, said: Clause, terms: tuple[Term, ...], flips: frozenset[str]) -> bool:
    """Whether it has an amount of the rule as the least where it must be the most, or the other way round."""
    if flips or "without" in rule.whole.words or "without" in said.words:
        return False
    for mine in rule.whole.terms:
        if mine.value is None or not mine.marks:
            continue
        for its in terms:
            if (
                its.value is None
                or its.idea != mine.idea
                or not its.marks
                or not is_same(its.value, mine.value)
            ):
                continue
            same = rule.whole.parts[mine.segment].sign == said.parts[its.segment].sign
            turn = prod(rule.whole.marks[one] for one in mine.marks) * prod(
                said.marks[one] for one in its.marks
            )
            if same and turn < 0:
                return True
    return False


def is_opened(rule: Wanted, said: Clause, terms: tuple[Term, ...], matched: dict[str, Term]) -> bool:
    """Whether what the rule lets pass on a condition passes on the opposite one, or on none: `even without approval`,
    `if` for `unless`, `always ... unless` for `never ... unless`, `also` for `only`.
    """
    text = " ; ".join(said.parts[at].text for at in sorted({term.segment for term in terms}))
    if rule.whole.is_gate and _ANYWAY.search(text) and not _ANYWAY.search(rule.whole.text):
        return True
    if (
        rule.whole.is_only
        and (not said.is_only or "not only" in text)
        and _ALSO.search(text)
        and not _ALSO.search(rule.whole.text)
    ):
        return True
    if rule.amounts:
        return False
    asked = {term.idea: _opener(rule.whole, term) for term in rule.whole.terms}
    for one, term in matched.items():
        mine, its = asked[one], _opener(said, term)
        if not mine[0] or not its[0]:
            continue
        is_same_way = (mine[0] in _PASSING) == (its[0] in _PASSING)
        if (mine[1] == its[1]) != is_same_way and "only" not in text and not rule.whole.is_only:
            return True
    return False


def _opener(said: Clause, term: Term) -> tuple[str, int]:
    """The word that makes a condition of it, and the sign of what it is a condition of."""
    for at in range(term.place - 1, max(-1, term.place - 9), -1):
        word = said.words[at]
        if word in _IF and at and said.words[at - 1] in _PASSING:
            continue
        if word in _PASSING or word in _IF:
            part = next((one for one in said.parts if not one.is_condition), said.parts[term.segment])
            return word, (part if said.parts[term.segment].is_condition else said.parts[term.segment]).sign
        if word in _TIMES:
            return "", 0
    return "", 0


def turns_a_part(rule: Wanted, said: Clause) -> bool:
    """Whether one of its parts demands or permits what a part of the rule refuses, or refuses what it demands."""
    for number, part in enumerate(rule.whole.parts):
        own = {
            term.idea
            for term in rule.whole.terms
            if term.segment == number and not term.is_condition and not term.marks and term.value is None
        }
        total = sum(rule.ideas[one] for one in own)
        if (
            part.is_condition
            or part.is_elliptic
            or part.is_permit
            or total < _LEAST
            or len(own) != len(_all_in(rule.whole, number))
        ):
            continue
        for at, its in enumerate(said.parts):
            here = [term for term in said.terms if term.segment == at]
            there = [term for term in here if term.idea in own - _said_with(rule.whole, its.sign)]
            if any(opposites(term.idea) & own for term in here):
                continue  # `keep it enabled` for `never disable it`
            if {term.idea for term in here} & _said_otherwise(rule.whole, number, its.sign) and not own <= {
                term.idea for term in here
            }:
                continue  # `mails are drafts only` for `send no mails, write drafts`
            if (
                (its.sign == part.sign and not (its.is_permit and part.sign < 0))
                or its.is_condition
                or any(term.marks or term.order or opposites(term.idea) & own for term in here)
                or (rule.whole.is_gate and _REQUIRES.search(its.text) is not None)
                or _OTHER.search(its.text) is not None
            ):
                continue
            if sum(rule.ideas[one] for one in {term.idea for term in there}) >= _MOST * total:
                return True
    return False


def _said_with(said: Clause, sign: int) -> set[str]:
    """Of what some part of it demands, or refuses, something."""
    return {
        term.idea
        for term in said.terms
        if term.sign == sign and not said.parts[term.segment].is_condition and not is_deed(term.idea)
    }


def _said_otherwise(said: Clause, number: int, sign: int) -> set[str]:
    """What stands only in those of its parts, other than one, that have another sign than that one."""
    own = _all_in(said, number)
    return {term.idea for term in said.terms if term.segment != number and term.sign == sign} - own


def _all_in(said: Clause, number: int) -> set[str]:
    return {term.idea for term in said.terms if term.segment == number}


def is_all_against(rule: Wanted, said: Clause) -> bool:
    """Whether a part of it says nothing but what the rule says, and the opposite: `do not hand over to a human`."""
    if len(set(rule.signs.values())) > 1:
        return False
    for number, part in enumerate(said.parts):
        here = [term for term in said.terms if term.segment == number]
        if (
            part.is_rule
            and not part.is_condition
            and len({term.idea for term in here}) > 1
            and not any(term.marks or term.order or term.idea not in rule.ideas for term in here)
            and all(term.sign * rule.signs[term.idea] < 0 for term in here)
            and not any(mine.marks or mine.order for mine in rule.whole.terms)
        ):
            return True
    return False


def is_led_off(said: Clause, first: int) -> bool:
    """Whether the part before the one that says the rule takes back what follows: `you may skip this: ...`."""
    if not first:
        return False
    before = said.parts[first - 1]
    if any(
        term.segment == first - 1 and weight(term.idea) >= 1 and not is_deed(term.idea) for term in said.terms
    ):
        return False
    return before.is_permit or is_release(before.text)


def is_granted(rule: Wanted, parts: tuple[Part, ...], said: Clause, matched: dict[str, Term]) -> bool:
    """Whether one part of it permits much of what the rule rules."""
    if rule.whole.force == "permit":
        return False
    total = sum(rule.ideas.values()) or 1.0
    return any(
        part.is_permit
        and sum(
            rule.ideas[one]
            for one, term in matched.items()
            if said.parts[term.segment] is part and not _is_leave(rule, one)
        )
        >= _MUCH * total
        for part in parts
    )


def _is_leave(rule: Wanted, one: str) -> bool:
    some = [rule.whole.parts[term.segment] for term in rule.whole.terms if term.idea == one]
    return any(part.is_permit or "only" in part.text for part in some)


def is_softened(said: Clause, terms: tuple[Term, ...]) -> bool:
    """Whether a part beside it says of it, and of nothing else, that it is soft: `..., but use your judgement`."""
    there = {term.segment for term in terms}
    for number in (min(there) - 1, max(there) + 1):
        if not 0 <= number < len(said.parts) or number in there:
            continue
        part = said.parts[number]
        own = [term for term in said.terms if term.segment == number and weight(term.idea) >= 1]
        if len(own) <= 1 and (is_soft(part.text) or _EXCEPTIONS.search(part.text)):
            return True
    return False


def is_spared(rule: Wanted, told: str) -> bool:
    """Whether it says that the rule does not reach everything: `(tool calls are not covered)`."""
    return is_sparing(told) and not is_sparing(rule.whole.text)


def is_loosened(rule: Clause, said: Clause) -> bool:
    """Whether it has another rate than the rule, or an amount only roughly: `weekly` for `daily`, `around 30 days`."""
    mine, its = ({word for word in one.words if word in _RATES} for one in (rule, said))
    if mine and its and mine.isdisjoint(its):
        return True
    is_bounded = any(term.value is not None and term.marks for term in rule.terms)
    return is_bounded and _ROUGHLY.search(said.text) is not None and _ROUGHLY.search(rule.text) is None


def lets_itself_out(rule: Wanted, said: Clause, terms: tuple[Term, ...]) -> bool:
    """Whether it lets out what the rule is about: `never in German unless ... in German`."""
    if rule.whole.has_exception:
        return False
    places = [at for at, word in enumerate(said.words) if word in _LETS_OUT]
    if not places:
        return False
    if any(part.is_permit and part.text.startswith(("except", "unless")) for part in said.parts):
        return True
    some = [term for term in terms if rule.ideas.get(term.idea, 0.0) >= _HEAVY]
    before = {said.words[term.place] for term in some if term.place < places[0]}
    return any(said.words[term.place] in before for term in some if term.place > places[0])
