"""Texts as the comparison of rules reads them: normalised, cut into sentences, each with the heading above it. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from ledger.constraints.lexicon import SIGNS
from ledger.events.canonical import decode_json

_LONGEST = 400_000
_LONGEST_SENTENCE = 1200
_FULL = 50
_MARKS = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2010": "-", "\u2011": "-",
        "\u2012": "-", "\u2013": " - ", "\u2014": " - ", "\u202f": " ", "\u00a0": " ",
        "*": " ", "`": '"', "#": " ", "~": " ", "\\": " ",
    }
)  # fmt: skip
_CONTRACTED = tuple(
    (needed, re.compile(pattern), put)
    for needed, pattern, put in (
        ("can", r"\bcan't\b|\bcan not\b", "cannot"),
        ("won't", r"\bwon't\b", "will not"),
        ("n't", r"n't\b", " not"),
        ("'re", r"\b(\w+)'re\b", r"\1 are"),
        ("'ll", r"\b(\w+)'ll\b", r"\1 will"),
        ("$", r"\$ ?(\d[\d.,]{0,20}\d|\d)", r"\1 dollar"),
        ("€", r"€ ?(\d[\d.,]{0,20}\d|\d)|(?<![\d.,])(\d[\d.,]{0,20}) ?€", r"\1\2 eur"),
        ("us", r"\b(\d[\d.,]{0,20}) ?(usd|us dollars?)\b", r"\1 dollar"),
        ("euro", r"\beuros?\b", "eur"),
        (",", r"(?<=\d),(?=\d{3}\b)", ""),
        ("%", r"(?<=\d) ?%", " percent"),
        ("【", r"【[^】]{0,40}】", " "),
    )
)
_BULLET = re.compile(r"^[\s>|]*(?:(?:[-*+•\u2013]|\(?\d{1,2}[.)]|[a-z]\))\s+)?(?:\[[ xX]\]\s+)?")
_IS_POINT = re.compile(r"^[\s>]*(?:[-*+•\u2013|<]|\(?\d{1,2}[.)]\s|[a-z]\)\s|#)")
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+|\*\*.{1,80}\*\*:?\s*$)|^(?:\d{1,2}[.)] )?[A-Z][^.!?\n]{0,60}:\s*$"
)
_TAG = re.compile(r"</?([a-zA-Z][\w-]{0,40})(?:\s[^<>]{0,80})?/?>")
_CELLS = re.compile(r"^\s*\|(.*)\|\s*$")
_ENTRY = re.compile(r"^\s*\"([^\"\n]{1,60})\"\s*:\s*(.*)$")
_STOP = re.compile(
    r"(?<!\bdr\.)(?<!\bmr\.)(?<!\bms\.)(?<!\bst\.)(?<!\bvs\.)(?<!\bmrs\.)(?<!\bmax\.)(?<!\bmin\.)(?<!\bincl\.)(?<!approx\.)(?<!\bresp\.)(?<!\bcf\.)(?<!\betc\.)(?<!e\.g\.)(?<!i\.e\.)"
    r"(?!(?<=\bno\.)\s+\d)(?<=[.!?])[\"')\]]?\s+(?=\S)|(?<=\w\")\s+(?=(?-i:[A-Z])[a-z])",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\u((?!d[89a-f])[0-9a-f]{4})", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_RULING = re.compile(
    r"constraint|preference|rule|polic|instruction|requirement|guideline|must|governance|standing|do not|never|pinned"
    r"|in force",
    re.IGNORECASE,
)

LEAD = re.compile(SIGNS["lead"])
"""A heading that orders, forbids, permits or says when: its points go on with it."""


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
    for needed, pattern, put in _CONTRACTED:
        if needed in text:
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
    lead, set_in = "", 0  # the words of a heading that leads its points, and how far it is set in
    for line in _lines(_unpacked(text)):
        if _HEADING.match(line) and len(line) < 100:
            is_ruled = _RULING.search(line) is not None
            lead, set_in = _leading(line), -2 if line.lstrip().startswith("#") else -1
            continue
        is_point = _IS_POINT.match(line) is not None
        margin = len(line) - len(line.lstrip()) if is_point else -1
        if margin <= set_in:
            lead = ""
        if is_point and line.rstrip().endswith(":") and (told := _leading(line)):
            lead, set_in = told, margin
            continue
        is_first = True
        for part in _STOP.split(_BULLET.sub("", line)):
            clean = normal(part[: 4 * _LONGEST_SENTENCE])[:_LONGEST_SENTENCE]
            if clean:
                led = f"{lead}: {clean}" if lead and is_first else clean
                yield Sentence(led, is_ruled or bool(lead), is_first)
                is_first = False


def _leading(line: str) -> str:
    """The words of a heading that leads its points: `do not`, `required before a merge`."""
    told = normal(_BULLET.sub("", line)).strip(" :")
    return told if LEAD.fullmatch(told) else ""


def _unpacked(text: str) -> str:
    """A text that is JSON as the lines of its strings, each name of an object as a heading."""
    plain = text.strip()
    if plain[:1] not in ("{", "[") or plain[-1:] not in ("}", "]"):
        return _ESCAPED.sub(_character, text)
    try:
        value = decode_json(plain)
    except ValueError:
        return _ESCAPED.sub(_character, text)
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(reversed([(str(key), part) for key, part in one.items()]))
        elif isinstance(one, list):
            waiting.extend(reversed([(name, part) for part in one]))
        elif isinstance(one, str):
            lines.append(f"## {name.replace('_', ' ')[:80]}")
            lines.append(one if _IS_POINT.match(one) else f"- {one}")
    return "\n".join(lines)


def _character(found: re.Match[str]) -> str:
    """What an escape in JSON that was cut off stands for."""
    return chr(int(found[1], 16))


def _lines(text: str) -> Iterator[str]:
    """Its lines; those that only go on where the line before was full are put together again."""
    held = ""
    for line in text.splitlines():
        tag = _TAG.fullmatch(line.strip())
        entry = _ENTRY.match(line)
        cells = _CELLS.match(line)
        if tag is not None or not line.strip() or entry is not None or cells is not None:
            if held:
                yield held
            held = ""
            if tag is not None:
                yield f"## {'' if line.strip().startswith('</') else tag[1]}"
            elif entry is not None:
                yield f"## {entry[1]}"
                yield entry[2].strip(' ",[]{}')
            elif cells is not None:
                yield from (cell.strip() for cell in cells[1].split("|") if cell.strip(" -:"))
            continue
        line = _TAG.sub(" ", line).rstrip()
        if line.lstrip().startswith('"') and line.endswith(('"', '",')):
            line = "- " + line.strip().strip(",").strip('"')
        if held and _goes_on(held, line):
            held = f"{held} {line.strip()}"
        else:
            if held:
                yield held
            held = line
        if len(held) > _LONGEST_SENTENCE * 4:
            yield held
            held = ""
    if held:
        yield held


def _goes_on(held: str, line: str) -> bool:
    if _IS_POINT.match(line) or held.endswith((":", ".", "!", "?", ";")):
        return False
    is_set_in = line[:2].isspace() and _IS_POINT.match(held) is not None
    if len(held) < _FULL and not is_set_in:
        return False
    return not (_HEADING.match(held) and len(held) < 100) and not _HEADING.match(line)
