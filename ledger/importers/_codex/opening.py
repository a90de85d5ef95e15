"""How a Codex thread begins: its meta record, its parent, and the thread it continues."""

from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft
from ledger.events.session import SessionForked, SessionStarted
from ledger.importers._codex.answers import Requests
from ledger.importers._codex.governance import Governance
from ledger.importers._codex.history import History, base_of, inherited_rows
from ledger.importers._codex.row import Row, Scribe, count_or_none, text_or_none

_USED = (
    "id",
    "timestamp",
    "cwd",
    "cli_version",
    "model_provider",
    "base_instructions",
    "instructions",
    "parent_thread_id",
)


class Opening:
    """The first `session_meta` row of a thread."""

    def __init__(
        self, scribe: Scribe, governance: Governance, requests: Requests, history: History, path: Path
    ) -> None:
        self._scribe = scribe
        self._governance = governance
        self._requests = requests
        self._history = history
        self._path = path
        self.done = False
        """Whether the thread has begun."""
        self.own_from = 0
        """First ordinal of the thread's own; what comes before it was copied from its parent."""

    def drafts(self, row: Row) -> Iterator[Draft]:
        """Session started, forked, and the instructions it starts with."""
        self.done = True
        meta = row.payload
        source = meta.get("source")
        subagent = source.get("subagent") if isinstance(source, dict) else None
        spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
        spawn = spawn if isinstance(spawn, dict) else {}
        parent = text_or_none(meta.get("parent_thread_id")) or text_or_none(spawn.get("parent_thread_id"))
        if parent is not None or subagent is not None:
            self._requests.purpose = "sub-agent"
            self._scribe.depth = count_or_none(spawn.get("depth")) or 1
        named = text_or_none(meta.get("agent_path")) or text_or_none(meta.get("agent_nickname"))
        self._scribe.agent = named or text_or_none(spawn.get("agent_nickname"))
        self._requests.provider = text_or_none(meta.get("model_provider"))
        self.own_from = count_or_none(meta.get("subagent_history_start_ordinal")) or 0
        event = SessionStarted(
            harness="codex",
            harness_version=text_or_none(meta.get("cli_version")),
            agent=self._scribe.agent,
            cwd=text_or_none(meta.get("cwd")),
            parent=parent,
            environment=self._scribe.keep.json(row.rest(_USED), "session"),
        )
        yield self._scribe.draft(row, event, time=text_or_none(meta.get("timestamp")))
        yield from self._forked(row)
        yield from self._governance.base_instructions(row)

    def _forked(self, row: Row) -> Iterator[Draft]:
        """The thread that this one continues; its history is where this one's begins."""
        base = base_of(row.payload)
        origin = text_or_none(row.payload.get("forked_from_id")) or (base[0] if base is not None else None)
        if origin is None:
            return
        item = f"o:{base[1] - 1}" if base is not None else None
        known = self._scribe.desk.lookup(origin, item) if item is not None else None
        seq = known.seq if known is not None else None
        yield self._scribe.draft(row, SessionForked(origin=origin, origin_seq=seq, origin_item=item))
        if base is None:
            return
        rows = inherited_rows(self._path, row.payload)
        if rows is None:
            self._history.missing = f"history before the fork from {origin}, whose file is not there"
            self._scribe.desk.tally.notes.append(
                f"{self._scribe.session} continues {origin}, whose rollout file was not found"
            )
        else:
            self._history.replay(rows)
