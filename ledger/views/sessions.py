"""The list of sessions: one row for each, kept up with the ledger by position. Made from records, remade at will.

Each batch of records and the position that it ends at commit in one transaction, so a crash neither loses nor doubles
a record. The file is bound to its store, and to the last record that it shows: another store, or another history, makes
it start again from nothing.
"""

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError, StoreUnavailableError
from ledger.store import EventStore, Problem
from ledger.store.mapper import decode_record, record_hash
from ledger.views.session_row import Charge, SessionRow, apply

VERSION = 2
"""Number of what the rows mean: another number is another file."""

_BATCH = 2000
_BUSY_TIMEOUT_S = 30

_TABLES = """
create table if not exists sessions (
    id text primary key,
    body blob not null,
    started_at text,
    parent text,
    head_seq integer not null
) without rowid;
create table if not exists calls (
    session text not null,
    call_id blob not null,
    charge blob not null,
    primary key (session, call_id)
) without rowid;
create table if not exists verifications (
    session text primary key,
    seq integer not null,
    problems integer not null
) without rowid;
create table if not exists shown (
    only_one integer primary key check (only_one = 1),
    store text not null,
    version integer not null,
    position integer not null,
    hash text not null
) without rowid;
create index if not exists sessions_by_time on sessions (started_at, id);
create index if not exists sessions_by_parent on sessions (parent, id);
"""


