"""Words of orders in several languages, from directive_words.toml. A language that is not there is not understood."""

import re
import tomllib
import unicodedata
from importlib.resources import files
from typing import Any


def fold(text: str) -> str:
    """Without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(sign for sign in plain if not unicodedata.combining(sign)).lower()


def _listed(words: str) -> frozenset[str]:
    return frozenset(fold(word) for word in words.split())


def _by_verb(verbs: dict[str, str]) -> dict[str, frozenset[str]]:
    kinds: dict[str, set[str]] = {}
    for kind, words in verbs.items():
        for word in _listed(words):
            kinds.setdefault(word, set()).add(kind)
    return {word: frozenset(some) for word, some in kinds.items()}


_TOLD: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("directive_words.toml").read_text(encoding="utf-8")
)

ORDERS = _by_verb(_TOLD["verbs"])
"""Verb that gives an order -> what kinds of action it may ask for."""

NOUNS = {word: kind for kind, words in _TOLD["nouns"].items() for word in _listed(words)}
"""Noun that tells what is asked for, or what a tool does -> kind of action."""

SOFTENERS = _listed(_TOLD["softeners"])
"""Words that may stand before the verb of an order."""

SUBJECTS = _listed(_TOLD["subjects"])
"""Words that address somebody; of an order only with one of `MODALS` behind them."""

MODALS = _listed(_TOLD["modals"])
"""Words that lay an order on the one addressed."""

ASKING = _listed(_TOLD["asking"])
"""Words that make a question of an order: `could you send`."""

POLITE = _listed(_TOLD["polite"])
"""Words that make an order of a sentence wherever its verb stands."""

NO_OBJECTS = _listed(_TOLD["no_objects"])
"""Words behind which the one before is a noun: `purchase at`, `order of`."""

FIRST_PERSON = _listed(_TOLD["first_person"])
"""Words with which one speaks of oneself."""

HANDLING = _listed(_TOLD["handling"])
"""Verbs of instructions that ask nothing of an agent by themselves."""

WISHES = re.compile(_TOLD["wishes"])
"""A sentence that says what the user is said to want: an order in another form."""

IMPERATIVES = re.compile(_TOLD["imperatives"])
"""The beginning of a clause that gives an order by its form alone."""

PASSWORDS = _listed(_TOLD["passwords"])
"""Words that mean a password."""

UNSPACED_ORDERS = re.compile(_TOLD["unspaced_orders"])
"""Orders in scripts without spaces."""

DELEGATIONS = re.compile("|".join(f"(?:{one})" for one in _TOLD["delegations"]))
"""A sentence of a user that hands over to instructions which stand elsewhere."""

_OVERRIDES = [(one["needs"].split(), re.compile(one["pattern"], re.MULTILINE)) for one in _TOLD["overrides"]]


def overrides(folded: str) -> bool:
    """Whether a folded text speaks to an agent, or sets itself above the task that the agent was given."""
    return any(
        any(word in folded for word in needs) and pattern.search(folded) for needs, pattern in _OVERRIDES
    )
