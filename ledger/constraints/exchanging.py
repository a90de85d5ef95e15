"""Whether a sentence has all the words of a rule, but some of them in the place of others. Pure.

Each of these speaks against a rule by itself. None of them looks at how much of the rule is said.
"""

import re

from ledger.constraints.clauses import Clause, Term
from ledger.constraints.lexicon import idea, is_deed, is_function, opposites, weight
from ledger.constraints.reversing import is_passed_over, is_set_alike, is_set_apart
from ledger.constraints.signals import tokens
from ledger.constraints.wanted import Wanted

_HEAVY = 0.8
_NAMED = 0.1
_FEWEST = 3
_SAME = re.compile(r"\b(same|identical)\b")
_OWN = re.compile(r"\b(its|their|his|her) own\b")
_SHARED = re.compile(r"\b(the same|shares?|shared|in common|a common|a single)\b")
_DIFFERENT = re.compile(r"\b(different|another|second|separate|not the same)\b")
_WHERE = frozenset("in on for of at to from with by".split())
_TAKEN_UP = re.compile(r"\b(?:it|them|that|they)$")
_FIRST = re.compile(r"\bfirst\b")
_THEN = re.compile(r"\b(then|afterwards?|later|next|second|secondly|finally|subsequently)\b")
_OTHER_ORDER = re.compile(r"\b(before|after|until|unless|once|not|never|no)\b")
_CUT = re.compile(r"\band\b|\bthen\b|[,;]")
_FROM_TO = re.compile(r"\bfrom ((?:[\w'-]+ ){1,4})to ((?:[\w'-]+ ?){1,3})")
_DETERMINED = frozenset("the a an every each all any your our its their".split())
_NOUN = re.compile(r"(?:fier|i[sz]er|[st]ion|m[e]nt|ness|(?:a|e)nc[e])s?$")
"""The ending of a word that names a thing, though its idea is something that one does."""
_PASSIVE = re.compile(
    r"\b(be|been|being|is|are|was|were|get|gets) (\w+ly )?\w+(ed|en|ught|ade|one|nt|old|ut)\b|\bby\b"
    r"|\bwith(?:out)? (?:its|their|an?|the|your|all|every|any) (?:\w+ )?\w+ed\b"
)


def is_misplaced(rule: Wanted, said: Clause, terms: tuple[Term, ...], matched: dict[str, Term]) -> bool:
    """Whether it does. `terms`: those of the parts of the sentence that say the rule; `matched`: what stands for which
    idea of the rule.
    """
    return (
        is_exchanged(rule, matched)
        or (is_transposed(rule, said, matched) and not is_set_alike(rule.whole, said, "order"))
        or is_crossed(rule, matched)
        or is_same_for_other(rule, said, terms)
        or is_other_ones(rule, said, matched)
        or (
            is_demanded(rule, said)
            and not is_set_alike(rule.whole, said, "choice")
            and not is_set_apart(rule.whole, said)
        )
        or is_passed_over(rule, said)
        or is_turned_round(rule, said)
        or is_in_other_order(rule, said)
    )


def is_exchanged(rule: Wanted, matched: dict[str, Term]) -> bool:
    """Whether it refuses what the rule demands and demands what the rule refuses: `B, not A` for `A, not B`."""
    marked = {term.idea for term in rule.whole.terms if term.marks or term.is_condition}
    against = {
        rule.signs[one]
        for one, term in matched.items()
        if one not in marked
        and not term.marks
        and not term.is_condition
        and rule.signs[one] * term.sign < 0
        and not opposites(term.idea) & rule.ideas.keys()
    }
    return against == {1, -1}


