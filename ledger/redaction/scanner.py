"""Finds the spans of secrets in bytes.

One fast pass over all text; the precise rules see only what is near a hit.
"""

import functools
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate

from ahocorasick_rs import BytesAhoCorasick, Implementation

from ledger.redaction.findings import FOREIGN, MARKER, Span
from ledger.redaction.named import NAME_LITERALS, find_named, find_value_before_name
from ledger.redaction.packed import Packing, Unpacker, packings
from ledger.redaction.placeholders import is_marked
from ledger.redaction.places import PLACES, find_in_url
from ledger.redaction.rules import Rule
from ledger.redaction.shapes import SHAPES

_MARKER_LITERAL = "[redacted:"
_NOTHING_LEFT = re.compile(rb"(?:\\+[nrt]|[\s\"'\\])*")
_LONG = 500

Finder = Callable[[bytes, int, int], Span | None]


class Scanner:
    """All rules, compiled once for all ledgers. Keeps no state between texts."""

    def __init__(self, has_made: Callable[[re.Match[bytes]], bool], extra_rules: Iterable[Rule] = ()) -> None:
        """`has_made` tells our own markers from what only looks like one."""
        self._has_made = has_made
        self._finders, self._packings, self._marker_index, self._automaton = _compiled(tuple(extra_rules))

    def find(self, data: bytes) -> list[Span]:
        """The secrets in some bytes, packed ones too, in order, without overlaps."""
        return self._find(data, is_packed=False)

    def _find(self, data: bytes, *, is_packed: bool) -> list[Span]:
        hits = self._automaton.find_matches_as_indexes(data.lower(), overlapping=True)
        return self._examine(data, hits, is_packed) if hits else []

    def suspects(self, texts: list[str]) -> set[int]:
        """Which of some texts have to be examined, by their index: one pass over all of them at once."""
        data = "\n".join(texts).encode("utf-8", "surrogatepass")
        hits = self._automaton.find_matches_as_indexes(data.lower(), overlapping=True)
        if not hits:
            return set()
        ends = list(accumulate(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts))
        return {bisect_right(ends, start) for _, start, _ in hits}

    def _examine(self, data: bytes, hits: list[tuple[int, int, int]], is_packed: bool) -> list[Span]:
        unpacker = Unpacker(data, functools.partial(self._find, is_packed=True))
        spans: list[Span] = []
        covered_from = covered_to = marked_to = -1
        for index, start, end in hits:
            if index == self._marker_index:
                marker = MARKER.match(data, start)
                if marker is not None:
                    marked_to = marker.end()
                    if not self._has_made(marker):
                        spans.append(Span(start, marked_to, FOREIGN, 0))
                continue
            if end <= marked_to or (covered_from <= start and end <= covered_to):
                continue
            for finder in self._finders[index]:
                span = finder(data, start, end)
                if span is None:
                    continue
                spans.append(span)
                if span.end > covered_to and (span.rank == 0 or _is_long_word(data, span)):
                    covered_from, covered_to = span.start, span.end
            if not is_packed and index in self._packings:
                for packing in self._packings[index]:
                    spans.extend(unpacker.secrets(start, packing))
        return _without_overlaps(data, spans) if spans else spans


@functools.lru_cache(maxsize=8)
def _compiled(
    extra_rules: tuple[Rule, ...],
) -> tuple[list[tuple[Finder, ...]], dict[int, list[Packing]], int, BytesAhoCorasick]:
    """What runs at a hit of each literal, what may be packed there, the index of the literal of our markers, and what
    finds all hits.
    """
    finders: dict[str, list[Finder]] = defaultdict(list)
    for rule in (*SHAPES, *PLACES, *extra_rules):
        for literal in rule.literals:
            if len(literal) < 2:
                raise ValueError(f"rule {rule.kind}: a literal has at least 2 characters, found {literal!r}")
            finders[literal.lower()].append(_finder(rule))
    for literal in NAME_LITERALS:
        finders[literal].extend((find_named, find_value_before_name))
    finders["://"].append(find_in_url)
    finders[_MARKER_LITERAL] = []
    packed = packings((*SHAPES, *PLACES, *extra_rules))
    for form in packed:
        finders.setdefault(form, [])
    automaton = BytesAhoCorasick([literal.encode() for literal in finders], implementation=Implementation.DFA)
    indexes = {literal: index for index, literal in enumerate(finders)}
    return (
        [tuple(found) for found in finders.values()],
        {indexes[form]: some for form, some in packed.items()},
        indexes[_MARKER_LITERAL],
        automaton,
    )


def _is_long_word(data: bytes, span: Span) -> bool:
    """Whether a named secret is so long that looking for others inside it would cost too much."""
    return span.end - span.start > _LONG and b"-----" not in data[span.start : span.start + 64]


def _finder(rule: Rule) -> Finder:
    """What looks for one rule around a hit of its literal."""
    pattern, before, check, tail, near = rule.pattern, rule.before, rule.check, rule.tail, rule.near
    group: int | str = "secret" if "secret" in pattern.groupindex else 0
    match = pattern.match

    def find(data: bytes, start: int, end: int) -> Span | None:
        if before:
            tries = (match(data, offset) for offset in range(max(0, start - before), start + 1))
            found = next((found for found in tries if found is not None and found.end() >= end), None)
        else:
            found = match(data, start)
        if found is None:
            return None
        first, last = found.span(group)
        if (check is not None and not check(data[first:last])) or is_marked(data[first:last]):
            return None
        if near is not None and not near.search(data, max(0, first - 200), last + 200):
            return None
        if tail is not None:
            more = tail.match(data, last)
            last = more.end() if more else last
        return Span(first, last, rule.kind, 0)

    return find


def _without_overlaps(data: bytes, spans: list[Span]) -> list[Span]:
    """The widest spans; a shape wins over a name where it covers all that matters of the named value."""
    spans.sort(key=lambda span: (span.start, -span.end, span.rank))
    kept = [spans[0]]
    for span in spans[1:]:
        last = kept[-1]
        if span.start >= last.end:
            kept.append(span)
        elif span.end > last.end:
            kept[-1] = last._replace(end=span.end)
        elif span.rank < last.rank and _NOTHING_LEFT.fullmatch(
            data[last.start : span.start] + data[span.end : last.end]
        ):
            kept[-1] = span
    return kept
