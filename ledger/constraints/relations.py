"""Which relations a sentence sets between things: before, rather than, from and to, more than, by whom. Pure.

`Feed the cat, then the dog` and `the dog is fed after the cat` set the same one; `the dog is fed first` sets it the
other way round. Two sentences with the same words may differ in nothing else.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ledger.constraints.lexicon import idea, is_deed, is_function, weight
from ledger.constraints.parts import sign_of
from ledger.constraints.signals import tokens

_AGENT = frozenset("you your yours yourself agent agents assistant assistant's agent's bot".split())
_USER = frozenset("i me my mine myself i'd i'm user user's users".split())
_US = frozenset("we us our ours ourselves".split())
_AFTER_LETTER = frozenset(", and or for is are goes to".split())
_LEAST = 0.8
ANY = 0.3
"""The least weight of an idea that says anything."""

_ALIKE = 0.7
_SHORTEST = 5

_STATEMENT = re.compile(r"[;:.!?]+(?:\s|$)|\s-\s")
_TIME = re.compile(r"\b(before|until|after|once|followed by|precedes?)\b")
_WAITS = re.compile(
    r"\b(wait(s|ing)?|holds?|holding|held|pause[sd]?|delay(s|ed)?|defer(s|red)?|park(ed)?|suspend(ed)?)\b"
)
_ONLY = re.compile(r"\bonly\b")
_IF = re.compile(r"\b(?:if|when|where)\b ([^,]+)")
_GATE = re.compile(r"\b(without|unless)\b")
_NEEDS = re.compile(r"(?<!un)\b(?:needs?|requires?|waits? (?:for|on)|depends? on|hinges? on|is subject to)\b")
_IS_SUBJECT = re.compile(
    r"^(?:(?:i|we|you|they|he|she|agents?|the agent|the assistant) )?(?:must |do |will )*$"
)
_LATER = re.compile(
    r"(?:,? and |,? but |, |^)?\b(?:then|afterwards?|later(?: on)?|after (?:that|it|this)|subsequently|thereafter|next"
    r"|secondly|finally|(?:when|once|as soon as) (?:it|this|that|they|all|everything) (?:is|are|has|have|finish\w*)"
    r"(?: \w+)?)\b"
)
_EARLIER = re.compile(r"(?<!the )\bfirst\b(?! \w+ of)|\bto start with\b")
_BREAK = re.compile(r",? and (?=\w)|, (?:with )?|,? but |; ")
_INSTEAD = re.compile(
    r"\binstead_of\b|\b(?:in preference|preferabl[ey]|superior) to\b|(?:\band|\bbut|,) (?:not|never)\b(?! only)"
    r"|\bnor\b"
)
_ABOVE = re.compile(
    r"(?<!hand )(?<!take )(?<!turn )(?<!carry )(?<!go )\bover\b(?! to\b)|\babove\b|\bprefer\w* to\b"
    r"|\bcomes? (?:before|ahead of|above)\b|\b(?:takes?|gets?|has|have) (?:precedence|priority) over\b"
)
_BEHIND = re.compile(r"\b(?:comes?|goes?|is|are|ranks?) (?:after|behind|below|second to)\b")
_RATHER_THAN = re.compile(r"\b(?:rather|sooner|better|more) (?:\w+ )?(.+?) than (.+)")
_PREFER_TO = re.compile(r"\bprefer\w* (.+?) to (.+)")
_NOT_BUT = re.compile(r"\bnot (.+?),? but (?:rather )?(?!not\b)(.+)")
_FROM_TO = re.compile(r"\bfrom (.+?) (?:in|on)?to (.+)")
_TO_FROM = re.compile(r"\b(?:in|on)?to (.+?) from (.+)")
_INTO = re.compile(
    r"^(?:\w+ )??(?:translate|convert|turn|change|move|migrate|switch|transform|port|copy)\w* (.+?) "
    r"(?:in|on)?to (.+)"
)
_IS_INTO = re.compile(
    r"^(.+?) (?:must |is |are |be |to |gets? )+(?:translated|converted|turned|changed|transformed|ported) "
    r"(?:in)?to (.+)"
)
_MATTERS = re.compile(
    r"^(.+?) (?:matters?|counts?|weighs?|is|are) (more|less)(?: important| valuable| urgent)? than (.+)"
)
_ELSE = re.compile(r"\b(?:otherwise|else|failing that|if not)\b")
_OTHERWISE = re.compile(
    r"^(.+?), (?:and |or )?(?:otherwise |else |failing that )?(.+?)(?: otherwise| if not)?$"
)
_MORE = re.compile(r"^(.+?) (\w+er|more|less|fewer|worse)((?: \w+){0,4}?) than (.+)")
_LESSER = frozenset(
    "shorter smaller lower less fewer cheaper younger slower weaker earlier lighter narrower thinner sooner worse"
    " closer darker softer quieter colder cooler older".split()
)
_BESIDE = (
    (re.compile(r"\bin front of\b"), re.compile(r"\bbehind\b")),
    (re.compile(r"\b(?:above|on top of|over)\b"), re.compile(r"\b(?:below|beneath|underneath|under)\b")),
    (re.compile(r"\b(?:on|to) the left of\b"), re.compile(r"\b(?:on|to) the right of\b")),
)
_BE = frozenset("be is are been being get gets was were".split())
_DOES = frozenset("must may can should will do does never not to always only".split())
_PAIRED = re.compile(r"\s*(?:;|,|\b(?:and|while|whereas|but|that|which|who|then)\b|\s-\s|:|instead_of)\s*")


class Relation(NamedTuple):
    """One thing set in a relation to another."""

    kind: str
    """Which relation."""

    first: frozenset[str]
    """The ideas of the one."""

    second: frozenset[str]
    """The ideas of the other."""


@lru_cache(maxsize=8192)
def groups(text: str, *, is_loose: bool) -> tuple[frozenset[str], ...]:
    """The ideas of each piece of a sentence. `is_loose`: clauses are pieces too, and common nouns are left out."""
    pieces = (
        things(piece, with_amounts=True, least=ANY) for piece in (_PAIRED if is_loose else _APART).split(text)
    )
    kept = (frozenset(one for one in some if not is_loose or _is_telling(one)) for some in pieces)
    return tuple(some for some in kept if some)


def _is_telling(one: str) -> bool:
    return one[0] in "@#" or weight(one) >= _LEAST or is_deed(one)


@lru_cache(maxsize=8192)
def relations(text: str, *, least: float = _LEAST) -> tuple[Relation, ...]:
    """Those that a sentence sets."""
    found: list[Relation] = []
    for statement in _STATEMENT.split(text):
        statement = statement.strip()
        if statement:
            for kind, read in _READERS.items():
                for first, second in read(statement):
                    one = things(first, with_amounts=True, least=least)
                    other = things(second, with_amounts=True, least=least)
                    is_whole = bool(one - other and other - one)
                    if is_whole or (kind == "order" and one != other):
                        found.append(Relation(kind, one - other, other - one))
    found.extend(_across(text))
    return tuple(found)


def _across(text: str) -> Iterable[Relation]:
    """`A first; then B`."""
    some = [one.strip() for one in _STATEMENT.split(text) if one.strip()]
    for before, after in pairwise(some):
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
    only = _ONLY.search(text)
    case = _IF.search(text, only.end()) if only is not None else None
    if case is not None:
        yield case[1], text[: case.start()]
    for gate in _GATE.finditer(text):
        left, right = text[: gate.start()], text[gate.end() :].partition(",")[0]
        if things(left) and sign_of(left)[0] < 0:
            yield right, left
    for need in _NEEDS.finditer(text):
        left, right = text[: need.start()], text[need.end() :]
        if (
            not marks
            and things(left, with_amounts=True)
            and not _IS_SUBJECT.match(left)
            and "unneeded" not in text
        ):
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


def _instead(text: str) -> Iterable[tuple[str, str]]:
    """What instead of what."""
    for mark in _INSTEAD.finditer(text):
        one, other = _around(text, mark)
        yield _as_meant(one, one, other)
    for found in _NOT_BUT.finditer(text):
        yield found[2], found[1]


def _as_meant(before: str, one: str, other: str) -> tuple[str, str]:
    """What is to be rather than what: `not A rather than B` is for B."""
    return (other, one) if sign_of(before)[0] < 0 else (one, other)


def _around(text: str, mark: re.Match[str]) -> tuple[str, str]:
    left, right = text[: mark.start()].strip(" ,"), text[mark.end() :].strip(" ,")
    if not things(left) and mark[0] == "instead_of":
        right, _, left = right.partition(",")
    last = left.rpartition(",")[2]
    return last if things(last) else left, right.partition(",")[0]


def _choices(text: str) -> Iterable[tuple[str, str]]:
    """What rather than what."""
    yield from _instead(text)
    for mark in _ABOVE.finditer(text):
        yield _as_meant(text[: mark.start()], *_around(text, mark))
    for mark in _BEHIND.finditer(text):
        yield text[mark.end() :].partition(",")[0], text[: mark.start()]
    for pattern in (_RATHER_THAN, _PREFER_TO):
        for found in pattern.finditer(text):
            yield _as_meant(text[: found.start(1)], found[1], found[2].partition(",")[0])
    for found in _MATTERS.finditer(text):
        one, other = found[1], found[3].partition(",")[0]
        yield (one, other) if found[2] == "more" else (other, one)
    if _ELSE.search(text):
        for found in _OTHERWISE.finditer(text):
            yield found[1], found[2]


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


def _compared(text: str) -> Iterable[tuple[str, str]]:
    """What must be more than what."""
    for found in _MORE.finditer(text):
        one, other = found[1] + found[3], found[4]
        yield (other, one) if found[2] in _LESSER else (one, other)


def _beside(text: str) -> Iterable[tuple[str, str]]:
    """What stands before, above or left of what."""
    for one, other in _BESIDE:
        for mark in one.finditer(text):
            yield text[: mark.start()], text[mark.end() :].partition(",")[0]
        for mark in other.finditer(text):
            yield text[mark.end() :].partition(",")[0], text[: mark.start()]


def doings(text: str) -> Iterable[tuple[str, str, str]]:
    """What is done, by whom, to whom or what: `a guest is led by a porter`, `a porter leads a guest`."""
    for statement in _STATEMENT.split(text):
        subject = "you"
        for piece in _CLAUSE.split(statement):
            words = piece.split()
            doer = subject
            for at, word in enumerate(words):
                bare = word.strip(",")
                deed = idea(bare)
                last = words[at - 1] if at else ""
                is_passive = last in _BE or (at > 1 and words[at - 2] in _BE and last not in _DOES)
                is_done = is_deed(deed) or (is_passive and bare.endswith(("ed", "en")))
                if not is_done or is_function(bare):
                    continue
                before, after = " ".join(words[:at]), " ".join(words[at + 1 :])
                if is_passive:
                    if " by " in f" {after}":
                        by = after.partition("by ")[2]
                        yield deed, by, before
                elif at and (last in _DOES or (bare.endswith("s") and not bare.endswith("ss"))):
                    subject = before if things(before, least=ANY) else subject
                    yield deed, subject, after
                elif not things(before, least=ANY):
                    yield deed, doer, after


_APART = re.compile(r"\s*(?:;|,|\b(?:and|while|whereas|but)\b|\s-\s|:)\s*")
_CLAUSE = re.compile(r"\b(?:before|until|after|once|unless|without|if|when|while|and|but|that|which)\b|,")


_READERS: dict[str, Callable[[str], Iterable[tuple[str, str]]]] = {
    "order": _orders,
    "choice": _choices,
    "instead": _instead,
    "way": _ways,
    "more": _compared,
    "place": _beside,
}


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
    return frozenset(one for one in some if one in others or any(is_form(one, other) for other in others))


def is_form(one: str, other: str) -> bool:
    """Whether two words are forms of one: one of them is the beginning of the other, but for an ending."""
    if len(one) < _SHORTEST or one[:_SHORTEST] != other[:_SHORTEST]:
        return False
    common = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return common >= _ALIKE * max(len(one), len(other))
