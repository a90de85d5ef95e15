"""SQL over the lake: the tables, the saved queries, the commands and the forms of their answers."""

import csv
import io
import json
import os
import re
import signal
import time
import unicodedata
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.errors import InputError
from ledger.lake import Lake, connect
from ledger.lake.connection import column_types, connect_files, tables
from ledger.lake.query import Answer, QueryTooSlowError
from ledger.lake.saved import parse, saved_queries
from tests.commands import DAMAGED, HOSTILE, answer, process, record_session, run
from tests.ledger.lake.feeds import feed_of, golden_rows

TABLES = [table.name for table in tables()]
QUERIES = saved_queries()


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    Lake(folder).export(feed_of(golden_rows(600)))
    return folder


# -- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_same_columns_when_it_is_empty(golden: Path, table: str) -> None:
    with connect(golden) as full, connect_files([]) as empty:
        assert column_types(full, table) == column_types(empty, table) != []
        assert empty.execute(f"select count(*) from {table}").fetchone() == (0,)


@pytest.mark.parametrize(
    "table",
    [table for table in TABLES if table not in ("events_main", "branches", "rollbacks", "constraints")],
)
def test_every_event_family_reaches_its_table(golden: Path, table: str) -> None:
    with connect(golden) as connection:
        (count,) = connection.execute(f"select count(*) from {table}").fetchone() or (0,)
    assert count > 0


def test_tables_of_a_recorded_session(tmp_path: Path) -> None:
    record_session(tmp_path)
    (session,) = answer(tmp_path, "sql", "select * from sessions")["rows"]
    assert (session["harness"], session["outcome"], session["model_calls"], session["tool_calls"]) == (
        "my-loop",
        "completed",
        2,
        1,
    )
    assert (session["input_tokens"], session["output_tokens"]) == (10, 4)
    (call,) = answer(tmp_path, "sql", "select * from tool_calls")["rows"]
    assert (call["tool"], call["outcome"], json.loads(call["arguments"])) == (
        "echo",
        "returned",
        {"text": "hello"},
    )
    assert call["effect_said_by"] == "inferred"
    first, second = answer(tmp_path, "sql", "select * from model_calls order by requested_seq")["rows"]
    assert (first["requested_model"], first["outcome"], second["context_length"]) == (
        "scripted",
        "answered",
        3,
    )


def test_the_rows_of_a_branch_are_its_own_and_those_before_the_fork(tmp_path: Path) -> None:
    with connect_files([]) as connection:
        connection.execute(
            "insert into events (session, seq, type) select 'a', n, 'x' from range(1, 6) as t(n)"
        )
        connection.execute(
            "insert into events (session, seq, type, origin, origin_seq) values ('b', 1, 'session.forked', 'a', 3)"
        )
        rows = connection.execute("select session, seq from events_on('b') order by session, seq").fetchall()
        assert rows == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
        connection.execute(
            "insert into events (session, seq, type, to_seq) values ('a', 6, 'recovery.rolled_back', 2)"
        )
        main = connection.execute("select seq from events_main where session = 'a' order by seq").fetchall()
        assert main == [(1,), (2,), (6,)]


def test_bare_duckdb_reads_the_listed_files(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parent)
    lake = golden.name
    with duckdb.connect() as bare:
        bare.execute(f"set variable files = (select list('{lake}/' || path) from '{lake}/files.json')")
        rows = bare.execute(
            "select count(*), count(distinct position) from read_parquet(getvariable('files'))"
        )
        assert rows.fetchone() == (600, 600)
    files = [f"{lake}/{one['path']}" for one in json.loads(Path(f"{lake}/files.json").read_text())]
    assert sum(pq.read_table(file, columns=["position"], partitioning=None).num_rows for file in files) == 600


def test_there_must_be_a_lake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no lake in"):
        connect(tmp_path)


# -- saved queries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_a_shipped_query_runs_is_described_and_ordered(golden: Path, name: str) -> None:
    query = QUERIES[name]
    assert query.title != name
    assert query.doc
    assert "order by" in query.sql
    given = {parameter.name: "find" for parameter in query.parameters if parameter.default is None}
    with connect(golden) as connection, Answer(connection, query.sql, query.values(given)) as got:
        list(got.rows())
        if query.chart:
            _, along, up = query.chart.split()
            assert {along, up} <= set(got.schema.names)