class SessionsView:
    """The list of sessions of one store, in a file of its own. Use as a context manager, or call `close()`."""

    def __init__(self, home: Path, store: EventStore) -> None:
        self._path = home / "views" / f"sessions-v{VERSION}.sqlite"
        self._store = store
        self._identity = hashlib.sha256(store.salt).hexdigest()
        try:
            self._connection = self._open()
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"{self._path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError:
            self._connection = self._replaced()

    def __enter__(self) -> "SessionsView":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- keeping up --------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Position of the last record that the rows show."""
        found = self._connection.execute("select position from shown").fetchone()
        return int(found[0]) if found else 0

    def catch_up(self, progress: Callable[[int], None] = lambda position: None) -> int:
        """Take in all records that came since; give the position reached."""
        try:
            while self._batch():
                progress(self.position)
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"{self._path} cannot be written: {error}") from error
        except sqlite3.DatabaseError:
            # The file is damaged; nothing in it is worth more than the time to make it again.
            self._connection.close()
            self._connection = self._replaced()
            while self._batch():
                progress(self.position)
        return self.position

    def rebuild(self) -> int:
        """Forget all rows and make them again from the first record."""
        with self._transaction():
            self._forget()
        return self.catch_up()

    def _batch(self) -> bool:
        """Take in some records, in one transaction; whether there may be more."""
        with self._transaction():
            position = self._checked_position()
            rows = self._store.recorder.select_notifications(
                position, _BATCH, None, (), inclusive_of_start=False
            )
            if not rows:
                return False
            touched: dict[str, SessionRow] = {}
            for row in rows:
                session = str(row.originator_id)
                if session not in touched:
                    touched[session] = self.row(session) or SessionRow(session)
                entry = touched[session]
                try:
                    apply(entry, decode_record(row), self._earlier_charge, self._remember_charge)
                except LedgerError:
                    entry.head_seq, entry.damaged = row.originator_version, entry.damaged + 1
            self._connection.executemany(
                "insert or replace into sessions values (?, ?, ?, ?, ?)",
                [
                    (row.id, row.packed(), row.started_at, row.parent, row.head_seq)
                    for row in touched.values()
                ],
            )
            last = rows[-1]
            digest = record_hash(str(last.originator_id), last.originator_version, last.topic, last.state)
            self._connection.execute(
                "insert or replace into shown values (1, ?, ?, ?, ?)",
                (self._identity, VERSION, last.id, digest.hex()),
            )
        return len(rows) == _BATCH

    def _checked_position(self) -> int:
        """Where the rows stand; 0, and no rows, when they are of another store or another history."""
        found = self._connection.execute("select store, version, position, hash from shown").fetchone()
        if found is None:
            self._forget()
            return 0
        store, version, position, digest = found
        if (store, version) == (self._identity, VERSION):
            rows = self._store.recorder.select_notifications(
                position - 1, 1, None, (), inclusive_of_start=False
            )
            if rows and rows[0].id == position:
                row = rows[0]
                if (
                    record_hash(str(row.originator_id), row.originator_version, row.topic, row.state).hex()
                    == digest
                ):
                    return int(position)
        self._forget()
        return 0

    def _forget(self) -> None:
        for table in ("sessions", "calls", "verifications", "shown"):
            self._connection.execute(f"delete from {table}")  # noqa: S608 - our own names

    def _earlier_charge(self, session: str, call_id: str) -> Charge | None:
        found = self._connection.execute(
            "select charge from calls where session = ? and call_id = ?", (session, _bytes(call_id))
        ).fetchone()
        return Charge.unpacked(found[0]) if found else None

    def _remember_charge(self, session: str, call_id: str, charge: Charge) -> None:
        self._connection.execute(
            "insert or replace into calls values (?, ?, ?)", (session, _bytes(call_id), charge.packed())
        )

    # -- reading -----------------------------------------------------------------------------------------------------

    def row(self, session: str) -> SessionRow | None:
        """The row of a session."""
        found = self._connection.execute(f"{_SELECT} where sessions.id = ?", (session,)).fetchone()
        return _row(found) if found else None

    def rows(self, last: int | None = None) -> Iterator[SessionRow]:
        """The rows, or the `last` of them: the first started first; those that tell no time before all others."""
        ordered = f"{_SELECT} order by sessions.started_at, sessions.id"
        if last is None:
            return self._rows(ordered, ())
        newest = f"{_SELECT} order by sessions.started_at desc, sessions.id desc limit ?"
        return reversed(list(self._rows(newest, (last,))))

    def children(self, session: str) -> Iterator[SessionRow]:
        """Rows of the sessions that a session delegated to."""
        return self._rows(f"{_SELECT} where sessions.parent = ? order by sessions.id", (session,))

    def _rows(self, query: str, values: tuple[str | int, ...]) -> Iterator[SessionRow]:
        with contextlib.closing(self._connection.cursor()) as cursor:
            for found in cursor.execute(query, values):
                yield _row(found)

    # -- verification ------------------------------------------------------------------------------------------------

    def note_verification(self, problems: Iterable[Problem], session: str | None = None) -> None:
        """Remember what a verification of a session, or of the whole ledger, found as far as the rows show it."""
        by_session = Counter(problem.session for problem in problems)
        with self._transaction():
            if session is None and None not in by_session:
                self._connection.execute(
                    "insert or replace into verifications select id, head_seq, 0 from sessions order by id"
                )
            elif session is None:
                self._connection.execute("delete from verifications")  # whose damage it is, nobody can say
            else:
                by_session.setdefault(session, 0)
            self._connection.executemany(
                "insert or replace into verifications select id, head_seq, ? from sessions where id = ?",
                [(count, name) for name, count in by_session.items() if name is not None],
            )

    # -- the file ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """One writer at a time, so that two processes which catch up together do not count twice."""
        self._connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"{self._path.parent} cannot be made: {error.strerror}") from error
        connection = sqlite3.connect(
            self._path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            connection.execute("pragma journal_mode=wal")
            connection.execute("pragma synchronous=normal")
            connection.executescript(_TABLES)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _replaced(self) -> sqlite3.Connection:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return self._open()


_SELECT = """
select sessions.id, sessions.body, verifications.seq, verifications.problems
from sessions left join verifications on verifications.session = sessions.id
"""


def _row(found: tuple[Any, ...]) -> SessionRow:
    identity, body, verified_seq, problems = found
    row = SessionRow.unpacked(identity, body)
    row.verified_seq, row.problems = verified_seq, problems or 0
    return row


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _column(text: str | None) -> str | None:
    """Text that a database takes: half characters become question marks. It is only searched and sorted by."""
    return None if text is None else text.encode("utf-8", "replace").decode()
