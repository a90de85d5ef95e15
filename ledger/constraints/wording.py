"""Texts as the comparison of rules reads them: normalised, cut into sentences, each with the heading above it. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_LONGEST = 400_000
_LONGEST_SENTENCE = 1200
_MARKS = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2010": "-", "\u2011": "-",
        "\u2012": "-", "\u2013": " - ", "\u2014": " - ", "\u202f": " ", "\u00a0": " ",
        "*": " ", "`": '"', "#": " ", "~": " ", "\\": " ",
    }
)  # fmt: skip
_CONTRACTED = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"\bcan't\b|\bcan not\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\b(\w+)'re\b", r"\1 are"),
        (r"\b(\w+)'ll\b", r"\1 will"),
        (r"\$ ?(\d[\d.,]*)", r"\1 dollar"),
        (r"€ ?(\d[\d.,]*)|(\d[\d.,]*) ?€", r"\1\2 eur"),
        (r"\b(\d[\d.,]*) ?(usd|us dollars?)\b", r"\1 dollar"),
        (r"\beuros?\b", "eur"),
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (r"(?<=\d) ?%", " percent"),
        (r"【[^】]{0,40}】", " "),
    )
)
_BULLET = re.compile(r"^\s*(?:[-*+•\u2013]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|\*\*.{1,80}\*\*:?\s*$)|^[A-Z][^.!?\n]{0,60}:\s*$")
_STOP = re.compile(
    r"(?<!\bdr\.)(?<!\bmr\.)(?<!\bms\.)(?<!\bst\.)(?<!\bno\.)(?<!\bvs\.)(?<!\bmrs\.)(?<!e\.g\.)(?<!i\.e\.)"
    r"(?<=[.!?])[\"')\]]?\s+(?=\S)",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")
_RULING = re.compile(
    r"constraint|preference|rule|polic|instruction|requirement|guideline|must|governance|standing|do not|never|pinned"
    r"|in force",
    re.IGNORECASE,
)


class Sentence(NamedTuple):
    """One sentence, or one point of a list."""

    text: str
    """It, normalised."""

    is_ruled: bool
    """Whether it stands under a heading that announces rules."""

    is_new_line: bool
    """Whether it begins a line: a point of a list, or a paragraph."""


def normal(text: str) -> str:
    """A text in small letters, without marks of layout, contractions and signs written out."""
    text = unicodedata.normalize("NFKC", text[:_LONGEST]).translate(_MARKS).lower()
    for pattern, put in _CONTRACTED:
        text = pattern.sub(put, text)
    return _SPACES.sub(" ", text).strip()


def bare(text: str) -> str:
    """A normalised text without quotes and final marks: what a verbatim copy has in common with it."""
    return _SPACES.sub(" ", re.sub(r"[\"'.,;:!?()\[\]]|(?<!\S)-+(?!\S)", " ", normal(text))).strip()


@lru_cache(maxsize=512)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text, in order."""
    return tuple(_sentences(text[:_LONGEST]))


def _sentences(text: str) -> Iterator[Sentence]:
    is_ruled = False
    for line in text.splitlines():
        if not line.strip():
            continue
        if _HEADING.match(line) and len(line) < 100:
            is_ruled = _RULING.search(line) is not None
            continue
        is_first = True
        for part in _STOP.split(_BULLET.sub("", line)):
            clean = normal(part)[:_LONGEST_SENTENCE]
            if clean:
                yield Sentence(clean, is_ruled, is_first)
                is_first = False
