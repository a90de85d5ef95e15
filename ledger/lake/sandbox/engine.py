"""An engine for one safe query: the lake's tables, settings that are locked, and no way to name a file."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from ledger.errors import LedgerError
from ledger.lake.columns import SCHEMA, SCHEMA_VERSION
from ledger.lake.connection import RECORDED_DATE, Config, connect_files
from ledger.lake.manifest import DataFile, Manifest

_DEEPEST = 200

_BEFORE = (
    "set python_enable_replacements = false",
    "set autoload_known_extensions = false",
    "set autoinstall_known_extensions = false",
    "set allow_community_extensions = false",
    "set allow_persistent_secrets = false",
    "set temp_directory = ''",
    "set max_temp_directory_size = '0KB'",
    f"set max_expression_depth = {_DEEPEST}",
)
_LAST = ("set enable_external_access = false", "set lock_configuration = true")


def lake_files() -> list[DataFile]:
    """The files of the lake in the working directory, oldest records first."""
    return sorted(Manifest(Path()).read().files.values(), key=lambda file: file.first)


def open_engine(
    files: Sequence[DataFile], memory_bytes: int, seconds: float, *, is_fenced: bool
) -> duckdb.DuckDBPyConnection:
    """A connection over these files of the lake in the working directory.

    Where nothing else fences the process in, the engine gets no path at all: the rows come to it through Arrow.
    """
    names = [file.path for file in files]
    paths = [Path(name) for name in names]
    config: Config = {
        "threads": 1,
        "async_threads": 1,
        "memory_limit": f"{memory_bytes}B",
    }
    if is_fenced:
        is_mixed = any(file.schema != SCHEMA_VERSION for file in files)
        connection = connect_files(paths, is_mixed=is_mixed, config=config)
        if names:
            connection.execute("set allowed_paths = $1", [names])
    else:
        connection = connect_files([], config=config, rows=_dataset(names) if names else None)
    for setting in (*_BEFORE, f"set max_execution_time = {int(seconds * 1000)}", *_LAST):
        connection.execute(setting)
    return connection


def _dataset(names: Sequence[str]) -> ds.Dataset:
    by_date = ds.partitioning(pa.schema([RECORDED_DATE]), flavor="hive")
    return ds.dataset(
        list(names), schema=SCHEMA.append(RECORDED_DATE), format="parquet", partitioning=by_date
    )


class Engines:
    """An engine for each query, opened while the worker has nothing else to do."""

    def __init__(self, memory_bytes: int, seconds: float, *, is_fenced: bool) -> None:
        self._open = partial(open_engine, memory_bytes=memory_bytes, seconds=seconds, is_fenced=is_fenced)
        self._spare: tuple[list[DataFile], duckdb.DuckDBPyConnection] | None = None

    def take(self, files: list[DataFile]) -> duckdb.DuckDBPyConnection:
        """One over these files, which nobody has used."""
        spare, self._spare = self._spare, None
        if spare is not None and spare[0] == files:
            return spare[1]
        return self._open(files)

    def prepare(self) -> None:
        """Have one ready for the lake as it is now."""
        with contextlib.suppress(
            LedgerError, duckdb.Error, pa.ArrowException, OSError
        ):  # `take` says so, in time
            files = lake_files()
            self._spare = files, self._open(files)
