"""pi sessions: `~/.pi/agent/sessions/--<cwd>--/<time>_<id>.jsonl`, formats 1 (a list) to 3 (a tree)."""

import re
from collections.abc import Iterator
from pathlib import Path

from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._harness.lines import damage_item, entries
from ledger.importers._harness.values import words
from ledger.importers._pi.session import SessionReader, session_of_file

FORMAT = "pi"
TITLE = "pi coding agent sessions, formats 1 to 3 (run with 0.7x)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "System prompt, tool schemas and parameters of model requests.",
    "Approvals: pi asks nobody before a tool runs, and records no policy.",
    "The model calls that write summaries of compactions and branches, and their tokens.",
    "When a request left, and how its answer streamed.",
    "That somebody went back in the tree: it shows only when an entry continues an earlier one.",
    "In a forked session: which entries are copies, unless the origin was imported before.",
)

_HEADER = re.compile(rb'\A\s*\{[^\n]{0,2000}?"timestamp"\s*:\s*"')
_SESSION = re.compile(rb'\A\s*\{\s*"type"\s*:\s*"session"\s*,')


def recognizes(sniff: Sniff) -> bool:
    """A log whose first line is a session header with a `timestamp`, `id` and `cwd`."""
    first = sniff.start.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return bool(
        _SESSION.match(first)
        and _HEADER.match(first)
        and b'"cwd"' in first
        and b'"id"' in first
        and b'"createdAt"' not in first
    )


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's items in file order."""
    reader: SessionReader | None = None
    for entry in entries(path, desk):
        value = entry.value
        header = value is not None and value.get("type") == "session"
        if reader is None:
            native = words(value.get("id")) if header and value is not None else None
            session = native or session_of_file(path.name) or desk.fallback_session(FORMAT)
            reader = SessionReader(desk, FORMAT, session)
        if entry.damage is not None:
            yield damage_item(desk, reader.story.session, entry, FORMAT)
        if value is None:
            reader.damaged()
        elif header:
            yield from reader.header(value, entry.line, entry.raw)
        else:
            yield from reader.entry(value, entry.key, entry.line, entry.raw)
