"""How a rule fares in a text: said word for word, in other words, weaker, narrower, reversed, or not at all. Pure.

No model is asked: a sentence of the text says the rule when it orders, shares its ideas, and demands and refuses the
same ones.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from ledger.constraints.clauses import Clause, Term, clause
from ledger.constraints.lexicon import OPPOSITE, idea, is_function, rephrased, weight
from ledger.constraints.narrowing import DAYS, NARROWING, is_narrower
from ledger.constraints.wanted import Wanted, refused_in, wanted
from ledger.constraints.wording import Sentence, bare, sentences

Visibility = Literal["verbatim", "paraphrase", "weakened", "narrowed", "inverted", "absent"]
"""How a rule fares."""

KEPT: tuple[Visibility, ...] = ("verbatim", "paraphrase")
"""Those in which the rule is still there."""

ENOUGH = 0.55
"""So much of what a rule says must stand in a sentence that says it."""

_CLEAR = 0.8
_CORE = 0.4
_COPIED = 1.01
_SOME = 0.4
_RULED = 0.5
_DENIED = re.compile(r"\b(not|never|no longer|stop|without|nobody|n't)$")


class Seen(NamedTuple):
    """How a rule fares in a text, and where it shows."""

    visibility: Visibility
    """How."""

    share: float
    """How much of what the rule says stands there, from 0 to 1."""

    words: str = ""
    """The sentence, normalised."""

    is_leave: bool = False
    """Whether it is reversed by a leave, and not by an order to do the opposite once."""


def see(rule: str, text: str, *, is_ruled: bool = False) -> Seen:
    """How a rule fares in a text. `is_ruled`: the text holds nothing but rules."""
    return _see(wanted(rule), tuple(sentences(text)), bare(text), is_ruled)


def see_any(rule: str, texts: Iterable[str]) -> Seen:
    """How a rule fares in several texts, the last ones counting most where they contradict each other."""
    found = Seen("absent", 0.0)
    for text in texts:
        found = later(found, see(rule, text))
    return found


def later(before: Seen, after: Seen) -> Seen:
    """Two texts one after the other: the last word on a rule counts, a word for word copy stays what it is."""
    if after.visibility == "absent":
        return before if before.visibility != "absent" or before.share >= after.share else after
    if before.visibility in KEPT and after.visibility in ("weakened", "narrowed"):
        return before
    if before.visibility == "verbatim" and after.visibility == "paraphrase":
        return before
    if before.visibility in KEPT and after.visibility == "inverted":
        # A task that goes against the rule takes nothing back; nor does a leave for something else.
        return after if after.is_leave and after.share >= _CLEAR else before
    return after


def _see(rule: Wanted, said: tuple[Sentence, ...], plain: str, is_ruled: bool) -> Seen:
    found = Seen("absent", 0.0)
    is_copied = False
    if not _may_say(rule, plain) and rule.bare not in plain:
        return found
    at_once = max(1, min(3, len(rule.clauses)))
    for start in range(len(said)):
        for size in range(1, at_once + 1):
            window = said[start : start + size]
            if len(window) < size:
                break
            told = " ; ".join(one.text.rstrip(".!?;") for one in window) if size > 1 else window[0].text
            one = _judge(rule, clause(told, is_ruled=is_ruled or window[0].is_ruled), told)
            is_copied = is_copied or one.share == _COPIED
            found = _better(found, one)
    if not is_copied and rule.bare and f" {rule.bare} " in f" {plain} ":
        return _better(found, Seen("verbatim", _COPIED, rule.bare))
    return found


def _may_say(rule: Wanted, plain: str) -> bool:
    """Whether a text has enough of the rule's ideas at all: most texts have not, and need no closer look."""
    ideas = _ideas_of(plain)
    if "action" in ideas:
        return True
    total = sum(rule.ideas.values())
    there = sum(
        heavy
        for one, heavy in rule.ideas.items()
        if one in ideas or OPPOSITE.get(one) in ideas or (len(one) >= 5 and one[:5] in ideas)
    )
    return there >= _SOME * total


@lru_cache(maxsize=512)
def _ideas_of(plain: str) -> frozenset[str]:
    words = set(rephrased(plain).split())
    known = {idea(word) for word in words} | {
        idea(part) for word in words if "/" in word for part in word.split("/")
    }
    return frozenset(known | {one[:5] for one in known if len(one) >= 5})


def _better(found: Seen, one: Seen) -> Seen:
    if one.visibility == "absent":
        return found if found.visibility != "absent" or found.share >= one.share else one
    if found.visibility == "absent":
        return one
    if one.visibility == "inverted":
        # Said and taken back in one text: it is not in force.
        return one if found.visibility not in KEPT or one.share >= min(0.8, found.share) else found
    if found.visibility == "inverted":
        return found if found.share >= 0.8 or one.share < found.share else one
    order: tuple[Visibility, ...] = ("verbatim", "paraphrase", "narrowed", "weakened")
    if order.index(one.visibility) != order.index(found.visibility):
        return min(found, one, key=lambda seen: order.index(seen.visibility))
    return max(found, one, key=lambda seen: seen.share)


def _judge(rule: Wanted, said: Clause, told: str) -> Seen:
    """One sentence."""
    plain = bare(told)
    if rule.bare and f" {rule.bare} " in f" {plain} ":
        before, _, after = plain.partition(rule.bare)
        return Seen(_copied(before.strip(), after.strip(), told), _COPIED, told, True)
    share, flips, matched = _compare(rule, said)
    if rule.whole.literals:
        share = _with_literal(rule, said, told, share)
    if said.force == "none" or not matched:
        return Seen("absent", 0.0 if said.force == "none" else share, told)
    if share < (_SOME if said.force in ("permit", "release") or said.is_withdrawal else _RULED):
        return Seen("absent", share, told)
    if said.force not in ("permit", "release") and _share_of_core(rule, matched) < _CORE:
        return Seen("absent", share, told)
    return Seen(_kind(rule, said, share, flips, matched), share, told, _is_leave(said))


