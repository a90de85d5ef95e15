"""Whether a sentence demands what a rule demands and refuses what it refuses, whatever turns its words. Pure."""

from math import prod

from ledger.constraints.clauses import Clause, Term
from ledger.constraints.lexicon import opposites
from ledger.constraints.matching import Match
from ledger.constraints.narrowing import is_instead
from ledger.constraints.quantities import is_same
from ledger.constraints.signals import has_exception, is_only
from ledger.constraints.wanted import Wanted

_CONTEXT = 0.25
_HEAVY = 0.8


def agrees(rule: Wanted, said: Clause, found: Match) -> bool:
    """Whether it demands what the rule demands, and refuses what it refuses."""
    has_contrast = {1, -1} <= set(rule.signs.values())
    return _agrees(rule, said, found, frozenset()) or (
        has_contrast and bool(lacks := _lacks(rule, found)) and _agrees(rule, said, found, lacks)
    )


def _lacks(rule: Wanted, found: Match) -> frozenset[str]:
    """What of a rule is refused by the rule, and demanded to be absent by the sentence: `correct it without thanks`."""
    marked = {term.idea for term in rule.whole.terms if term.marks}
    own = {
        one
        for one, term in found.matched.items()
        if term.marks
        and term.value is None
        and term.sign > 0
        and rule.signs[one] < 0
        and one not in marked
        and one not in found.flips
    }
    wide = {mark for one, term in found.matched.items() if one not in own for mark in term.marks}
    return frozenset(one for one in own if wide.isdisjoint(found.matched[one].marks))


def _agrees(rule: Wanted, said: Clause, found: Match, lacks: frozenset[str]) -> bool:
    """`lacks`: of these it says by itself that they must not be there."""
    undone = _undone(rule, said, found)
    turn = _turn(rule, said, found, undone | {mark for one in lacks for mark in found.matched[one].marks})
    amounts = {} if rule.has_both else _amount_turns(rule, said, found)
    by_idea: dict[str, set[int]] = {}
    for term in found.terms:
        by_idea.setdefault(term.idea, set()).add(term.sign)
    if _is_swapped(rule, found):
        return False
    deed_signs = {found.matched[one].sign for one in rule.deeds if one in found.matched} - {0}
    has_contrast = {1, -1} <= set(rule.signs.values())
    agreeing: set[int] = set()
    votes: dict[int, float] = {}
    masses: dict[int, float] = {}
    for one, heavy in rule.ideas.items():
        sign = rule.signs[one]
        masses[sign] = masses.get(sign, 0.0) + heavy
        its_term = found.matched.get(one)
        if (
            its_term is None
            or one in rule.conditions
            or _is_remark(said, its_term)
            or is_instead(rule, said, its_term)
        ):
            continue
        its = by_idea.get(its_term.idea, {its_term.sign}) - {0}
        if not sign or not its:
            continue
        flip = -1 if one in found.flips and opposites(one) & rule.ideas.keys() else 1
        turns = turn * _turn_of_part(rule, said, found, one, undone) * _turn_of_amounts(rule, amounts, one)
        agree = 1 if one in lacks or sign * flip * turns in its else -1
        if agree < 0 and one in rule.deeds and its_term.idea == one:
            return False
        is_context = one not in rule.deeds and deed_signs and its_term.sign not in deed_signs
        if has_contrast:  # what it is about may stand with the one or with the other
            is_context = agree < 0 and one not in rule.deeds
        if agree > 0:
            agreeing.add(sign)
        votes[sign] = votes.get(sign, 0.0) + heavy * agree * (_CONTEXT if is_context else 1.0)
    if not votes:
        return True
    if has_contrast and not votes.keys() <= agreeing:
        return False
    return all(vote > -0.25 * masses[sign] for sign, vote in votes.items()) and sum(votes.values()) > 0


def _is_swapped(rule: Wanted, found: Match) -> bool:
    """Whether what must come first comes second: `alter the table before you back it up`."""
    orders = {term.idea: term.order for term in rule.whole.terms if term.order} or _gated(rule)
    said: dict[str, set[int]] = {}
    for term in found.terms:
        said.setdefault(term.idea, set()).add(term.order)
    told = [
        (rule.ideas[one], orders[one], orders[one] if orders[one] in said[term.idea] else term.order)
        for one, term in found.matched.items()
        if one in orders and term.order
    ]
    kinds = {mine for _, mine, _ in told}
    against = sum(heavy for heavy, mine, its in told if mine != its)
    return len(kinds) > 1 and against > sum(heavy for heavy, mine, its in told if mine == its)


