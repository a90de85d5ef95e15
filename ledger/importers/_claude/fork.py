"""Finds the session that a file continues: a fork repeats the rows of its origin under their old ids."""

import re
from collections.abc import Iterator
from pathlib import Path

from ledger.events import Draft, Source
from ledger.events.session import SessionForked
from ledger.importers._claude.row import Row, name_of
from ledger.importers._claude.session import FORMAT, SessionReader
from ledger.intake import Desk, Item

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Fork:
    """Follows the rows of one file until they part from those of another session.

    Every session claims its first row and its compactions, which is where a copy may begin. Who finds a claim
    taken shares rows with the owner. The copy is the one whose file began after its first row was written;
    where neither claim nor time tells, some versions name the origin in the rows.
    """

    def __init__(self, desk: Desk, session: str) -> None:
        self._desk = desk
        self._session = session
        self._began: str | None = None
        self._owner: str | None = None
        self._named: str | None = None
        self._last: str | None = None
        self._is_copy = False
        self._started = False
        self._done = False

    def take(self, reader: SessionReader, row: Row) -> Iterator[Item]:
        """Look at the next row of the file's own session; give the fork when it shows."""
        if self._began is None:
            self._began = row.time
        if row.uuid is None or not is_session_id(row.uuid):
            return  # hand-written logs count their rows, and all begin alike
        if not self._started or (self._done and row.is_boundary):
            self._start(reader, row)
        if self._done:
            return
        if self._is_shared(row):
            self._last = row.uuid
            self._name_origin(row)
        else:
            if self._is_copy:
                reader.claims.append(
                    f"root:{row.uuid}"
                )  # a fork of this fork repeats it, and its origin does not
            yield from reader.settle()
            yield from self.finish()

    def _start(self, reader: SessionReader, row: Row) -> None:
        """A row with which a copy may begin."""
        claim = f"root:{row.uuid}"
        owner = self._desk.claimed(claim)
        if owner is None:
            reader.claims.append(claim)
        if not self._started:
            self._is_copy = row.time is not None and self._began is not None and row.time < self._began
        self._started = True
        self._owner = None if owner == self._session else owner
        self._done = self._owner is None and not self._is_copy

    def _is_shared(self, row: Row) -> bool:
        if self._owner is not None and self._desk.recorded(self._owner, row.uuid or ""):
            return True
        if not self._is_copy or row.time is None or self._began is None or row.time >= self._began:
            return False
        if self._last is not None and self._named is None:
            owner = self._desk.claimed(f"root:{row.uuid}")
            self._owner = self._owner if owner in (None, self._session) else owner
        return True

    def _name_origin(self, row: Row) -> None:
        for field in ("requestSessionId", "sessionId"):
            named = name_of(row.data.get(field))
            if named is not None and self._desk.session_name(named) != self._session:
                self._named = self._desk.session_name(named)

    def finish(self) -> Iterator[Item]:
        """The fork, once the last shared row is known."""
        if self._done or self._last is None:
            return
        self._done = True
        if self._owner is not None and not self._is_copy and self._named is None:
            yield from self._item(self._owner, self._session)
        elif (origin := self._named or self._owner) is not None:
            yield from self._item(self._session, origin)

    def _item(self, fork: str, origin: str) -> Iterator[Item]:
        found = self._desk.lookup(origin, self._last or "")
        event = SessionForked(origin=origin, origin_seq=found.seq if found else None, origin_item=self._last)
        draft = Draft(event, source=Source(FORMAT, self._desk.file), grade="semantic")
        yield Item(fork, f"forked:{origin}:{event.origin_seq}", [draft])


def is_session_id(stem: str) -> bool:
    """Whether a file's name is a session id, as Claude Code names its files."""
    return _UUID.fullmatch(stem) is not None


def stem_of(path: Path) -> str:
    """The file's name without its endings (`.jsonl`, `.jsonl.gz`)."""
    return path.name.split(".jsonl")[0]
