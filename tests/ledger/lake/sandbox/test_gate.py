"""What the gate lets through, and that no answer names a file."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ledger.lake import Lake
from ledger.lake.connection import connect_files, tables
from ledger.lake.sandbox import Limits, QueryRefusedError, SafeQueries
from ledger.lake.sandbox.gate import Gate
from ledger.lake.saved import saved_queries
from tests.ledger.lake.feeds import feed_of, golden_rows

HONEST = [
    "from events",
    "values (1), (2)",
    "table sessions",
    "select * exclude (payload) from events",
    "select * replace (upper(type) as type) from events",
    "select columns('.*_tokens') from events",
    "select type, count(*) as n from events group by all having n > 1 order by all limit 5 offset 1",
    "select distinct on (session) session, seq from events order by session, seq desc",
    "with a as materialized (select 1 as x), b as (select x + 1 as y from a) select * from a, b",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select * from n",
    "with EVENTS_seen as (from events) select count(*) from Events_Seen",
    "select seq, lag(type) over w, sum(seq) filter (seq > 1) over w from events window w as (order by position)",
    "select * from events qualify row_number() over (partition by session order by seq) = 1",
    "select a.seq from events as a left join events as b using (session, seq) semi join sessions using (session)",
    "select a.seq from events as a asof join events as b on a.session = b.session and a.seq >= b.seq",
    "select list_transform([1, 2], lambda x: x + 1)[1], {'a': 1}.a, map {'k': 1}['k'], [1, 2][1:2]",
    "select payload ->> '$.type', json_extract(payload, '$.a') from events",
    "select (payload).json_keys(), text.lower().trim() from events",
    "select j.key from events, json_each(payload) as j",
    "select unnest([1, 2]), unnest({'a': 1})",
    "select * from events_on('session-1')",
    "select * from range(10) union all select * from generate_series(1, 3) except select 1 intersect select 2",
    "select date_trunc('day', recorded_at), extract(hour from recorded_at) from events",
    "select interval 1 day + date '2026-01-01', try_cast('a' as int)",
    "select case when seq > 1 then 'a' else 'b' end, coalesce(text, ''), nullif(seq, 1) from events",
    "select exists (from events where seq = 1), 1 in (select seq from events), seq = any (select 1) from events",
    "select grouping(type), count(*) from events group by grouping sets ((type), ())",
    "select string_agg(type, ',' order by seq desc), quantile_cont(seq, 0.5), max_by(type, seq) from events",
    "from events pivot (count(*) for actor_kind in ('human', 'agent') group by session)",
    "from (select 1 as a, 2 as b) unpivot (v for n in (a, b))",
    "select * from events using sample 10 rows",
    "select type like 'a%', type ilike 'B_', type similar to 'c.*', type ~ 'd', text collate nocase from events",
    "select regexp_extract(type, '(.*)[.]', 1), printf('%d', seq), format('{}', seq), md5(type), hash(seq) from events",
    "select 1 between 0 and 2, 1 is distinct from null, not true, -1, 2 ** 3, 5 // 2, 5 % 2, 1 & 3, 'a' || 'b'",
    "select 1::decimal(10, 2), cast('a' as varchar), '[1]'::int[], null::struct(a int)",
    "select current_date, now(), random(), uuid(), typeof(1)",
    "describe events",
    "describe select seq from events",
    "summarize sessions",
    "show tables",
    "show all tables",
    "show events",
    "explain select count(*) from tool_calls",
    "/* é */ EXPLAIN from events",
    "select 'read_text(''/etc/passwd'')' as text, \"type\" as \"copy\" from events -- copy to",
    "select 1;",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a-name-that-nobody-sees")
    Lake(folder).export(feed_of(golden_rows(200)))
    return folder


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect_files([]) as connection:
        yield connection


@pytest.fixture(scope="module")
def gate(engine: duckdb.DuckDBPyConnection) -> Gate:
    return Gate(engine, Limits().text_bytes)


@pytest.fixture(scope="module", params=["landlock", "dataset"])
def queries(lake: Path, request: pytest.FixtureRequest) -> Iterator[SafeQueries]:
    with SafeQueries(lake, Limits(seconds=60), is_fenced=request.param == "landlock") as made:
        yield made


@pytest.mark.parametrize("sql", HONEST)
def test_an_honest_query_runs(queries: SafeQueries, sql: str) -> None:
    stopped = queries.run(sql).stopped
    assert stopped is None or stopped.kind in ("rows", "bytes")


@pytest.mark.parametrize("name", saved_queries())
def test_a_shipped_query_runs(queries: SafeQueries, name: str) -> None:
    query = saved_queries()[name]
    given = {parameter.name: "find" for parameter in query.parameters if parameter.default is None}
    stopped = queries.run(query.sql, query.values(given)).stopped
    assert stopped is None or stopped.kind == "rows"


@pytest.mark.parametrize("table", [table.name for table in tables()])
def test_every_table_can_be_read_and_explained_without_a_path(
    queries: SafeQueries, lake: Path, table: str
) -> None:
    queries.run(f"select * from {table}")
    shown = repr(list(queries.run(f"explain select * from {table}").rows()))
    assert "events/" not in shown
    assert str(lake) not in shown


def test_the_text_that_runs_is_the_one_that_was_given(gate: Gate, engine: duckdb.DuckDBPyConnection) -> None:
    assert gate.checked(engine, "select 1") == "select 1"
    assert gate.checked(engine, "-- é\n explain  select 1") == "EXPLAIN   select 1"


def test_the_list_of_functions_holds_names_of_the_engine_and_none_that_acts(
    gate: Gate, engine: duckdb.DuckDBPyConnection
) -> None:
    told = engine.execute("select distinct function_name, stability from duckdb_functions()").fetchall()
    known = {name.lower() for name, _ in told}
    syntax = {"unnest", "unlist", "grouping", "grouping_id", "columns"}
    assert {name.lower() for name in gate.functions} <= known | syntax
    volatile = {name for name, stability in told if stability == "VOLATILE"}
    assert volatile & gate.functions <= {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "error"}
    assert not {name for name in gate.functions if name.startswith(("duckdb_", "pragma_", "read_", "pg_"))}


def test_errors_say_what_is_wrong_and_name_no_file(queries: SafeQueries, lake: Path) -> None:
    for sql, words in {
        "select nonsense from events": "nonsense",
        "selec 1": "syntax error",
        "select cast(type as integer) from events": "Conversion Error",
        "select error('told by the query')": "told by the query",
        "from eventz": "there is no table 'eventz' in a safe query: expected one of approvals",
        "select red_text('a')": "the function red_text is not allowed",
        "select 1; select 2": "expected one statement, found 2",
        "copy events to 'a'": "expected SELECT, WITH, DESCRIBE, SUMMARIZE, SHOW TABLES or EXPLAIN, found COPY",
    }.items():
        with pytest.raises(QueryRefusedError) as refused:
            queries.run(sql)
        assert words in str(refused.value)
        assert str(lake) not in str(refused.value)


def test_a_damaged_file_is_not_named(tmp_path: Path) -> None:
    Lake(tmp_path).export(feed_of(golden_rows(50)))
    for listed in json.loads((tmp_path / "files.json").read_text(encoding="utf-8")):
        file = tmp_path / listed["path"]
        raw = file.read_bytes()
        file.write_bytes(raw[:4] + b"\xff" * (len(raw) - 12) + raw[-8:])
    with SafeQueries(tmp_path, Limits(seconds=60)) as queries, pytest.raises(QueryRefusedError) as refused:
        queries.run("select sum(seq) from events")
    assert "recorded_date=" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_what_is_exported_later_is_seen_by_the_next_query(tmp_path: Path) -> None:
    made = Lake(tmp_path)
    made.export(feed_of(golden_rows(20)))
    with SafeQueries(tmp_path, Limits(seconds=60)) as queries:
        assert next(queries.run("select count(*) from events").rows()) == [20]
        made.export(feed_of(golden_rows(30)))
        assert next(queries.run("select count(*) from events").rows()) == [30]
