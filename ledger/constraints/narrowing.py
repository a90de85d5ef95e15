"""Whether a sentence says a rule for fewer cases than the rule itself: a part of a list, a place, a time. Pure."""

import re

from ledger.constraints.clauses import Clause, Term
from ledger.constraints.lexicon import covers, idea, is_deed, is_function, is_verb, near, opposites, weight
from ledger.constraints.parts import Part
from ledger.constraints.quantities import is_same
from ledger.constraints.signals import is_finite, is_sparing, orders, tokens
from ledger.constraints.wanted import Wanted

NARROWING = frozenset(
    "for in on outside during about of at while when if regarding concerning inside with without abroad to by"
    " from".split()
)
"""Words after which a rule says where or when it holds."""

DAYS = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(this|next|the current|the first) (week|month|task"
    r"|time|session|day"
    r"|reply|message|file|step|phase|sprint|run)\b|\b(today|tonight|for now|abroad|weekends?|temporarily)\b"
)
"""Times that end."""

_ONLY_SOME = re.compile(
    r"\bonly (?:the |an? |some |for the )*(first|last|next|one|some|few|newest|latest|largest|biggest|major|main)\b"
)
_OF_SOME = re.compile(
    r"\b(?:for|of|from|by|with) (?:the |our |all |any )*"
    r"(new|old|existing|former|young|first-time|regular|large|small|big|major)"
    r" \w+(?=$|[.,;:]| (?:must|may|can|should|is|are|be|to|by|in|on|at|only)\b)"
    r"|\b(new|existing|former|young|first-time|regular)"
    r" (?:patient|customer|client|user|student|employee|member|supplier|tenant|guest)s?\b(?!')"
)
"""Which of those that a rule speaks of, in words that say little by themselves."""
_ANYTHING = re.compile(r"\b(anything|anyone|anybody|nothing|nobody|everything|everyone)\b")
_ALL = re.compile(r"\b(?:all|every|any|each) (\w+)")
HARMLESS = frozenset(
    idea(word)
    for word in (
        "person agent user response reply task new exact full single current entire necessary direct written tool"
        " output work time step option number appropriate relevant specific respective actual corresponding item"
        " content sentence phrase form format unit name sure strict clear applicable whole whatever regular"
        " answer proper written explicit approved way project order purpose use"
        " advance write end start beginning next action system text statement thing occur place able size amount length"
        " topic subject kind sort type group"
        " value git command"
        " everywhere anywhere somewhere other others another else enough straight hand anyway together"
        " whoever whichever"
        " exception ever always constantly consistently invariably throughout stay remain obtain belong contain lie"
        " member level word mode given particular individual intent context volume key-context own self"
        " role mind remit arrival lifetime lifespan qualify explicit clear proper real"
        " bot due language version fit apiece interval frequency additional extra further"
        " style tone design scope focus approach method wording layout convention alone sole exist everywhere"
        " immediate itself themselves"
        " plain ordinary come assume presume suppose switch turn punctuation typography"
        " happen involve concern relate carry hold consist form like way manner order matter fact point part piece"
    ).split()
)
"""What a sentence may name beyond a rule without saying it for fewer cases."""


_HEADS = frozenset(
    idea(word)
    for word in (
        "character code post english symbol syntax markup entry label message process bit stuff brand firm company"
    ).split()
)
"""Words that add nothing where they follow what a rule names: `tab characters`, `blog posts`."""

_DONE = frozenset(idea(word) for word in "make do take have get happen occur perform conduct".split())
_APPROVAL = idea("approval")
_MONEY = frozenset(idea(word) for word in "cost spend value worth amount total sum".split())
_MEASURES = {
    **dict.fromkeys(("#usd", "#eur", "#gbp", "#chf"), _MONEY),
    "#time": frozenset(idea(word) for word in "last take length duration long time run".split()),
    "#month": frozenset(idea(word) for word in "last take length duration long time".split()),
    "#size": frozenset(idea(word) for word in "size weigh large".split()),
    "#n": frozenset(idea(word) for word in "brief short large length rate".split()),
    "#metre": frozenset(idea(word) for word in "length height distance altitude far".split()),
}
"""Words that only say what an amount measures."""

_GATES = frozenset("unless until before once without".split())
_LISTED = (("or",), ("and",), ("nor",))
_SHORTEST = 4
_OF_ME = re.compile(r"\b(me|my|mine|i|we|us|our|ours)\b")
_SPEAKERS = frozenset(
    idea(word) for word in "user traveller caller owner boss principal client customer patient author".split()
)


