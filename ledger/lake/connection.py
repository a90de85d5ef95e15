"""Opens a lake for SQL: a DuckDB connection in memory whose views show the files that the manifest names."""

import importlib.resources
import os
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ledger.errors import InputError
from ledger.events import BY_NAME
from ledger.lake.columns import COLUMNS, MONEY, SCHEMA, SCHEMA_VERSION, Kind
from ledger.lake.columns import RECORDED_DATE as RECORDED_DATE
from ledger.lake.engines.functions import duckdb_functions
from ledger.lake.manifest import Manifest
from ledger.lake.remote import is_remote, remote_rows

FOLDER = "lake"
"""Folder of the lake in a ledger's home."""

Config = dict[str, str | bool | int | float | list[str]]
"""Settings of an engine."""

OWN = "own_rows"
"""The table below `events` where a connection holds rows of its own in some columns only."""

_OF_EVERY_RECORD = ("events", "events_main", "sessions")

SQL_TYPES: dict[Kind, str] = {
    "word": "varchar",
    "text": "varchar",
    "count": "bigint",
    "flag": "boolean",
    "money": f"decimal({MONEY.precision}, {MONEY.scale})",
    "time": "timestamp with time zone",
}
"""What the kinds of columns are in SQL."""


class Table(NamedTuple):
    """A table of the lake beside `events`: a view in a file of its own."""

    name: str
    """Its name, that of the file."""

    doc: str
    """What a row is."""

    sql: str
    """The query."""


@cache
def tables() -> tuple[Table, ...]:
    """The views that are shipped, by name. The head of a file says what a row is, the rest is the query."""
    found = []
    for path in sorted(
        (importlib.resources.files("ledger.lake") / "tables").iterdir(),
        key=lambda path: (path.name.startswith("events_"), path.name),  # they stand on others: made last
    ):
        if path.name.endswith(".sql"):
            text = path.read_text(encoding="utf-8")
            head = [line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")]
            found.append(Table(path.name.removesuffix(".sql"), " ".join(head), text))
    return tuple(found)


@cache
def events_of(table: str) -> frozenset[str] | None:
    """Names of the events that the rows of a table are made of; None: of all, or there is no such table."""
    texts = [one.sql for one in tables() if one.name == table and table not in _OF_EVERY_RECORD]
    return frozenset(name for name in BY_NAME if f"'{name}'" in texts[0]) if texts else None


def connect(home: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with all tables of a lake, as the lake is now.

    `home` is the folder of a ledger or of a lake; `$LOOPLEDGER_HOME`, then `./.loopledger` by default. A connection
    does not see what is exported later: connect again. For trusted SQL: whoever may send a query here may read files.
    A URL as `s3://bucket/place` opens a mirror.
    """
    if home is not None and is_remote(home):
        return connect_files([], rows=remote_rows(home))
    manifest = Manifest(lake_folder(home))
    root = manifest.folder.resolve()
    files = manifest.read().files.values()
    is_mixed = any(file.schema != SCHEMA_VERSION for file in files)
    return connect_files([root / file.path for file in files], is_mixed=is_mixed)


def lake_folder(home: str | Path | None = None) -> Path:
    """Where the lake lies, given its folder or that of its ledger. Raises InputError where there is none."""
    folder = Path(home or os.environ.get("LOOPLEDGER_HOME") or ".loopledger")
    for place in (folder / FOLDER, folder):
        if Manifest(place).exists():
            return place
    raise InputError(f"there is no lake in {folder}: `loopledger export` makes one")


def connect_files(
    paths: list[Path],
    *,
    is_mixed: bool = False,
    config: Config | None = None,
    rows: Any = None,
    columns: Collection[str] | None = None,
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with all tables, over these files of one lake; mixed when some lack columns of now.

    `rows` takes the place of files: an Arrow dataset with the columns of `events`. Without either, `events` is an empty
    table; with `columns`, a view over one, `OWN`, that has these alone: the others are NULL.
    """
    connection = duckdb.connect(":memory:", config=config or {})
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("set enable_progress_bar = true")  # it counts then
    connection.execute("set enable_progress_bar_print = false")  # and would stand among the rows
    connection.execute("set parquet_metadata_cache = true")  # files never change: a footer is read once
    connection.execute("set python_enable_replacements = false")
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    if paths:
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        source = (
            f"read_parquet([{listed}], union_by_name = {str(is_mixed).lower()}, hive_partitioning = true,"
            " hive_types = {recorded_date: date})"
        )
        names = _names(_columns_of(connection, source) if is_mixed else None)
        view = f"create view events as select {names}, recorded_date from {source}"  # noqa: S608 - quoted above
        connection.execute(view)
    elif rows is not None:
        connection.register("events", rows)
    else:
        connection.register("nothing", pa.schema([*SCHEMA, RECORDED_DATE]).empty_table())
        if columns is None:
            connection.execute("create table events as select * from nothing")
        else:
            own = ", ".join(f'"{name}"' for name in [*columns, RECORDED_DATE.name])
            connection.execute(f"create table {OWN} as select {own} from nothing")  # noqa: S608 - names of ours
            shown = _names(set(columns))
            connection.execute(f"create view events as select {shown}, recorded_date from {OWN}")  # noqa: S608
        connection.unregister("nothing")
    connection.execute(duckdb_functions())
    for table in tables():
        connection.execute(f"create view {table.name} as {table.sql}")
    connection.execute(branch_macro())
    return connection


def lock_up(connection: duckdb.DuckDBPyConnection, folder: Path | None) -> None:
    """Let a connection read the files of one lake, and nothing else outside: for queries that somebody else wrote."""
    if folder is not None:
        listed = "'" + str(folder.resolve()).replace("'", "''") + "'"
        connection.execute(f"set allowed_directories = [{listed}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _columns_of(connection: duckdb.DuckDBPyConnection, source: str) -> set[str]:
    return {str(row[0]) for row in connection.execute(f"describe from {source}").fetchall()}


def _names(there: set[str] | None) -> str:
    """All columns; those that are not there, in files of earlier versions alone, as NULL of their type."""
    return ", ".join(
        f'"{column.name}"'
        if there is None or column.name in there
        else f'cast(null as {SQL_TYPES[column.kind]}) as "{column.name}"'
        for column in COLUMNS
    )


@cache
def branch_macro() -> str:
    """What makes `events_on`."""
    return (importlib.resources.files("ledger.lake") / "events_on.sql").read_text(encoding="utf-8")


def column_types(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Name and type of each column of a table."""
    rows = connection.execute(
        "select column_name, data_type from duckdb_columns() where table_name = ? order by column_index",
        [table],
    )
    return rows.fetchall()
