"""The lake: export from the store, bytes, small batches, and queries against bare DuckDB on the same files.

`LAKE_EVENTS=10000000 make bench PART=lake` measures a larger one.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from ledger.events import Draft
from ledger.lake import Lake, connect
from ledger.store import EventStore, open_store
from ledger.views.lake import lake_feed
from tests.benchmarks.measure import Result, interleaved, ratio_result
from tests.benchmarks.reading import turn

_EVENTS = int(os.environ.get("LAKE_EVENTS", "1000000"))
_SESSION = 500
_BATCHES = 20


def _fill(store: EventStore, events: int) -> None:
    """Sessions of 500 records, as loops write them; contents are named and not kept, so none is exported."""
    for number in range(events // _SESSION):
        drafts = [Draft(event) for index in range(_SESSION // 5) for event in turn(number * 100 + index)]
        store.append({f"session-{number:06}": drafts}, stamp=lambda: "2026-01-01T00:00:00.000000Z")


def run() -> Iterator[Result]:
    """The lines of this part."""
    with (
        tempfile.TemporaryDirectory() as name,
        open_store(f"sqlite:///{Path(name) / 'ledger.sqlite'}") as store,
    ):
        folder = Path(name) / "lake"
        _fill(store, _EVENTS)
        lake, feed = Lake(folder), lake_feed(store)
        started, cpu = time.monotonic(), time.process_time()
        done = lake.export(feed)
        wall, cpu = time.monotonic() - started, time.process_time() - cpu
        rate = done.events / wall
        yield Result("export from the store", f"{rate:,.0f} events/s", ">= 60,000 events/s", rate >= 60_000)
        yield Result("export", f"{cpu / done.events * 1e6:.1f} us CPU an event", "-", None)
        yield Result("size", f"{done.bytes / done.events:.1f} bytes an event, without contents", "-", None)
        yield _small_batches(store, lake)
        yield from _queries(folder)


def _small_batches(store: EventStore, lake: Lake) -> Result:
    """Records of one commit, taken in at once."""
    feed, times = lake_feed(store), []
    for number in range(_BATCHES):
        drafts = [
            Draft(event) for index in range(_SESSION // 5) for event in turn(10**7 + number * 100 + index)
        ]
        store.append({f"late-{number}": drafts}, stamp=lambda: "2026-01-02T00:00:00.000000Z")
        version = lake.manifest.read()
        started = time.monotonic()
        lake.export(feed)
        times.append(1000 * (time.monotonic() - started))
        assert lake.manifest.read().position == version.position + _SESSION
    median = statistics.median(times)
    return Result("batch of 500 events, commit to commit", f"{median:.1f} ms", "< 20 ms", median < 20)


def _queries(folder: Path) -> Iterator[Result]:
    ours = connect(folder)
    bare = duckdb.connect()
    bare.execute(f"set variable files = (select list('{folder}/' || path) from '{folder}/files.json')")
    bare.execute("set TimeZone = 'UTC'")
    session = f"session-{_EVENTS // _SESSION // 2:06}"
    requested = "type = 'tool_call.requested'"
    queries = {
        "session lookup": f"select seq, type, payload from TABLE where session = '{session}' order by seq",
        "counts by tool": f"select tool, count(*) from TABLE where {requested} group by tool order by tool",
        "tokens": "select session, sum(output_tokens) from TABLE group by session order by 2 desc, 1 limit 9",
    }
    for what, query in queries.items():
        own = query.replace("TABLE", "events")
        other = query.replace("TABLE", "read_parquet(getvariable('files'))")
        assert ours.execute(own).fetchall() == bare.execute(other).fetchall()
        figures = interleaved(_timed(ours, own), _timed(bare, other), rounds=5)
        yield ratio_result(f"{what}, against bare DuckDB on the same files", figures, 1.1, unit="ms")


def _timed(connection: duckdb.DuckDBPyConnection, query: str) -> Callable[[], float]:
    def work() -> float:
        started = time.monotonic()
        connection.execute(query).fetchall()
        return 1000 * (time.monotonic() - started)

    return work