def _copied(before: str, after: str, told: str) -> Visibility:
    """What the words around a copy make of it."""
    around = [clause(one) for one in (before, after) if one]
    if any(one.is_withdrawal or one.force == "release" for one in around):
        return "inverted"
    if _DENIED.search(before):
        return "inverted"
    if any(one.has_exception or (one.is_soft and one.force != "none") for one in around):
        return "weakened"
    narrows = before.split()[:1] + after.split()[:1]
    if any(word in NARROWING for word in narrows) or any(DAYS.search(one.text) for one in around):
        return "narrowed"
    last = before.rpartition(" ")[2]
    is_joined = bool(last) and re.search(rf"{re.escape(last)} \w", told) is not None
    return "narrowed" if is_joined and not is_function(last) else "verbatim"


def _is_leave(said: Clause) -> bool:
    return said.is_withdrawal or said.force in ("permit", "release")


def _share_of_core(rule: Wanted, matched: dict[str, Term]) -> float:
    """How much is said of what the rule demands or refuses, its conditions left out."""
    core = {term.idea for term in rule.whole.terms if term.sign and term.idea in rule.ideas}
    core -= refused_in(rule.whole)
    total = sum(rule.ideas[one] for one in core)
    return sum(rule.ideas[one] for one in core if one in matched) / total if total else 1.0


def _kind(rule: Wanted, said: Clause, share: float, flips: bool, matched: dict[str, Term]) -> Visibility:
    whole = rule.whole
    if said.is_withdrawal:
        return "inverted"
    if said.force == "release":
        return "weakened" if said.is_soft and "optional" in said.text else "inverted"
    if said.force == "permit" and whole.force not in ("permit",):
        return "inverted"
    is_restricted = said.is_only and whole.has_exception
    if not is_restricted and _vote(rule, said, flips, matched) < 0:
        return "inverted"
    if whole.numbers and not whole.numbers <= said.numbers:
        return "weakened" if share >= _RULED else "absent"
    if said.is_soft and not whole.is_soft:
        return "weakened"
    if said.is_mild and whole.is_strict and not said.is_strict:
        return "weakened"
    if said.has_exception and not whole.has_exception and not whole.is_gate and not is_restricted:
        return "weakened"
    if said.is_gate and not whole.is_gate and whole.force == "forbid" and not _is_unconditional(said):
        return "weakened"
    if is_narrower(rule, said, matched):
        return "narrowed"
    return "paraphrase" if share >= ENOUGH else "absent"


def _is_unconditional(said: Clause) -> bool:
    return not any(term.sign > 0 for term in said.terms)


def _compare(rule: Wanted, said: Clause) -> tuple[float, bool, dict[str, Term]]:
    """How much of the rule is said; whether by the opposite of one of its ideas; and what stands for which idea."""
    there: dict[str, Term] = {}
    for term in said.terms:
        there.setdefault(term.idea, term)
    total = sum(rule.ideas.values()) or 1.0
    hit, flips, matched = 0.0, False, dict[str, Term]()
    for one, heavy in rule.ideas.items():
        found = there.get(one) or _alike(one, there)
        if found is None and OPPOSITE.get(one) in there:
            found = there[OPPOSITE[one]]
            flips = not flips
        if found is not None:
            matched[one] = found
            hit += heavy
    if "action" in there:  # any action: all that the rule lists
        for names in rule.lists:
            hit += sum(0.8 * rule.ideas[name] for name in names if name not in matched)
    return min(1.0, hit / total), flips, matched


def _alike(one: str, there: dict[str, Term]) -> Term | None:
    """Another form of a word: one of the two is the beginning of the other, but for an ending."""
    if len(one) < 5:
        return None
    for other, term in there.items():
        if other[:5] == one[:5] and len(other) >= 5:
            common = next(
                (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)),
            )
            if common >= 0.7 * max(len(one), len(other)):
                return term
    return None


def _vote(rule: Wanted, said: Clause, flips: bool, matched: dict[str, Term]) -> float:
    """Above 0: what the rule demands is demanded; below: it is refused."""
    whole: dict[str, int] = {}
    for term in rule.whole.terms:
        whole.setdefault(term.idea, term.sign)
    refused = refused_in(rule.whole)
    if refused:
        turned = [matched[one].sign for one in refused if one in matched]
        wanted_ones = [one for one in rule.ideas if one not in refused and weight(one) >= 1]
        if turned and all(sign > 0 for sign in turned):
            is_whole = all(one in matched and matched[one].sign >= 0 for one in wanted_ones)
            return 1.0 if is_whole else -1.0
        if turned and all(sign < 0 for sign in turned):
            return 1.0
    pairs = [
        (rule.ideas[one], whole.get(one, 0), term.sign)
        for one, term in matched.items()
        if one in rule.ideas and one not in refused
    ]
    found = sum(heavy * mine * its for heavy, mine, its in pairs)
    return -found if flips else found


def _with_literal(rule: Wanted, said: Clause, told: str, share: float) -> float:
    """A rule that quotes something is said only where the quotation stands, and more than that."""
    has_all = all(bare(one) in bare(told) for one in rule.whole.literals)
    if not has_all:
        return 0.0
    return 0.5 + share / 2 if share >= 0.3 else 0.0
