"""Each table, saved query and detector gives the same rows on DuckDB and on a cluster of two workers."""

import json
import math
import re
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from ledger.errors import InputError
from ledger.lake import Lake
from ledger.lake.connection import tables
from ledger.lake.engines.portable import problems
from ledger.lake.engines.spark import SparkAnswer, SparkLake
from ledger.lake.query import Answer, QueryTooSlowError, write_parquet
from ledger.lake.saved import saved_queries
from tests.commands import answer, record_session, run
from tests.ledger.lake.feeds import feed_of
from tests.spark.cluster import WORKERS, Cluster
from tests.spark.conftest import OWN, all_detectors
from tests.spark.constructs import CONSTRUCTS

TABLES = ["events", *(table.name for table in tables())]
QUERIES = saved_queries(OWN)
DETECTORS = {one.name: one.sql for one in all_detectors() if one.sql is not None}
GIVEN = {"find_text": {"text": "FIND"}}
"""Parameters that have no default."""


def _comparable(value: Any) -> Any:
    match value:
        case float():
            return "nan" if math.isnan(value) else round(value, 9)
        case Decimal():
            return value.normalize()
        case datetime():
            return value.isoformat()
        case str() if value.startswith(("[", "{")):
            return _json(value)  # the same value, and escapes of each engine's own
        case dict():
            return tuple((name, _comparable(part)) for name, part in value.items())
        case list():
            return tuple(map(_comparable, value))
        case _:
            return value


def _json(text: str) -> str:
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return text


def _rows(answer: Any) -> list[tuple[Any, ...]]:
    with answer:
        return [tuple(map(_comparable, row)) for row in answer.rows()]


def _both(
    duck: duckdb.DuckDBPyConnection, spark: SparkLake, query: str, values: dict[str, Any] | None = None
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    one, other = Answer(duck, query, values), SparkAnswer(spark, query, values)
    assert one.schema.names == other.schema.names
    return _rows(one), _rows(other)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_same_rows(
    on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkLake, table: str
) -> None:
    ours, theirs = _both(on_duckdb, on_spark, f"select * from {table}")
    assert Counter(ours) == Counter(theirs) != Counter()


@pytest.mark.parametrize("name", QUERIES)
def test_a_saved_query_has_the_same_rows_in_the_same_order(
    on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkLake, name: str
) -> None:
    query = QUERIES[name]
    ours, theirs = _both(on_duckdb, on_spark, query.sql, query.values(GIVEN.get(name, {})))
    assert ours == theirs != []


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_in_sql_has_the_same_rows_in_the_same_order(
    on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkLake, name: str
) -> None:
    ours, theirs = _both(on_duckdb, on_spark, DETECTORS[name])
    assert ours == theirs != []


def test_the_records_that_a_session_stands_on_are_the_same(
    on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkLake
) -> None:
    for session in ("session-0", "absent"):
        ours, theirs = _both(
            on_duckdb, on_spark, f"select session, seq from events_on('{session}') order by session, seq"
        )
        assert ours == theirs


@pytest.mark.parametrize("query", CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
def test_a_portable_construct_means_the_same(
    on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkLake, query: str
) -> None:
    assert problems(query) == []
    ours, theirs = _both(on_duckdb, on_spark, query)
    assert ours == theirs != []


# -- how it is asked -------------------------------------------------------------------------------------------------


def test_the_commands_ask_either_engine(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    on_spark = ("--lake", folder, "--engine", "spark", "--spark", cluster.url)
    for asked in (
        ("sql", "select type, count(*) as n from events group by type order by type"),
        ("queries", "tool_use"),
    ):
        ours, theirs = answer(tmp_path, *asked, "--lake", folder), answer(tmp_path, *asked, *on_spark)
        assert ours["rows"] == theirs["rows"] != []
    cut = run(tmp_path, "sql", "select seq from events", *on_spark, "--limit", "2", "--format", "csv")
    assert (cut.exit_code, len(cut.stdout.splitlines())) == (1, 4)
    wrong = run(tmp_path, "sql", "select any_value(seq) from events", *on_spark)
    assert (wrong.exit_code, "line 1: any_value" in wrong.stderr) == (2, True)
    nowhere = run(tmp_path, "sql", "select nothing from events", *on_spark)
    assert (nowhere.exit_code, len(nowhere.stderr.splitlines())) == (2, 1)


def test_what_a_search_found_is_a_table_on_spark_too(cluster: Cluster, tmp_path: Path) -> None:
    record_session(tmp_path, text="hello")
    query = (
        "select hits.session, tool_calls.tool, hits.snippet from hits join tool_calls"
        " on tool_calls.session = hits.session and tool_calls.settled_seq = hits.seq"
    )
    asked = ("sql", query, "--search", "hello", "--engine", "spark", "--spark", cluster.url)
    assert answer(tmp_path, *asked)["rows"] == [{"session": "live-1", "tool": "echo", "snippet": "hello"}]


def test_rows_beyond_the_limit_are_left_out_and_it_is_said(on_spark: SparkLake, tmp_path: Path) -> None:
    answer = SparkAnswer(on_spark, "select seq from events order by position", limit=3)
    assert answer.is_cut and len(list(answer.rows())) == 3
    with (tmp_path / "rows.parquet").open("wb") as file:
        write_parquet(answer, file)
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 3
    whole = SparkAnswer(on_spark, "select seq from events order by position limit 3", limit=3)
    assert not whole.is_cut


def test_a_query_that_is_not_portable_is_named_and_not_sent(on_spark: SparkLake) -> None:
    with pytest.raises(InputError, match=r"line 2: ASOF JOIN: Spark takes ASOF for an alias"):
        SparkAnswer(on_spark, "select *\nfrom events asof join sessions on true")
    with pytest.raises(InputError, match=r"cannot be run on Spark: \[TABLE_OR_VIEW_NOT_FOUND\]") as caught:
        SparkAnswer(on_spark, "select * from nowhere")
    assert "\n" not in str(caught.value)


def test_a_query_is_stopped_in_time(on_spark: SparkLake) -> None:
    slow = "select count(*) as n from events as a, events as b, events as c, events as d where a.seq + b.seq = c.seq"
    with pytest.raises(QueryTooSlowError, match="after 3 s"):
        SparkAnswer(on_spark, slow, timeout_s=3)
    assert _rows(SparkAnswer(on_spark, "select 1 as one")) == [(1,)]


def test_an_empty_lake_has_all_tables(cluster: Cluster, tmp_path: Path) -> None:
    Lake(tmp_path / "lake").export(feed_of([]))
    with SparkLake(cluster.url, tmp_path / "lake") as lake:
        for table in TABLES:
            assert _rows(SparkAnswer(lake, f"select count(*) as n from {table}")) == [(0,)]


def test_both_workers_took_part(on_spark: SparkLake, cluster: Cluster) -> None:
    SparkAnswer(on_spark, "select session, count(*) as n from events group by session")
    executors = re.findall(r"Launching executor \S+ on worker (\S+)", cluster.master_log.read_text())
    assert len(set(executors)) == WORKERS


def test_a_server_that_does_not_answer_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match=r"no Spark Connect server answers at 127\.0\.0\.1:9"):
        SparkLake("sc://127.0.0.1:9", folder)
    with pytest.raises(InputError, match="expected sc://HOST"):
        SparkLake("spark://127.0.0.1:7077", folder)
