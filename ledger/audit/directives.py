"""Finds orders in untrusted text: where they stand, what they ask for, whether they speak to an agent.

It reads the form of a text, not what it means, and calls no model.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ledger.audit.directive_words import (
    ASKING,
    FIRST_PERSON,
    HANDLING,
    IMPERATIVES,
    MODALS,
    NO_OBJECTS,
    NOUNS,
    ORDERS,
    POLITE,
    SOFTENERS,
    SUBJECTS,
    UNSPACED_ORDERS,
    WISHES,
    fold,
    overrides,
)

_LONGEST = 200_000
_LONGEST_ZONE = 4_000
_LONGEST_SENTENCE = 1_500
_LONGEST_LEAD = 200
_MOST_SENTENCES = 20_000
_WRAPPED = 50
_WINDOW = 6
_FOLLOWING = 3
_DICTATED = 8
_BETWEEN_MOST = 25
_MOST_SOFTENERS = 6
_LEAST_LISTED = 3
_LEAST_ORDERING = 2
_LEAST_STEPS = 3
_AROUND = " \t\r\n<>"
_LABELS = frozenset(":=(/_.")

_FIELD = re.compile(
    r"^\s*(?:[-*•]\s+)?(?:[\"']?[a-z_][\w.-]*[\"']?|[\"']?[A-Z][\w.-]*(?: [\w.-]+){0,3}[\"']?)\s*:(?:\s|$)"
)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?。\uff01\uff1f])[\"')\]]*\s+|(?<=[。\uff01\uff1f])")
_CLAUSE = re.compile(
    r"(?:^|[:;\[\]>\u2013\u2014]|--+|#+\s*\(\w+\)|\.\.\.|[\"'`“„«]|,\s)\s*|\s+(?=(?:and|und|et|y|e|then|dann|puis|please|bitte)\s)",
    re.I,
)
_FOLDED = re.compile(r"\\\n[ \t]*(\\ )?")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
_GLUED = re.compile(
    r"(?:(?<=\w)_|(?<=[a-z0-9]),|(?<=[a-z0-9%][.!?])|(?<=[A-Z]{2})|(?<=\d))(?=[A-ZÄÖÜ][a-zäöüß]+ [\w\"'“„«$€£])"
)
"""Where an order was set right behind something: a name, a cell of a table, a full stop, capitals, a number."""
_SCALAR = re.compile(r"^([ \t]*(?:- )*(?:[\w.-]+: )?)'((?:[^']|'')*+)'(?=[^\w\n]{0,4}$)", re.MULTILINE)
"""A value in single quotes, as YAML writes it, over as many lines as it takes."""
_LINE = re.compile(r"[ \t]*\n((?:[ \t]*\n)*)[ \t]+(?=\S)")
_BETWEEN = re.compile(r"([\"'\]}])\s*,\s*(?=[\"'\[{])")
_DICTATION = re.compile(r":\W*$|\b(?:following|exactly|verbatim|folgende[nrms]?)\W{0,3}:", re.I)
_RECORD = re.compile(r"^\s*(?:[-*•]\s+)?(?:[a-z_][a-z_0-9]*|[{\[]?([\"'])[^\"'\n]{1,60}\1)\s*:(?:\s|$)")
_ENDED = re.compile(r"[.!?:][\"')\]]*\s*$")
_LETTER = re.compile(r"[^\W\d_]")
_SPOKEN = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W\d_]+)*")
_MARKUP = re.compile(
    r"^\s*(?:</?(?:[A-Z][A-Z_ -]{3,40}|(?i:system|instruction|important|information|note|admin|user|task|urgent"
    r"|function_|tool_|assistant)[\w -]{0,30})>|#{2,}\s*(?:\(|(?i:system|instruction|new |user|admin))"
    r"|\[/?(?:INST|SYSTEM|SYS|ADMIN|system)[A-Z_ ]{0,30}\]|<<\w+>>|={4,} ?[A-Za-z]|<\|\w+\|>)",
    re.MULTILINE,
)
"""Marks with which a text pretends to be more than content."""

MAY_LEAD = SOFTENERS | SUBJECTS | MODALS | ASKING
"""Words that may stand before the verb of an order, whatever it is about."""

_ASKED = [[word] for word in ASKING]


class Directive(NamedTuple):
    """A stretch of text that wants something done."""

    text: str
    """The orders and what belongs to them, on one line."""

    actions: frozenset[str]
    """Kinds of action that its verbs ask for."""

    is_addressed: bool
    """Whether it speaks to an agent, or sets itself above the task: it is more than an order among people."""

    is_manual: bool
    """Whether it is made of steps, in a list or one behind the other, and nobody speaks of himself in it."""

    orders: tuple[tuple[str, frozenset[str]], ...]
    """The orders in it one by one, each from its verb on, folded, with the kinds of action that it asks for."""


class Parted(NamedTuple):
    """A text taken apart."""

    directives: list[Directive]
    """The orders in it."""

    rest: str
    """All else."""


class _Sentence(NamedTuple):
    text: str
    unit: int
    is_first: bool
    is_item: bool
    is_step: bool
    order: tuple[str, frozenset[str]] | None
    is_override: bool
    is_record: bool


def part(text: str) -> Parted:
    """Take a text apart; the part of it beyond a length is left out."""
    sentences = list(islice(_sentences(text[:_LONGEST]), _MOST_SENTENCES))
    listed = _listed(sentences)
    zones = _zones(sentences, listed)
    taken = {place for zone in zones for place in zone.places}
    rest = "\n".join(one.text for place, one in enumerate(sentences) if place not in taken)
    return Parted([_directive(zone, sentences, listed) for zone in zones], rest)


def _directive(zone: "_Zone", sentences: list["_Sentence"], listed: set[int]) -> Directive:
    text = " ".join(sentences[place].text for place in zone.places)[:_LONGEST_ZONE]
    orders = tuple(order for place in zone.places if (order := sentences[place].order) is not None)
    first = sentences[zone.places[0]]
    steps = sum(sentences[place].is_step for place in zone.places)
    has_steps = (first.is_first and first.unit in listed) or steps >= _LEAST_STEPS
    return Directive(
        text,
        frozenset().union(*(actions for _, actions in orders)),
        zone.is_addressed,
        has_steps and FIRST_PERSON.isdisjoint(_SPOKEN.findall(fold(text))),
        orders,
    )


class _Zone(NamedTuple):
    places: list[int]
    is_addressed: bool


def _zones(sentences: list[_Sentence], listed: set[int]) -> list[_Zone]:
    """Neighbouring orders with what belongs to them; those near a sentence that speaks to an agent are of one
    zone, but for steps of a list that it does not announce.
    """
    above = [place for place, one in enumerate(sentences) if one.is_override]
    ordering = [place for place, one in enumerate(sentences) if one.order is not None]
    zones: list[_Zone] = []
    until, is_dictated, record, announces = -1, False, -1, False
    for place, one in enumerate(sentences):
        if one.unit not in listed:
            announces = one.text.endswith(":")
        is_near = _is_near(place, above) and _is_near(place, ordering)
        is_near = is_near and (announces or one.is_override or one.unit not in listed)
        starts = one.order is not None
        if one.is_record:
            record = place
        is_between = bool(above) and _is_between(place, above, record, sentences)
        is_core = (is_near and (starts or one.is_override)) or is_between
        last = zones[-1] if zones else None
        is_dictated = is_dictated and not one.is_record
        follows = (
            last is not None
            and place <= until
            and (is_dictated or one.unit == sentences[last.places[-1]].unit)
        )
        joins = last is not None and last.is_addressed and place - last.places[-1] <= 2
        if last is not None and ((follows and (last.is_addressed or not is_core)) or (is_core and joins)):
            last.places.append(place)
        elif starts or is_core:
            zones.append(_Zone([place], is_core))
        else:
            continue
        if _DICTATION.search(one.text):
            is_dictated, until = True, place + _DICTATED
        elif starts or is_core:
            until = max(until, place + _FOLLOWING)
    return zones


def _listed(sentences: list[_Sentence]) -> set[int]:
    """The units that are items of a list of steps: so many in a row, some of which give orders."""
    found: set[int] = set()
    row: dict[int, bool] = {}
    for one in (*sentences, None):
        if one is not None and one.is_item and (not row or one.unit - next(reversed(row)) <= 1):
            row[one.unit] = row.get(one.unit, False) or one.is_step
            continue
        if len(row) >= _LEAST_LISTED and sum(row.values()) >= _LEAST_ORDERING:
            found.update(row)
        row = {one.unit: one.is_step} if one is not None and one.is_item else {}
    return found


def _is_near(place: int, others: list[int]) -> bool:
    found = bisect_left(others, place - _WINDOW)
    return found < len(others) and others[found] <= place + _WINDOW


def _is_between(place: int, above: list[int], record: int, sentences: list[_Sentence]) -> bool:
    """Whether a sentence stands between two that speak to an agent, with no field of a record between them."""
    found = bisect_left(above, place)
    if found == 0 or found == len(above) or above[found] - above[found - 1] > _BETWEEN_MOST:
        return False
    after = sentences[place : above[found] + 1]
    return record < above[found - 1] + 1 and not any(one.is_record for one in after)


def _sentences(text: str) -> Iterator[_Sentence]:
    for number, unit in enumerate(_units(text)):
        is_item, is_first = _BULLET.match(unit) is not None and not _RECORD.match(unit), True
        for sentence in _pieces(unit):
            if _WORD.search(sentence):
                folded = fold(sentence)
                is_override = overrides(folded) or _MARKUP.search(sentence) is not None
                is_record = bool(_RECORD.match(sentence))
                order, is_step = _order(folded), _is_step(folded)
                yield _Sentence(
                    sentence.strip(), number, is_first, is_item, is_step, order, is_override, is_record
                )
                is_first = is_first and not _LETTER.search(sentence)


def _pieces(unit: str) -> Iterator[str]:
    """Its sentences; endless ones are cut, so that no text takes long."""
    for sentence in _SENTENCE.split(unit):
        for start in range(0, len(sentence), _LONGEST_SENTENCE):
            yield sentence[start : start + _LONGEST_SENTENCE]


def _unwritten(text: str) -> str:
    """Without the signs by which YAML, JSON and Python write a text down: folded lines, escapes, doubled quotes."""
    if "\n" in text and "'" in text:
        text = _SCALAR.sub(lambda match: f"{match[1]}'{_LINE.sub(_unfolded, match[2])}'", text)
    if "\\" in text:
        text = _FOLDED.sub(lambda match: " " if match[1] else "", text)
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
        text = text.replace("\\n", "\n\n").replace("\\t", "\t").replace('\\"', '"').replace("\\'", "'")
    text = _GLUED.sub("; ", text.replace("''", "'"))
    return _BETWEEN.sub(r"\1\n\n", text) if text.lstrip(_AROUND)[:1] in ("{", "[") else text


def _unfolded(line: re.Match[str]) -> str:
    """What the end of a line within a value in quotes stands for: with no empty line behind it, a blank."""
    return "\n\n" if line[1] else " "


def _units(text: str) -> Iterator[str]:
    """Paragraphs, fields of records and items of lists; lines that were only wrapped are joined."""
    text = _unwritten(text)
    lines: list[str] = []
    for line in text.split("\n"):
        starts = (
            not line.strip()
            or _FIELD.match(line)
            or _BULLET.match(line)
            or line.lstrip().startswith(("<", "#", "{", "["))
        )
        if lines and (
            starts or _ENDED.search(lines[-1]) or (len(lines[-1]) < _WRAPPED and not _goes_on(line))
        ):
            yield " ".join(one.strip() for one in lines)
            lines = []
        if line.strip():
            lines.append(line)
    if lines:
        yield " ".join(one.strip() for one in lines)


def _goes_on(line: str) -> bool:
    """Whether a line begins amid a sentence."""
    return line.lstrip(" \t\"'(")[:1].islower()


def _order(folded: str) -> tuple[str, frozenset[str]] | None:
    """The order that a sentence gives, from its first verb on, and the kinds of action that it asks for; None where
    it gives none.
    """
    if not folded.isascii() and UNSPACED_ORDERS.search(folded):
        return folded, frozenset({"do"})
    found: set[str] = set()
    begins = -1
    for start in _CLAUSE.finditer(folded):
        words = _leading(folded, start.end())
        is_polite = False
        for place, word in enumerate(words):
            if (
                word in ORDERS
                and place + 1 < len(words)
                and words[place + 1] not in NO_OBJECTS
                and not (word in SOFTENERS and words[place + 1] in ORDERS)
            ):
                found |= ORDERS[word]
                begins = start.end() if begins < 0 else begins
                break
            is_polite = is_polite or word in POLITE
            follows = words[place + 1] if place + 1 < len(words) else ""
            if word in SUBJECTS and follows not in MODALS and words[place - 1 : place] not in _ASKED:
                break
            if word not in MAY_LEAD:
                break
        if begins < 0 and IMPERATIVES.match(folded, start.end()):
            begins = start.end()
            found.add("do")
        if wish := WISHES.search(folded, start.end()):
            begins = wish.start() if begins < 0 else begins
            found.add("do")
            is_polite = True
        if is_polite:
            asked = [
                word
                for word in _WORD.findall(folded, start.end(), start.end() + 2 * _LONGEST_LEAD)
                if word in ORDERS
            ]
            begins = start.end() if asked and begins < 0 else begins
            found |= frozenset().union(*(ORDERS[word] for word in asked))
    if begins < 0:
        return None
    found.update(kind for word in _WORD.findall(folded) if (kind := NOUNS.get(word)) and kind != "visit")
    return folded[begins:], frozenset(found)


def _is_step(folded: str) -> bool:
    """Whether a sentence is one of instructions: it begins with what to do, with things or with a form."""
    words = _leading(folded, match.end() if (match := _BULLET.match(folded)) else 0)
    verb = next((word for word in words if word not in SOFTENERS), "")
    return verb in ORDERS or verb in HANDLING


def _leading(folded: str, start: int) -> list[str]:
    """The first words of a clause. A word at which a colon or an equals sign stands is a label, and no verb."""
    words: list[str] = []
    for match in _WORD.finditer(folded, start, start + _LONGEST_LEAD):
        after = folded[match.end() : match.end() + 2]
        if not words and (after[:1] in _LABELS or after in ("':", '":')):
            return []
        words.append(match.group())
        if len(words) > _MOST_SOFTENERS + 2:
            break
    return words


def actions_of(name: str) -> frozenset[str]:
    """The kinds of action that words tell of: a tool's name taken apart, or what a user asks."""
    found: set[str] = set()
    for word in _WORD.findall(fold(name.replace("_", " "))):
        found |= ORDERS.get(word, frozenset())
        if kind := NOUNS.get(word):
            found.add(kind)
    return frozenset(found)
