"""Where the values of a call's arguments come from: compared without case, accents, blanks and punctuation."""

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from ledger.audit.directive_words import PASSWORDS, fold
from ledger.effects.words import words_of

_MOST_LEAVES = 48
_LONGEST_LEAF = 4_000
_SHORT = 160
_LEAST = 4
_LEAST_JOINED = 8
_LEAST_PIECE = 3
_MOST_PIECES = 8
_KEPT = 400_000

_EDGE = "\"'`,.;:!?()[]{}<>“”\u2018\u2019„«»*_|\\"
_QUOTES = (
    ("'", "'"),
    ('"', '"'),
    ("`", "`"),
    ("“", "”"),
    ("„", "“"),
    ("\u201a", "\u2018"),
    ("«", "»"),
    ("\u2018", "\u2019"),
)
_SCHEME = re.compile(r"^(?:https?://|mailto:)", re.I)
_MAIL = re.compile(r"^[^\s@]+@[^\s@]+\.[^\s@]+$")
_FILE = re.compile(
    r"(?i)^[^/:]+\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html?|css|sh|rs|go|java|c|h|cpp|docx?|xlsx?|pdf|csv)$"
)
_ACCOUNT = re.compile(r"^(?=(?:\D*\d){8})[a-z0-9]{10,40}$")
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_OTHER_MONTHS = "ene,gen fev mae,mrt avr,abr mai,mag,mei giu lug ago,aou set okt,ott nov dez,dic".split()
_MONTH = {
    name: number
    for names in (_MONTHS, _OTHER_MONTHS)
    for number, some in enumerate(names, 1)
    for name in some.split(",")
}
_HIDDEN = re.compile(r"\[redacted:[a-z0-9_]{1,40}:[0-9a-f]{16,24}\]")
_BETWEEN = re.compile(r"[\W_]+")
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+")


PASSWORD = "*password"  # noqa: S105 - a word for passwords, and none itself
"""Stands for all words that mean a password, in any language."""


def compact(text: str) -> str:
    """Letters and digits alone."""
    return _BETWEEN.sub("", fold(text))


def chunks(text: str) -> Iterator[str]:
    """Its stretches between blanks, without what stands around them, compacted: `'US13-33',` -> `us1333`."""
    for word in text.split():
        if found := compact(_SCHEME.sub("", word.strip(_EDGE)).rstrip("/")):
            yield found


def tells_apart(word: str) -> bool:
    """Whether a word as written is of the kind that names one thing: an address, a number of an account, a key."""
    word = _SCHEME.sub("", word.strip(_EDGE))
    inner = word[1:-1]
    return len(word) >= _LEAST + 1 and (
        "@" in inner
        or ("." in inner and not word.replace(".", "").replace(",", "").isdigit())
        or "_" in inner
        or ("/" in inner and len(word) >= _LEAST_JOINED)
        or (
            any(sign.isdigit() for sign in word)
            and (any(sign.isalpha() for sign in word) or len(word) >= _LEAST_JOINED)
            and not _DATE.search(word)
            and ":" not in word
        )
    )


def is_address(text: str) -> bool:
    """Whether a text is nothing but the address of a host or page."""
    text = text.strip().strip(_EDGE)
    return (
        " " not in text
        and "@" not in text
        and bool(re.match(r"(?i)^(?:https?://)?(?:[\w-]+\.)+[a-z]{2,}(?:[:/?#]\S*)?$", text))
    )


def names_outsider(text: str) -> bool:
    """Whether a text names somebody or some place outside: an address of mail, of a page, the number of an
    account.
    """
    text = text.strip().strip(_EDGE)
    if " " in text:
        return False
    return (
        bool(_MAIL.match(text))
        or (is_address(text) and not _FILE.search(text))
        or bool(_ACCOUNT.match(compact(text)))
    )


class Leaf(NamedTuple):
    """One value among the arguments."""

    name: str
    """Path to it."""

    text: str
    """As text."""

    whole: str
    """Compacted."""

    is_short: bool
    """Whether it may be a target, and not a piece of writing."""

    @property
    def is_hidden(self) -> bool:
        """Whether it is a secret that was taken out before it was kept: what it was is not known here."""
        return self.text.startswith("[") and _HIDDEN.fullmatch(self.text) is not None

    @property
    def calls_it(self) -> frozenset[str]:
        """What a hidden value is called: the words of its name, and one for all that mean a password."""
        words = frozenset(word for word in words_of(self.name) if len(word) >= _LEAST)
        return words | {PASSWORD} if words & PASSWORDS else words

    def traces(self) -> Iterator[str]:
        """What it would have in common with a text that it comes from; see `Source.traces`."""
        if self.is_hidden:
            yield from sorted(self.calls_it)
        for chunk in dict.fromkeys(chunks(self.text)):
            if self.is_short or len(chunk) > _LEAST:
                yield chunk
        if self.is_short:
            yield f"^{self.whole[:_LEAST_PIECE]}"
            yield from (f"{month}/{day}" for month, day in dates(self.text))


