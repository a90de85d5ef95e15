"""A sentence cut into parts, each demanded or refused, or said only as a condition. Pure."""

import re
from typing import NamedTuple

from ledger.constraints.lexicon import SIGNS, is_verb
from ledger.constraints.signals import (
    AUXILIARY,
    IF,
    WHO,
    begins_condition,
    has_modal,
    is_condition,
    is_finite,
    is_fragment,
    is_negative,
    is_past,
    is_permit,
    is_rule,
    is_statement,
    orders,
    tokens,
)

_CUT = re.compile(f"({SIGNS['cut']})")
_AND = re.compile(
    r"\b(?:and|or) (?=(?:[\w'-]+ ){1,4}(?:must|may|can|should|are|is|cannot|has|have|go|expire\w*|need)\b)"
    r"|\band (?=(?:wants?|wanted|asks|asked|insists?|insisted|expects?|expected|requires?|requested|prefers?) )"
)
_AND_VERB = re.compile(r"\band (\w+)\b")
_ONE_MORE = re.compile(r"(the |a )?\w+s?\b$")
_LETS_OUT = re.compile(r"(except|unless|without|until)\b")
_OF_WHOM = re.compile(r"(who|which)\b")
_BEFORE_NO = frozenset("with has have had contain contains says is assume assumes assuming".split())
_ALWAYS_MAIN = frozenset("forbidden prohibited refused banned".split())
_IN_CLAUSE = frozenset("not never nothing none cannot".split())
_RELEASES = frozenset(("unneeded", "skip"))
_EMPHATIC = frozenset("never not nothing nobody none neither nor avoid careful mindful refrain".split())
_AVOIDS = frozenset("never avoid avoids avoiding refrain refrains skip".split())
_REFUSING = frozenset("not never nobody unneeded forbidden prohibited".split())
_AFTER_STATE = frozenset("until till and or to for from , unless at in".split())
_FEWEST_BEFORE_AND = 25
_FEWEST = 3
_ONLY_WHEN = re.compile(
    r"(?:on|at|in|during|for|within) [\w' -]{2,40} only|only (?:on|at|in|during|for|within) [\w' -]{2,40}"
)
_OPENS = IF | {"unless"}
_INSTEAD_WHEN = re.compile(r"(\binstead_of [^;:,]{1,60}?) (?=(?:when|if|whenever|where)\b)")
_IN_LABEL = (
    r"(?!(?:no|not|never|only|nothing|nobody|must|if|when|is|are|first|instructions?|rules?|requests?|policy|preferences?"
    r"|note|reminder)\b)[\w'/.-]+"
)
_LABEL = re.compile(rf"{_IN_LABEL}(?: {_IN_LABEL}){{0,3}}")
_NO_OTHER = re.compile(r"(?:no|not|never) [\w'-]+(?: [\w'-]+)?")
_ASIDE = re.compile(r"(?:not|nor) (?:(?:the|a|an|in|by|to|with|from|on|at|of|for|any|your|our) )*[\w'-]+")


class Part(NamedTuple):
    """A part of a sentence."""

    text: str
    """Its words."""

    sign: int
    """1: demanded, -1: refused."""

    is_rule: bool
    """Whether it orders, forbids or permits, and does not tell what was."""

    is_condition: bool
    """Whether it says when."""

    is_permit: bool
    """Whether it permits."""

    is_placed: bool
    """Whether only the place where it stands, or that it is told like one, makes a rule of it."""

    is_stated: bool
    """Whether it only says how something is, and does not stand where rules stand."""

    is_elliptic: bool
    """Whether it goes on the part before it: `in economy, never in business class`."""


def parts_of(plain: str, *, is_ruled: bool, is_told: bool, is_question: bool) -> list[Part]:
    """Cut a sentence. `is_ruled`: it stands where only rules stand; `is_told`: it says what was asked for."""
    found: list[Part] = []
    texts = _texts(plain)
    for number, text in enumerate(texts):
        sign, has_own = sign_of(text)
        is_elliptic = number > 0 and has_own and _is_elliptic(text)
        is_ruling = not is_question and (
            is_rule(text, is_ruled=is_ruled or is_statement(text), is_told=is_told)
            or (number > 0 and found[-1].is_rule and not is_past(text))
        )
        is_when = len(texts) > 1 and (is_condition(text) or _OF_WHOM.match(text) is not None)
        if text.startswith("instead_of"):
            sign, is_elliptic, text = -1, True, text.removeprefix("instead_of").strip()
        is_placed = is_ruling and not is_rule(text, is_ruled=False, is_told=is_told)
        is_leave = sign > 0 and is_permit(text)
        is_stated = is_placed and not is_ruled
        found.append(Part(text, sign, is_ruling, is_when, is_leave, is_placed, is_stated, is_elliptic))
    for number, part in enumerate(found[1:]):
        if part.is_elliptic and part.is_rule and not is_question and not is_past(found[number].text):
            found[number] = found[number]._replace(is_rule=True)
    _give_signs(found)
    if not is_question and any(_LETS_OUT.match(part.text) for part in found):
        found = [part._replace(is_rule=part.is_rule or not is_past(part.text)) for part in found]
    return found


def _give_signs(found: list[Part]) -> None:
    """A condition has the sign of what it is a condition of."""
    has_main = any(not part.is_condition for part in found)
    for number, part in enumerate(found):
        if part.is_condition:
            near = [one.sign for one in [*reversed(found[:number]), *found[number:]] if not one.is_condition]
            found[number] = part._replace(sign=near[0] if near else 1, is_rule=has_main or part.is_rule)


