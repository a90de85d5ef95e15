"""Opens a lake for SQL: a DuckDB connection in memory whose views show the files that the manifest names."""

import importlib.resources
import os
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ledger.errors import InputError
from ledger.lake.columns import COLUMNS, SCHEMA, SCHEMA_VERSION
from ledger.lake.manifest import Manifest

FOLDER = "lake"
"""Folder of the lake in a ledger's home."""

_DATE = pa.field("recorded_date", pa.date32())


class Table(NamedTuple):
    """A table of the lake beside `events`: a view in a file of its own."""

    name: str
    """Its name, that of the file."""

    doc: str
    """What a row is."""

    sql: str
    """The query."""


def tables() -> list[Table]:
    """The views that are shipped, by name. The head of a file says what a row is, the rest is the query."""
    found = []
    for path in sorted(
        (importlib.resources.files("ledger.lake") / "tables").iterdir(), key=lambda path: path.name
    ):
        if path.name.endswith(".sql"):
            text = path.read_text(encoding="utf-8")
            head = [line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")]
            found.append(Table(path.name.removesuffix(".sql"), " ".join(head), text))
    return found


def connect(home: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with all tables of a lake, as the lake is now.

    `home` is the folder of a ledger or of a lake; `$LOOPLEDGER_HOME`, then `./.loopledger` by default. A connection
    does not see what is exported later: connect again. For trusted SQL: whoever may send a query here may read files.
    """
    folder = Path(home or os.environ.get("LOOPLEDGER_HOME") or ".loopledger")
    manifest = Manifest(folder / FOLDER)
    if not manifest.exists():
        manifest = Manifest(folder)
    if not manifest.exists():
        raise InputError(f"there is no lake in {folder}: `loopledger export` makes one")
    root = manifest.folder.resolve()
    files = manifest.read().files.values()
    is_mixed = any(file.schema != SCHEMA_VERSION for file in files)
    return connect_files([root / file.path for file in files], is_mixed=is_mixed)


def connect_files(paths: list[Path], *, is_mixed: bool = False) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with all tables, over these files of one lake; mixed when some lack columns of now."""
    connection = duckdb.connect(":memory:")
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("set enable_progress_bar = false")  # it would stand among the rows
    connection.execute("set python_enable_replacements = false")
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    if paths:
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        source = (
            f"read_parquet([{listed}], union_by_name = {str(is_mixed).lower()}, hive_partitioning = true,"
            " hive_types = {recorded_date: date})"
        )
        view = f"create view events as select {_names()}, recorded_date from {source}"  # noqa: S608 - quoted above
        connection.execute(view)
    else:
        connection.register("nothing", pa.schema([*SCHEMA, _DATE]).empty_table())
        connection.execute("create table events as select * from nothing")
        connection.unregister("nothing")
    for table in tables():
        connection.execute(f"create view {table.name} as {table.sql}")
    connection.execute(_branch_macro())
    return connection


def _names() -> str:
    return ", ".join(f'"{column.name}"' for column in COLUMNS)


def _branch_macro() -> str:
    return (importlib.resources.files("ledger.lake") / "events_on.sql").read_text(encoding="utf-8")


def column_types(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Name and type of each column of a table."""
    rows = connection.execute(
        "select column_name, data_type from duckdb_columns() where table_name = ? order by column_index",
        [table],
    )
    return rows.fetchall()
