"""Hostile text -> text that is safe to look at: what would obey, hide or reorder is shown by name. Makes no markup."""

import re
import unicodedata
from typing import NamedTuple

from markupsafe import escape

_NAMES = {
    0x00: "NUL",
    0x07: "BEL",
    0x08: "BS",
    0x0D: "CR",
    0x1B: "ESC",
    0x7F: "DEL",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2028: "LS",
    0x2029: "PS",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
    0xAD: "SHY",
}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK = re.compile("[\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\U000e0100-\U000e01ef]")
_KEPT = "\n\t"
_MARKS = frozenset({"Mn", "Me"})
_MOST_MARKS = 8
_STYLE = re.compile("\x1b\\[([0-9;]{0,32})m")
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_MOST_SPANS = 2000
_LEAST_BYTES = 120


def visible(text: str) -> str:
    """The text with every character that is not seen, or that moves others, written as its name: `⟨ESC⟩`.

    So are marks beyond those that a character has in any writing: they cover the lines around, and cannot be wrapped.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        is_seen = char in _KEPT or (
            category not in _HIDDEN and marks <= _MOST_MARKS and not _BLANK.match(char)
        )
        shown.append(char if is_seen else name_of(char))
    return "".join(shown)


def name_of(char: str) -> str:
    """A character by its name."""
    code = ord(char)
    return f"⟨{_NAMES.get(code) or f'U+{code:04X}'}⟩"


def cut(text: str, longest: int) -> str:
    """The visible text in one line, at most so long; shorter where its characters take many bytes in a page."""
    shown = visible(text[: longest + 1].replace("\n", " ").replace("\t", " "))
    left = max(_LEAST_BYTES, longest * 3 // 2)
    if len(shown) <= longest and _bytes(shown) <= left:
        return shown
    for place, char in enumerate(shown):
        left -= _bytes(char)
        if left < 0 or place == longest:
            return shown[: place if left < 0 else longest - 1] + "…"
    return shown


def _bytes(shown: str) -> int:
    """Bytes of a visible text in a page."""
    return len(str(escape(shown)).encode())


class Span(NamedTuple):
    """A piece of text in one style."""

    style: str
    """Names of CSS classes; empty for plain text."""

    text: str
    """Visible text."""


def colored(text: str) -> list[Span]:
    """The text in spans, by the colours that a terminal would have used; every other escape is shown."""
    spans: list[Span] = []
    style, at = "", 0
    for found in _STYLE.finditer(text):
        if len(spans) >= _MOST_SPANS:
            break
        if found.start() > at:
            spans.append(Span(style, visible(text[at : found.start()])))
        style, at = _style(style, found[1]), found.end()
    if at < len(text):
        spans.append(Span(style, visible(text[at:])))
    return spans


def _style(style: str, codes: str) -> str:
    """The style after a sequence of codes; those that we do not know change nothing."""
    kept = dict.fromkeys(style.split())
    for code in codes.split(";"):
        number = int(code) if code else 0
        if number == 0:
            kept = {}
        elif number == 1:
            kept["ansi-bold"] = None
        elif number == 39 or 30 <= number <= 37 or 90 <= number <= 97:
            kept = {name: None for name in kept if name == "ansi-bold"}
            if number != 39:
                kept[f"ansi-{_COLORS[number % 10]}"] = None
    return " ".join(kept)
