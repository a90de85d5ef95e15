"""Whether a sentence sets the things of a rule in its relations the other way round. Pure.

Each of these speaks against a rule by itself, and needs words of the sentence that say so: none of them concludes
anything from what a sentence leaves out.
"""

import re
from collections.abc import Set

from ledger.constraints.clauses import Clause
from ledger.constraints.lexicon import is_deed, near, weight
from ledger.constraints.parts import sign_of
from ledger.constraints.relations import ANY, Relation, doings, groups, relations, shared, things
from ledger.constraints.wanted import Wanted

_LEAST = 0.8
_AGENT = frozenset(("@agent",))
_WHEN = re.compile(r"\b(?:if|when|whenever) [^,;:.]+")
_PIECE = re.compile(r"[;:,()]|\b(?:and|but)\b|\s-\s|(?=\binstead_of\b)|(?<=\w )(?=not? \w)")
_VIA = re.compile(r"\b(?:via|through|by way of) (.+)")
_STRAIGHT = re.compile(r"\b(?:direct|directly|straight|yourself|immediately)\b")
_LACKS = re.compile(r"\b(?:without|instead_of)\b")
_ORDERED = re.compile(r"\b(?:before|after|until|once|unless|if|when|whenever|except|or|nor)\b")
_WHO_ACTS = re.compile(
    r"(?:and |but )?(?:(i|(?:the )?user)|you|(?:the )?(?:assistant|agent))\b(?! (?:ask|want|sa[iy]|prefer))"
)
_RANKS = {"choice", "order"}
_PERSONS = frozenset(("@agent", "@user", "@us"))


def is_turned(rule: Clause, said: Clause) -> bool:
    """Whether a sentence sets things of a rule in the rule's relation the other way round, and never the rule's way."""
    theirs = relations(said.text)
    for mine in relations(rule.text):
        some = [its for its in theirs if its.kind == mine.kind or {its.kind, mine.kind} == _RANKS]
        if any(_is_crossed(mine, its) for its in some) and not any(_is_straight(mine, its) for its in some):
            return True
    return (
        is_repaired(rule, said)
        or is_done_by_other(rule, said)
        or is_done_to_other(rule, said)
        or is_left_to_other(rule, said)
    )


def is_passed_over(rule: Wanted, said: Clause) -> bool:
    """Whether something else is to be, instead of what the rule demands: `me, not the clerk`."""
    aside = {term.idea for term in rule.whole.terms if term.sign < 0 or term.marks or term.is_condition}
    own = frozenset(term.idea for term in rule.whole.terms if term.sign > 0) - aside
    own = own.difference(*(its.second for its in relations(rule.whole.text)))
    for kind, first, second in relations(said.text, least=ANY):
        if kind != "instead" or not second or (first and shared(first, own) == first):
            continue
        there = shared(own, second)
        if any(weight(one) >= _LEAST for one in there) or (there and shared(second, own) == second):
            return True
    return False


def is_set_alike(rule: Clause, said: Clause, *kinds: str) -> bool:
    """Whether it sets two things of a rule in such a relation as the rule does, and nothing the other way round."""
    theirs = [its for its in relations(said.text) if its.kind in kinds]
    mine = [one for one in relations(rule.text) if one.kind in kinds]
    is_straight = any(_is_straight(one, its) for one in mine for its in theirs if one.kind == its.kind)
    return is_straight and not is_turned(rule, said)


def is_set_apart(rule: Clause, said: Clause) -> bool:
    """Whether it demands what the rule demands and refuses what it refuses, each in a piece of its own:
    `no classes, functions throughout` for `functions instead of classes`.
    """
    if _goes_same_way(rule, said):
        return True
    asked, refused = _sides(rule)
    told, its_refused = _sides(said)
    things_refused = frozenset(one for one in refused if not is_deed(one))
    refused = things_refused or refused  # `commits go to a branch, main gets none`: the deed is in both
    return (
        bool(shared(asked, told) and shared(refused, its_refused))
        and not shared(asked, its_refused)
        and not shared(refused, told)
    )


def _goes_same_way(rule: Clause, said: Clause) -> bool:
    """Whether it goes by way of the one whom the rule names, and not straight: `via him` for `not directly`."""
    if _STRAIGHT.search(rule.text) is None or _STRAIGHT.search(said.text) is not None:
        return False
    told = [
        things(one[1])
        for piece in _PIECE.split(said.text)
        if sign_of(piece)[0] > 0
        for one in _VIA.finditer(piece)
    ]
    return any(
        shared(things(one[1]), its)
        for piece in _PIECE.split(rule.text)
        if sign_of(piece)[0] > 0
        for one in _VIA.finditer(piece)
        for its in told
    )


