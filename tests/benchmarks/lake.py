"""The lake: export from the store, bytes, small batches, how fresh it is, and queries against their yardsticks.

`EVENTS=10000000 make bench PART=lake` measures a large one: it needs 20 GB in the folder of temporary files.
"""

import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from ledger.lake import Lake, connect
from ledger.store import EventStore, open_store
from ledger.store.content import BlobRow, unpack_blob
from ledger.views.lake import LakeFollower, lake_feed
from ledger.views.search import SearchView
from tests.benchmarks.lake_data import NEEDLE, SESSION, fill, grow
from tests.benchmarks.lake_queries import in_polars, questions
from tests.benchmarks.measure import Result, interleaved, ratio_result

_EVENTS = int(os.environ.get("EVENTS") or 200_000)
_STORED = min(_EVENTS, 200_000)  # what goes through a store, and is indexed
_BATCHES = 20
_ROUNDS = 5 if _EVENTS <= 1_000_000 else 3


def run() -> Iterator[Result]:
    """The lines of this part."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "ledger.sqlite"
        folder = Path(name) / "lake"
        with open_store(f"sqlite:///{path}") as store:
            fill(store, _STORED)
            lake = Lake(folder)
            yield from _export(store, lake, path)
            yield from _queries(folder, path)
            if _EVENTS >= 2 * _STORED:
                yield from _larger(store, Path(name) / "larger")
            yield from _full_text(store, Path(name), folder)
            yield _small_batches(store, lake)
            yield _freshness(store, lake)


def _export(store: EventStore, lake: Lake, path: Path) -> Iterator[Result]:
    started, cpu = time.monotonic(), time.process_time()
    done = lake.export(lake_feed(store))
    wall, cpu = time.monotonic() - started, time.process_time() - cpu
    rate, size = done.events / wall, f"of {done.events:,} events"
    yield Result(f"export {size} with texts", f"{rate:,.0f} events/s", ">= 60,000 events/s", rate >= 60_000)
    yield Result("export, CPU", f"{cpu / done.events * 1e6:.1f} us an event", "-", None)
    share = f"{done.bytes / done.events:.0f} bytes an event, with texts, in {done.files} files"
    yield Result("size of the lake", share, "-", None)
    yield Result(
        "size of the SQLite store", f"{path.stat().st_size / done.events:.0f} bytes an event", "-", None
    )


def _larger(store: EventStore, folder: Path) -> Iterator[Result]:
    lake = Lake(folder)
    lake.export(lake_feed(store))
    grow(lake, _STORED, _EVENTS)
    files = lake.manifest.read().files.values()
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    yield Result(
        f"larger lake of {rows:,} events", f"{size / rows:.0f} bytes an event, {len(files)} files", "-", None
    )
    yield from _queries(folder, None)


def _small_batches(store: EventStore, lake: Lake) -> Result:
    """Records of one commit, taken in at once."""
    feed, times = lake_feed(store), []
    for number in range(_BATCHES):
        fill(store, SESSION, seed=number + 1, prefix=f"late-{number}")
        version = lake.manifest.read()
        started = time.monotonic()
        lake.export(feed)
        times.append(1000 * (time.monotonic() - started))
        assert lake.manifest.read().position == version.position + SESSION
    median = statistics.median(times)
    return Result("batch of 500 events, commit to commit", f"{median:.1f} ms", "< 20 ms", median < 20)


def _freshness(store: EventStore, lake: Lake) -> Result:
    """From the commit of a session to its being in the lake, while a follower runs as under `serve`."""
    times = []
    with LakeFollower(store, lake.folder):
        for number in range(5):
            fill(store, SESSION, seed=100 + number, prefix=f"fresh-{number}")
            started, wanted = time.monotonic(), store.last_position()
            while lake.manifest.read().position < wanted:
                assert time.monotonic() - started < 60
                time.sleep(0.005)
            times.append(time.monotonic() - started)
    worst = max(times)
    return Result("a session is in the lake under `serve`", f"{worst:.2f} s at most", "< 2 s", worst < 2)


def _queries(folder: Path, path: Path | None) -> Iterator[Result]:
    """Against bare DuckDB and Polars on the same files, and against the raw store, which answers once: it is slow."""
    ours, bare, raw = connect(folder), duckdb.connect(), sqlite3.connect(path or ":memory:")
    bare.execute(f"set variable files = (select list('{folder}/' || path) from '{folder}/files.json')")
    bare.execute("set TimeZone = 'UTC'")
    bare.execute("set enable_progress_bar = false")
    raw.create_function("unpacked", 5, lambda *row: unpack_blob(BlobRow(*row)).decode(), deterministic=True)
    session, files = f"session-{_STORED // SESSION // 2:06}", Lake(folder).paths()
    for asked in questions(session):
        own = asked.sql.replace("EVENTS", "events")
        other = asked.sql.replace("EVENTS", "read_parquet(getvariable('files'))")
        rows = ours.execute(own).fetchall()
        assert rows == bare.execute(other).fetchall()
        figures = interleaved(
            _timed(lambda: ours.execute(own).fetchall()),  # noqa: B023 - called here and now
            _timed(lambda: bare.execute(other).fetchall()),  # noqa: B023
            rounds=_ROUNDS,
        )
        yield ratio_result(f"{asked.name}, against bare DuckDB", figures, 1.1, unit="ms")
        if (frame := in_polars(asked.name, files, session)) is not None:
            assert frame.rows() == rows
            polars = _timed(lambda: in_polars(asked.name, files, session))  # noqa: B023
            yield _compared(
                f"{asked.name}, against Polars",
                figures[0],
                statistics.median(polars() for _ in range(_ROUNDS)),
            )
        if path is not None:
            took = _timed(lambda: raw.execute(asked.store).fetchall())()  # noqa: B023
            yield _compared(f"{asked.name}, against the SQLite store", figures[0], took)
    raw.close()


def _full_text(store: EventStore, home: Path, folder: Path) -> Iterator[Result]:
    view = SearchView(home, store)
    started = time.monotonic()
    view.catch_up()
    rate = _STORED / (time.monotonic() - started)
    yield Result("full-text index, built", f"{rate:,.0f} events/s", "-", None)
    indexed = statistics.median(_timed(lambda: view.search(NEEDLE))() for _ in range(_ROUNDS))
    with connect(folder) as connection:
        query = f"select session, seq, text from events where text like '%{NEEDLE}%' order by position desc limit 20"
        scanned = statistics.median(
            _timed(lambda: connection.execute(query).fetchall())() for _ in range(_ROUNDS)
        )
    yield _compared("full text, first page, against LIKE over the lake", indexed, scanned)


def _compared(name: str, mine: float, theirs: float) -> Result:
    return Result(name, f"{mine / theirs:.3g}x ({mine:.1f} against {theirs:.1f} ms)", "-", None)


def _timed(work: Callable[[], object]) -> Callable[[], float]:
    def timed() -> float:
        started = time.monotonic()
        work()
        return 1000 * (time.monotonic() - started)

    return timed