def _texts(plain: str) -> list[str]:
    """A sentence cut where another order or a condition begins; pieces of lists stay together."""
    plain = _INSTEAD_WHEN.sub(r"\1; ", plain)
    pieces = _CUT.split(_AND.sub(_cut_and, plain).strip())
    found: list[str] = []
    is_open = False  # the part before waits for what it is about
    aside: str | None = None  # `the landlord, not the tenant, pays`
    for number, piece in enumerate(pieces):
        text = piece.strip(" ,;:-.!?")
        if number % 2 or not text:
            continue
        between = pieces[number - 1].strip() if number else ""
        if aside is not None:
            goes_on = between == "," and sign_of(text)[0] > 0 and not begins_condition(text)
            if goes_on:
                found[-1] = f"{found[-1]} {text}"
            found.append(aside)
            aside, is_open = None, False
            if goes_on:
                continue
        if found and _ASIDE.fullmatch(text) and (between in ("but", "and") or between == ","):
            aside = text
        elif found and _is_more_of(between, text, is_open=is_open):
            found[-1] = f"{found[-1]} {text}"
        elif (
            found
            and not text.startswith("instead_of")
            and between in (",", ":", "-")
            and is_fragment(text)
            and not begins_condition(found[-1])
        ):
            found[-1] = f"{found[-1]} , {text}"
        else:
            found.append(text)
        is_label = not found[1:] and pieces[number + 1 : number + 2] == [": "] and _LABEL.fullmatch(found[-1])
        is_open = is_fragment(found[-1]) or bool(is_label)
    if aside is not None:
        found.append(aside)
    return [one for text in found for one in _by_verb(text)]


def _is_more_of(between: str, text: str, *, is_open: bool) -> bool:
    """Whether a piece belongs to the part before it. `is_open`: that part waits for what it is about."""
    if between == "," and _ONLY_WHEN.fullmatch(text):
        return True
    is_refused = between == "," and text.startswith(("not ", "no "))  # `format: prose, no tables`
    return is_open and between != ";" and not text.startswith("instead_of") and not is_refused


def _cut_and(found: re.Match[str]) -> str:
    """`A must be B and C is D` are two; `A and B must be C` is one."""
    before = re.split(r"[;:,] ", found.string[: found.start()].rstrip(", "))[-1]
    words = before.split()
    is_order = orders(before) and len(words) >= _FEWEST and not words[1].endswith("s")
    is_whole = is_finite(before) or is_order
    return "; " if is_whole and not begins_condition(before) else found[0]


def _by_verb(text: str) -> list[str]:
    """Cut before `and`, where a verb of its own follows an order: `keep ... and erase ...`."""
    if not is_verb(next(iter(tokens(text)), "")):
        return [text]
    for found in _AND_VERB.finditer(text):
        rest = text[found.start(1) :]
        is_order = is_verb(found[1]) and len(rest.split()) >= 3 and _ONE_MORE.match(rest) is None
        if is_order and found.start() > _FEWEST_BEFORE_AND:
            return [text[: found.start()].strip(), rest.strip()]
    return [text]


def _is_elliptic(text: str) -> bool:
    words = text.split()
    return words[0] in ("not", "never", "nor", "no") and len(words) > 1 and not is_verb(words[1])


def reach(word: str) -> int:
    """So many words after it begins the verb of its clause: `whose licence is`."""
    return 2 if word == "whose" else 1


def sign_of(text: str) -> tuple[int, bool]:
    """The sign of a part, and whether it says so itself."""
    sign, has_own = 1, False
    words = tokens(text)
    since: int | None = None  # where a clause on what stands before begins, or a condition
    is_released = False
    for number, word in enumerate(words):
        opener = "" if since is None else words[since]
        if word in WHO or word in _OPENS or word in ("even", "though"):
            since = number if number > 0 or word in _OPENS else None
        elif opener in WHO and _ends_clause(words, since or 0, number):
            since = None
            if word == "cannot":
                sign, has_own = -sign, True
        elif opener in _OPENS and word != "never":
            continue
        elif word == "no":
            if (number == 0 or words[number - 1] not in _BEFORE_NO) and not opener:
                sign, has_own = -sign, True
        elif word == "confidential" and number + 1 < len(words) and words[number + 1] not in _AFTER_STATE:
            continue  # `confidential papers`: which, and not what of them
        elif is_negative(word):
            if word in _ALWAYS_MAIN:
                sign, has_own, since = -sign, True, None
            elif word in _RELEASES and is_released and not _is_governed(words, number, _RELEASES):
                continue
            elif opener and word in _IN_CLAUSE:
                since = None
            elif has_own and words[number - 1] == "or":
                continue  # `must not be ignored or skipped`
            else:
                is_released = is_released or word in _RELEASES
                is_doubled = sign < 0 and word in _EMPHATIC and not _is_governed(words, number, _REFUSING)
                sign, has_own = sign if is_doubled else -sign, True
    return sign, has_own or has_modal(text)


def _is_governed(words: list[str], at: int, by: frozenset[str]) -> bool:
    """Whether a word that refuses is itself refused: `you must not avoid`, `there is no need to stop`."""
    if words[at] not in _AVOIDS and words[at] not in _RELEASES:
        return False
    before = at - 1 - (at > 1 and words[at - 1] in ("to", "must"))
    return at > 0 and words[before] in by


def _ends_clause(words: list[str], since: int, at: int) -> bool:
    """Whether the verb of the sentence itself comes: `a page that has no licence is ...`."""
    is_verb_of_it = words[at] in AUXILIARY and words[at - 1] not in ("do", "does")
    return is_verb_of_it and at - since > reach(words[since])
