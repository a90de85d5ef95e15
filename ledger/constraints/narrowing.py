"""Whether a sentence says a rule for fewer cases than the rule itself: a part of a list, a place, a time. Pure."""

import re

from ledger.constraints.clauses import Clause, Term
from ledger.constraints.lexicon import OPPOSITE, is_function, stem
from ledger.constraints.wanted import Wanted

NARROWING = frozenset(
    "for in on during about of to at while when if regarding concerning inside with abroad".split()
)
"""Words after which a rule says where or when it holds."""

DAYS = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(this|next|the current|the first) (week|month|task"
    r"|time|session|day"
    r"|reply|message|file|step|phase|sprint|run)\b|\b(today|tonight|for now|abroad|weekends?|temporarily)\b"
)
"""Times that end."""

_ANYTHING = re.compile(r"\b(anything|anyone|anybody|nothing|nobody|everything|everyone)\b")
_HARMLESS = frozenset(
    "person agent user final response reply task new exact full single current entire necessary direct written tool"
    " output work time step option number appropriate relevant specific respective actual corresponding item content"
    " sentence phrase form format unit name sure strict clear applicable original whole whatever regular"
    " answer proper"
    " advance write end start beginning next action system text statement thing occur place able".split()
)


def is_narrower(rule: Wanted, said: Clause, matched: dict[str, Term]) -> bool:
    """Whether it does; `matched`: what in the sentence stands for which idea of the rule."""
    for names in rule.lists:
        there = [name for name in names if name in matched]
        is_all = rule.whole.has_contrast or any(term.idea == "action" for term in said.terms)
        if there and len(there) < len(names) and not is_all:
            return True
    if (DAYS.search(said.text) is not None) and DAYS.search(rule.whole.text) is None:
        return True
    is_general = _ANYTHING.search(rule.whole.text) is not None
    its = {term.idea for term in matched.values()}
    segments = {term.segment for term in matched.values()}
    places = {term.place for term in matched.values()}
    for term in said.terms:
        if (
            term.idea in its
            or term.segment not in segments
            or term.idea in _HARMLESS
            or _is_number(term.idea)
        ):
            continue
        if term.idea in rule.ideas or term.idea in OPPOSITE:
            continue
        is_modifier = term.place + 1 in places and term.before is not None and not _is_deed(said, term)
        is_object = is_general and term.place - 1 in places and said.words[term.place - 1] == term.before
        if is_modifier or is_object or _restricts(said, term):
            return True
    return False


def _is_deed(said: Clause, term: Term) -> bool:
    """Whether the word is what is done and not what is meant: it begins the sentence, or follows `to`,"
    " `must`, `be`.
    """
    return term.place == 0 or term.before in (
        "to",
        "must",
        "be",
        "not",
        "never",
        "shall",
        "you",
        "should",
        "always",
    )


def _restricts(said: Clause, term: Term) -> bool:
    """Whether it follows, over no more than two small words, a word that says where or when a rule holds."""
    for back in range(1, 4):
        at = term.place - back
        if at < 0:
            return False
        word = said.words[at]
        if word in NARROWING:
            return said.words[at - 1] != "even" if at else True
        if not is_function(word) and stem(word) not in _HARMLESS:
            return False
    return False


def _is_number(text: str) -> bool:
    return text.replace(".", "").isdigit()