def _sides(said: Clause) -> tuple[frozenset[str], frozenset[str]]:
    """What its pieces demand, and what they refuse; what both do is left out."""
    demanded: set[str] = set()
    refused: set[str] = set()
    if _ORDERED.search(said.text) is None:
        for piece in _PIECE.split(said.text):
            front, *lacked = _LACKS.split(piece)
            sign = sign_of(front)[0]
            (demanded if sign > 0 else refused).update(things(front))
            for some in lacked:
                (refused if sign > 0 else demanded).update(things(some))
    return frozenset(demanded - refused), frozenset(refused - demanded)


def _is_crossed(mine: Relation, its: Relation) -> bool:
    crossed = bool(shared(mine.first, its.second)), bool(shared(mine.second, its.first))
    straight = bool(shared(mine.first, its.first)), bool(shared(mine.second, its.second))
    if all(crossed):
        return not all(straight)
    return any(crossed) and not any(straight) and mine.kind == its.kind == "order"


def _is_straight(mine: Relation, its: Relation) -> bool:
    return bool(shared(mine.first, its.first) and shared(mine.second, its.second))


def is_repaired(rule: Clause, said: Clause) -> bool:
    """Whether it puts together what the rule has apart: `green for losses, red for gains` for the other way round."""
    return any(
        _is_repaired(groups(rule.text, is_loose=is_loose), groups(said.text, is_loose=is_loose))
        for is_loose in (True, False)
    )


def _is_repaired(asked: tuple[frozenset[str], ...], told: tuple[frozenset[str], ...]) -> bool:
    if len(asked) < 2 or len(told) < 2:
        return False
    counts: dict[str, int] = {}
    for some in asked:
        for one in some:
            counts[one] = counts.get(one, 0) + 1
    home = {one: at for at, some in enumerate(asked) for one in some if counts[one] == 1}
    where = {one: place for one in home if (place := _place(one, told, counts.keys())) is not None}
    beside = {  # of each of them: with whose they stand in the sentence, though apart in the rule
        one: {home[other] for other, at in where.items() if at == place and home[other] != home[one]}
        for one, place in where.items()
    }
    return any(
        home[one] == home[other] and where[one] != where[other] and beside[one] & beside[other]
        for one in where
        for other in where
    )


def _place(one: str, told: tuple[frozenset[str], ...], known: Set[str]) -> int | None:
    """The piece in which it stands, or else another word for it. `known`: these each stand for themselves."""
    own = [at for at, some in enumerate(told) if one in some]
    alike = frozenset((one, *(near(one) - known)))
    places = own or [at for at, some in enumerate(told) if shared(alike, some)]
    return places[0] if len(places) == 1 else None


def is_done_by_other(rule: Clause, said: Clause) -> bool:
    """Whether who acts is acted on: `the user warns the agent` for `warn the user`."""
    told = [(deed, things(by, least=ANY), things(to, least=ANY)) for deed, by, to in doings(said.text)]
    for deed, by, to in doings(rule.text):
        doer, other = things(by, least=ANY), things(to, least=ANY)
        some = [(its - to_it, to_it - its) for name, its, to_it in told if name == deed]
        if any(shared(doer - other, its) for its, _ in some):
            continue
        for its, to_it in some:
            crossed = shared(doer - other, to_it), shared(other - doer, its)
            if all(crossed) and (not _PERSONS.isdisjoint(crossed[0] | crossed[1]) or "by" in rule.words):
                return True
    return False


def is_left_to_other(rule: Clause, said: Clause) -> bool:
    """Whether user and agent have changed their parts: `you call them, I do not` for `I call them; you must not`."""
    asked, told = _parts_played(rule), _parts_played(said)
    return len(asked) == len(told) == 2 and all(asked[who] != told[who] for who in asked)


def _parts_played(said: Clause) -> dict[str, int]:
    """The sign of what the user is to do, and the agent, where one of them must and the other must not."""
    found = {
        "user" if who[1] else "agent": part.sign
        for part in said.parts
        if not part.is_condition and (who := _WHO_ACTS.match(part.text))
    }
    return found if set(found.values()) == {1, -1} else {}


def is_done_to_other(rule: Clause, said: Clause) -> bool:
    """Whether what the rule's condition names is acted on: `believe the log` for `if the log differs, believe ...`."""
    aside, its_aside = _conditions(rule), _conditions(said)
    told = _objects(said) if aside and its_aside else {}
    return any(
        bool(shared(told[deed], aside) and shared(some, its_aside)) and not shared(some, told[deed])
        for deed, some in _objects(rule).items()
        if deed in told
    )


def _conditions(said: Clause) -> frozenset[str]:
    return frozenset[str]().union(*(things(one[0]) for one in _WHEN.finditer(said.text)))


def _objects(said: Clause) -> dict[str, frozenset[str]]:
    """What follows each of its deeds that it orders."""
    return {
        deed: next((some for word in to.split() if (some := things(word))), frozenset())
        for deed, by, to in doings(_WHEN.sub(" ", said.text))
        if things(by, least=ANY) == _AGENT
    }
