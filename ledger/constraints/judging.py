"""What a sentence makes of a rule: which of its parts says it, with which sign, how strictly, for which cases. Pure."""

import re
from collections.abc import Iterator

from ledger.constraints.agreeing import agrees
from ledger.constraints.clauses import Clause, Term
from ledger.constraints.lexicon import covers, idea, near_in_order, opposites, others_of_kind, weight
from ledger.constraints.matching import Match
from ledger.constraints.narrowing import is_narrower, restricting
from ledger.constraints.opposing import is_loosened, is_softened, is_spared, lets_itself_out, opposes
from ledger.constraints.parts import Part
from ledger.constraints.quantities import is_same
from ledger.constraints.relations import is_form
from ledger.constraints.reversing import is_set_alike, is_set_apart
from ledger.constraints.seen import KEPT, Seen, Visibility
from ledger.constraints.signals import has_exception, is_mild, is_only, is_soft, is_strict
from ledger.constraints.wanted import Wanted, deeds_in

COPIED = 1.01
"""The share of a word for word copy."""

ENOUGH = 0.45
"""So much of what a rule says must stand in a sentence that says it."""

_PLACED_ENOUGH = 0.61
_RULED = 0.45
_NEAR = 0.75
_OTHER = 0.5
_AMOUNTS = 0.6
_STATED = 0.5
_HEAVY = 0.8
_LEAST_OF_PART = 0.4
_OTHER_DEED = 0.25
_OF_ANOTHER = 0.4
_MANY_PARTS = 0.03
_MOST_PARTS = 10
_AGREES = 0.04
_ALL_LISTED = 0.8


_ANYTHING = re.compile(r"\b(nothing|anything|everything|whatever|nobody|anyone|anybody|everyone|whoever)\b")
_ORDERS = re.compile(r"\b(first|before|beforehand|after|until|once|without|needs?|requires?)\b")
_USERS_OWN = re.compile(r"\bmust only be by (?:the user|user|me|us|him|her|them|he|she)\b")
_LETS_USER = re.compile(
    r"\b(?:let|allow|permit|make|have|ask|tell) (?:me|us|him|her|them|the user)\b|\bonly be by\b"
)
_MAY_BE = re.compile(r"\b(could|might)\b")
_OF_OTHER = re.compile(r"\b(own|other|others|private|personal|topic|elsewhere|different)\b")
_ANYONE = re.compile(r"\b(any|anyone|anybody|anything|every|everyone|everybody|all)\b")


def judged(rule: Wanted, said: Clause, told: str, *, bonus: float = 0.0) -> Seen:
    """What a sentence makes of a rule. `bonus`: so much of it is said by what it quotes."""
    said = _for_agent(rule, said)
    best: Match | None = None
    best_score = 0.0
    for places, terms, is_borrowed in _candidates(said):
        one = _match(rule, said, terms, tuple(said.parts[at] for at in places))
        one = one._replace(share=min(1.0, one.share + bonus), is_borrowed=is_borrowed)
        score = one.share - _MANY_PARTS * (len(places) - 1)
        score += _AGREES if one.matched and agrees(rule, said, one) else 0.0
        if one.matched and (best is None or score > best_score):
            best, best_score = one, score
    if best is None or best.share < _RULED:
        return Seen("absent", best.share if best else 0.0, told)
    is_leave = said.is_withdrawal or _is_permit(best) or _is_release(best)
    kind = _kind(rule, said, best)
    if kind == "inverted" and not said.is_withdrawal and _is_of_other(rule, said, best):
        return Seen("absent", best.share * _OTHER, told)
    if kind in KEPT and is_spared(rule, told):
        kind = "narrowed"
    share = best.share
    if kind == "inverted" and all(part.is_stated for part in best.parts):
        share *= _STATED  # what is told of one case takes back no rule that is said elsewhere
    return Seen(kind, share, told, is_leave)


def _for_agent(rule: Wanted, said: Clause) -> Clause:
    """A sentence as it is meant for the agent: what is the user's own job is none of the agent's."""
    if rule.whole.force != "forbid" or _LETS_USER.search(rule.whole.text) or not _USERS_OWN.search(said.text):
        return said
    own = {at for at, part in enumerate(said.parts) if part.sign > 0 and _USERS_OWN.search(part.text)}
    return said._replace(
        parts=tuple(part._replace(sign=-1) if at in own else part for at, part in enumerate(said.parts)),
        terms=tuple(term._replace(sign=-1) if term.segment in own else term for term in said.terms),
    )


