"""Whether one word turns a rule: only and except, up and down, who gives an approval, what holds otherwise. Pure.

Each of these speaks against a rule by itself, and needs words of the sentence that say so: none of them concludes
anything from what a sentence leaves out.
"""

import re
from typing import NamedTuple

from ledger.constraints.clauses import Clause
from ledger.constraints.lexicon import idea, is_deed
from ledger.constraints.parts import sign_of
from ledger.constraints.relations import ANY, shared, things
from ledger.constraints.signals import tokens

_WORDS = r"((?:[\w'#=./@-]+ ?){1,6}?)"
_VERB = r"may|can|must|should|is|are|will|do|does|have|has|gets?|goes?|needs?|who|that|which"
_END = rf"(?=[,;:.]|$| (?:{_VERB})\b)"
_EXCEPT = re.compile(
    rf"\b(?:except(?:ing)?(?: for)?|excluding|save for|with the exception of|(?<=one )bar|(?<=body )bar) {_WORDS}{_END}"
)
_ALL_BUT = re.compile(rf"\b(?:every|all|any)\w*\b[^,;]{{0,40}}? but (?:not )?(?:for )?{_WORDS}{_END}")
_INCLUDING = re.compile(rf"\b(?:including|as well as|together with) {_WORDS}{_END}")
_INCLUDED = re.compile(r"((?:[\w'-]+ ){1,3})(?:included|inclusive)\b")
_EXCEPTED = re.compile(r"((?:[\w'-]+ ){1,4})(?:excepted|excluded|aside)\b")
_ONLY = re.compile(rf"\bonly (?:for |to |by |in |on |at |with |from |the |an? )*{_WORDS}{_END}")
_ONLY_LAST = re.compile(r"\b(?:by|for|to|in|on|at|with|from) ((?:[\w'-]+ ){1,3})only\b")
_ONLY_END = re.compile(r"((?:[\w'-]+ ){1,4})only(?=[.,;]|$)")
_THE_ONE = re.compile(
    r"((?:[\w'-]+ ){1,3})(?:is|are) the (?:one|ones|only|sole)(?: one| \w+)?s? (?:(?:in|on|at|for|to|with|by) )?"
    r"(?:who|which|that|when|where|whom|allowed|permitted|to)\b"
)
_GIVER = re.compile(
    r"\b(?:(\w+)'s (?:\w+ ){0,2}?(?:approval|confirmation|signature)"
    r"|(?:approval|confirmation|permission|consent) (?:of|from|by) ((?:the |our |your |an? )?\w+)(?!')"
    r"|(?:ask|asks|asking|consult|consults|consulting) ((?:the |our |your )?\w+))\b"
)
_SEEKER = re.compile(
    r"\b(\w+),? (?:first |must |should |will |may |then |always )*"
    r"(?:needs?|gets?|asks?|obtains?|seeks?|requests?|waits? for)(?! to be)\b"
)
_APPROVAL = re.compile(r"\b(?:approv|permission|consent|confirm|authori[sz])")
_SAYS = r"(?:told|tells?|says?|said|asks?|asked|instruct\w*|request\w*)"
_BY_DEFAULT = re.compile(rf"\bunless\b.{{0,30}}\b(?:{_SAYS}|otherwise)\b")
_ON_REQUEST = re.compile(
    rf"\bonly (?:(?:if|when|where|once) .{{0,20}}?\b{_SAYS}\b|(?:on|upon|at) .{{0,20}}\brequest)"
)
_OTHERWISE = re.compile(
    r"(?:,|;|\band|\bbut) ([^,;]+?) otherwise\b|(?:^|[,;] |\bbut |\band )otherwise,? ([^,;]+)"
)
_TOLD_OTHERWISE = re.compile(rf"\b(?:{_SAYS}|stated?|states|specified|agreed|noted|unless) otherwise\b")
_EVEN = re.compile(r"\beven (?:if|when|though|where)\b([^,;]*)")
_IN_WHAT = re.compile(r"\b(?:in|to|with|by|on) (?:an? |the )?(\w+)\b")
_WHEN = re.compile(r"\b(if|when|whenever|while|unless) ([^,;:.]+)")
_NO = re.compile(r"\b(?:no|not|never|nobody|nothing|none|neither|without|cannot|unneeded)\b")
_STANDS = (
    r"([^,;:.]{1,80}?) (?:must |should |is |are |be |to )*(?:comes?|goes?|put|placed|listed|handled|left)"
)
_PUT = r"\b(?:put|puts|place|places|set|list|lists|state|give|show|name) ([^,;:.]{1,60}?)"
_AT_FIRST = (
    re.compile(rf"{_PUT} (?:first|at the (?:top|start|beginning|head))\b(?! \w+ of)"),
    re.compile(r"\b(?:start|starts|begin|begins|open|opens) with ([^,;:.]+)"),
    re.compile(rf"{_STANDS} first\b(?! \w)"),
)
_AT_LAST = (
    re.compile(rf"{_PUT} (?:last|at the (?:end|bottom|close))\b(?! \w+ of)"),
    re.compile(r"\b(?:ends?|finish(?:es)?|closes?) with ([^,;:.]+)"),
    re.compile(rf"{_STANDS} (?:(?:for |until )?last|(?:at|for) the end|at the bottom)\b"),
)
_DURING = re.compile(r"\b(?:while|during|when|whenever|as long as) ([^,;:.]+)")
_UNTIL = re.compile(r"\b(?:until|before|except while|except when|except during|unless) ([^,;:.]+)")
_TWO = (
    ("first", "last"),
    ("next", "previous"),
    ("more", "fewer"),
    ("more", "less"),
    ("inner", "outer"),
    ("front", "back"),
)
_ONE_OF_TWO = re.compile(r"\b(first|last|next|previous|more|fewer|less|inner|outer|front|back) (\w+)")
_PARTICLES = (
    ("up", "down"),
    ("in", "out"),
    ("on", "off"),
    ("above", "below"),
    ("over", "under"),
    ("top", "bottom"),
)
_REACH = 4