def test_parameters_are_checked() -> None:
    query = parse("q", "-- title: T\n-- param: least integer = 2: calls\n-- param: who text: whom\nselect 1")
    assert query.values({"who": "me"}) == {"least": 2, "who": "me"}
    with pytest.raises(InputError, match="needs --param who="):
        query.values({})
    with pytest.raises(InputError, match="takes a integer: found 'many'"):
        query.values({"who": "me", "least": "many"})
    with pytest.raises(InputError, match="'whom' is no parameter of the query q: expected one of least, who"):
        query.values({"whom": "me"})
    with pytest.raises(InputError, match="expected NAME KIND"):
        parse("q", "-- param: nonsense")


def test_a_query_of_ones_own(tmp_path: Path) -> None:
    record_session(tmp_path)
    (tmp_path / "queries").mkdir()
    own = "-- title: Mine\n-- param: seq integer: which\nselect type from events where seq = $seq"
    (tmp_path / "queries" / "mine.sql").write_text(own)
    (entry,) = [one for one in answer(tmp_path, "queries") if one["name"] == "mine"]
    assert (entry["title"], entry["own"], entry["parameters"][0]["name"]) == ("Mine", True, "seq")
    assert answer(tmp_path, "queries", "mine", "--param", "seq=1")["rows"] == [{"type": "session.started"}]
    assert "select type" in run(tmp_path, "queries", "mine", "--sql").stdout
    assert run(tmp_path, "queries", "mine").exit_code == 2
    assert "tool_use" in run(tmp_path, "queries").stdout


# -- answers ---------------------------------------------------------------------------------------------------------


def test_each_form_says_the_same_and_what_it_left_out(tmp_path: Path) -> None:
    record_session(tmp_path)
    query = "select seq, type, cost_usd, occurred_at from events order by seq"
    cut = {
        form: run(tmp_path, "sql", query, "--limit", 2, "--format", form)
        for form in ("csv", "ndjson", "json")
    }
    assert {result.exit_code for result in cut.values()} == {1}
    lines = list(csv.reader(io.StringIO(cut["csv"].stdout)))
    assert [line[0] for line in lines] == [
        "seq",
        "1",
        "2",
        "# more than 2 rows: the rest is left out; --limit allows more",
    ]
    objects = [json.loads(line) for line in cut["ndjson"].stdout.splitlines()]
    assert [one.get("seq") for one in objects] == [1, 2, None]
    assert objects[-1] == {"truncated": True, "limit": 2}
    whole = json.loads(cut["json"].stdout)
    assert (len(whole["rows"]), whole["truncated"], whole["limit"]) == (2, True, 2)
    for form in ("table", "markdown"):
        result = run(tmp_path, "sql", query, "--limit", 2, "--format", form)
        assert (result.exit_code, "more than 2 rows" in result.stdout) == (1, True)
        assert run(tmp_path, "sql", query, "--limit", 0, "--format", form).exit_code == 0
    exact = json.loads(run(tmp_path, "sql", query, "--limit", 0, "--json").stdout)
    assert exact["truncated"] is False
    count = len(exact["rows"])
    assert run(tmp_path, "sql", query, "--limit", count).exit_code == 0


def test_binary_forms(tmp_path: Path) -> None:
    record_session(tmp_path)
    query = "select seq, type from events order by seq"
    file = tmp_path / "rows.parquet"
    assert run(tmp_path, "sql", query, "--format", "parquet", "--output", file).exit_code == 0
    assert pq.read_table(file)["seq"].to_pylist()[:2] == [1, 2]
    stream = run(tmp_path, "sql", query, "--format", "arrow", "--limit", 3)
    assert stream.exit_code == 1
    with pa.ipc.open_stream(stream.stdout_bytes) as reader:
        batches = list(reader.iter_batches_with_custom_metadata())
    assert sum(batch.batch.num_rows for batch in batches) == 3
    assert batches[-1].custom_metadata[b"truncated"] == b"true"
    assert run(tmp_path, "sql", query, "--format", "csv", "--output", file).exit_code == 2


