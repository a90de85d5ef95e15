"""Connections to SQLite: WAL, prepared statements, and what reading a damaged file raises."""

import sqlite3
import time

from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool

_LOCK_TIMEOUT_S = 60
_CACHE_KIB = (
    8192  # holds the index of the contents of 100,000 events; SQLite's own 2,000 make it read pages again
)

DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises: its bytes can stand in a message of SQLite that is then no text."""


def connect(path: str) -> sqlite3.Connection:
    """A connection as the ledger wants it: WAL, NORMAL, and statements that stay prepared."""
    connection = sqlite3.connect(
        path, check_same_thread=False, isolation_level=None, cached_statements=256, timeout=_LOCK_TIMEOUT_S
    )
    try:
        switch_to_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    except DAMAGE:
        connection.close()
        raise
    return connection


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait when two connections switch a new file at once: it fails, and we wait."""
    give_up_at = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.005)


class LedgerPool(SQLiteConnectionPool):
    """The library's pool caches one statement a connection; ours come from `connect`."""

    def _create_connection(self) -> SQLiteConnection:
        self.is_journal_mode_wal = True
        return SQLiteConnection(sqlite_conn=connect(self.db_name), max_age=self.max_age)
