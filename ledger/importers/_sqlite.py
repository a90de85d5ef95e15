"""Reads SQLite databases that others wrote: read-only, from a private copy where the file is not at rest.

Knows no format. Never runs what a database brings along (triggers, views as tables), never writes to a source.
"""

import functools
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from ledger.errors import SourceError
from ledger.importers import Sniff
from ledger.importers._files import UNPACK_ERRORS, open_source

MAGIC = b"SQLite format 3\0"
"""The first bytes of every database file."""

_COPY_TRIES = 3
_LONGEST_VALUE = 1_000_000_000
_LONGEST_STATEMENT = 100_000
_ROWS_AT_ONCE = 64
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, OverflowError)

Tables = dict[str, tuple[str, ...]]
"""Column names by table name."""


class Database:
    """An open database. Use as a context manager, or call `close()`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, folder: str | None) -> None:
        self._path = path
        self._connection = connection
        self._folder = folder

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and remove the private copy if there was one."""
        self._connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def tables(self) -> Tables:
        """Its real tables (no views). Raises SourceError when the schema cannot be read."""
        names = [
            row[0] for row in self.rows("select name from sqlite_master where type = 'table' order by name")
        ]
        found: Tables = {}
        for name in names:
            if isinstance(name, str):
                columns = self.rows("select name from pragma_table_info(?) order by cid", (name,))
                found[name] = tuple(str(row[0]) for row in columns)
        return found

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few at a time. Text that is no UTF-8 comes with surrogates. Raises SourceError."""
        try:
            with_rows = self._connection.execute(statement, values)
            while rows := with_rows.fetchmany(_ROWS_AT_ONCE):
                yield from rows
        except _DAMAGE as error:
            raise SourceError(f"{self._path} cannot be read as an SQLite database: {error}") from error

    def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        return next(self.rows(statement, values), None)


def open_database(path: Path) -> Database:
    """Open a database, unpacked when it is gzip or zstd. Raises SourceError.

    A file at rest is read where it lies. One with a write-ahead log beside it is copied first, log included: its
    newest rows stand in the log alone, and reading them in place would write to the folder.
    """
    folder: str | None = None
    try:
        if _is_packed(path) or _log_of(path) is not None:
            folder = tempfile.mkdtemp(prefix="loopledger-sqlite-")
            connection = _connect(_private_copy(path, Path(folder)), "mode=rw")
        else:
            connection = _connect(path, "mode=ro&immutable=1")
    except (*_DAMAGE, *UNPACK_ERRORS) as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise SourceError(f"{path} cannot be opened as an SQLite database: {error}") from error
    return Database(path, connection, folder)


def tables_of(sniff: Sniff) -> Tables:
    """The tables of a file that may be a database, for `recognizes`: empty when it is none. Never raises."""
    if not sniff.start.startswith(MAGIC):
        return {}
    try:
        facts = sniff.path.stat()
    except OSError:
        return {}
    return _tables_at(sniff.path, facts.st_size, facts.st_mtime_ns)


@functools.lru_cache(maxsize=8)  # every importer of databases asks about the same file
def _tables_at(path: Path, size: int, changed: int) -> Tables:
    try:
        with open_database(path) as database:
            return database.tables()
    except SourceError:
        return {}


def _is_packed(path: Path) -> bool:
    with path.open("rb") as stream:
        return not stream.read(len(MAGIC)).startswith(MAGIC[:4])


def _log_of(path: Path) -> Path | None:
    log = path.with_name(path.name + "-wal")
    return log if log.is_file() and log.stat().st_size else None


def _private_copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy.sqlite"
    for _ in range(_COPY_TRIES):
        before = _state(path)
        with open_source(path) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        log = _log_of(path)
        if log is not None:
            shutil.copyfile(log, folder / "copy.sqlite-wal")
        if _state(path) == before:
            break  # nobody wrote meanwhile: the two files belong together
    return copy


def _state(path: Path) -> tuple[int, ...]:
    log = _log_of(path)
    files = [path.stat()] if log is None else [path.stat(), log.stat()]
    return tuple(number for facts in files for number in (facts.st_size, facts.st_mtime_ns))


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{how}", uri=True, isolation_level=None)
    try:
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
        connection.execute("pragma trusted_schema = off")
        connection.execute("pragma query_only = on")
        connection.execute("pragma cell_size_check = on")
        connection.execute("select count(*) from sqlite_master").fetchone()  # opens the file for real
    except _DAMAGE:
        connection.close()
        raise
    return connection


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