class Let(NamedTuple):
    """Something that a sentence names as the one thing for which it holds, or does not."""

    ideas: frozenset[str]
    """What it is."""

    is_allowed: bool
    """Whether it may be, or must; not: it may not."""


def is_turned_by_word(rule: Clause, said: Clause) -> bool:
    """Whether it does."""
    return (
        lets_other_out(rule, said)
        or is_for_other_to_approve(rule, said)
        or is_on_request(rule, said)
        or is_for_the_rest(rule, said)
        or is_said_of_even(rule, said)
        or goes_other_way(rule, said)
        or is_on_other_condition(rule, said)
        or is_at_other_end(rule, said)
        or is_other_of_two(rule, said)
        or is_until_for_while(rule, said)
    )


def lets_other_out(rule: Clause, said: Clause) -> bool:
    """Whether only that may which the rule excepts, or the other way round."""
    told = _lets(said)
    return any(
        mine.is_allowed != its.is_allowed and shared(mine.ideas, its.ideas)
        for mine in _lets(rule)
        for its in told
    )


def _lets(said: Clause) -> list[Let]:
    found = []
    for statement in re.split(r"[;:]", said.text):
        is_open = sign_of(statement)[0] > 0
        for pattern in (_INCLUDING, _INCLUDED):
            found += [Let(things(one[1], least=ANY), is_open) for one in pattern.finditer(statement)]
        for pattern in (_EXCEPT, _EXCEPTED, _ALL_BUT):
            found += [Let(things(one[1], least=ANY), not is_open) for one in pattern.finditer(statement)]
        for piece in statement.split(","):
            is_open = sign_of(piece)[0] > 0
            for pattern in (_ONLY, _ONLY_LAST, _ONLY_END, _THE_ONE):
                found += [Let(things(one[1], least=ANY), is_open) for one in pattern.finditer(piece)]
    return found


def is_for_other_to_approve(rule: Clause, said: Clause) -> bool:
    """Whether the agent approves, or he who must be asked must ask."""
    mine, its = _givers(rule), _givers(said)
    if "@agent" in its and "@agent" not in mine:
        return _APPROVAL.search(rule.text) is not None or bool(mine)
    if not mine or _APPROVAL.search(said.text) is None:
        return False
    seekers = frozenset[str]().union(*(things(one[1], least=ANY) for one in _SEEKER.finditer(said.text)))
    return bool(shared(mine, seekers)) and not shared(mine, its)


def _givers(said: Clause) -> frozenset[str]:
    return frozenset[str]().union(
        *(things(next(filter(None, one.groups())), least=ANY) for one in _GIVER.finditer(said.text))
    )


def is_on_request(rule: Clause, said: Clause) -> bool:
    """Whether it must be asked for what the rule makes the default, or the other way round."""
    is_same = sign_of(_main(rule.text))[0] == sign_of(_main(said.text))[0]
    return is_same and any(
        _BY_DEFAULT.search(mine.text) is not None and _ON_REQUEST.search(its.text) is not None
        for mine, its in ((rule, said), (said, rule))
    )


def _main(text: str) -> str:
    return re.sub(r"\bunless\b[^,;]*", "", text)


