"""`sql --safe` and `queries --safe`, and the bar that shows how far a query is."""

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.terminal import waiting_bar
from ledger.lake import Lake, connect
from ledger.lake.query import Answer
from tests.commands import answer, process, record_session, run
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.ledger.lake.test_queries import obey_interrupts

ENDLESS = "select sum(a.range * b.range) from range(100000000000) as a, range(100) as b"


def test_a_safe_query_answers_like_a_trusted_one(tmp_path: Path) -> None:
    record_session(tmp_path)
    query = "select session, count(*) as n from events group by session"
    assert answer(tmp_path, "sql", query, "--safe") == answer(tmp_path, "sql", query)
    saved = ("queries", "find_text", "--param", "text=hello")
    assert answer(tmp_path, *saved, "--safe") == answer(tmp_path, *saved)


def test_a_safe_query_may_only_read_the_lake(tmp_path: Path) -> None:
    record_session(tmp_path)
    refused = run(tmp_path, "sql", f"copy events to '{tmp_path}/a.csv'", "--safe")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "found COPY" in refused.stderr
    assert not (tmp_path / "a.csv").exists()
    assert run(tmp_path, "sql", "select 1", "--safe", "--search", "hello").exit_code == 2
    assert run(tmp_path, "sql", "select 1", "--safe", "--engine", "spark").exit_code == 2


def test_a_safe_query_says_what_it_left_out_and_why_it_was_stopped(tmp_path: Path) -> None:
    record_session(tmp_path)
    cut = run(tmp_path, "sql", "select seq from events order by seq", "--safe", "--limit", 2, "--json")
    found = json.loads(cut.stdout)
    assert cut.exit_code == 1
    assert ([row["seq"] for row in found["rows"]], found["truncated"]) == ([1, 2], True)
    assert found["stopped"] == "more than 2 rows: the rest is left out"
    late = run(tmp_path, "sql", ENDLESS, "--safe", "--timeout", 1)
    assert (late.exit_code, late.stdout, late.stderr) == (1, "", "loopledger: stopped after 1 s\n")


def test_control_c_cancels_a_safe_query(tmp_path: Path) -> None:
    Lake(tmp_path).export(feed_of(golden_rows(20)))
    options: Any = {"preexec_fn": obey_interrupts}
    with process(
        tmp_path, "sql", ENDLESS, "--lake", tmp_path, "--safe", "--timeout", 900, **options
    ) as running:
        deadline = time.monotonic() + 120
        while not children_of(running.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    assert (running.returncode, errors) == (130, b"loopledger: the query was cancelled\n")


def children_of(pid: int) -> list[str]:
    """Processes that a process started."""
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text(encoding="ascii").split()
    return found


def test_a_trusted_query_tells_its_progress_while_one_waits(tmp_path: Path) -> None:
    Lake(tmp_path).export(feed_of(golden_rows(20)))
    told: list[float | None] = []
    with connect(tmp_path) as connection:
        query = "select sum(hash(range)) from range(2000000000)"
        with Answer(connection, query, on_progress=told.append) as got:
            assert len(list(got.rows())) == 1
    assert told[-1] is None
    assert all(percent is None or percent <= 100 for percent in told)


def test_the_bar_goes_away_when_rows_come(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting_bar() as tell:
        before = threading.active_count()
        for percent in (-1.0, 10.0, None, 20.0, None):
            tell(percent)
            assert percent is not None or threading.active_count() <= before
    assert capsys.readouterr().out == ""
