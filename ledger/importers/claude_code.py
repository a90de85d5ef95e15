"""Claude Code sessions: `~/.claude/projects/<project>/<session>.jsonl`, and their sub-agents' files.

Reads both schema generations: the older one (messages only) and the one that journals its requests (2.1.3xx).
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.events.keeping import SourceKept
from ledger.events.record import Grade
from ledger.importers import Desk, Item, Sniff
from ledger.importers._claude.file import LogFile
from ledger.importers._claude.session import FORMAT
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, json_lines

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = "Claude Code session logs (1.0.100, 2.0.60, 2.1.197, 2.1.332)"
GRADE: Grade = "near-wire"
CANNOT_SHOW = (
    "Before version 2.1.3xx: system prompt, tool schemas, parameters and most reminders of a model request.",
    "The billing block at the head of the system prompt, and the metadata of a request, in any version.",
    "Raw response bytes, chunk times, and requests that were retried below the harness.",
    "Requests for titles and for the summary of a compaction (the journal leaves them out).",
    "A rewind leaves no record: it is inferred from a prompt that continues an older one.",
    "Before version 2.1.3xx: who allowed a tool call; a refusal is inferred from its result.",
    "In versions 1.0 and 2.0, output tokens of streamed answers: a lower bound is logged.",
    "In version 2.0, the prompt that a sub-agent was given.",
    "What a person changed in a call's arguments when allowing it.",
)

_ROW = re.compile(
    rb'"(?:parentUuid|leafUuid|isSidechain|logicalParentUuid|isSnapshotUpdate)"\s*:'
    rb'|"type"\s*:\s*"(?:queue-operation|file-history-snapshot|file-history-delta|last-prompt|api-request(?:-shape|-blob)?|cost-state)"'
)
_TYPE = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|system|summary|attachment|progress|queue-operation|file-history-snapshot'
    rb"|file-history-delta|last-prompt|mode|permission-mode|api-request(?:-shape|-blob)?|cost-state|tools-used"
    rb'|atis-latch|custom-title|agent-name|ai-title|pr-link|tag|content-replacement)"'
)
_BARE = re.compile(
    rb'\A\{"type":"(?:user|assistant)","timestamp":"[^"]{1,40}","message":\{"(?:role|content)":'
)
"""A row whose ids somebody took away."""
_COMPANION = re.compile(r"agent-[^/]+\.meta\.json$")


def recognizes(sniff: Sniff) -> bool:
    """JSON lines with Claude Code's row types and its tree of uuids."""
    if _COMPANION.search(sniff.path.name):
        return b'"agentType"' in sniff.start
    start = sniff.start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0\r\n\t ")
    rows = bool(_TYPE.search(sniff.start)) and bool(_ROW.search(sniff.start))
    return start.startswith(b"{") and (rows or bool(_BARE.match(start)))


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """Events of the file's sessions in file order; the rows of one answer are put together first."""
    yield from _companion(path, desk) if _COMPANION.search(path.name) else LogFile(path, desk).items()


def _companion(path: Path, desk: Desk) -> Iterator[Item]:
    """`agent-<id>.meta.json`: what started a sub-agent. The sub-agent's own file uses it too."""
    parent = path.parent.parent.name if path.parent.name == "subagents" else desk.fallback_session(FORMAT)
    session = desk.session_name(f"{parent}.{path.name.removesuffix('.meta.json')}")
    with open_source(path) as stream:
        for entry in json_lines(stream):
            desk.tally.lines = entry.number
            source = Source(FORMAT, desk.file, "meta", entry.number)
            if isinstance(entry, Damage):
                event: Any = desk.damage(entry.number, entry.reason, entry.raw)
            else:
                desk.tally.native["agent-meta"] += 1
                event = SourceKept(
                    native_type="agent-meta", recognized=True, body=desk.keep.json(entry.value)
                )
            key = f"meta:{hashlib.sha256(entry.raw).hexdigest()[:16]}"
            yield Item(
                session,
                key,
                [Draft(event, source=source, depth=1, grade="semantic")],
                entry.number,
                entry.raw,
            )
