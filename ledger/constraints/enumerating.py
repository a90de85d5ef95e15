"""A sentence that enumerates rules, taken apart: `no jargon, tests before each commit and answers in German`. Pure.

Each rule of an enumeration stands by itself: neither its neighbours nor a condition of theirs say anything of it. What
only goes on the piece before it (`except on Fridays`, `if possible`) stays with that piece.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from ledger.constraints.lexicon import is_function, rephrased, single
from ledger.constraints.quantities import counted
from ledger.constraints.signals import has_exception, has_modal, is_finite, is_withdrawal, orders, tokens
from ledger.constraints.wording import LEAD

_FEWEST = 2
_SHORT = 3
_LONGEST = 700
_HIDDEN = re.compile(r"\([^()]*\)|\"[^\"]*\"")
_LED = re.compile(r"([^:;,.]{2,60}): (?=\S)")
_RULES = re.compile(
    r"\b(constraints?|rules?|polic(y|ies)|preferences?|requirements?|guidelines?|instructions?|in force|in mind|agreed"
    r"|valid|asked for|wants?|wishes|remember(ed)?|follow(ing|ed|s)?|appl(y|ies))\b"
)
_TURNED = re.compile(
    r"\b(not?|never|no longer|dropp?\w*|lift\w*|waiv\w*|withdr\w*|cancel\w*|optional|may|allowed|except|old|former"
    r"|suggest\w*|if|when|unless|before|after|until|ideally|previous(ly)?|obsolete|superseded|open|questions?|nice)\b"
)
_BREAK = re.compile(r"; |, and |,(?! not [\w-]+(?:[,;.]|$| and )) | and |\. ")
_TAKES_UP = re.compile(
    r"(all|none|everything|nothing|both|some|most|any) (of )?(this|these|that|those|them|it)\b"
    r"|(this|these|those|it|they)\b"
)
"""What speaks of all of them: nothing then stands by itself."""
_OF_THE_REST = re.compile(
    r"\b(others?|else|elsewhere|otherwise|the rest|such|exempt|not apply|different|the same|instead(?! of))\b"
)
"""What sets a piece against another."""
_TAKEN_UP = re.compile(r"\b(it|they|them|those|these|its|there|him|her)\b")
_GOES_ON = re.compile(
    r"(only |always |never |not |also |even |but |mostly |usually |especially |and )*"
    r"(if|when|whenever|under|unless|except\w*|but|for|in|on|at(?! (least|most) \S*[#\d])|by|with|within|without"
    r"|from|to|until|till|while|because|since|so|as|which|who|whom|whose|that|where|wherever|then|afterwards|later"
    r"|not|nor|or|even|including|especially|particularly|however|though|although|other|provided|before|after|once"
    r"|during|instead|rather|too|otherwise|regardless|no matter|no exceptions?|whatever|subject to|depending|apart"
    r"|aside|save|barring|excluding|outside|ideally|preferably|usually|most of|of|than|per|via|through|plus|like"
    r"|such|due|given|he|she|his|her|their|its|unneeded)\b"
)
"""What only goes on the piece before it."""
_STARTS = re.compile(
    r"(please |also )?(no|never|always|do not|must|nobody|nothing|avoid|(at )?(least|most) \S*[#\d])\b"
)
_RULING = re.compile(r"\b(instead_of|before|forbidden|mandatory|only|least|most|confidential|without)\b")
_LACKS = re.compile(r"without (any )?\w+")
_TIMES = re.compile(r"\b(on|at|during|when|if|while|until|unless)\b")
_DAY = re.compile(r"\b(\w+days?|today|tonight|now|week|month)\b")


class Members(NamedTuple):
    """The rules that a sentence enumerates."""

    texts: tuple[str, ...]
    """Each as a sentence of its own."""

    is_ruled: bool
    """Whether the words before them say that they are rules."""


@lru_cache(maxsize=4096)
def members(told: str, *, is_ruled: bool = False) -> Members:
    """The rules that a normalised sentence enumerates; none: it is one rule, or they do not stand by themselves."""
    none = Members((), is_ruled)
    if (
        len(told) > _LONGEST
        or ("," not in told and ";" not in told and " and " not in told)
        or is_withdrawal(told)
    ):
        return none
    lead, body = "", told
    if (led := _LED.match(_HIDDEN.sub(_blank, told))) is not None:
        lead, body = " ".join(_HIDDEN.sub(" ", told[: led.end() - 2]).split()), told[led.end() :]
        if LEAD.fullmatch(lead):
            lead += ": "
        elif _TURNED.search(lead):
            return none
        elif _RULES.search(lead):
            lead, is_ruled = "", True
        else:
            lead += ": "
    pieces = _pieces(body.rstrip(".!; "), is_ruled=is_ruled)
    return Members(tuple(f"{lead}{piece}" for piece in pieces), is_ruled) if len(pieces) > 1 else none


def _blank(found: re.Match[str]) -> str:
    return "_" * len(found[0])


def _pieces(body: str, *, is_ruled: bool) -> list[str]:
    """The body cut where another rule begins."""
    masked = _HIDDEN.sub(_blank, body)
    if _OF_THE_REST.search(masked):
        return []
    found: list[str] = []
    start, mark = 0, ""
    has_list = False
    breaks = [(one.start(), one.end(), one[0]) for one in _BREAK.finditer(masked)]
    for end, after, its in [*breaks, (len(body), len(body), "")]:
        piece = body[start:end].strip()
        if _TAKES_UP.match(piece):
            return []
        is_joined = mark == " and "
        if not found:
            found.append(piece)
        elif (is_joined and _is_next(found[-1], piece, is_ruled=is_ruled, has_list=has_list)) or (
            not is_joined and _stands(piece, is_ruled=is_ruled) and _stands(found[-1], is_ruled=is_ruled)
        ):
            found.append(piece)
            has_list = has_list or not is_joined
        else:
            found[-1] = f"{found[-1]}{mark}{piece}"
        start, mark = after, its
    return found


def _is_next(before: str, piece: str, *, is_ruled: bool, has_list: bool) -> bool:
    """Whether a piece after `and` begins another rule."""
    if not _stands(before, is_ruled=is_ruled) or not _stands(piece, is_ruled=is_ruled):
        return False
    if _STARTS.match(_plain(piece)):
        return True
    if not is_ruled or (_TIMES.search(piece) is not None and not _has_own(piece)):
        return False
    return has_list or (_has_own(piece) and len(before.split()) >= _FEWEST)


@lru_cache(maxsize=4096)
def _plain(piece: str) -> str:
    return " ".join(rephrased(counted(single(piece))).split())


def _has_own(piece: str) -> bool:
    """Whether words of it order, forbid or limit."""
    plain = _plain(piece)
    return (
        _STARTS.match(plain) is not None
        or _RULING.search(plain) is not None
        or is_finite(plain)
        or has_modal(plain)
        or orders(plain)
    )


def _stands(piece: str, *, is_ruled: bool) -> bool:
    """Whether a piece is a rule by itself."""
    if is_ruled and _LACKS.fullmatch(_plain(piece)):
        return True
    if _GOES_ON.match(piece) or (_GOES_ON.match(_plain(piece)) and not _STARTS.match(_plain(piece))):
        return False
    count = len(piece.split())
    if _TAKEN_UP.search(piece) or all(word == "," or is_function(word) for word in tokens(piece)):
        return False
    if (has_exception(piece) or _DAY.search(piece)) and count <= _SHORT:
        return False
    if count < _FEWEST and "-free" not in piece:
        return False
    return _has_own(piece) or is_ruled
