"""Exported traces: JSON lines or lists of `trace` and `trace.span`, or the dump of a tracing processor.

Spans arrive child first. Those of a root are held until it ends, and then told from the outside in.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ledger.events import Draft, Source
from ledger.events.canonical import canonical_json
from ledger.importers import Desk, Item
from ledger.importers._files import open_source
from ledger.importers._harness.values import record, words
from ledger.importers._json_pieces import Torn, json_pieces
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._openai_agents.items import FORMAT
from ledger.importers._openai_agents.trace import Span, TraceTeller

_HELD = 20_000
_STARTS_KEPT = 20_000
_BATCH = re.compile(rb'\{\s*"data"\s*:')  # what the SDK's own exporter sends
_EVENTS = frozenset({"trace_start", "trace_end", "span_start", "span_end"})


def is_span_entry(entry: Any) -> bool:
    """Whether a value is a trace or a span as the SDK exports it, alone or with a mark of start or end."""
    if not isinstance(entry, dict):
        return False
    if isinstance(entry.get("ev"), str) and entry["ev"] in _EVENTS:
        return True
    kind = entry.get("object")
    return (kind == "trace" and "workflow_name" in entry) or (kind == "trace.span" and "trace_id" in entry)


class _Entry(NamedTuple):
    line: int
    value: Any
    raw: bytes


def span_items(path: Path, desk: Desk, start: bytes) -> Iterator[Item]:
    """The traces of a file."""
    reader = _Reader(desk)
    for entry in _entries(path, desk, start):
        if isinstance(entry, Item):
            yield entry
        else:
            desk.tally.lines += 1
            yield from reader.take(entry)
    yield from reader.finish()


def _entries(path: Path, desk: Desk, start: bytes) -> Iterator[_Entry | Item]:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.partition(b"\n")[0].strip()
    is_lines = first[:1] == b"{" and first != b"{" and not _BATCH.match(text)
    with open_source(path) as stream:
        if is_lines:
            for one in json_lines(stream):
                if isinstance(one, Damage):
                    yield _damage(desk, one.number, one.reason, one.raw)
                else:
                    yield _Entry(one.number, one.value, one.raw)
            return
        number = 0
        for piece in json_pieces(stream, frozenset({"data"})):
            if isinstance(piece, Torn):
                yield _damage(desk, None, piece.reason, piece.raw)
                continue
            number += 1
            yield _Entry(number, piece.value, canonical_json(piece.value))


def _damage(desk: Desk, line: int | None, reason: str, raw: bytes) -> Item:
    draft = Draft(desk.damage(line, reason, raw), source=Source(FORMAT, desk.file, None, line))
    key = f"damage:{line or 0}:{desk.keep.digest(raw)[:16]}"
    return Item(desk.fallback_session(FORMAT), key, [draft], line, raw)


class _Reader:
    """Puts spans into their trees."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._tellers: OrderedDict[str, TraceTeller] = OrderedDict()
        self._held: dict[str, list[Span]] = {}
        self._count = 0
        self._told: OrderedDict[str, None] = OrderedDict()
        self._begun: OrderedDict[str, _Entry] = OrderedDict()
        self._trace: str | None = None

    def take(self, entry: _Entry) -> Iterator[Item]:
        """One entry."""
        value, event = record(entry.value), record(entry.value).get("ev")
        if event == "span_end":
            span, more = record(value.get("export")), record(value.get("not_exported"))
        else:
            span, more = value, {}
        kind = f"{event}" if isinstance(event, str) and event in _EVENTS else words(value.get("object"))
        self._desk.tally.native[(kind or "none")[:60]] += 1
        if event == "span_start":
            self._begun[words(value.get("id")) or f"line {entry.line}"] = entry
            if len(self._begun) > _STARTS_KEPT:
                self._begun.popitem(last=False)
        elif kind in ("trace", "trace_start"):
            self._trace = words(span.get("id"))
            yield from self._teller(self._trace).trace(span, entry.line, entry.raw)
        elif span.get("object") == "trace.span":
            yield from self._span(span, more, entry)
        else:
            known = event == "trace_end"
            name = (kind or "none")[:60]
            yield self._teller(words(span.get("id")) if known else None).other(name, value, entry.line, known)

    def finish(self) -> Iterator[Item]:
        """Spans whose parent or root never came, and spans that began and never ended."""
        yield from self._release()
        for name, entry in self._begun.items():
            teller = self._teller(self._trace)
            yield teller.other("span_start", record(entry.value), entry.line, True, f"begun:{name}")

    def _span(self, fields: dict[str, Any], more: dict[str, Any], entry: _Entry) -> Iterator[Item]:
        span_id = words(fields.get("id")) or f"line-{entry.line}"
        self._begun.pop(span_id, None)
        parent = words(fields.get("parent_id"))
        span = Span(span_id, parent, fields, more, entry.line, entry.raw)
        data = record(fields.get("span_data"))
        self._desk.tally.native[f"span:{(words(data.get('type')) or 'none')[:60]}"] += 1
        if parent is None or parent in self._told:
            yield from self._tell(span)
            return
        self._held.setdefault(parent, []).append(span)
        self._count += 1
        if self._count > _HELD:
            yield from self._release()

    def _tell(self, root: Span) -> Iterator[Item]:
        """A span and all that is held below it."""
        teller = self._teller(words(root.fields.get("trace_id")))
        stack: list[tuple[Span, bool]] = [(root, False)]
        while stack:
            span, is_done = stack.pop()
            if is_done:
                yield from teller.leave(span)
                continue
            self._told[span.id] = None
            if len(self._told) > _HELD * 5:
                self._told.popitem(last=False)
            below = self._held.pop(span.id, [])
            self._count -= len(below)
            yield from teller.enter(span, below)
            stack.append((span, True))
            stack.extend((one, False) for one in reversed(below))

    def _release(self) -> Iterator[Item]:
        """Tell all that is held; a parent that is held goes before its children."""
        held = {span.id for spans in self._held.values() for span in spans}
        for parent in [one for one in self._held if one not in held]:
            for span in self._held.pop(parent, []):
                self._count -= 1
                yield from self._tell(span)
        while self._held:  # spans that are their own ancestors
            for span in self._held.pop(next(iter(self._held))):
                self._count -= 1
                yield from self._tell(span)

    def _teller(self, trace: str | None) -> TraceTeller:
        name = trace or self._trace or self._desk.fallback_session(FORMAT)
        if name not in self._tellers:
            self._tellers[name] = TraceTeller(self._desk, name, lambda parent: self._held.get(parent, ()))
            if len(self._tellers) > 200:
                self._tellers.popitem(last=False)
        return self._tellers[name]