def is_for_the_rest(rule: Clause, said: Clause) -> bool:
    """Whether it leaves for all other cases what the rule demands in its own: `on when guests stay, off otherwise`."""
    if "otherwise" in rule.text or _TOLD_OTHERWISE.search(said.text):
        return False
    for rest in _OTHERWISE.finditer(said.text):
        there = things(rest[1] or rest[2], least=ANY)
        before = things(said.text[: rest.start()], least=ANY)
        if shared(there, things(rule.text, least=ANY) - before):
            return True
    return False


def is_said_of_even(rule: Clause, said: Clause) -> bool:
    """Whether it demands what the rule has only after `even if`: `answer in English` for `even if I write in it`."""
    for case in _EVEN.finditer(rule.text):
        main = rule.text.replace(case[0], " ")
        aside = {idea(one[1]) for one in _IN_WHAT.finditer(case[1])} - things(main, least=ANY)
        here = _EVEN.sub(" ", said.text)
        if aside & {idea(one[1]) for one in _IN_WHAT.finditer(here)} and sign_of(here)[0] == sign_of(main)[0]:
            return True
    return False


def is_on_other_condition(rule: Clause, said: Clause) -> bool:
    """Whether it demands the same when the rule's condition is not met: `if somebody` for `if nobody is home`."""
    for mine, is_refused, main in _conditions(rule.text):
        for its, is_its_refused, its_main in _conditions(said.text):
            there = things(mine) or things(mine, least=ANY)
            if not there or len(shared(there, things(its, least=ANY))) < len(there):
                continue
            if is_refused != is_its_refused and sign_of(main)[0] == sign_of(its_main)[0]:
                return True
    return False


def _conditions(text: str) -> list[tuple[str, bool, str]]:
    """Each condition in it, whether it is one that something is not so, and what it is a condition of."""
    return [
        (one[2], (_NO.search(one[2]) is not None) != (one[1] == "unless"), text.replace(one[0], " "))
        for one in _WHEN.finditer(text)
    ]


def is_until_for_while(rule: Clause, said: Clause) -> bool:
    """Whether it demands something up to that during which the rule demands it: `until the user is away`."""
    for mine in _DURING.finditer(rule.text):
        there = things(mine[1], least=ANY)
        for its in _UNTIL.finditer(said.text):
            if there and len(shared(there, things(its[1], least=ANY))) == len(there):
                return (
                    sign_of(rule.text.replace(mine[0], " "))[0] == sign_of(said.text.replace(its[0], " "))[0]
                )
    return False


def is_other_of_two(rule: Clause, said: Clause) -> bool:
    """Whether it says of the one of two what the rule says of the other: `the first person` for `the last person`."""
    mine, its = _ones(rule.text), _ones(said.text)
    return any(
        (other, head) in its and (one, head) not in its and (other, head) not in mine
        for one, head in mine
        for pair in _TWO
        if one in pair
        for other in pair
        if other != one
    )


def _ones(text: str) -> set[tuple[str, str]]:
    return {(one[1], idea(one[2])) for one in _ONE_OF_TWO.finditer(text)}


def is_at_other_end(rule: Clause, said: Clause) -> bool:
    """Whether it puts last what the rule puts first."""
    mine, its = _ends(rule.text), _ends(said.text)
    return any(
        is_first != its_first
        and shared(some, others)
        and not any(shared(some, more) for more, end in its if end == is_first)
        for some, is_first in mine
        for others, its_first in its
    )


def _ends(text: str) -> list[tuple[frozenset[str], bool]]:
    """What it puts first, and what last."""
    return [
        (things(one[1], least=ANY), is_first)
        for patterns, is_first in ((_AT_FIRST, True), (_AT_LAST, False))
        for pattern in patterns
        for one in pattern.finditer(text)
    ]


def goes_other_way(rule: Clause, said: Clause) -> bool:
    """Whether it does something up that the rule does down."""
    mine, its = _directions(rule), _directions(said)
    return any(
        (verb, other) in its and (verb, one) not in its
        for verb, one in mine
        for pair in _PARTICLES
        if one in pair
        for other in pair
        if other != one and (verb, other) not in mine
    )


def _directions(said: Clause) -> set[tuple[str, str]]:
    """Each of its deeds with the small word that says which way."""
    found = set()
    for part in said.parts:
        words = tokens(part.text)
        for at, word in enumerate(words):
            if not any(word in pair for pair in _PARTICLES):
                continue
            for back in range(at - 1, max(-1, at - 1 - _REACH), -1):
                if is_deed(idea(words[back])):
                    found.add((idea(words[back]), word))
                    break
    return found
