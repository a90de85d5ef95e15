"""Words in names of tools and in arguments that tell what a call does, where nobody declared it."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ledger.events.tool_call import EffectClass

_LONGEST_NAME = 200  # of a name that is remembered: tools are few, and each is called again and again
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_BY_CLASS: dict[EffectClass, str] = {
    "read": "read get list search find fetch view show look lookup query grep glob ls cat head tail describe count"
    " check inspect browse peek status info help explain summarize summarise analyze analyse calculate compute think"
    " plan wait sleep retrieve select scan diff compare validate verify lint open navigate scroll screenshot recall"
    " load preview whoami history stat monitor observe translate",
    "write": "write edit create make mkdir patch apply update set save append insert replace rename move copy touch"
    " format checkout commit add store remember todo mark note modify rewrite generate build compile install"
    " uninstall export import upsert put restore merge stage configure enable disable",
    "external": "send post publish email mail message notify reply forward tweet upload push call request invite"
    " share submit book reserve schedule order deploy release trigger webhook http invoke comment assign subscribe"
    " unsubscribe register enroll upvote like follow connect start stop restart spawn exchange return",
    "irreversible": "delete remove rm drop destroy purge wipe erase truncate terminate kill cancel revoke pay"
    " payment transfer purchase buy sell refund charge withdraw wire reset overwrite shred unlink expire"
    " ban block close trash clear flush rotate",
    "credential": "login signin authenticate authorize oauth token secret secrets password passwd credential"
    " credentials keychain vault apikey sign decrypt unlock sudo",
}
WORDS: dict[str, EffectClass] = {
    word: effect_class for effect_class, words in _BY_CLASS.items() for word in words.split()
}
"""Word, in lower case -> class."""

VERB_FIELDS = frozenset(
    {
        "action",
        "operation",
        "op",
        "method",
        "verb",
        "command",
        "cmd",
        "mode",
        "type",
        "kind",
        "subcommand",
        "event",
    }
)
"""Names of arguments whose value says what is done."""

TARGET_FIELDS = (
    "path", "file_path", "filepath", "filename", "file", "notebook_path", "target", "destination", "dest", "to",
    "recipient", "recipients", "email", "url", "uri", "endpoint", "host", "channel", "table", "database", "bucket",
    "key", "id", "name", "account", "iban", "user", "repo", "repository", "branch", "resource",
)  # fmt: skip
"""Names of arguments that say on what it is done, most telling first."""


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case: `mcp__mail__sendMessage` -> mcp, mail, send, message."""
    return list(_words_of(name)) if len(name) <= _LONGEST_NAME else _split(name)


@lru_cache(maxsize=1024)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(_split(name))


def _split(name: str) -> list[str]:
    return [word.lower() for word in _SPLIT.split(name) if word]


def verbs(words: Iterable[str]) -> list[tuple[str, EffectClass]]:
    """Those words that tell what is done."""
    return [(word, WORDS[word]) for word in words if word in WORDS]
