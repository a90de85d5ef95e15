"""Several processes write to one ledger: every record is there once, in one chain, and no follower misses any."""

import subprocess
import sys

from ledger.store import open_store, verify
from tests.ledger.store.databases import Database


def _start(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.ledger.store.writer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _finish(*processes: subprocess.Popen[str]) -> list[list[str]]:
    """Let all begin; give the lines that each printed."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


def test_two_processes_append_two_thousand_records_each_to_one_session(database: Database) -> None:
    with open_store(database.url) as store:
        outputs = _finish(*[_start("append", database.url, "shared", "2000", "1") for _ in range(2)])
        seqs = [int(line) for output in outputs for line in output]
        assert sorted(seqs) == list(range(1, 4_001))
        records = list(store.read("shared"))
        assert [record.seq for record in records] == list(range(1, 4_001))
        assert [record.position for record in records] == list(range(1, 4_001))
        assert verify(store).ok


def test_four_writers_and_a_follower_that_misses_nothing(database: Database) -> None:
    writers, count = 4, 1_050
    with open_store(database.url) as store:
        follower = _start("follow", database.url, str(writers * count))
        outputs = _finish(
            follower,
            *[
                _start("append", database.url, f"writer{number}", str(count), "1", "20", "1", "1")
                for number in range(writers)
            ],
        )
        followed = [
            (int(position), session, int(seq)) for position, session, seq in map(str.split, outputs[0])
        ]
        assert [position for position, _, _ in followed] == list(range(1, writers * count + 1))
        for number in range(writers):
            session = f"writer{number}"
            assert [seq for _, found, seq in followed if found == session] == list(range(1, count + 1))
        assert followed == [(record.position, record.session, record.seq) for record in store.read_all()]
        assert verify(store).ok
