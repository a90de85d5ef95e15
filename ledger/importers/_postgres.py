"""Reads PostgreSQL databases that others wrote: one read-only transaction, a few rows at a time. Knows no format."""

import importlib
import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from ledger.errors import SourceError
from ledger.importers._files import url_without_secrets

_ROWS_AT_ONCE = 64
_TIMEOUT_S = 10

Tables = dict[str, tuple[str, ...]]
"""Column names by table name."""


def is_postgres(url: str) -> bool:
    """Whether a URL is one of PostgreSQL."""
    return url.startswith(("postgresql://", "postgres://"))


class PostgresDatabase:
    """An open database, as it stood when it was opened. Use as a context manager, or call `close()`."""

    def __init__(self, url: str) -> None:
        self._name = url_without_secrets(url)
        if importlib.util.find_spec("psycopg") is None:
            raise SourceError(f"{self._name} needs the driver: pip install 'loopledger[postgres]'")
        # The driver is an extra; `ledger.store` is the only package that may need it when it is imported.
        self._driver: Any = importlib.import_module("psycopg")
        self._numbers = itertools.count()
        try:
            self._connection = self._driver.connect(url, connect_timeout=_TIMEOUT_S, client_encoding="utf8")
            self._connection.isolation_level = self._driver.IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
        except self._driver.Error as error:
            raise SourceError(f"{self._name} cannot be opened: {_first_line(error)}") from None

    def __enter__(self) -> "PostgresDatabase":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def tables(self) -> Tables:
        """The tables that are found by name alone. Raises SourceError."""
        found: dict[str, list[str]] = {}
        for table, column in self.rows(
            "select class.relname, attribute.attname from pg_class as class"
            " join pg_attribute as attribute on attribute.attrelid = class.oid"
            " where class.relkind in ('r', 'p') and pg_table_is_visible(class.oid)"
            " and attribute.attnum > 0 and not attribute.attisdropped"
            " and class.relnamespace <> 'pg_catalog'::regnamespace order by 1, attribute.attnum"
        ):
            found.setdefault(table, []).append(column)
        return {table: tuple(columns) for table, columns in found.items()}

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few at a time. Raises SourceError."""
        try:
            with self._connection.cursor(name=f"rows_{next(self._numbers)}") as cursor:
                cursor.itersize = _ROWS_AT_ONCE
                cursor.execute(statement, values)
                yield from cursor
        except self._driver.Error as error:
            raise SourceError(f"{self._name} cannot be read: {_first_line(error)}") from None

    def few(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query that gives few. Raises SourceError."""
        try:
            found: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
        except self._driver.Error as error:
            raise SourceError(f"{self._name} cannot be read: {_first_line(error)}") from None
        return found


def _first_line(error: Exception) -> str:
    """What went wrong, without the context that may repeat the address."""
    return str(error).strip().partition("\n")[0]