def _is_of_other(rule: Wanted, said: Clause, found: Match) -> bool:
    """Whether it speaks of something else than the rule: its own branch may be pushed to, the shared one not."""
    is_left = any(one not in found.matched and heavy >= _HEAVY for one, heavy in rule.ideas.items())
    is_leave_of_other = (
        _is_permit(found) and _OF_OTHER.search(said.text) and not _OF_OTHER.search(rule.whole.text)
    )
    return is_left and (bool(is_leave_of_other) or bool(restricting(rule, said, found.terms, found.matched)))


def _candidates(said: Clause) -> Iterator[tuple[range, tuple[Term, ...], bool]]:
    """Runs of parts that may say a rule, with their terms; conditions go with what they are conditions of."""
    parts = said.parts[:_MOST_PARTS]
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            some = parts[start:end]
            if not some[-1].is_rule:
                break
            if all(part.is_condition for part in some):
                continue
            if start and parts[start - 1].is_condition:
                continue
            if end < len(parts) and parts[end].is_condition and end == len(parts) - 1:
                continue
            yield range(start, end), tuple(term for term in said.terms if start <= term.segment < end), False
        names = any(term.segment == start for term in said.terms)
        if (
            start
            and names
            and parts[start].is_elliptic
            and parts[start].is_rule
            and not parts[start].is_condition
        ):
            # `in economy, never in business class`: what it is about stands before.
            sign = parts[start].sign
            yield (
                range(start - 1, start + 1),
                tuple(term._replace(sign=sign) for term in said.terms if start - 1 <= term.segment <= start),
                True,
            )


def _match(rule: Wanted, said: Clause, terms: tuple[Term, ...], parts: tuple[Part, ...]) -> Match:
    there: dict[str, Term] = {}
    for term in terms:
        there.setdefault(term.idea, term)
    total = sum(rule.ideas.values()) or 1.0
    matched: dict[str, Term] = {}
    flips: set[str] = set()
    hit = 0.0
    for one, heavy in rule.ideas.items():
        found: Term | None = there.get(one)
        share = 1.0
        if found is not None and one.startswith("#"):
            found = _amount(rule, one, terms)
        if found is None:
            found = _alike(one, there)
        if found is None and (turned := sorted(opposites(one) & there.keys())):
            found = there[turned[0]]
            flips.add(one)
        if found is None:
            found = next((there[other] for other in near_in_order(one) if other in there), None)
            share = _NEAR
        if found is not None:
            matched[one] = found
            hit += heavy * share
    if _ANYTHING.search(said.text):  # of whatever sort
        hit += sum(
            _ALL_LISTED * heavy
            for one, heavy in rule.ideas.items()
            if one not in matched and one in rule.any_of and opposites(one).isdisjoint(there)
        )
    listed = {name for names in rule.lists for name in names if name not in matched}
    hit += sum(_ALL_LISTED * rule.ideas[name] for name in listed if covers(there.keys(), name))
    said_share = min(1.0, hit / total)
    if rule.deeds and not rule.deeds & matched.keys():
        others = {one for one in deeds_in(said, terms) if one not in rule.ideas and weight(one) >= 1}
        rest = {one for one, heavy in rule.ideas.items() if one not in rule.deeds and heavy >= _AMOUNTS}
        if others - {term.idea for term in matched.values()} and (
            len(rest) < 2 or not rest <= matched.keys()
        ):
            said_share -= _OTHER_DEED
    if not _ANYTHING.search(said.text) and _names_another(rule, there, matched):
        said_share = min(said_share, _OF_ANOTHER)
    return Match(said_share, terms, matched, frozenset(flips), parts)


def _names_another(rule: Wanted, there: dict[str, Term], matched: dict[str, Term]) -> bool:
    """Whether it names another thing of the kind where the rule's own is missing: Rust for Python, a receipt for an
    invoice.
    """
    known = {term.idea for term in matched.values()} | rule.ideas.keys()
    return any(
        others_of_kind(one).isdisjoint(rule.ideas) and (others_of_kind(one) & there.keys()) - known
        for one, heavy in rule.ideas.items()
        if one not in matched and heavy >= _HEAVY
    )


def _amount(rule: Wanted, one: str, terms: tuple[Term, ...]) -> Term:
    wanted_ones = [value for name, value in rule.amounts if name == one]
    some = [term for term in terms if term.idea == one and term.value is not None]
    return next((term for term in some if any(is_same(term.value or 0.0, v) for v in wanted_ones)), some[0])


def _alike(one: str, there: dict[str, Term]) -> Term | None:
    """Another form of a word."""
    if one.startswith("#"):
        return None
    return next((term for other, term in there.items() if is_form(one, other)), None)


def _is_permit(found: Match) -> bool:
    main = [part for part in found.parts if not part.is_condition]
    return bool(main) and all(part.is_permit for part in main)


