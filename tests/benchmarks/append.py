"""Appending: against raw sqlite3 with the same bytes, the library's own aggregate, and LangGraph's saver."""

import importlib.util
import itertools
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from ledger.events import Actor, ContentRef, Draft
from ledger.events.tool_call import ToolCallRequested
from ledger.store import EventStore, open_store
from tests.benchmarks.measure import Result, cpu_us, interleaved, ratio_result

_NOW = "2026-01-01T00:00:00.000000Z"
_SHM = Path("/dev/shm")


def _drafts(count: int) -> list[Draft]:
    ref = ContentRef(digest="ab" * 32, size=2345, kind="json")
    return [
        Draft(
            ToolCallRequested(call_id=f"call_{index:08d}", tool="search_catalogue", arguments=ref),
            _NOW,
            Actor("agent", "triage"),
        )
        for index in range(count)
    ]


def _stamp() -> str:
    return _NOW


def _ours(store: EventStore, session: str, batch: int) -> Callable[[], float]:
    drafts = {session: _drafts(batch)}

    def work() -> int:
        store.append(drafts, stamp=_stamp)
        return batch

    return lambda: cpu_us(work)


def _raw(folder: Path, batch: int, store: EventStore) -> Callable[[], float]:
    """The least that SQLite can do: the same bytes in the same table by executemany, one commit a batch."""
    store.append({f"bytes-{batch}": _drafts(batch)}, stamp=_stamp)
    rows = store.recorder.scan(f"bytes-{batch}", 0, batch)
    connection = sqlite3.connect(folder / f"raw-{batch}.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE e (nid INTEGER PRIMARY KEY, o TEXT, v INTEGER, t TEXT, s BLOB, h BLOB)")
    connection.execute("CREATE UNIQUE INDEX e_ov ON e (o, v)")
    counter = itertools.count(1)
    parts = [(row.name, row.state, row.hash) for row in rows]

    def work() -> int:
        values = [("session", next(counter), *part) for part in parts]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO e (o, v, t, s, h) VALUES (?,?,?,?,?)", values)
        connection.execute("COMMIT")
        return len(values)

    return lambda: cpu_us(work)


class _Session(Aggregate):
    @event("Requested")
    def request(self, call_id: str, tool: str, digest: str, size: int, actor: str, at: str) -> None:
        """The same fact as the library's stock aggregate event."""


def _stock(folder: Path, batch: int) -> Callable[[], float]:
    application: Application = Application(  # type: ignore[type-arg]
        env={
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(folder / f"stock-{batch}.sqlite"),
        }
    )
    session = _Session()
    application.save(session)

    def work() -> int:
        for index in range(batch):
            session.request(f"call_{index:08d}", "search_catalogue", "ab" * 32, 2345, "triage", _NOW)
        application.save(session)
        return batch

    return lambda: cpu_us(work)


def _langgraph(folder: Path) -> Callable[[], float] | None:
    if importlib.util.find_spec("langgraph") is None:
        return None
    from langgraph.checkpoint.base import empty_checkpoint  # noqa: PLC0415 - only where it is installed
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    connection = sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()

    def work() -> int:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {
            "call": {"tool": "search_catalogue", "digest": "ab" * 32, "size": 2345}
        }
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        metadata: Any = {"source": "loop", "step": 1, "parents": {}}
        saver.put(config, checkpoint, metadata, {})
        return 1

    return lambda: cpu_us(work)


def run() -> Iterator[Result]:
    """The lines of this part. Each comparison has a store of its own, so that none pays for the pages of another."""
    for batch, aim in ((1, 2.5), (100, 3.0)):
        with _fresh() as (folder, store):
            figures = interleaved(_ours(store, "session", batch), _raw(folder, batch, store))
        yield ratio_result(
            f"append with chain, batch {batch}, against raw sqlite3 of the same bytes", figures, aim
        )
    for batch in (1, 100):
        with _fresh() as (folder, store):
            figures = interleaved(_ours(store, "session", batch), _stock(folder, batch))
        yield ratio_result(f"append, batch {batch}, against eventsourcing's stock aggregate", figures, 0.5)
    name = "append, batch 1, against LangGraph SqliteSaver.put"
    with _fresh() as (folder, store):
        saver = _langgraph(folder)
        if saver is None:
            yield Result(name, "langgraph-checkpoint-sqlite is not installed", "-", None)
        else:
            yield ratio_result(name, interleaved(_ours(store, "session", 1), saver), 1.0)
    with _fresh() as (_, store):
        yield from _flat(store)


@contextmanager
def _fresh() -> Iterator[tuple[Path, EventStore]]:
    with (
        tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as name,
        open_store(f"sqlite:///{Path(name) / 'ledger.sqlite'}") as store,
    ):
        yield Path(name), store


def _flat(store: EventStore) -> Iterator[Result]:
    costs = {}
    at = 0
    for target in (100, 10_000, 100_000):
        while at < target:
            step = min(1000, target - at)
            store.append({"long": _drafts(step)}, stamp=_stamp)
            at += step
        one = {"long": _drafts(1)}
        costs[target] = cpu_us(lambda one=one: len(store.append(one, stamp=_stamp)), seconds=0.3)  # type: ignore[misc]
        at = store.head("long").seq
    text = ", ".join(f"{cost:.1f} us at {seq:,}" for seq, cost in costs.items())
    growth = costs[100_000] / costs[100]
    yield Result(
        "append cost by length of the session", f"{text} ({growth:.2f}x)", "flat: <= 1.3x", growth <= 1.3
    )
