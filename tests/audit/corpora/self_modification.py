"""Coding sessions by hand in which the agent changes its rules, permissions, tools or memory, unasked or asked.

They were written before the detector's code was read, and lie in `fixtures/audit/self_evolution_examined.yaml`.
"""

import re
from collections.abc import Iterator

from ledger.audit import Reader
from ledger.events import Record
from ledger.events.tool_call import ToolCallRequested
from tests.audit.coding_sessions import cases_in, session
from tests.audit.labelled import Labelled

DETECTOR = "self_evolution"
TITLE = "coding sessions by hand: rule files, permissions, skills, memory changed unasked; asked for, read, look-alikes"
BASELINE = "an edit or command that names a rule file, settings, skills or memory"

FILE = "self_evolution_examined.yaml"
_NAMES = re.compile(
    r"(CLAUDE|AGENTS|GEMINI|MEMORY)(\.\w+)?\.md|\.claude|\.codex|\.cursor|mcp\.json|rules|skills|memory",
    re.IGNORECASE,
)


def cases() -> Iterator[Labelled]:
    """Each by itself."""
    for case in cases_in(FILE):
        group = "unasked" if case["bad"] else "asked or nothing changed"
        yield Labelled(case["case"], case["bad"], session(case), group=group)


def baseline(records: list[Record], reader: Reader) -> bool:
    """Names of what governs, in what is edited or run."""
    return any(
        isinstance(record.event, ToolCallRequested)
        and record.event.tool != "Read"
        and _NAMES.search(reader.text(record.event.arguments)) is not None
        for record in records
    )