def is_narrower(
    rule: Wanted, said: Clause, terms: tuple[Term, ...], matched: dict[str, Term], missing: int
) -> bool:
    """Whether it does. `terms`: those of the part of the sentence that says it; `matched`: what stands for which idea
    of the rule; `missing`: so many of its ideas are not said, and what is said beyond it may stand for them.
    """
    for names in rule.lists:
        told = {term.idea for term in terms}
        there = [name for name in names if name in matched or covers(told, name)]
        if 0 < len(there) < len(names) and missing >= len(names) - len(there):
            return True
    is_excluding = "exclude" in rule.whole.text
    if not is_excluding and any(is_sparing(part.text) and _names(rule, said, part) for part in said.parts):
        return True
    text = " ".join(said.parts[at].text for at in sorted({term.segment for term in terms}))
    if (DAYS.search(text) is not None) and DAYS.search(rule.whole.text) is None:
        return True
    only = _ONLY_SOME.search(text)
    if only is not None and not rule.whole.is_only and only[1] not in rule.whole.text:
        return True
    some = _OF_SOME.search(text)
    if (
        some is not None
        and (some[1] or some[2]) not in rule.whole.text
        and idea(some[0].split()[-1]) in rule.ideas
    ):
        return True
    found = restricting(rule, said, terms, matched)
    for at in sorted(
        {term.segment for term in terms if term.is_condition and said.parts[term.segment].is_condition}
    ):
        own = [term for term in terms if term.segment == at and not is_function(term.idea)]
        known = {term.idea for term in terms if term.segment != at}
        if rule.conditions and all(
            term.idea in rule.ideas or term.idea in HARMLESS or term.idea in _DONE for term in own
        ):
            continue
        if own and not any(term in matched.values() and term.idea not in known for term in own):
            return True
    quantified = {idea(one[1]) for one in _ALL.finditer(rule.whole.text)}
    if any(one in rule.ideas and one not in matched for one in quantified):
        return bool(found) or any(_is_new_deed(rule, term, matched) for term in terms)
    return bool(found) and not (
        len(found) <= missing
        and all(_may_stand_for_it(rule, said, term, terms, matched, found) for term in terms)
    )


def _may_stand_for_it(
    rule: Wanted,
    said: Clause,
    term: Term,
    terms: tuple[Term, ...],
    matched: dict[str, Term],
    found: list[str],
) -> bool:
    """Whether a word that restricts may as well be another word for what of the rule is not said: it says neither of
    which, where or when, nor what the sentence is about.
    """
    if term.idea not in found:
        return True
    is_first = term.place == min(one.place for one in terms if one.segment == term.segment)
    after = said.words[term.place + 1 : term.place + 2]
    is_joined = after == ("of",) or any(one.place == term.place + 1 for one in matched.values())
    is_compared = said.words[term.place].endswith(("er", "est"))
    is_first = is_first and not orders(rule.whole.text)
    return not (is_first or is_joined or is_compared or _restricts(said, term))


def _is_new_deed(rule: Wanted, term: Term, matched: dict[str, Term]) -> bool:
    return (
        is_deed(term.idea)
        and term not in matched.values()
        and term.idea not in rule.ideas
        and weight(term.idea) >= 1
        and term.idea not in HARMLESS
    )


def restricting(rule: Wanted, said: Clause, terms: tuple[Term, ...], matched: dict[str, Term]) -> list[str]:
    """The words of a sentence that say of which, where or when, beyond the rule."""
    its = {term.idea for term in matched.values()}
    segments = {term.segment for term in matched.values()}
    is_general = _ANYTHING.search(rule.whole.text) is not None
    is_mine = _OF_ME.search(rule.whole.text) is not None
    found: list[str] = []
    for term in terms:
        places = {one.place for one in matched.values() if one.segment == term.segment}
        if (
            (term.value is None and (term.idea in its or term.idea in rule.ideas))
            or term.segment not in segments
            or term.idea in HARMLESS
            or (is_mine and term.idea in _SPEAKERS)
            or (term.value is not None and _is_amount_of(rule, term))
            or _is_other_matter(said, term, matched)
            or _is_giver(said, term)
            or any(term.idea in _MEASURES.get(name, ()) for name, _ in rule.amounts)
            or (term.idea in _HEADS and term.place - 1 in places)
            or opposites(term.idea) & rule.ideas.keys()
            or (term.value is None and weight(term.idea) < 1)
            or is_instead(rule, said, term)
            or _is_said_too(rule, said, term, places)
            or _is_near(rule, term, matched, is_modifying=term.place + 1 in places)
        ):
            continue
        is_modifier = (term.place + 1 in places and not _is_deed(said, term)) or _is_whole_of(
            said, term, places
        )
        is_object = is_general and _follows(said, term, places)
        if is_modifier or is_object or not is_deed(term.idea) or _restricts(said, term):
            found.append(term.idea)
    return found


