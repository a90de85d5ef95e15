"""CPU that recording costs the caller, for each tool call and model call, in a process that does nothing else."""

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from ledger.capture import record_loop
from ledger.home import Ledger, open_ledger
from tests.benchmarks.measure import Result, run_child

_CALLS, _ROUNDS, _TURNS = 500, 9, 200
_TABLES = "create table {0} (id integer primary key, key blob unique, {1})"
_PAGES = "Northern valves, pumps and flanges for plants by the sea; "


def _search(query: str, supplier: str, limit: int, page: int, fields: list[str]) -> dict[str, Any]:
    """A tool: its arguments have about 200 bytes as JSON, its result about 500."""
    row = {"name": f"{supplier} {page}", "price": 1200 + page, "fields": len(fields)}
    return {"query": query, "rows": [row] * 3, "notes": _PAGES * 3, "page": page, "more": page < limit}


def _arguments(number: int) -> dict[str, Any]:
    return {
        "query": f"stainless gate valve DN{number}, PN16, with certificate of the works",
        "supplier": "Hansen & Daughters, Flensburg",
        "limit": 20,
        "page": number,
        "fields": ["name", "price", "delivery"],
    }


def _cpu_us(work: Callable[[], object], calls: int) -> float:
    """Microseconds of all threads of this process for each call."""
    started = time.process_time_ns()
    for _ in range(calls):
        work()
    return (time.process_time_ns() - started) / 1000 / calls


def _raw(ledger: Ledger, folder: str) -> Callable[[], object]:
    """The least that SQLite can do: the rows of one recorded call, the same bytes, in the same two commits."""
    recorder = ledger.store.recorder
    rows = [(row.name, row.state, row.hash) for row in recorder.scan("tools", 1, 3)]
    blobs = [recorder.get_blob(digest) for digest in recorder.list_blobs(b"", 2)]
    bodies = [blob[1:] for blob in blobs if blob is not None]
    connection = sqlite3.connect(f"{folder}/raw.sqlite", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=normal")
    connection.execute(
        "create table records (nid integer primary key, session text, seq integer, name text, state blob, hash blob)"
    )
    connection.execute("create unique index places on records (session, seq)")
    connection.execute("create table blobs (digest blob primary key, size, codec, body, checksum)")
    seqs, digests = count(1), count(1)

    def commit(blob: tuple[Any, ...], part: list[tuple[Any, ...]]) -> None:
        connection.execute("begin immediate")
        digest = (next(digests) * 0x9E3779B97F4A7C15 % 2**64).to_bytes(32, "little")
        connection.execute("insert into blobs values (?,?,?,?,?)", (digest[:8] + digest[8:], *blob))
        connection.executemany(
            "insert into records (session, seq, name, state, hash) values (?,?,?,?,?)",
            [("tools", next(seqs), *row) for row in part],
        )
        connection.execute("commit")

    def work() -> None:
        commit(bodies[0], rows[:2])
        commit(bodies[1], rows[2:])

    return work


def _tools(folder: str) -> None:
    """Prints the figures of a tool call: recorded, the bytes alone by sqlite3, and not recorded."""
    numbers = count(1)
    with open_ledger(folder) as ledger, record_loop(ledger, harness="bench", session="tools") as run:

        def recorded() -> object:
            return run.tool(_search, _arguments(next(numbers)), effect_class="read")

        def plainly() -> object:
            return _search(**_arguments(next(numbers)))

        recorded()
        raw = _raw(ledger, folder)
        works = (recorded, raw, plainly)
        for work in works:
            _cpu_us(work, _CALLS)  # warm: files grown, statements prepared
        rounds = [[_cpu_us(work, _CALLS) for work in works] for _ in range(_ROUNDS)]
    sys.stdout.write(" ".join(str(statistics.median(column)) for column in zip(*rounds, strict=True)))


def _models(folder: str) -> None:
    """Prints the figures of a model call: early and late in one conversation that grows with each call."""
    messages: list[dict[str, Any]] = []
    numbers = count(1)
    answer = {
        "id": "r1",
        "model": "bench",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": _PAGES}}
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 50},
    }
    with open_ledger(folder) as ledger, record_loop(ledger, harness="bench", session="models") as run:

        def call() -> None:
            messages.append({"role": "user", "content": f"{next(numbers)}: {_PAGES * 8}"})
            run.model(lambda **request: answer, model="bench", messages=messages, temperature=0)
            messages.append({"role": "assistant", "content": _PAGES})

        costs = [_cpu_us(call, 1) for _ in range(_TURNS)]
    early, late = (statistics.median(costs[at : at + 40]) for at in (10, _TURNS - 40))
    sys.stdout.write(f"{early} {late}")


def run() -> Iterator[Result]:
    """The lines of this part."""
    recorded, raw, plainly = _child("tools")
    cost = recorded - plainly
    yield Result("recording a tool call, CPU on the caller", f"{cost:.0f} us", "< 70 us", cost < 70)
    yield Result(
        "against raw sqlite3, its two commits of the same bytes",
        f"{cost / raw:.2f}x ({raw:.0f} us)",
        "-",
        None,
    )
    yield Result("the tool itself, not recorded", f"{plainly:.1f} us", "-", None)
    early, late = _child("models")
    value = f"{early:.0f} us at 50 messages, {late:.0f} us at {2 * _TURNS - 40} ({late / early:.1f}x)"
    yield Result("recording a model call, whole history in every request", value, "-", None)


def _child(part: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        return [float(figure) for figure in run_child([__name__, part, folder]).output.split()]


if __name__ == "__main__":
    {"tools": _tools, "models": _models}[sys.argv[1]](str(Path(sys.argv[2])))