def _gated(rule: Wanted) -> dict[str, int]:
    """What must come first for a rule that says `nothing without it`, or `that needs this`."""
    words = rule.whole.words
    if "without" not in words and "needs" not in words and "need" not in words and "requires" not in words:
        return {}
    at = next(at for at, word in enumerate(words) if word in ("without", "need", "needs", "requires"))
    return {term.idea: 1 if term.place > at else 2 for term in rule.whole.terms}


def _is_remark(said: Clause, term: Term) -> bool:
    return said.parts[term.segment].text.startswith(("who ", "which "))


def _turn(rule: Wanted, said: Clause, found: Match, without: set[int]) -> int:
    """What the marks of both, and a word that says the opposite, do to the sign. `without`: marks that do nothing."""
    text = " ; ".join(part.text for part in found.parts)
    is_left = any(
        term.idea not in found.matched for term in rule.whole.terms if term.marks and term.value is None
    )
    others = any(
        term not in found.matched.values() for term in found.terms if term.marks and term.value is None
    )
    its = {
        mark
        for term in rule.whole.terms
        if term.idea in found.matched and term.value is None
        for mark in term.marks
    }
    wide = {mark for term in found.terms if term.value is None for mark in term.marks}
    theirs = {mark for term in found.terms if term in found.matched.values() for mark in term.marks} & wide
    theirs -= without
    if not its and rule.whole.has_exception and has_exception(text):
        theirs = set()  # both let the same out
    turn = prod(rule.whole.marks[mark] for mark in its) * prod(said.marks[mark] for mark in theirs)
    # `only what belongs to it` says `never what is unrelated to it` in other words.
    if (
        is_only(text)
        and not rule.whole.is_only
        and not theirs
        and is_left
        and rule.whole.force == "forbid"
        and not its
    ):
        turn = -turn
    if rule.whole.is_only and not is_only(text) and not its and not theirs and others:
        turn = -turn
    return turn


def _undone(rule: Wanted, said: Clause, found: Match) -> set[int]:
    """Marks that turn only words for the opposite of what the rule demands: `without decimals` for `whole numbers`."""
    own = {
        mark
        for one in found.flips
        for mark in found.matched[one].marks
        if rule.signs[one] > 0
        and len(found.matched[one].marks) == 1
        and not opposites(one) & rule.ideas.keys()
    }
    wide = {
        mark
        for one, term in found.matched.items()
        if one not in found.flips and rule.ideas[one] >= _HEAVY
        for mark in term.marks
    }
    return {mark for mark in own - wide if said.marks[mark] < 0}


def _turn_of_part(rule: Wanted, said: Clause, found: Match, one: str, undone: set[int]) -> int:
    """What words that say the opposite do to the sign of a word: those of its own part, and those of a condition."""
    turn = 1
    term = found.matched[one]
    for flipped in found.flips:
        other = found.matched[flipped]
        if undone.intersection(other.marks):
            continue
        is_near = other.segment == term.segment or any(
            said.parts[at].is_condition for at in (other.segment, term.segment)
        )
        if is_near and not opposites(flipped) & rule.ideas.keys() and not rule.has_apart(one, flipped):
            turn = -turn
    return turn


def _turn_of_amounts(rule: Wanted, amounts: dict[str, set[int]], one: str) -> int:
    """What amounts that are compared the other way do to the sign of a word of the same order."""
    turns = {turn for name, some in amounts.items() if not rule.has_apart(one, name) for turn in some}
    return -1 if turns == {-1} else 1


def _amount_turns(rule: Wanted, said: Clause, found: Match) -> dict[str, set[int]]:
    """For each amount that both compare with something: whether they do so the same way."""
    turns: dict[str, set[int]] = {}
    for term in rule.whole.terms:
        if term.value is None or term.idea not in found.matched:
            continue
        some = [one for one in found.terms if one.idea == term.idea and is_same(one.value or 0.0, term.value)]
        if not some and sum(1 for name, _ in rule.amounts if name == term.idea) == 1:
            some = [found.matched[term.idea]]
        for one in some[:1]:
            mine, its = rule.whole.compared & set(term.marks), said.compared & set(one.marks)
            if mine and its:
                turn = prod(rule.whole.marks[mark] for mark in mine) * prod(said.marks[mark] for mark in its)
                turns.setdefault(term.idea, set()).add(turn)
    return turns