def is_transposed(rule: Wanted, said: Clause, matched: dict[str, Term]) -> bool:
    """Whether two of its words stand each in the place of the other: `the tutor reads and the student listens`."""
    told = sorted(matched, key=lambda one: matched[one].place)
    if len({matched[one].place for one in told}) < max(_FEWEST, len(told)):
        return False
    asked = [one for one in dict.fromkeys(term.idea for term in rule.whole.terms) if one in matched]
    moved = [at for at, (mine, its) in enumerate(zip(asked, told, strict=True)) if mine != its]
    if len(moved) != 2 or moved[1] - moved[0] < 2:
        return False
    first, second = asked[moved[0]], asked[moved[1]]
    between = asked[moved[0] : moved[1] + 1]
    if any(
        sum(term.idea == one for term in side.terms) > 1 for one in between for side in (rule.whole, said)
    ):
        return False
    is_doing = _is_done(rule.whole, first)
    return (
        is_doing == _is_done(rule.whole, second)
        and min(weight(first), weight(second)) >= 1
        and any(_is_done(rule.whole, one) != is_doing for one in asked[moved[0] + 1 : moved[1]])
        and not any(first in names and second in names for names in rule.lists)
        and rule.signs[first] == rule.signs[second]
        and _is_passive(rule.whole) == _is_passive(said)
        and not any(said.words[matched[one].place].endswith("ed") for one in asked[moved[0] + 1 : moved[1]])
    )


def _is_done(said: Clause, one: str) -> bool:
    """Whether it is something that one does, and no thing: `delay`, but not `the delay`."""
    at = next(term.place for term in said.terms if term.idea == one)
    is_named = at < len(said.words) and _NOUN.search(said.words[at]) is not None
    return is_deed(one) and not is_named and _DETERMINED.isdisjoint(said.words[max(0, at - 1) : at])


def _is_passive(said: Clause) -> bool:
    return _PASSIVE.search(said.text) is not None


def is_other_ones(rule: Wanted, said: Clause, matched: dict[str, Term]) -> bool:
    """Whether it says of one what the rule says of another: `the lead reads` for `helpers read, the lead edits`."""
    home: dict[str, set[int]] = {}
    for term in rule.whole.terms:
        some = home.setdefault(term.idea, set())
        some.add(term.segment)
        if not _is_done(rule.whole, term.idea) and _TAKEN_UP.search(_text_of(rule.whole, term.segment + 1)):
            some.add(term.segment + 1)  # `you just open them`
    if len(rule.whole.parts) < 2:
        return False
    for number in {term.segment for term in matched.values()}:
        here = {
            term.idea: term.place
            for term in reversed(said.terms)
            if term.segment == number and rule.ideas.get(term.idea, 0.0) >= _HEAVY
        }
        main = max(home.values(), key=lambda some: sum(home[one] == some for one in here))
        own = [place for one, place in here.items() if main & home[one]]
        strange = [place for one, place in here.items() if not main & home[one]]
        is_left = any(
            one not in here and not is_deed(one) and _is_subject(rule.whole, one)
            for one, some in home.items()
            if some & main
        )
        if is_left and own and strange and min(strange) < min(own):
            return True
    return False


def _text_of(said: Clause, number: int) -> str:
    return said.parts[number].text if number < len(said.parts) else ""


def is_crossed(rule: Wanted, matched: dict[str, Term]) -> bool:
    """Whether two parts each have what belongs to the other: `he decides, I prepare` for `I decide, he prepares`."""
    only_in: dict[str, int] = {}
    for term in rule.whole.terms:
        only_in[term.idea] = term.segment if only_in.get(term.idea, term.segment) == term.segment else -1
    placed = {one: term.segment for one, term in matched.items() if only_in[one] >= 0}
    strange: set[int] = set()
    for number in set(placed.values()):
        here = [one for one in placed if placed[one] == number]
        weights: dict[int, float] = {}
        for one in here:
            weights[only_in[one]] = weights.get(only_in[one], 0.0) + rule.ideas[one]
        if len(weights) == 2 and max(weights.values()) > min(weights.values()):
            strange.add(max(weights, key=lambda one: weights[one]))
    return len(strange) > 1


