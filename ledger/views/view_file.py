"""A file of rows made from records, kept up with the ledger by position, remade at will.

Each batch of records and the position that it ends at commit in one transaction, so a crash neither loses nor doubles
a record. The file is bound to its store, and to the last record that it shows: another store, or another history, makes
it start again from nothing.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from ledger.errors import LedgerError, StoreUnavailableError
from ledger.events import Record
from ledger.store import EventStore
from ledger.store.mapper import decode_record, record_hash
from ledger.store.sqlite_connection import switch_to_wal

_BUSY_TIMEOUT_S = 60
_BATCH = 5000

_SHOWN = """
create table if not exists shown (
    only_one integer primary key check (only_one = 1),
    store text not null,
    position integer not null,
    hash text not null
) without rowid;
"""


class ViewFile:
    """The file of one view of one store. Use as a context manager, or call `close()`.

    A view gives `_names` and `_take`, or a `_batch` of its own; its tables, their names, and its own name, with a
    number that another meaning of rows raises.
    """

    _names: Sequence[str] = ()
    """Types of the events that it takes in."""

    def __init__(
        self, home: Path, store: EventStore, *, name: str, script: str, tables: Sequence[str]
    ) -> None:
        self._path = home / "views" / f"{name}.sqlite"
        self._store = store
        self._script = script
        self._tables = (*tables, "shown")
        self._identity = hashlib.sha256(store.salt).hexdigest()
        try:
            self._connection = self._open()
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"{self._path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError:
            self._connection = self._replaced()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

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
        last = self._store.last_position()
        with self._transaction():
            position = self._checked_position()
            if position >= last:
                return False
            found = self._store.recorder.select_notifications(
                position, _BATCH, last, self._names, inclusive_of_start=False
            )
            for row in found:
                try:
                    self._take(decode_record(row))
                except LedgerError:
                    continue  # `verify` names it
            more = len(found) == _BATCH
            self._show(found[-1].id if more else last)
        return more

    def _take(self, record: Record) -> None:
        """Take in one record of a type that the view names."""
        raise NotImplementedError

    def _show(self, position: int) -> None:
        """From now on the rows show everything up to a position."""
        self._connection.execute(
            "insert or replace into shown values (1, ?, ?, ?)",
            (self._identity, position, self._hash_at(position)),
        )

    def _checked_position(self) -> int:
        """Where the rows stand; 0, and no rows, when they are of another store or another history."""
        found = self._connection.execute("select store, position, hash from shown").fetchone()
        if found is not None:
            store, position, digest = found
            if store == self._identity and digest and self._hash_at(position) == digest:
                return int(position)
        self._forget()
        return 0

    def _forget(self) -> None:
        for table in self._tables:
            self._connection.execute(f"delete from {table}")  # noqa: S608 - our own names

    def _hash_at(self, position: int) -> str:
        """Hash of the record at a position; empty where there is none."""
        rows = self._store.recorder.select_notifications(position - 1, 1, None, (), inclusive_of_start=False)
        if not rows or rows[0].id != position:
            return ""
        row = rows[0]
        return record_hash(str(row.originator_id), row.originator_version, row.topic, row.state).hex()

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
            switch_to_wal(connection)
            connection.execute("pragma synchronous=normal")
            connection.executescript(self._script + _SHOWN)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _replaced(self) -> sqlite3.Connection:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return self._open()


def column(text: str) -> str:
    """Text that a database takes: half characters become question marks."""
    return text.encode("utf-8", "replace").decode()


def optional_column(text: str | None) -> str | None:
    """The same for text that may be missing."""
    return None if text is None else column(text)


def told_at(record: Record) -> str:
    """When it happened as the source says it, else when it was recorded: text that a database takes."""
    return column(record.occurred_at or record.recorded_at)
