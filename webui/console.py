"""SQL of people over the lake: parameters, the sandbox that runs it, rows as the pages show them. Renders nothing."""

import re
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ledger.errors import InputError, LedgerError
from ledger.lake.columns import COLUMNS
from ledger.lake.connection import FOLDER, column_types, connect_files, tables
from ledger.lake.manifest import Manifest
from ledger.lake.sandbox import Limits, SafeQueries, SafeResult
from ledger.lake.saved import Parameter, SavedQuery, parse, saved_queries

LONGEST = 5000
"""Characters of a query in an address: a server takes 64 kB of it, and a character may take twelve bytes there."""

_NAMED = re.compile(r"\$([A-Za-z_]\w{0,59})(?![\w$])")
_COMMENT = re.compile(r"--[^\n]*")


class UnknownQueryError(LedgerError):
    """No saved query has this name."""


class Queries:
    """The sandbox of one server, started with the first query. Threads may share it."""

    def __init__(self, home: Path, limits: Limits) -> None:
        self.limits = limits
        """What a query may take."""
        self._folder = home / FOLDER
        self._changed = threading.Lock()
        self._sandbox: SafeQueries | None = None

    @property
    def lake_position(self) -> int | None:
        """Position up to which the lake has all records; None where there is no lake."""
        manifest = Manifest(self._folder)
        return manifest.read().position if manifest.exists() else None

    def run(self, sql: str, parameters: Mapping[str, Any]) -> SafeResult:
        """The rows. Raises QueryRefusedError, QueriesBusyError; InputError where there is no lake."""
        with self._changed:
            if self._sandbox is None:
                self._sandbox = SafeQueries(self._folder, self.limits)
        return self._sandbox.run(sql, parameters)

    def close(self) -> None:
        """End the workers."""
        if self._sandbox is not None:
            self._sandbox.close()


class Asked(NamedTuple):
    """A query as somebody asks it."""

    sql: str
    """Its text; empty for none."""

    saved: SavedQuery | None
    """The saved query that it is."""

    parameters: tuple[Parameter, ...]
    """What it takes."""

    given: dict[str, str]
    """What was given for them; those that are left empty have their default."""

    def values(self) -> dict[str, Any]:
        """The parameters' values. Raises InputError for one that is missing, unknown, or of another kind."""
        known = {one.name for one in self.parameters}
        for name in self.given:
            if name not in known:
                raise InputError(
                    f"the query has no parameter {name[:60]!r}: write ${name[:60]} where it belongs"
                )
        values = {}
        for one in self.parameters:
            text = self.given.get(one.name, one.default)
            if text is None:
                raise InputError(f"parameter {one.name} is not given{one.doc and ': ' + one.doc}")
            values[one.name] = one.value(text)
        return values


def asked_for(home: Path, sql: str, saved: str, given: Mapping[str, str]) -> Asked:
    """What an address asks: a saved query by its name, or a text. Raises InputError, UnknownQueryError."""
    kept = {name: text for name, text in given.items() if text != ""}
    if saved and not sql.strip():
        query = saved_queries(home).get(saved)
        if query is None:
            raise UnknownQueryError(f"no saved query is named {saved[:60]!r}; the page lists those that are")
        return Asked(query.sql, query, query.parameters, kept)
    return Asked(sql, None, parameters_of(sql), kept)


def parameters_of(sql: str) -> tuple[Parameter, ...]:
    """What a text takes: as the `-- param:` lines of its head say; each other `$name` is a text. Raises InputError."""
    told = parse("of this page", sql).parameters
    known = {one.name for one in told}
    names = dict.fromkeys(_NAMED.findall(_COMMENT.sub("", sql)))
    return (*told, *(Parameter(name, "text", None, "") for name in names if name not in known))


class TableDoc(NamedTuple):
    """A table of the lake."""

    name: str
    """Its name."""

    doc: str
    """What a row is."""

    columns: list[tuple[str, str, str]]
    """Name, type and meaning of each column; only those of `events` have one."""


@cache
def table_docs() -> tuple[TableDoc, ...]:
    """The tables that a query may read."""
    meaning = {column.name: column.doc for column in COLUMNS}
    with connect_files([]) as engine:
        found = [
            TableDoc(
                table.name, table.doc, [(name, kind, "") for name, kind in column_types(engine, table.name)]
            )
            for table in tables()
        ]
        events = [(name, kind, meaning.get(name, "")) for name, kind in column_types(engine, "events")]
    return (TableDoc("events", "One row for each record of the ledger.", events), *found)
