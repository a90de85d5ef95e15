"""Death at any moment: what was acknowledged is there, nothing is there by half, and the ledger verifies.

Acknowledged is what a process printed after its append returned. Chance is seeded; a failure prints the seed.
"""

import contextlib
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ledger.errors import StoreUnavailableError
from ledger.home import open_ledger
from ledger.importers._intake import import_paths
from ledger.store import EventStore, open_store, verify
from tests.ledger.store.databases import started
from tests.ledger.store.faults import STEPS, first_append, put_fault, second_append
from tests.postgres import SERVER_VARIABLE, drop_database, fresh_database, running_server

_SIZES = (1, 20, 3)


def _judge(store: EventStore, *, is_second_kept: bool) -> None:
    result = verify(store)
    assert result.problems == []
    assert result.records == (5 if is_second_kept else 2)
    assert list(store.sessions()) == (["a", "b"] if is_second_kept else ["a"])
    assert len(store.known_keys([b"k" * 16])) == is_second_kept
    digests = store.recorder.list_blobs(b"", 10)
    assert len(digests) == len(store.recorder.list_nodes(b"", 10)) == (4 if is_second_kept else 2)
    assert store.last_position() == result.records


def _fail() -> None:
    raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_each_write_step_fails_once(tmp_path: Path, step: str, when: str) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    is_kept = (step, when) == ("COMMIT", "after")
    with open_store(url) as store:
        assert first_append(store) == 2
        put_fault(store, step, when, _fail)
        if is_kept:
            second_append(store)  # the commit was done: that is found out
        else:
            with pytest.raises(StoreUnavailableError, match="nothing was written: disk I/O error"):
                second_append(store)
        _judge(store, is_second_kept=is_kept)
        with open_store(url) as other:
            _judge(other, is_second_kept=is_kept)
        if not is_kept:
            second_append(store)  # and the store goes on
            _judge(store, is_second_kept=True)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_the_process_dies_at_each_write_step(tmp_path: Path, step: str, when: str) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    died = subprocess.run(
        [sys.executable, "-m", "tests.ledger.store.faults", url, step, when],
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert died.stdout == "kept 2\n"
    with open_store(url) as store:
        _judge(store, is_second_kept=(step, when) == ("COMMIT", "after"))
        store.append({"a": [started("next")]}, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        assert verify(store).ok


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty ledger on each database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite'}"
        return
    fresh = fresh_database(request.getfixturevalue("postgres_url"))
    yield fresh
    drop_database(fresh)


def _start(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.store.writer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


def _kill_after(process: subprocess.Popen[str], acknowledged: int, wait_s: float) -> list[int]:
    """Kill the process some time after so many acknowledgements; all that it gave."""
    assert process.stdin is not None
    assert process.stdout is not None
    lines = list(itertools.islice(process.stdout, acknowledged))
    time.sleep(wait_s)  # not to wait for anything: the moment of death is to be any
    process.kill()
    lines += process.stdout
    process.wait()
    process.stdin.close()
    process.stdout.close()
    return [int(line) for line in lines if line.endswith("\n")]


@pytest.mark.slow
def test_writers_are_killed_at_any_moment(url: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = {0, *itertools.accumulate(_SIZES[:-1])}
    with open_store(url) as store:
        for turn in range(4):
            writers = {
                name: _start("append", url, name, "10000000", *map(str, _SIZES))
                for name in (f"turn{turn}.one", f"turn{turn}.two")
            }
            acknowledged = {
                name: _kill_after(writer, chance.randrange(1, 30), chance.random() * 0.02)
                for name, writer in writers.items()
            }
            for name, seqs in acknowledged.items():
                kept = store.head(name).seq
                assert kept >= max(seqs, default=0), f"an acknowledged record is gone, seed {seed}"
                assert kept % sum(_SIZES) in whole, f"an append is there by half, seed {seed}"
        result = verify(store)
        assert result.problems == [], f"seed {seed}"
        assert result.records == store.last_position()


def test_an_import_is_killed_at_any_moment_and_taken_up_again(tmp_path: Path) -> None:
    sources = Path(__file__).parents[1] / "fixtures" / "importers" / "claude-code"
    with open_ledger(tmp_path / "undisturbed") as ledger:
        expected = import_paths(ledger.recorder, [sources]).records_added
        sessions = list(ledger.store.sessions())
    assert expected > 0
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    program = (
        "import sys; from pathlib import Path; from ledger.home import open_ledger\n"
        "from ledger.importers._intake import import_paths\n"
        "with open_ledger(sys.argv[1]) as ledger:\n"
        "    print('ready', flush=True)\n"
        "    import_paths(ledger.recorder, [Path(sys.argv[2])])\n"
    )
    home = tmp_path / "killed"
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(home), str(sources)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.15)
        process.kill()
        process.wait()
        process.stdout.close()
        with open_ledger(home) as ledger:
            assert verify(ledger.store).problems == [], f"seed {seed}"
    with open_ledger(home) as ledger:
        import_paths(ledger.recorder, [sources])
        assert verify(ledger.store).problems == [], f"seed {seed}"
        assert list(ledger.store.sessions()) == sessions
        assert import_paths(ledger.recorder, [sources]).records_added == 0


@pytest.mark.skipif(SERVER_VARIABLE in os.environ, reason="only a server of these tests' own may be killed")
def test_the_postgresql_server_crashes_and_durable_appends_survive() -> None:
    """Killing one of its processes makes the server drop its memory and recover, as after a loss of power."""
    with running_server() as server:
        url = fresh_database(server)
        writer = _start("append-durable", url, "s", "10000000", "1", "3")
        assert writer.stdout is not None
        seqs = []
        for number, line in enumerate(itertools.islice(writer.stdout, 200), start=1):
            seqs.append(int(line))
            if number in (20, 90):
                _kill_backend(url)
        seqs += _kill_after(writer, 0, 0)
        with open_store(url) as store:
            kept = [record.seq for record in store.read("s")]
            assert kept == list(range(1, kept[-1] + 1))
            assert kept[-1] in (seqs[-1], seqs[-1] + 1, seqs[-1] + 3), "more is there than one append"
            assert verify(store).problems == []


def _kill_backend(url: str) -> None:
    """Kill the process of the server that serves the writer, once the server has recovered from the last time."""
    query = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    while True:  # a writer reads ahead of us: it may have its next connection after we have read its lines
        with contextlib.suppress(psycopg.OperationalError, ProcessLookupError):
            with psycopg.connect(url, autocommit=True) as connection:
                found = connection.execute(query).fetchone()
            if found is not None:
                os.kill(found[0], signal.SIGKILL)
                return
        time.sleep(0.01)