def leaves(arguments: Any) -> list[Leaf]:
    """The values of arguments that say something: no truth values, nothing empty."""
    found: list[Leaf] = []
    waiting: list[tuple[str, Any]] = [("", arguments)]
    while waiting and len(found) < _MOST_LEAVES:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(
                (f"{name}.{key}" if name else str(key), one) for key, one in reversed(value.items())
            )
        elif isinstance(value, list):
            waiting.extend((name, one) for one in reversed(value))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            # Some sources write all numbers down with a point: 13.0 is the file 13.
            is_whole = isinstance(value, float) and value.is_integer()
            text = str(int(value) if is_whole else value)[:_LONGEST_LEAF]
            whole = compact(_SCHEME.sub("", text.strip()))
            if whole:
                found.append(Leaf(name, text, whole, len(text) <= _SHORT))
    return found


def dates(text: str) -> set[tuple[int, int]]:
    """The days that a text names, as month and day; a month's name takes the numbers around it."""
    if not _DIGIT.search(text):
        return set()
    found = {(int(date[2]), int(date[3])) for date in _DATE.finditer(text)}
    words = _WORD.findall(fold(text))
    for place, word in enumerate(words):
        month = _MONTH.get(word[:3]) if len(word) >= 3 and word[0].isalpha() else None
        if month is not None:
            for near in words[max(0, place - 6) : place + 3]:
                number = re.match(r"^(\d{1,2})(?:st|nd|rd|th|er|e)?$", near)
                if number and 1 <= int(number[1]) <= 31:
                    found.add((month, int(number[1])))
    return found


class Known:
    """Text that was seen, compacted; the oldest is forgotten."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._texts: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        """One more text."""
        found = compact(text)[-self._kept :]
        self._texts.append(found)
        self._size += len(found)
        while self._size > self._kept and len(self._texts) > 1:
            self._size -= len(self._texts.popleft())

    def __contains__(self, value: str) -> bool:
        return any(value in text for text in self._texts)


class Source:
    """A text that values may come from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.whole = compact(_SCHEME.sub("", text))
        words = frozenset(chunks(text))
        self.chunks = words | {PASSWORD} if words & PASSWORDS else words
        self.telling = frozenset(
            compact(_SCHEME.sub("", word.strip(_EDGE)).rstrip("/"))
            for word in text.split()
            if tells_apart(word)
        )
        self.dates = dates(text)

    def traces(self) -> Iterator[str]:
        """Its words, the beginnings of what tells apart, its days: what values that come from it have in
        common with it.
        """
        yield from sorted(self.chunks)
        yield from sorted({f"^{one[:_LEAST_PIECE]}" for one in self.telling})
        yield from (f"{month}/{day}" for month, day in sorted(self.dates))

    def holds(self, leaf: Leaf) -> bool:
        """Whether a whole value stands in it; a short one as a word of its own."""
        if len(leaf.whole) < _LEAST_JOINED and " " not in leaf.text.strip():
            return leaf.whole in self.chunks
        return leaf.whole in self.whole

    def covers(self, leaf: Leaf) -> bool:
        """Whether most words of a value stand in it."""
        words = list(chunks(leaf.text))
        return 2 * sum(word in self.chunks for word in words) > len(words)

    def dictates(self, leaf: Leaf) -> bool:
        """Whether a value stands in it in quotes: it is what to write, and not the order to write it."""
        text = leaf.text.strip()
        return any(f"{opening}{text}{closing}" in self.text for opening, closing in _QUOTES)

    def repeats(self, leaf: Leaf) -> bool:
        """Whether a value holds most of the text itself: it is quoted, and not obeyed."""
        if leaf.whole in self.whole:
            return 5 * len(leaf.whole) > 3 * len(self.whole) and not self.dictates(leaf)
        half = len(self.whole) // 2
        return len(leaf.whole) > half and self.whole[:half] in leaf.whole


def joined(found: list[Leaf], source: Source) -> tuple[Leaf, Leaf, str] | None:
    """Two values that, put together, are one of the source: it was split over them; and what they make."""
    pieces = [
        leaf for leaf in found if leaf.is_short and 2 <= len(leaf.whole) <= 64 and leaf.whole in source.whole
    ]
    for first in pieces[:_MOST_PIECES]:
        for second in pieces[:_MOST_PIECES]:
            value = first.whole + second.whole
            if first is not second and len(value) >= _LEAST_JOINED and value in source.whole:
                return first, second, value
    return _broken(found[:_MOST_PIECES], source)


def _broken(found: list[Leaf], source: Source) -> tuple[Leaf, Leaf, str] | None:
    """Two texts, of which the one goes on amid a word of the source that tells apart, where the other breaks off."""
    beginnings = [next(chunks(leaf.text[:_SHORT]), "") for leaf in found]
    endings = [next(reversed(list(chunks(leaf.text[-_SHORT:]))), "") for leaf in found]
    for first, last in zip(found, endings, strict=True):
        for second, start in zip(found, beginnings, strict=True):
            value = last + start
            if first is not second and last and start and value in source.telling:
                return first, second, value
    return None