def _is_release(found: Match) -> bool:
    return any("unneeded" in part.text for part in found.parts)


def _kind(rule: Wanted, said: Clause, found: Match) -> Visibility:
    whole = rule.whole
    if said.is_withdrawal:
        return "inverted"
    text = " ; ".join(part.text for part in found.parts)
    if "unlimited" in text and (rule.amounts or whole.is_only) and "unlimited" not in whole.text:
        return "inverted"
    if not (agrees(rule, said, found) or is_set_alike(whole, said, "choice") or _is_apart(rule, said, found)):
        return "inverted"
    if _is_release(found) and "unneeded" not in whole.text:
        return "inverted"
    if _is_permit(found) and whole.force != "permit":
        return "inverted" if whole.is_only and _ANYONE.search(text) else "weakened"
    if opposes(rule, said, found):
        return "inverted"
    if lets_itself_out(rule, said, found.terms) or not _has_amounts(rule, found):
        return "weakened"
    if is_loosened(whole, said):
        return "weakened"
    if not whole.is_soft and (_is_soft(rule, _untold(found)) or is_softened(said, found.terms)):
        return "weakened"
    if is_mild(text) and whole.is_strict and not is_strict(text):
        return "weakened"
    if _is_let_through(rule, found):
        return "weakened"
    is_restricted = is_only(text) and whole.has_exception
    if has_exception(text) and not _is_gate_of(rule, found) and not whole.has_exception and not is_restricted:
        return "weakened"
    missing = sum(1 for one, heavy in rule.ideas.items() if one not in found.matched and heavy >= 0.8)
    terms = found.terms
    if found.is_borrowed:
        last = terms[-1].segment
        terms = tuple(term for term in terms if term.segment == last or term in found.matched.values())
    if is_narrower(rule, said, terms, found.matched, missing):
        return "narrowed"
    is_placed = all(part.is_placed for part in found.parts)
    enough = _PLACED_ENOUGH if is_placed or _is_half(rule, found) else ENOUGH
    return "paraphrase" if found.share >= enough and not _is_one_sided(rule, found) else "absent"


def _is_one_sided(rule: Wanted, found: Match) -> bool:
    """Whether of a rule on what must come first it says only the one or only the other: `run the migration`."""
    if any(_ORDERS.search(part.text) for part in found.parts):
        return False
    sides: dict[int, set[str]] = {}
    for term in rule.whole.terms:
        if term.order and term.idea in rule.ideas:
            sides.setdefault(term.order, set()).add(term.idea)
    return len(sides) > 1 and any(side.isdisjoint(found.matched) for side in sides.values())


def _is_apart(rule: Wanted, said: Clause, found: Match) -> bool:
    return not found.flips and not rule.amounts and is_set_apart(rule.whole, said)


def _untold(found: Match) -> str:
    """What it says, without what in its conditions only may be: `where it could be read in two ways`."""
    return " ; ".join(_MAY_BE.sub(" ", part.text) if part.is_condition else part.text for part in found.parts)


def _is_soft(rule: Wanted, text: str) -> bool:
    """Whether it may be outweighed, what the rule itself names left aside: `... must not be recommended`."""
    return is_soft(text) and is_soft(" ".join(word for word in text.split() if idea(word) not in rule.ideas))


def _is_half(rule: Wanted, found: Match) -> bool:
    """Whether one part of the rule is not said at all."""
    for number, part in enumerate(rule.whole.parts):
        own = {term.idea: rule.ideas[term.idea] for term in rule.whole.terms if term.segment == number}
        there = sum(heavy for one, heavy in own.items() if one in found.matched)
        if not part.is_condition and not part.is_elliptic and there < _LEAST_OF_PART * sum(own.values()):
            return True
    return False


def _is_let_through(rule: Wanted, found: Match) -> bool:
    """Whether it allows on a condition what the rule does not allow on any: `only if it takes a minute`."""
    first = [term for term in found.terms if term.order == 1]
    has_order = any(term.order for term in rule.whole.terms)
    return bool(first) and not has_order and not any(term in found.matched.values() for term in first)


def _is_gate_of(rule: Wanted, found: Match) -> bool:
    """Whether what stands after `unless` is a condition of the rule too."""
    marked = {mark for term in found.matched.values() for mark in term.marks}
    after = [term for term in found.terms if set(term.marks) & marked]
    return bool(after) and any(term in found.matched.values() for term in after)


def _has_amounts(rule: Wanted, found: Match) -> bool:
    """Whether all amounts of the rule are said."""
    its = [(term.idea, term.value) for term in found.terms if term.value is not None]
    return all(
        any(name == other and is_same(value, that) for other, that in its) for name, value in rule.amounts
    )
