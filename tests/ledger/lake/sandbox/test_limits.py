"""Limits of safe queries: time, memory, rows, bytes, how many at once; and that nothing else suffers."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from ledger.home import open_ledger
from ledger.lake import Lake
from ledger.lake.sandbox import (
    Limits,
    QueriesBusyError,
    QueryHandle,
    QueryRefusedError,
    SafeQueries,
    SafeResult,
)
from ledger.lake.sandbox.process import Worker
from tests.commands import record_session
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.ledger.lake.sandbox.attacks import HUNGRY

TIGHT = Limits(seconds=1.0, memory_bytes=640 << 20, rows=50, result_bytes=1 << 20)
PLAIN = Limits(seconds=60.0, rows=50)
"""Time enough on a machine that has other things to do."""

ENDLESS = HUNGRY["cross join"]
DEAF = "select length(repeat('x', 400000000))"
"""What the engine itself cannot stop."""

GENEROUS_SECONDS = 200


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    Lake(folder).export(feed_of(golden_rows(200)))
    return folder


@pytest.fixture(scope="module")
def queries(lake: Path) -> Iterator[SafeQueries]:
    with SafeQueries(lake, Limits(seconds=60, rows=50, result_bytes=1 << 20)) as made:
        yield made


def waited_for(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GENEROUS_SECONDS
    while not check():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@contextlib.contextmanager
def watched_memory(pid: int) -> Iterator[list[int]]:
    """Peaks of a process's memory, in bytes, as long as it lives."""
    peaks, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
                peaks.append(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield peaks
    finally:
        done.set()
        watching.join()


@pytest.mark.parametrize("attack", HUNGRY)
def test_a_hungry_query_is_stopped_within_its_limits(lake: Path, attack: str) -> None:
    worker = Worker(lake, TIGHT)
    started = time.monotonic()
    with watched_memory(worker.pid) as peaks:
        try:
            stopped = worker.ask(HUNGRY[attack], {}).stopped
            assert stopped is not None
            assert stopped.kind in ("time", "memory", "died", "bytes", "rows")
            assert stopped.words.startswith(("stopped", "more than"))
        except QueryRefusedError:
            pass  # the engine's own limits, of depth for one
        finally:
            worker.kill()
    assert max(peaks) < TIGHT.memory_bytes
    assert time.monotonic() - started < GENEROUS_SECONDS
    assert not Path(f"/proc/{worker.pid}").exists()


def test_a_worker_is_limited_by_the_system(lake: Path) -> None:
    worker = Worker(lake, PLAIN)
    try:
        worker.ask("select 1", {})
        limits = Path(f"/proc/{worker.pid}/limits").read_text(encoding="ascii")
        limited = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()[1:]}
        assert limited["Max address space"] == str(PLAIN.memory_bytes)
        assert limited["Max file size"] == "0"
        assert limited["Max core file size"] == "0"
        assert int(limited["Max open files"]) <= 512
        assert limited["Max cpu time"] != "unlimited"
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) >= 10
        status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
        assert "NoNewPrivs:\t1" in status
    finally:
        worker.kill()


def test_a_query_that_the_engine_cannot_stop_is_killed(lake: Path) -> None:
    worker = Worker(lake, Limits(seconds=1.0))
    assert worker.ask(DEAF, {}).stopped == ("time", "stopped after 1 s")
    assert not worker.is_alive()


def test_an_answer_has_columns_rows_and_types(queries: SafeQueries) -> None:
    result = queries.run("select seq, type, recorded_date from events order by position limit 2")
    assert result.columns == [("seq", "int64"), ("type", "string"), ("recorded_date", "date32[day]")]
    assert [type(value) for value in next(result.rows())] == [int, str, date]
    assert (result.stopped, result.is_cut) == (None, False)


def test_more_rows_than_allowed_are_said_to_be_left_out(queries: SafeQueries) -> None:
    result = queries.run("select * from range(1000) order by 1")
    assert [row[0] for row in result.rows()] == list(range(50))
    assert result.stopped == ("rows", "more than 50 rows: the rest is left out")
    assert queries.run("select * from range(50)").stopped is None


def test_more_bytes_than_allowed_are_said_to_be_left_out(queries: SafeQueries) -> None:
    result = queries.run("select repeat('x', 100000) from range(40)")
    assert result.stopped == ("bytes", "more than 1048576 bytes: the rest is left out")
    assert 0 < len(list(result.rows())) <= 10
    assert list(queries.run("select repeat('x', 5000000)").rows()) == []


def test_parameters_are_values_and_never_text_of_the_query(queries: SafeQueries) -> None:
    hostile = "'; copy (select 1) to '/tmp/a'; --"
    result = queries.run(
        "select $text, $number, $day, $flag, $nothing",
        {"text": hostile, "number": 2**40, "day": date(2026, 1, 2), "flag": True, "nothing": None},
    )
    assert next(result.rows()) == [hostile, 2**40, date(2026, 1, 2), True, None]
    for wrong in (datetime(2026, 1, 2), b"raw", ["a list"]):  # noqa: DTZ001 - what a caller might give
        with pytest.raises(QueryRefusedError, match="parameter text must be"):
            queries.run("select $text", {"text": wrong})
    with pytest.raises(QueryRefusedError, match="too long with its parameters"):
        queries.run("select $text", {"text": "x" * 2_000_000})
    with pytest.raises(QueryRefusedError):
        queries.run("select $missing", {})


