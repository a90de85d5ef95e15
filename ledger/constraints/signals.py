"""By what a sentence, or a part of one, is known: that it orders, tells what was, is soft, lets something out. Pure."""

import re

from ledger.constraints.lexicon import SIGNS, is_function, is_past_form, is_verb


def _words(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b({SIGNS[name]})\b")


_SOFT = _words("soft")
_EXCEPTION = _words("exception")
_ORDER = _words("order")
_BINDING = _words("binding")
_MODAL = _words("modal")
_WITHDRAWN = re.compile(SIGNS["withdrawn"])
_PERMIT = re.compile(SIGNS["permit"])
_REPORTED = re.compile(SIGNS["reported"])
_PAST = re.compile(SIGNS["past"])
_PAST_FIRST = re.compile(SIGNS["past_first"])
_MAIN_NO = re.compile(rf"^({SIGNS['main_no']})$")
_CONDITION = re.compile(rf"^({SIGNS['condition']})\b")
_MILD = re.compile(r"\b(should|ought to)\b")
_AVOID = re.compile(r"\bavoid(ing)?\b")
_STRICT = re.compile(
    r"\b(must|never|strictly|forbidden|prohibited|mandatory|under no circumstances|requires?|required)\b"
)
_RELEASE = re.compile(r"\bunneeded\b|\bskip\b")
_ONLY = re.compile(r"\b(only|nothing but)\b")
_GATE = re.compile(
    r"\b(before|without|until|unless|requires?|needs?|only (after|if|when|with)"
    r"|only [^.;,]{1,40}? (after|if|when|once))\b"
)
_SPARED = re.compile(
    r"\b(not|no longer|no such [\w ]{1,30}?|nothing of this) (be |is |are )?"
    r"(cover(ed)?|appl(y|ies|ied)|extends?|concern(ed|s)?|affect(ed|s)?|meant)\b"
    r"|\b(do|does|need|needs|are|is|must) not$"
    r"|\b(is|are|stays?|remains?) (exempt(ed)?|unaffected|excluded|excepted|free of (it|this|that))\b"
)
_TOLD_TO = re.compile(r"\b(?:tell|inform|warn|remind|notify) (?:[\w'-]+ ){1,4}?that\b[^,;]*")
"""What others are to be told permits nothing: `tell callers that calls may be recorded`."""
_NOT_YET = re.compile(
    r"^(?:\w+: )?(?:please |you |nobody |the \w+ )*"
    r"(?:do not|must not|may not|cannot|should not|never(?! \w+ed\b)|must)\b"
    r"|\b(?:forbidden|not allowed|not permitted|not|never) to\b"
)
"""What is refused is no news: `do not share it yet`."""
_SO_FAR = re.compile(r"\b(so far|yet|already|yesterday|last (week|month|night|year|time|quarter))\b")
_BARE_NO = re.compile(
    r"^no (?!\w*(source|result|issue|error|problem|hit|evidence|record|data|further))"
    r"(?!.*\b(found|yet|were|was|located|provides?|has|have)\b)[\w' .-]{3,100}"
)
_UNDER_WAY = re.compile(
    r"^(i|we|it) |\b(is|are|am) (now |currently |still |just |also )?(?!going|missing|pending|during)\w{2,}ing\b"
    r"|\b(currently|still|so far|in progress|under way|remains? to be|to do|todo|next)\b"
)
_OF_ONE = re.compile(r"(the|this|that|my|his|her|our|their|\w+'s) ")
_FOR_GOOD = re.compile(
    r"\b(is|are|gets?) (\w+ly |always |then |also |first |not )?\w+(ed|en|wn|ne|[ghnpflc]t|ade|ld|id|ut)\b"
    r"|\b(goes?|comes?|stays?|remains?|happens?|takes? (place|over)|gets?|starts?|ends?|belongs?|follows?|avoids?"
    r"|contains?|includes?|carr(?:y|ies))\b|\b(is|are) (the|an?)\b|\b\w+s no\b"
)
_NONE = re.compile(r"(nothing|nobody|no) ")
_BEFORE = re.compile(r"[\w' -]{3,60}? before (?:an?|any|every|each|the|\w+ing)\b")
_SHORT = 4
_DONE_TO = frozenset("the a an her him it them his my our their this that these those".split())
_GETS = frozenset("get gets been being have has are was were".split())
_MAIN = re.compile(r"\b(must|never|do not|forbidden|may|should|cannot)\b")
_BOUND = re.compile(r"\b(must|never|always|most|least)\b")
_WHEN = re.compile(r"(if|when|unless|before|after|until|once)\b")
_FINITE = re.compile(
    r"\b(must|may|can|should|cannot|is|are|(?<![.\w-])go(?:es)?|needs?|requires?|belongs?|stays?|remains?|comes?|gets?"
    r"|forbidden|unneeded)\b"
)
_WHOLE = re.compile(
    r"\b(not?|never|nobody|nothing|none|only|most|least|excess|unneeded|instead_of|who|which)\b"
)
_NO_VERB = re.compile(r"(ing|ed|s|ly)$")
_TOKEN = re.compile(
    r"#[a-z]+=\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.?[a-z0-9/@$](?:[a-z0-9_./@$:%+'-]*[a-z0-9_/%+])?|[,]"
)
_ARTICLES = frozenset(
    "the a an your its his her their my our this that these those both all every each any".split()
)
_CLAUSE = re.compile(r"\b(?:that|which|who|whose|before|until|unless|after|once|if|when|while)\b")
_BEGINS = re.compile(
    r"(?:please |also |it is |you must |remember |make sure )*(?:never|always|mandatory|to|no|nothing|nobody|none)\b"
)
_STARTS = frozenset("the a an two three four five several some many".split())
_BEFORE_VERB = frozenset(
    "first then next finally just only simply please and to kindly always immediately also then i will".split()
)

AUXILIARY = frozenset("is are must may can should will cannot be shall".split())
"""Verbs that hold a sentence together."""

WHO = frozenset("that which who whose whom".split())
"""Words that begin a clause on what stands before them."""

IF = frozenset("if when where whenever wherever".split())
"""Words that begin a condition."""


def tokens(text: str) -> list[str]:
    """The words of a sentence, with commas."""
    return _TOKEN.findall(text)


def is_soft(text: str) -> bool:
    """Whether it may be outweighed."""
    return _SOFT.search(text) is not None or (_AVOID.search(text) is not None and not is_strict(text))


def is_mild(text: str) -> bool:
    """Whether it says `should`."""
    return _MILD.search(text) is not None


def is_strict(text: str) -> bool:
    """Whether it says `must`, `never` or the like."""
    return _STRICT.search(text) is not None


def has_exception(text: str) -> bool:
    """Whether it lets something out."""
    return _EXCEPTION.search(text) is not None


def is_sparing(text: str) -> bool:
    """Whether it says of something that it is not reached: `single files do not`, `it does not apply to drafts`."""
    return _SPARED.search(text) is not None


def is_only(text: str) -> bool:
    """Whether it says `only`."""
    return _ONLY.search(text) is not None


def is_gate(text: str) -> bool:
    """Whether it lets one thing happen only on a condition."""
    return _GATE.search(text) is not None


def is_withdrawal(text: str) -> bool:
    """Whether it says that a rule is no longer in force."""
    return _WITHDRAWN.search(text) is not None


def is_release(text: str) -> bool:
    """Whether it takes a demand back."""
    return _RELEASE.search(text) is not None


def is_reported(text: str) -> bool:
    """Whether it says what someone asked for."""
    return _REPORTED.search(text) is not None


def is_permit(text: str) -> bool:
    """Whether it permits, and does not only limit."""
    own = _TOLD_TO.sub(" ", text)
    return _PERMIT.search(own) is not None and not is_only(text) and _BOUND.search(text) is None


def is_negative(word: str) -> bool:
    """Whether a word refuses what its sentence is about."""
    return _MAIN_NO.match(word) is not None


def has_modal(text: str) -> bool:
    """Whether a verb lays something on somebody."""
    return _MODAL.search(text) is not None


def is_condition(text: str) -> bool:
    """Whether it says only when, or but for what."""
    is_main = _MAIN.search(text) is not None and _WHEN.match(text) is None
    return _CONDITION.match(text) is not None and not is_main


def begins_condition(text: str) -> bool:
    """Whether it begins like a condition."""
    return _CONDITION.match(text) is not None


def is_finite(text: str) -> bool:
    """Whether it has a verb of its own."""
    return _FINITE.search(text) is not None


def is_past(text: str) -> bool:
    """Whether it tells what was."""
    return (_PAST.search(text) is not None or _PAST_FIRST.match(text) is not None) and not has_modal(text)


def is_rule(text: str, *, is_ruled: bool, is_told: bool) -> bool:
    """Whether it orders, forbids or permits. `is_ruled`: it stands where only rules stand; `is_told`: its sentence says
    what someone asked for.
    """
    is_not_yet = _NOT_YET.search(text) is not None
    if _SO_FAR.search(text) and not is_not_yet:
        return False
    if _PAST.search(text) and not is_not_yet and not _BINDING.search(text) and not _is_order_on_past(text):
        return is_told and not _PAST_FIRST.match(text)
    if (_PAST_FIRST.match(text) or _tells(text)) and not has_modal(text) and not is_told:
        return False
    return bool(
        is_ruled
        or is_told
        or _ORDER.search(text)
        or _BARE_NO.match(text)
        or _PERMIT.search(text)
        or is_release(text)
        or is_soft(text)
        or orders(text)
    )


def is_statement(text: str) -> bool:
    """Whether it says how something is for good, and not what is going on: `replies are in Spanish`."""
    main = _CLAUSE.split(text)[0] or text
    if _UNDER_WAY.search(text) is not None or is_past(main) or _did(text):
        return False
    if _OF_ONE.match(text) is not None and _FOR_GOOD.search(main) is None and not _comes_first(text, main):
        return False  # `the customer speaks French`
    return is_finite(main) or not any(map(is_past_form, tokens(main)))


def _comes_first(text: str, main: str) -> bool:
    """Whether it only names what must come first: `the captain's approval before any landing`."""
    words = tokens(main)
    return _BEFORE.match(text) is not None and len(words) <= _SHORT and not any(map(is_past_form, words))


def _did(text: str) -> bool:
    """Whether it tells of something done to something: `an agent called her`."""
    words = tokens(text)
    return any(
        is_past_form(word)
        and words[at + 1] in _DONE_TO
        and AUXILIARY.isdisjoint(words[max(0, at - 3) : at])
        and _GETS.isdisjoint(words[max(0, at - 3) : at])
        for at, word in enumerate(words[:-1])
        if at
    )


def _is_order_on_past(text: str) -> bool:
    """Whether it orders, and only a clause in it tells what was: `never ... before the board has announced it`."""
    main = _CLAUSE.split(text)[0]
    is_order = bool(_BEGINS.match(main) or _NONE.match(main) or orders(main))
    return main != text and _PAST.search(main) is None and is_order


def _tells(text: str) -> bool:
    """Whether it tells what someone did: `the caller left his name`."""
    words = tokens(text)
    if not words or not (words[0] in _STARTS or words[0].startswith("#")):
        return False
    for word in words[2:5]:
        if word in AUXILIARY or word in WHO or word in ("get", "gets"):
            return False
        if is_past_form(word):
            return True
    return False


def orders(text: str) -> bool:
    """Whether it begins with a verb that orders; another word before an article is one too."""
    words = tokens(text)
    at = next((at for at, word in enumerate(words) if word not in _BEFORE_VERB), len(words))
    first = words[at] if at < len(words) else ""
    if is_verb(first):
        return True
    is_before = at <= 2 and words[at + 1 : at + 2] != [] and words[at + 1] in _ARTICLES
    return bool(first.isalpha() and is_before and not is_function(first) and not _NO_VERB.search(first))


def first_word(text: str) -> str:
    """The first word that says something."""
    return next((word for word in tokens(text) if word not in _BEFORE_VERB), "")


def is_fragment(text: str) -> bool:
    """Whether a piece says nothing by itself: a word of a list, a subject before its verb."""
    return not (
        orders(text)
        or is_finite(text)
        or has_modal(text)
        or begins_condition(text)
        or _WHOLE.search(text)
        or is_reported(text)
        or _PAST.search(text)
        or _PAST_FIRST.match(text)
    )