def test_export_goes_where_it_is_told(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    record_session(home)
    report = answer(home, "export", "--to", elsewhere)
    assert report["events"] == report["position"] > 0
    assert answer(home, "export", "--to", elsewhere)["events"] == 0
    rows = answer(tmp_path, "sql", "select count(*) as n from events", "--lake", elsewhere)["rows"]
    assert rows == [{"n": report["events"]}]
    assert "0 new records" in run(home, "export", "--to", elsewhere).stdout


def test_a_session_imported_now_is_in_the_answer(tmp_path: Path) -> None:
    record_session(tmp_path)
    count = "select count(*) as n from sessions"
    assert answer(tmp_path, "sql", count)["rows"] == [{"n": 1}]
    answer(tmp_path, "import", DAMAGED)
    assert answer(tmp_path, "sql", count)["rows"][0]["n"] > 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nonsense from events", "the query cannot be run: Binder Error"),
        ("selec 1", "Parser Error"),
        (";", "the query gives no rows"),
        ("select 1/(seq - seq)::int // 0 from no_table", "Catalog Error"),
    ],
)
def test_a_wrong_query_is_a_message(tmp_path: Path, query: str, message: str) -> None:
    record_session(tmp_path)
    result = run(tmp_path, "sql", query)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr


def test_a_slow_query_is_stopped(golden: Path) -> None:
    with connect(golden) as connection:
        started = time.monotonic()
        query = "select count(*) from range(10000000) as a, range(10000000) as b where a.range + b.range = 3"
        with (
            pytest.raises(QueryTooSlowError, match=r"stopped after 0\.3 s"),
            Answer(connection, query, timeout_s=0.3) as got,
        ):
            list(got.rows())
        assert time.monotonic() - started < 200
        assert connection.execute("select 1").fetchone() == (1,)
    result = run(golden, "sql", query, "--lake", golden, "--timeout", 0.3)
    assert (result.exit_code, "--timeout allows more" in result.stderr) == (1, True)


def test_columns_of_one_name_are_told_apart(golden: Path) -> None:
    with connect(golden) as connection, Answer(connection, "select 1 as a, 2 as a, 3 as a") as got:
        assert got.schema.names == ["a", "a_2", "a_3"]
        assert list(got.rows()) == [[1, 2, 3]]


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "markdown"])
def test_no_trace_touches_the_terminal(tmp_path: Path, form: str) -> None:
    record_session(tmp_path, text=HOSTILE)
    query: Any = "select readable as text, message, agent from messages, sessions"
    result = run(tmp_path, "sql", query, "--format", form)
    assert result.exit_code == 0
    bad = {char for char in result.output if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert bad <= {"\n"}
    assert re.search("red", result.stdout)


def test_the_shipped_queries_answer_for_a_recorded_session(tmp_path: Path) -> None:
    record_session(tmp_path)
    (tool,) = answer(tmp_path, "queries", "tool_use")["rows"]
    assert (tool["tool"], tool["calls"], tool["failed"]) == ("echo", 1, 0)
    (model,) = answer(tmp_path, "queries", "cost_by_model")["rows"]
    assert (model["model"], model["calls"], model["input_tokens"], model["output_tokens"]) == (
        "scripted",
        2,
        10,
        4,
    )
    (day,) = answer(tmp_path, "queries", "tokens_by_day")["rows"]
    assert (day["calls"], day["output_tokens"]) == (2, 4)
    found = answer(tmp_path, "queries", "find_text", "--param", "text=HELLO BACK")["rows"]
    assert {row["type"] for row in found} == {"model_call.answered"}
    assert answer(tmp_path, "queries", "longest_sessions")["rows"][0]["session"] == "live-1"


@pytest.mark.parametrize("what", ["count(*)", "a.range"])
def test_control_c_cancels_a_query(golden: Path, what: str) -> None:
    query = f"select {what} from range(100000000) as a, range(10000000) as b where a.range * b.range = -3"
    with process(
        golden, "sql", query, "--lake", golden, "--format", "csv", preexec_fn=obey_interrupts
    ) as running:
        while cpu_seconds(running.pid) < 6:
            time.sleep(0.05)  # until the query itself is what takes the time
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    assert (running.returncode, errors) == (130, b"loopledger: the query was cancelled\n")


def obey_interrupts() -> None:
    """A process in the background of a shell ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
