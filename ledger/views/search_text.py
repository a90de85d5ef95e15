"""What of a content is searched, and what a searcher's words ask for. Knows no database; takes every word as data.

The index knows words: runs of letters and digits, in any case, accents left out. Scripts that set no spaces between
words are cut into their characters, so that any part of a sentence is found. A word with other characters in it
(`snake_case`, `src/app.py`, `C++`) is found by its runs, then compared as it stands.
"""

import re
import unicodedata
from dataclasses import dataclass

import orjson

from ledger.errors import InputError
from ledger.events.canonical import decode_json

LONGEST_TEXT = 2**20
"""Characters of a content that are searched."""

LONGEST_QUERY = 1000
"""Characters of a query."""

JOIN, BEGIN, END = "\x01", "\x02", "\x03"
"""What the index writes between characters of a script without spaces, and around a hit; no text has them."""

_OURS = re.compile("[\x00\x01\x02\x03]")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_IN_UNSPACED = re.compile(f"(?<=[{_UNSPACED}])(?=\\w)|(?<=\\w)(?=[{_UNSPACED}])")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_\-\r\n]{1024,}")
_WORDS = re.compile(r'"([^"]*)"|(\S+)')
_BRACKETS = ("{", "[")
_OF_PROTOCOLS = frozenset(
    "assistant developer function function_call input_text model output_text reasoning system text thinking tool"
    " tool_call tool_result tool_use user".split()
)
_KEYS_OF_PROTOCOLS = ("type", "role")


def readable(content: bytes, kind: str) -> str:
    """The text of a content: of JSON its strings and numbers, a line each.

    Left out is what encodes bytes, and the words by which protocols name the parts of a message.
    """
    if kind == "text":
        return content.decode("utf-8", "replace")[:LONGEST_TEXT]
    try:
        value = _decoded(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")[:LONGEST_TEXT]
    found: list[str] = []
    room, stack = LONGEST_TEXT, [value]
    while stack and room > 0:
        item = stack.pop()
        match item:
            case dict():
                stack.extend(
                    part
                    for key, part in reversed(item.items())
                    if not (key in _KEYS_OF_PROTOCOLS and isinstance(part, str) and part in _OF_PROTOCOLS)
                )
            case list():
                stack.extend(reversed(item))
            case str() if (inner := _unpacked(item)) is not None:
                stack.append(inner)
            case str() if not _ENCODED.fullmatch(item.rpartition(";base64,")[2]):
                found.append(item[:room])
                room -= len(found[-1]) + 1
            case int() | float() if not isinstance(item, bool):
                found.append(str(item)[:room])
                room -= len(found[-1]) + 1
    return "\n".join(found)


def _decoded(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return decode_json(content)  # half a character, or an integer beyond 64 bits


def _unpacked(text: str) -> dict[str, object] | list[object] | None:
    """JSON that stands in a string, as some protocols write arguments; its escapes would hide the words."""
    if not text.startswith(_BRACKETS):
        return None
    try:
        value = _decoded(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def indexed(text: str) -> str:
    """A text as the index takes it: what a database can keep, cut where a script sets no spaces."""
    whole = _OURS.sub(" ", text.encode("utf-8", "replace").decode())
    return whole if whole.isascii() else _IN_UNSPACED.sub(JOIN, whole)


def shown(text: str) -> str:
    """A text of the index as people read it."""
    return text.replace(JOIN, "")


def folded(text: str) -> str:
    """A text without case and accents: what is equal to the index is equal here."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char)).casefold()


@dataclass(frozen=True)
class Wanted:
    """What a query asks for. All of it must be in one text."""

    match: str
    """The query to the index: quoted phrases only; empty when no word has a letter or a digit."""

    exact: tuple[str, ...]
    """Folded words that must stand in the text as they are, signs included."""

    def fits(self, text: str) -> bool:
        """Whether a text, as people read it, has all exact words."""
        if not self.exact:
            return True
        lowered = text.lower()
        if all(word in lowered for word in self.exact):
            return True
        if text.isascii():
            return False
        whole = folded(text)
        return all(word in whole for word in self.exact)


def wanted(query: str) -> Wanted:
    """What a query asks for: words in any order, "words in quotes" next to each other, the start of a word by `wor*`.

    Raises InputError for a query without a word, or one that is too long.
    """
    if len(query) > LONGEST_QUERY:
        raise InputError(
            f"a search takes {LONGEST_QUERY} characters at most: found {len(query)}; `queries find_text` takes more"
        )
    phrases, exact = [], []
    for quoted, word in _WORDS.findall(indexed(query)):
        text = quoted or word
        has_run = any(char.isalnum() for char in text)
        is_start = bool(word) and has_run and text.endswith("*")
        if has_run:
            phrases.append('"' + text.replace('"', " ") + '"' + "*" * is_start)
        plain = shown(text).rstrip("*") if is_start else shown(text)
        if word and not plain.isalnum():
            exact.append(folded(plain))
    if not phrases and not exact:
        raise InputError(
            "the search holds no word: expected some words, as in `loopledger search connection reset`"
        )
    return Wanted(" ".join(phrases), tuple(exact))
