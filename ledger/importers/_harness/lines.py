"""A file of JSON lines as entries: records, and the places that are none. Counts lines; knows no format."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.importers import Desk, Item
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, json_lines


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a file, or one damaged place."""

    line: int
    """Line, from 1."""

    key: str
    """Name by its place: line, and number within the line when several share it."""

    value: dict[str, Any] | None
    """The record; None for a place that is none."""

    raw: bytes
    """Its bytes."""

    damage: str | None
    """What is wrong; with a value: what was mended."""


def entries(path: Path, desk: Desk) -> Iterator[Entry]:
    """The entries of a file in order."""
    line, index = 0, 0
    with open_source(path) as stream:
        for one in json_lines(stream):
            index = index + 1 if one.number == line else 0
            line = one.number
            desk.tally.lines = max(desk.tally.lines, line)
            key = f"line:{line}" + (f".{index}" if index else "")
            if isinstance(one, Damage):
                yield Entry(line, key, None, one.raw, one.reason)
            elif not isinstance(one.value, dict):
                reason = f"expected a JSON object, found {type(one.value).__name__}"
                yield Entry(line, key, None, one.raw, reason)
            else:
                yield Entry(line, key, one.value, one.raw, one.repaired)


def damage_item(desk: Desk, session: str, entry: Entry, format_name: str) -> Item:
    """The item that keeps a damaged or mended place."""
    reason = entry.damage or "unreadable"
    repaired = entry.value is not None
    event = desk.damage(
        entry.line, reason, entry.raw, repaired=repaired, lossy=repaired and "UTF-8" in reason
    )
    source = Source(format_name, desk.file, None, entry.line)
    return Item(session, f"damage:{entry.key}", [Draft(event, source=source)], entry.line, entry.raw)
