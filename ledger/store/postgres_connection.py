"""Connections to PostgreSQL: the pool, the tables, and what an error says of the statement that it ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
from eventsourcing.persistence import PersistenceError
from eventsourcing.postgres import ConnectionPool, PostgresDatastore
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import Int8BinaryDumper

from ledger.errors import StoreUnavailableError
from ledger.store.rows import STORE_IS_CLOSED

_TABLES = Path(__file__).with_name("postgres_tables.sql")
_POOL_SIZE = 8
_TIMEOUT_S = 10

# A client that stops in the middle of a transaction must not keep the others from writing for ever.
_SESSION = """
    set default_transaction_isolation = 'read committed';
    set lock_timeout = '60s';
    set idle_in_transaction_session_timeout = '15s'
"""
_CREATION_LOCK = "select pg_advisory_xact_lock(x'6c656467'::bigint << 32)"


class LedgerDatastore(PostgresDatastore):
    """The library's datastore, with a pool that is opened by URL."""

    def __init__(self, url: str) -> None:
        super().__init__(dbname="", host="", port="", user="", password="", originator_id_type="text")
        self._url = url
        self._is_closed = False
        self.pool = ConnectionPool(
            url,
            connection_class=psycopg.Connection[DictRow],
            kwargs={"row_factory": dict_row, "client_encoding": "utf8", "connect_timeout": _TIMEOUT_S},
            min_size=1,
            max_size=_POOL_SIZE,
            open=False,
            configure=_configure,
            timeout=_TIMEOUT_S,
        )

    @contextmanager
    def get_connection(self) -> Iterator[psycopg.Connection[DictRow]]:
        """A connection of the pool. Raises StoreUnavailableError after `close`: the pool would say that it is lost."""
        if self._is_closed:
            raise StoreUnavailableError(STORE_IS_CLOSED)
        with super().get_connection() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection, for good."""
        self._is_closed = True
        super().close()

    def register_type_adapters(self) -> None:
        """None: rows go in as arrays of plain types."""

    def create_tables(self) -> None:
        """Make the ledger's tables where they do not exist yet. Raises StoreUnavailableError."""
        try:
            with psycopg.connect(self._url, client_encoding="utf8", connect_timeout=_TIMEOUT_S) as connection:
                encoding = connection.info.parameter_status("server_encoding")
                if encoding != "UTF8":
                    raise StoreUnavailableError(f"the database has encoding {encoding}: a ledger needs UTF8")
                connection.execute(_CREATION_LOCK)  # of processes that start at once, one makes the tables
                if not _holds_ledger(connection):
                    connection.execute(_TABLES.read_bytes())
        except psycopg.Error as error:
            raise StoreUnavailableError(f"the database cannot be used as a ledger: {error}") from error


def _configure(connection: psycopg.Connection[DictRow]) -> None:
    connection.autocommit = True
    connection.adapters.register_dumper(int, Int8BinaryDumper)  # one type for all numbers: one statement
    connection.execute(_SESSION)


def _holds_ledger(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("select to_regclass('ledger_meta') is not null").fetchone()
    return bool(row and row[0])


def is_lost_connection(error: PersistenceError) -> bool:
    """Whether the statement may have been on its way when the connection was lost."""
    cause = error.__cause__
    if isinstance(cause, psycopg_pool.PoolTimeout | psycopg_pool.PoolClosed):
        return False  # there was no connection to lose
    if isinstance(cause, psycopg.OperationalError):
        return cause.sqlstate is None or cause.sqlstate.startswith(("08", "57P"))
    return isinstance(cause, psycopg.InterfaceError)


def was_undone(error: PersistenceError) -> bool:
    """Whether the database rolled back for a passing reason: a deadlock, a failed serialization."""
    cause = error.__cause__
    return isinstance(cause, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected)