def is_same_for_other(rule: Wanted, said: Clause, terms: tuple[Term, ...]) -> bool:
    """Whether it says `the same` where the rule says `another`, or the other way round."""
    text = " ; ".join(said.parts[at].text for at in sorted({term.segment for term in terms}))
    if rule.whole.force == "demand" and _OWN.search(rule.whole.text) and not _SAME.search(rule.whole.text):
        return _SHARED.search(text) is not None and _OWN.search(text) is None
    for one, other in ((_SAME, _DIFFERENT), (_DIFFERENT, _SAME)):
        if one.search(rule.whole.text) and not other.search(rule.whole.text):
            return other.search(text) is not None and one.search(text) is None
    return False


def _is_subject(said: Clause, one: str) -> bool:
    term = next(term for term in said.terms if term.idea == one)
    return min(other.place for other in said.terms if other.segment == term.segment) == term.place


def is_demanded(rule: Wanted, said: Clause) -> bool:
    """Whether it demands what the rule only names to refuse it: `always imperial` for `never imperial`."""
    aside = {
        term.idea
        for term in rule.whole.terms
        if rule.whole.parts[term.segment].is_elliptic and rule.whole.parts[term.segment].sign < 0
    }
    aside -= {term.idea for term in rule.whole.terms if _is_where(rule.whole, term)}
    aside -= {term.idea for term in rule.whole.terms if not rule.whole.parts[term.segment].is_elliptic}
    return any(
        term.idea in aside
        and term.sign > 0
        and not term.marks
        and not term.is_condition
        and said.parts[term.segment].is_rule
        and rule.ideas[term.idea] >= _NAMED
        for term in said.terms
    )


def _is_where(said: Clause, term: Term) -> bool:
    """Whether it only says where what stands before it in its part holds: `not in miles in the reports`."""
    first = min(other.place for other in said.terms if other.segment == term.segment)
    return any(word in _WHERE for word in said.words[first + 1 : term.place])


def is_in_other_order(rule: Wanted, said: Clause) -> bool:
    """Whether it has second what the rule has first: `to the client first and then to the board`, or the other way."""
    asked, told = _sequence(rule.whole), _sequence(said)
    if asked is None or told is None:
        return False
    (first, second), (its_first, its_second) = asked, told
    return bool(first & its_second and second & its_first)


def _sequence(said: Clause) -> tuple[set[str], set[str]] | None:
    """What comes first and what then in it, where both words are used for that."""
    text = said.text
    then = _THEN.search(text)
    if then is None or _FIRST.search(text) is None or _OTHER_ORDER.search(text):
        return None
    cut = max((found.start() for found in _CUT.finditer(text, 0, then.end())), default=0)
    before, after = (
        {idea(word) for word in tokens(side) if not is_function(word)} for side in (text[:cut], text[cut:])
    )
    return (before - after, after - before) if before - after and after - before else None


def is_turned_round(rule: Wanted, said: Clause) -> bool:
    """Whether it goes the other way: `from oldest to newest` for `from newest to oldest`."""
    asked, told = _ways(rule.whole), _ways(said)
    return any(
        mine_from & its_to and mine_to & its_from and not mine_from & its_from and sign == its_sign
        for mine_from, mine_to, sign in asked
        for its_from, its_to, its_sign in told
    )


def _ways(said: Clause) -> list[tuple[set[str], set[str], int]]:
    """Each `from A to B` in it: what A is, what B is, and whether its part demands or refuses it."""
    found = []
    for number, part in enumerate(said.parts):
        here = [term for term in said.terms if term.segment == number]
        for way in _FROM_TO.finditer(part.text):
            ideas = [{idea(word) for word in side.split() if not is_function(word)} for side in way.groups()]
            first, second = (some & {term.idea for term in here} for some in ideas)
            if first - second and second - first:
                found.append((first - second, second - first, part.sign))
    return found
