"""Words that say the same in rules on agents, are close, or say the opposite; turns of phrase. Data: TOML files.

`rule_words.toml` has the words of rules, `rule_phrases.toml` the turns of phrase, `words_*.toml` words of everyday
English that are close to them: what a summary may say in their place.
"""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import snowballstemmer

from ledger.constraints.literals import needed
from ledger.constraints.phrasal import PhrasalVerbs

_TOLD: dict[str, Any] = tomllib.loads(files(__package__).joinpath("rule_words.toml").read_text("utf-8"))
_READ: dict[str, Any] = tomllib.loads(files(__package__).joinpath("rule_phrases.toml").read_text("utf-8"))
_MORE: list[dict[str, str]] = [
    tomllib.loads(file.read_text("utf-8"))
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name)
    if file.name.startswith("words_") and file.name.endswith(".toml")
]
_STEMMER = snowballstemmer.stemmer("english")
_IRREGULAR: dict[str, str] = _TOLD["irregular"]
_FUNCTION = frozenset(_TOLD["function"].split())
PHRASES = [(re.compile("|".join(phrase["for"])), phrase["say"]) for phrase in _READ["phrases"]]
"""Turns of phrase in their order: a regular expression, and what is read in its place."""

_NEEDED = [needed("|".join(phrase["for"])) for phrase in _READ["phrases"]]
_ALWAYS = [at for at, words in enumerate(_NEEDED) if not words]
_OF_WORD: dict[str, list[int]] = {}
for _at, _words in enumerate(_NEEDED):
    for _word in _words:
        _OF_WORD.setdefault(_word, []).append(_at)
_FEWEST = 3
_OF_BEGIN: dict[str, list[str]] = {}
for _word in _OF_WORD:
    _OF_BEGIN.setdefault(_word[:_FEWEST], []).append(_word)
"""These words by their first letters, none of them being shorter."""

SIGNS: dict[str, str] = {name: "|".join(some) for name, some in _READ["signs"].items()}
"""By what a sentence is known: name of the sign -> regular expression."""

FINDING: dict[str, str] = {name: "|".join(some) for name, some in _READ["finding"].items()}
"""By what a sentence is taken for a rule, or not: name of the sign -> regular expression."""


@cache
def stem(word: str) -> str:
    """A word without its ending."""
    word = word.removesuffix("'s").removesuffix("'")
    if word in _IRREGULAR:
        known = _IRREGULAR[word]
        return known if known == word else stem(known)
    if not word.isalpha() or len(word) < 3:
        return word
    return str(_STEMMER.stemWord(word))


def _lines(name: str) -> list[list[str]]:
    texts = (str(told.get(name, "")) for told in (_TOLD, *_MORE))
    return [line.split() for text in texts for line in text.splitlines() if line.strip()]


@cache
def _ideas() -> dict[str, str]:
    found: dict[str, str] = {}
    for words in _lines("alike"):
        for word in words:
            found.setdefault(stem(word), words[0])
    return found


@cache
def idea(word: str) -> str:
    """What a word stands for."""
    root = stem(word)
    return _ideas().get(root, root)


@cache
def is_known(word: str) -> bool:
    """Whether a word stands in a line of words that say the same."""
    return stem(word) in _ideas()


MADE = frozenset(
    map(
        idea,
        "login logout stay optedinto plaintext purchaseorder pullrequest apikey uppercase lowercase external count"
        " businesshours perday perweek permonth perhour approve backup send omit touch change include infra delete"
        " write email surname forename weekdays weekends cc permanently bullets revert chf"
        " stdlib vm idempotent iso celsius fahrenheit vegan".split(),
    )
)
"""Ideas that a turn of phrase may stand for, whose words are others."""


@cache
def _near() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for words in _lines("near"):
        first = idea(words[0])
        for word in words[1:]:
            found.setdefault(first, set()).add(idea(word))
            found.setdefault(idea(word), set()).add(first)
    return {word: frozenset(some) for word, some in found.items()}


def near(one: str) -> frozenset[str]:
    """Ideas that may stand for an idea."""
    return _near().get(one, frozenset())


@cache
def near_in_order(one: str) -> tuple[str, ...]:
    """Ideas that may stand for an idea, always in the same order."""
    return tuple(sorted(near(one)))


_COVERED = {names[0]: frozenset(map(idea, names[1:])) for names in _lines("covers")}


def covers(some: Iterable[str], one: str) -> bool:
    """Whether one of these ideas takes in another: `secret` each key and password, `action` whatever is done."""
    return any(name == "action" or one in _COVERED.get(name, ()) for name in some)


@cache
def _kinds() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for words in _lines("kinds"):
        some = {idea(word) for word in words}
        for one in some:
            found.setdefault(one, set()).update(some - {one})
    return {word: frozenset(some) for word, some in found.items()}


def others_of_kind(one: str) -> frozenset[str]:
    """Ideas of other things of the same kind, which never stand for it."""
    return _kinds().get(one, frozenset())


_PAIRS = [(idea(one), idea(other)) for one, other in _lines("opposite")]


@cache
def opposites(one: str) -> frozenset[str]:
    """Ideas that say the opposite of an idea."""
    return frozenset(other for pair in _PAIRS if one in pair for other in pair if other != one)


_GENERIC = frozenset(idea(word) for word in str(_TOLD["generic"]).split())
_VERBS = frozenset(word for line in _lines("verbs") for word in line)
_VERB_IDEAS = frozenset(idea(word) for word in _VERBS)
_NAMED = re.compile(r"[a-z0-9][._/@:]+[a-z0-9]|[a-z]\d|_")


@cache
def weight(of: str) -> float:
    """How much an idea says."""
    if of.startswith("#"):
        return 0.6
    if of in _GENERIC:
        return 0.35
    return 1.5 if _NAMED.search(of) else 1.0


@cache
def is_function(word: str) -> bool:
    """Whether a word only holds a sentence together."""
    return word in _FUNCTION or word.removesuffix("'s") in _FUNCTION


def is_verb(word: str) -> bool:
    """Whether a sentence that begins with it gives an order."""
    return word in _VERBS


@cache
def is_past_form(word: str) -> bool:
    """Whether a word tells what was done."""
    known = _IRREGULAR.get(word, word)
    return (word.endswith("ed") and len(word) > 4) or (known != word and known in _VERBS)


def is_deed(of: str) -> bool:
    """Whether an idea is something that one does."""
    return of in _VERB_IDEAS


def rephrased(text: str) -> str:
    """A normalised text with one word for each turn of phrase."""
    waiting = _phrases_in(text)
    while waiting:
        at = waiting.pop(0)
        pattern, put = PHRASES[at]
        told = pattern.sub(put, text)
        if told != text:
            text = told
            waiting = [later for later in _phrases_in(text) if later > at]
    return text


def _phrases_in(text: str) -> list[int]:
    """The numbers of the turns of phrase that a text may have, in order."""
    found = set(_ALWAYS)
    for begin in {text[at : at + _FEWEST] for at in range(len(text) - _FEWEST + 1)} & _OF_BEGIN.keys():
        for word in _OF_BEGIN[begin]:
            if word in text:
                found.update(_OF_WORD[word])
    return sorted(found)


_PHRASAL = PhrasalVerbs([" ".join(line) for line in _lines("phrasal")], _IRREGULAR)


def single(text: str) -> str:
    """A normalised text with one word for each verb of several words."""
    return _PHRASAL.single(text)