def test_workers_are_used_again_unless_they_were_stopped(lake: Path) -> None:
    def pids(queries: SafeQueries) -> set[int]:
        return {worker.pid for worker in queries._idle}

    with SafeQueries(lake, PLAIN) as queries:
        queries.run("select 1")
        first = pids(queries)
        queries.run("select * from range(1000)")
        with pytest.raises(QueryRefusedError):
            queries.run("select nonsense")
        assert pids(queries) == first
        handle = QueryHandle()
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(queries.run, ENDLESS, handle=handle)
            waited_for(lambda: handle._worker is not None)
            handle.cancel()
            assert running.result(GENEROUS_SECONDS).stopped is not None
        (gone,) = first
        (another,) = pids(queries)  # it starts while nobody waits for it
        assert another != gone
        assert not Path(f"/proc/{gone}").exists()
        assert queries.run("select 1").stopped is None


def test_a_worker_that_died_idle_is_replaced(lake: Path) -> None:
    with SafeQueries(lake, PLAIN) as queries:
        queries.run("select 1")
        os.kill(queries._idle[0].pid, signal.SIGKILL)
        waited_for(lambda: not queries._idle[0].is_alive())
        assert next(queries.run("select 2").rows()) == [2]


def test_an_idle_worker_ends_by_itself(lake: Path) -> None:
    worker = Worker(lake, Limits(idle_seconds=0.1))
    worker._wait_until_ready()  # and nobody asks
    waited_for(lambda: not worker.is_alive())
    worker.kill()


def test_a_worker_whose_program_went_away_ends_by_its_own_clock(lake: Path) -> None:
    worker = Worker(lake, Limits(seconds=1.0))
    worker._wait_until_ready()
    long = " union all ".join([DEAF] * 40)  # beyond its time on any machine
    worker._write(json.dumps({"sql": long, "parameters": {}}).encode() + b"\n")
    worker._process.wait(GENEROUS_SECONDS)  # nobody reads, nobody kills
    worker.kill()


def test_a_query_is_cancelled_from_another_thread(lake: Path) -> None:
    handle = QueryHandle()
    with SafeQueries(lake, Limits(seconds=60, workers=1)) as queries, ThreadPoolExecutor(2) as threads:
        running = threads.submit(queries.run, ENDLESS, handle=handle)
        waited_for(lambda: handle._worker is not None)
        waiting_handle = QueryHandle()
        waiting = threads.submit(queries.run, ENDLESS, handle=waiting_handle)
        waiting_handle.cancel()
        handle.cancel()
        for one in (running, waiting):
            assert one.result(GENEROUS_SECONDS).stopped == ("cancelled", "cancelled")
        assert queries.run("select 1").stopped is None


def test_progress_is_told_while_a_query_runs(lake: Path) -> None:
    handle = QueryHandle()
    with SafeQueries(lake, Limits(seconds=60)) as queries, ThreadPoolExecutor(1) as threads:
        running = threads.submit(queries.run, "select sum(hash(range)) from range(3000000000)", handle=handle)
        waited_for(lambda: handle.progress is not None or running.done())
        handle.cancel()
        running.result(GENEROUS_SECONDS)
    assert handle.progress is not None
    assert 0 <= handle.progress <= 100


def test_twenty_hostile_queries_leave_the_store_responsive(tmp_path: Path) -> None:
    record_session(tmp_path)
    with open_ledger(tmp_path) as ledger:
        Lake(tmp_path / "lake").export(feed_of(golden_rows(50)))
        limits = Limits(seconds=1.0, memory_bytes=640 << 20, workers=2, waiting=2, wait_seconds=200)
        reads = 0
        with SafeQueries(tmp_path, limits) as queries, ThreadPoolExecutor(20) as threads:

            def ask(sql: str) -> SafeResult | QueriesBusyError:
                try:
                    return queries.run(sql)
                except QueriesBusyError as busy:
                    return busy

            hostile = [list(HUNGRY.values())[at % 4] for at in range(20)]
            running: list[Any] = [threads.submit(ask, sql) for sql in hostile]
            while not all(one.done() for one in running):
                assert [record.seq for record in ledger.store.read("live-1")][:2] == [1, 2]
                reads += 1
            outcomes = [one.result() for one in running]
    assert reads > 0
    busy = [one for one in outcomes if isinstance(one, QueriesBusyError)]
    stopped = [one for one in outcomes if isinstance(one, SafeResult)]
    assert len(stopped) >= 4  # two run and two wait; more only where some had ended before the last ones came
    assert len(busy) + len(stopped) == 20
    assert all(str(one) == "busy: 2 queries run and 2 wait; ask again later" for one in busy)
    assert all(one.stopped is not None and one.stopped.kind in ("time", "memory", "died") for one in stopped)


def test_one_that_waits_too_long_is_told_so(lake: Path) -> None:
    handle = QueryHandle()
    limits = Limits(seconds=60, workers=1, wait_seconds=0.05)
    with SafeQueries(lake, limits) as queries, ThreadPoolExecutor(1) as threads:
        running = threads.submit(queries.run, ENDLESS, handle=handle)
        waited_for(lambda: handle._worker is not None)
        with pytest.raises(QueriesBusyError, match=r"no worker was free within 0\.05 s"):
            queries.run("select 1")
        handle.cancel()
        running.result(GENEROUS_SECONDS)
