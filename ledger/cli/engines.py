"""Which engine answers a query: DuckDB here, or Spark on a cluster. What Spark needs is loaded when it is asked."""

import importlib
import importlib.util
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ledger.audit import Detector, Finding
from ledger.audit import query as query_duckdb
from ledger.audit.running import findings_of
from ledger.errors import InputError
from ledger.lake import connect
from ledger.lake.connection import lake_folder, lock_up
from ledger.lake.hits import add_hits
from ledger.lake.query import Answer, Progress, Rows
from ledger.lake.records import Ask
from ledger.lake.remote import is_remote
from ledger.views.findings import Query
from ledger.views.search import Hit


class Engine(StrEnum):
    """What runs a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"


EngineOption = Annotated[Engine, typer.Option("--engine", help="What runs it; spark needs --spark.")]
SparkOption = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="URL",
        envvar="LOOPLEDGER_SPARK",
        help="Spark Connect server that sees the lake under the same path: sc://HOST:PORT.",
        show_default=False,
    ),
]


class Asked(NamedTuple):
    """A query and what belongs to it."""

    query: str
    """SQL in DuckDB's dialect."""

    parameters: dict[str, Any]
    """What its `$names` stand for."""

    limit: int | None
    """Most rows."""

    timeout_s: float
    """After which it is stopped."""

    hits: list[Hit] | None
    """Rows of the table `hits`; None: there is no such table."""


@contextmanager
def answering(
    folder: Path, engine: Engine, spark_url: str | None, asked: Asked, on_progress: Progress | None = None
) -> Iterator[Rows]:
    """The answer of a lake on an engine. Raises InputError, QueryTooSlowError, QueryCancelledError."""
    options: dict[str, Any] = {"limit": asked.limit, "timeout_s": asked.timeout_s}
    if engine == Engine.DUCKDB:
        with connect(folder) as connection:
            if asked.hits is not None:
                add_hits(connection, asked.hits)
            with Answer(
                connection, asked.query, asked.parameters, on_progress=on_progress, **options
            ) as answer:
                yield answer
        return
    spark = portable_engine("spark")
    with spark.SparkLake(_server(spark_url), folder) as lake:
        if asked.hits is not None:
            lake.add_hits(asked.hits)
        with spark.SparkAnswer(lake, asked.query, asked.parameters, **options) as answer:
            yield answer


class Audited(NamedTuple):
    """A lake on an engine, as an audit wants it."""

    ask: Ask
    """Runs a query on the engine: with it, `LakeRecords` gives folds, which run here, what they look at."""

    query: Query
    """Runs a detector of SQL on the engine."""


@contextmanager
def auditing(folder: Path, engine: Engine, spark_url: str | None) -> Iterator[Audited]:
    """A lake that is there, on an engine. Raises InputError."""
    if engine == Engine.DUCKDB:
        with connect(folder) as connection:
            lock_up(connection, None if is_remote(folder) else lake_folder(folder))

            def ask(query: str, values: Mapping[str, Any]) -> AbstractContextManager[Rows]:
                return Answer(connection, query, values)

            def run(detector: Detector, sessions: Collection[str] | None) -> list[Finding]:
                return query_duckdb(connection, detector, sessions)

            yield Audited(ask, run)
        return
    spark = portable_engine("spark")
    with spark.SparkLake(_server(spark_url), folder) as lake:

        def ask_spark(query: str, values: Mapping[str, Any]) -> AbstractContextManager[Rows]:
            answer: AbstractContextManager[Rows] = spark.SparkAnswer(lake, query, values)
            return answer

        def run_on_spark(detector: Detector, sessions: Collection[str] | None) -> list[Finding]:
            assert detector.sql is not None
            try:
                with spark.SparkAnswer(lake, detector.sql.rstrip().rstrip(";")) as answer:
                    found = findings_of(detector, answer.schema.names, answer.rows())
            except InputError as error:
                raise InputError(f"{detector.place}: {error}") from error
            return [one for one in found if sessions is None or one.session in sessions]

        yield Audited(ask_spark, run_on_spark)


def _server(spark_url: str | None) -> str:
    if spark_url is None:
        raise InputError("--engine spark needs --spark sc://HOST:PORT, or $LOOPLEDGER_SPARK")
    return spark_url


def portable_engine(name: str) -> Any:
    """A module of `ledger.lake.engines`. Raises InputError where what it stands on is not installed."""
    if importlib.util.find_spec("sqlglot") is None:
        raise InputError("SQL is translated for Spark by a library: pip install 'loopledger[spark]'")
    return importlib.import_module(f"ledger.lake.engines.{name}")
