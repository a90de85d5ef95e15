"""A lake on a Spark cluster, asked through Spark Connect: the same tables, queries and answers as on DuckDB.

The cluster reads the files itself: the lake lies where all its machines see it, under the same path. For trusted SQL.
"""

import importlib
import importlib.util
import logging
import re
import secrets
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from ledger.errors import InputError, LedgerError
from ledger.lake.columns import RECORDED_DATE, SCHEMA
from ledger.lake.connection import branch_macro, lake_folder, tables
from ledger.lake.engines.functions import spark_functions
from ledger.lake.engines.portable import Problem, problems
from ledger.lake.engines.translation import to_spark
from ledger.lake.hits import NAME, Found, hits_table
from ledger.lake.manifest import Manifest
from ledger.lake.query import QueryCancelledError, QueryTooSlowError
from ledger.lake.remote import is_remote

PORT = 15002
"""Where a Connect server listens, unless its address says another."""

_BATCH = 2048
_REACH_S = 10
_CLIENTS_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_MACRO = re.compile(r"create macro (\w+)\((\w+)\) as table(.*);", re.DOTALL | re.IGNORECASE)
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",  # ${name} in a text is that text
    "spark.sql.cteRecursionLevelLimit": "1002",  # a line of branches may be that long on DuckDB too
}


class SparkLake:
    """A session on a cluster that has all tables of a lake. Use as a context manager, or call `close()`."""

    def __init__(self, url: str, home: str | Path | None = None) -> None:
        """Raises InputError when there is no lake, no client, or no server."""
        if home is not None and is_remote(home):
            raise InputError(
                f"Spark reads a lake by the path under which all its machines see it: found {home}"
            )
        manifest = Manifest(lake_folder(home))
        root = manifest.folder.resolve()
        if importlib.util.find_spec("pyspark") is None:
            raise InputError("Spark is asked through its client: pip install 'loopledger[spark]'")
        _reach(url)
        sql: Any = importlib.import_module("pyspark.sql")
        # What a query did wrong is raised; the client writes it to stderr as well, with the server's whole stack.
        for log in _CLIENTS_LOGS:
            logging.getLogger(log).disabled = True
        self.errors: Any = importlib.import_module("pyspark.errors").PySparkException
        """What the client raises."""
        try:
            self.session: Any = sql.SparkSession.builder.remote(url).create()
            self._make_tables(root, [str(root / path) for path in manifest.read().files])
        except self.errors as error:
            raise InputError(f"the lake cannot be opened on Spark at {url}: {_first_line(error)}") from error

    def __enter__(self) -> "SparkLake":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self.session.stop()

    def add_hits(self, hits: Iterable[Found]) -> None:
        """Make the table `hits`; a later call takes its place."""
        self.session.createDataFrame(hits_table(hits)).createOrReplaceTempView(NAME)

    def _make_tables(self, root: Path, files: list[str]) -> None:
        for name, value in _SETTINGS.items():
            self.session.conf.set(name, value)
        reader = self.session.read.schema(spark_schema()).option("basePath", str(root / "events"))
        events = reader.parquet(*files) if files else self.session.createDataFrame([], spark_schema())
        events.createOrReplaceTempView("events")
        for statement in spark_functions():
            self.session.sql(statement).collect()
        for table in tables():
            self.session.sql(to_spark(table.sql)).createOrReplaceTempView(table.name)
        found = _MACRO.search(branch_macro())
        assert found is not None
        name, parameter, body = found.groups()
        self.session.sql(
            f"create or replace temporary function {name}({parameter} string) returns table return {to_spark(body)}"
        ).collect()


class SparkAnswer:
    """The rows of a query on Spark. Use as a context manager: leaving it ends the time-out.

    All rows come to this machine before the first is given: ask with a limit, or for sums.
    """

    def __init__(
        self,
        lake: SparkLake,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Raises InputError for a query that is not portable or cannot be run, QueryTooSlowError, QueryCancelledError.

        `query` is in DuckDB's dialect, like every query of the lake.
        """
        found = problems(query)
        if found:
            raise InputError(f"the query means something else on Spark, or nothing: {_told(found)}")
        self._lake = lake
        self._tag = f"loopledger-{secrets.token_hex(8)}"
        self._is_late = False
        self._timer = threading.Timer(timeout_s or 0, self._stop)
        self._timer.daemon = True
        lake.session.addTag(self._tag)
        if timeout_s is not None:
            self._timer.start()
        try:
            frame = lake.session.sql(to_spark(query), args=dict(parameters or {}))
            whole: pa.Table = (frame if limit is None else frame.limit(limit + 1)).toArrow()
        except KeyboardInterrupt:
            lake.session.interruptTag(self._tag)
            raise
        except lake.errors as error:
            raise self._meant(error, timeout_s) from error
        finally:
            self._timer.cancel()
            lake.session.removeTag(self._tag)
        self.is_cut = limit is not None and whole.num_rows > limit
        """Whether rows beyond the limit were left out."""
        self._table = whole.slice(0, limit) if self.is_cut else whole
        self.schema: pa.Schema = whole.schema
        """Columns."""

    def __enter__(self) -> "SparkAnswer":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._timer.cancel()

    def _stop(self) -> None:
        self._is_late = True
        self._lake.session.interruptTag(self._tag)

    def _meant(self, error: Exception, timeout_s: float | None) -> LedgerError:
        if self._is_late:
            return QueryTooSlowError(f"the query was stopped after {timeout_s:g} s")
        if "OPERATION_CANCELED" in str(error):
            return QueryCancelledError("the query was cancelled")
        return InputError(f"the query cannot be run on Spark: {_first_line(error)}")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, up to the limit."""
        yield from self._table.to_batches(max_chunksize=_BATCH)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as Python values, up to the limit."""
        for batch in self.batches():
            yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def spark_schema() -> str:
    """The columns of `events` in Spark's words. A file that lacks one gives NULL there."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in [*SCHEMA, RECORDED_DATE])


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    names = {"string": "string", "int64": "bigint", "int32": "int", "bool": "boolean", "date32[day]": "date"}
    return {**names, "double": "double"}[str(kind)]


def _reach(url: str) -> None:
    """Raises InputError when nobody listens: the client itself would try for minutes."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, PORT
    if parts.scheme != "sc" or not host:
        raise InputError(f"{url!r} is no Connect server: expected sc://HOST or sc://HOST:PORT")
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except OSError as error:
        raise InputError(f"no Spark Connect server answers at {host}:{port}: {error}") from error


def _told(found: list[Problem]) -> str:
    return "; ".join(f"line {problem.line}: {problem}" for problem in found)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