def _is_said_too(rule: Wanted, said: Clause, term: Term, places: set[int]) -> bool:
    """Whether it stands beside what the rule says and takes nothing from it: one more of a list, the
    beginning of a word of the rule, or which of those that the rule refuses and names something else for.
    """
    words = said.words
    if len(term.idea) >= _SHORTEST and any(one.startswith(term.idea) for one in rule.ideas):
        return True
    if words[max(0, term.place - 2)].startswith("#percent") and words[term.place - 1] == "of":
        return True  # `2 percent of requests`: of what it is a share
    after, before = words[term.place + 1 : term.place + 2], words[max(0, term.place - 1) : term.place]
    is_general = _ANYTHING.search(rule.whole.text) is not None
    if not is_general and (
        (after in _LISTED and term.place + 2 in places) or (before in _LISTED and term.place - 2 in places)
    ):
        return True
    if after and idea(after[0]) in rule.any_of:
        return False  # `tax forms` for `any forms`
    is_object = term.place - 1 in places and is_deed(idea(words[term.place - 1])) and not term.is_condition
    if is_object and -1 in rule.signs.values() and _names_other(rule, said):
        return True
    is_of_thing = term.place + 1 in places and not is_deed(idea(after[0]))
    return term.sign < 0 and is_of_thing and not term.is_condition and _names_other(rule, said)


def _names_other(rule: Wanted, said: Clause) -> bool:
    """Whether it demands all that a rule demands beside what it refuses."""
    wanted_ones = {one for one, sign in rule.signs.items() if sign > 0 and weight(one) >= 1}
    return bool(wanted_ones) and wanted_ones <= {term.idea for term in said.terms if term.sign > 0}


def _is_giver(said: Clause, term: Term) -> bool:
    """Whether it says only whose approval it is: `the patient's written consent`, `unless the team lead approved`."""
    words = said.words
    for at in range(term.place, min(term.place + 3, len(words))):
        if words[at].endswith("'s"):
            return any(idea(word) == _APPROVAL for word in words[at + 1 : at + 3])
        if at + 1 < len(words) and idea(words[at + 1]) == _APPROVAL:
            return any(word in _GATES for word in words[max(0, term.place - 3) : term.place])
        if is_function(words[at]):
            return False
    return False


def _is_other_matter(said: Clause, term: Term, matched: dict[str, Term]) -> bool:
    """Whether it stands after `, and`, and nothing of the rule with it."""
    _, joined, rest = said.parts[term.segment].text.partition(" , and ")
    words = set(tokens(rest)) if joined else set()
    return said.words[term.place] in words and not any(
        said.words[one.place] in words for one in matched.values()
    )


def _names(rule: Wanted, said: Clause, part: Part) -> bool:
    """Whether it names something of the rule, and does not say of it what the rule says."""
    its = [term for term in said.terms if said.parts[term.segment] is part and term.idea in rule.ideas]
    is_told = all(term.sign == rule.signs[term.idea] for term in its) and 1 in rule.signs.values()
    return any(weight(term.idea) >= 1 for term in its) and not is_told


def _is_near(rule: Wanted, term: Term, matched: dict[str, Term], *, is_modifying: bool) -> bool:
    """Whether it may stand for an idea of the rule. `is_modifying`: `audit logs` are not all logs."""
    return any(
        one in rule.ideas
        and (
            not is_modifying
            or one not in matched
            or matched[one].idea != one
            or any(one in names for names in rule.lists)
        )
        for one in near(term.idea)
    )


def _is_amount_of(rule: Wanted, term: Term) -> bool:
    return any(name == term.idea and is_same(value, term.value or 0.0) for name, value in rule.amounts)


def is_instead(rule: Wanted, said: Clause, term: Term) -> bool:
    """Whether it stands in a part that says what to do instead, and the rule has none."""
    is_said = said.parts[term.segment].text.endswith(" instead")
    return is_said and " instead" not in rule.whole.text and len(set(rule.signs.values())) == 1


def _follows(said: Clause, term: Term, places: set[int]) -> bool:
    """Whether it is what is done something to: the next noun after what the rule says."""
    return any(at in places for at in range(max(0, term.place - 3), term.place))


def _is_whole_of(said: Clause, term: Term, places: set[int]) -> bool:
    """Whether it is a part of what the rule speaks of: `the first page of the report`."""
    if said.words[term.place + 1 : term.place + 2] != ("of",) or is_deed(term.idea):
        return False
    rest = range(term.place + 2, min(term.place + 5, len(said.words)))
    return any(
        at in places and all(is_function(said.words[one]) for one in range(rest[0], at)) for at in rest
    )


def _is_deed(said: Clause, term: Term) -> bool:
    """Whether the word is what is done and not what is meant: it begins the sentence, or follows `to`, `must`, `be`."""
    is_order = term.place == 0 and is_verb(said.words[0]) and not is_finite(said.parts[term.segment].text)
    return is_order or term.before in (
        "to",
        "must",
        "be",
        "not",
        "never",
        "you",
        "should",
        "always",
        "and",
        "nobody",
        "may",
        "can",
    )


def _restricts(said: Clause, term: Term) -> bool:
    """Whether it follows, over no more than two small words, a word that says where or when a rule holds."""
    for back in range(1, 4):
        at = term.place - back
        if at < 0:
            return False
        word = said.words[at]
        if word == "to" and is_deed(term.idea):
            return False
        if word in NARROWING:
            return said.words[at - 1] != "even" if at else True
        if not is_function(word) and idea(word) not in HARMLESS and weight(idea(word)) >= 1:
            return False
    return False
