"""One log file: finds out which session each row belongs to, and gives each row its identity."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft, Source
from ledger.importers._claude.file_history import Backups
from ledger.importers._claude.fork import Fork, is_session_id, stem_of
from ledger.importers._claude.row import Row, first_text, name_of
from ledger.importers._claude.session import FORMAT, Origin, SessionReader
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, Line, json_lines
from ledger.intake import Desk, Item

_HELD_ROWS = 500
_HELD_BYTES = 16 * 1024 * 1024
_SIDE_ROWS_KEPT = 50_000
_READERS_KEPT = 200
_ROWS_KEPT = 100_000
_JOURNAL_NAMES = {"api-request": "id", "api-request-blob": "hash", "api-request-shape": "shapeHash"}


class LogFile:
    """Reads one file into items."""

    def __init__(self, path: Path, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._stem = stem_of(path)
        self._is_agent_file = self._stem.startswith("agent-")
        self._main = desk.session_name(self._stem) if is_session_id(self._stem) else None
        self._readers: OrderedDict[str, SessionReader] = OrderedDict()
        self._side_of: OrderedDict[str, str] = OrderedDict()
        self._unnamed: OrderedDict[bytes, int] = OrderedDict()
        self._named: OrderedDict[str, int] = OrderedDict()
        self._held: list[Line | Damage] = []
        self._held_bytes = 0
        self._fork: Fork | None = None
        self._backups = Backups(desk, path, self._stem)

    def items(self) -> Iterator[Item]:
        """All items of the file, in its order."""
        with open_source(self._path) as stream:
            for entry in json_lines(stream):
                self._desk.tally.lines = max(self._desk.tally.lines, entry.number)
                if self._main is None and (named := _session_in(entry)) is not None:
                    self._main = self._desk.session_name(named)
                elif self._main is None and len(self._held) < _HELD_ROWS and self._held_bytes < _HELD_BYTES:
                    self._held.append(entry)  # rows before the first one that names its session
                    self._held_bytes += len(entry.raw)
                    continue
                yield from self._release()
                yield from self._entry(entry)
        yield from self._release()
        for reader in self._readers.values():
            yield from reader.finish()
        if self._fork is not None:
            yield from self._fork.finish()
        self._backups.finish()

    def _release(self) -> Iterator[Item]:
        held, self._held = self._held, []
        for entry in held:
            yield from self._entry(entry)

    def _entry(self, entry: Line | Damage) -> Iterator[Item]:
        if isinstance(entry, Damage):
            yield self._damage(entry.number, entry.reason, entry.raw)
        elif not isinstance(entry.value, dict):
            found = type(entry.value).__name__
            yield self._damage(entry.number, f"expected a JSON object, found {found}", entry.raw)
        else:
            if entry.repaired is not None:
                yield self._damage(entry.number, entry.repaired, entry.raw, repaired=True)
            yield from self._row(Row(entry.value, entry.number, entry.raw, self._key(entry)))

    def _row(self, row: Row) -> Iterator[Item]:
        session, agent = self._lane(row)
        reader = self._readers.get(session)
        if reader is None:
            origin = None if agent is None else self._origin(row, agent)
            reader = SessionReader(self._desk, session, origin, self._backups)
            self._readers[session] = reader
            yield reader.start(row)
            if len(self._readers) > _READERS_KEPT:
                yield from self._readers.popitem(last=False)[1].finish()
        if session == self._main and not self._is_agent_file:
            self._fork = self._fork or Fork(self._desk, session)
            yield from self._fork.take(reader, row)
        row.is_repeated = self._was_read(row)
        yield from reader.take(row)

    def _was_read(self, row: Row) -> bool:
        if row.uuid is None:
            return False
        content = hash(row.raw)
        if self._named.get(row.key) == content:
            return True
        self._named[row.key] = content
        if len(self._named) > _ROWS_KEPT:
            self._named.popitem(last=False)
        return False

    def _damage(self, line: int, reason: str, raw: bytes, *, repaired: bool = False) -> Item:
        lossy = "UTF-8" in reason  # what was not UTF-8 was read as U+FFFD
        event = self._desk.damage(line, reason, raw, repaired=repaired, lossy=lossy)
        source = Source(FORMAT, self._desk.file, None, line)
        key = f"damage:{line}:{hashlib.sha256(raw).hexdigest()[:16]}"
        return Item(self._root(), key, [Draft(event, source=source, grade="semantic")], line, raw)

    def _key(self, entry: Line) -> str:
        """Identity of a row: its id, its name in the journal, or its bytes and how often they came before."""
        data = entry.value
        kind = data.get("type")
        named = name_of(data.get("uuid"))
        if named is None and isinstance(kind, str) and kind in _JOURNAL_NAMES:
            name = name_of(data.get(_JOURNAL_NAMES[kind]))
            named = None if name is None else name if kind == "api-request" else f"{kind}:{name}"
        if named is not None:
            return named
        digest = hashlib.sha256(entry.raw).digest()[:16]
        before = self._unnamed.pop(digest, 0)
        self._unnamed[digest] = before + 1
        if len(self._unnamed) > _ROWS_KEPT:
            self._unnamed.popitem(last=False)
        return f"row:{digest.hex()}:{before}"

    def _root(self) -> str:
        if self._main is None:
            self._main = self._desk.fallback_session(FORMAT)
        return self._main

    def _lane(self, row: Row) -> tuple[str, str | None]:
        """Session and sub-agent of a row: sub-agents have files of their own, or lie inside in old logs."""
        root = self._root_of(row)
        is_side = row.data.get("isSidechain") is True
        agent = name_of(row.data.get("agentId"))
        if self._is_agent_file:
            agent = agent or self._stem.removeprefix("agent-")
        elif not is_side:
            return root, None
        elif agent is None:
            agent = self._side_chain(row)
            return self._desk.session_name(f"{root}.side-{agent}"), agent
        return self._desk.session_name(f"{root}.agent-{agent}"), agent

    def _root_of(self, row: Row) -> str:
        """A file with a session's name is that session, whatever its copied rows call themselves."""
        named = name_of(row.data.get("sessionId"))
        if named is None or is_session_id(self._stem):
            return self._root()
        return self._desk.session_name(named)

    def _side_chain(self, row: Row) -> str:
        """Old logs give side chains no name: each goes by its first row."""
        chain = self._side_of.get(row.parent) if row.parent is not None else None
        if chain is None:
            chain = (row.uuid or row.key)[:13]
        if row.uuid is not None:
            self._side_of[row.uuid] = chain
            if len(self._side_of) > _SIDE_ROWS_KEPT:
                self._side_of.popitem(last=False)
        return chain

    def _origin(self, row: Row, agent: str) -> Origin:
        root = self._root_of(row)
        meta = self._meta(agent)
        call_id = name_of(meta.get("toolUseId"))
        parent = self._readers.get(root)
        if call_id is None and parent is not None:
            call_id = parent.delegations.join(first_text(row.content))
        return Origin(root, agent, call_id, meta)

    def _meta(self, agent: str) -> dict[str, Any]:
        """Content of the `.meta.json` beside a sub-agent's file, where there is one."""
        path = self._path.with_name(f"{self._stem}.meta.json")
        if self._stem != f"agent-{agent}" or not path.is_file():
            return {}
        with open_source(path) as stream:
            for entry in json_lines(stream):
                if isinstance(entry, Line) and isinstance(entry.value, dict):
                    return entry.value
        return {}


def _session_in(entry: Line | Damage) -> str | None:
    if isinstance(entry, Damage) or not isinstance(entry.value, dict):
        return None
    return name_of(entry.value.get("sessionId"))
