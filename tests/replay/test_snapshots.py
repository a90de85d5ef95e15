"""Snapshots are an invisible speed-up: gone, cut, changed or foreign ones change nothing but the time."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.events.input import MessageReceived
from ledger.events.record import Draft, Record
from ledger.home import Ledger
from ledger.views.snapshots import Snapshot, SnapshotFile
from replay.snapshots import StateSnapshots, encode_state
from replay.state import FOLD_VERSION, State
from replay.timeline import Timeline, session_timeline

from .histories import SESSION, Writer, fresh_ledger

LENGTH = 60


@pytest.fixture
def kept(ledger: Ledger, writer: Writer) -> Path:
    """A session with snapshots of it; gives their file."""
    for number in range(LENGTH):
        message = writer.keep.json({"role": "user", "content": str(number)})
        writer.add(MessageReceived(origin="human", message=message))
    writer.flush()
    path = ledger.home / "views" / "snapshots.sqlite"
    assert reads_of(ledger, path) == LENGTH
    return path


def reads_of(ledger: Ledger, path: Path, interval: int = 20) -> int:
    """How many records a fold to the end has to read; checks that it gives the right state."""
    reads = 0

    def read(after: int, upto: int) -> "list[Record]":
        nonlocal reads
        found = list(ledger.store.read(SESSION, after=after, upto=upto))
        reads += len(found)
        return found

    with SnapshotFile(path, ledger.store.salt) as file:
        snapshots = StateSnapshots(file, ledger.store, SESSION, interval, least=5)
        state = Timeline(
            SESSION, LENGTH, lambda after, upto, names=(): iter(read(after, upto)), snapshots
        ).at()
    plain = session_timeline(ledger.store, SESSION).at()
    assert (state.digest(), encode_state(state)) == (plain.digest(), encode_state(plain))
    return reads


def test_a_second_fold_begins_at_the_last_snapshot(ledger: Ledger, kept: Path) -> None:
    assert reads_of(ledger, kept) < LENGTH


def test_a_large_state_is_kept_less_often(ledger: Ledger, kept: Path) -> None:
    with sqlite3.connect(kept) as connection:
        seqs = [seq for (seq,) in connection.execute("select seq from snapshots order by seq")]
        sizes = [size for (size,) in connection.execute("select length(body) from snapshots order by seq")]
    connection.close()
    assert seqs[0] == 20
    assert sum(sizes) < 400 * LENGTH


def _delete(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()


def _garble(path: Path) -> None:
    _delete(path)
    path.write_bytes(b"this is no database, and long enough to be looked at" * 100)


def _with(statement: str, *values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(statement, values)
        connection.commit()
        connection.close()

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _delete,
        _garble,
        _with("update snapshots set body = substr(body, 1, 20)"),
        _with("update snapshots set body = 'text'"),
        _with("update snapshots set body = body || x'00'"),
        _with("update snapshots set body = cast('{}' as blob)"),
        _with("update snapshots set record_hash = ?", "0" * 64),
        _with("update snapshots set seq = seq + 1"),
        _with("update snapshots set checksum = zeroblob(32)"),
        _with("drop table snapshots"),
        _with("alter table snapshots rename column body to content"),
        _with("delete from pieces"),
        _with("update pieces set body = substr(body, 1, 20)"),
        _with("update pieces set body = 'text'"),
        _with("update pieces set before = x'00' where before = x''"),
    ],
)
def test_damage_is_noticed_and_changes_nothing(
    ledger: Ledger, kept: Path, damage: Callable[[Path], None]
) -> None:
    damage(kept)
    assert reads_of(ledger, kept) == LENGTH


def test_a_damaged_snapshot_leaves_the_ones_before_it(ledger: Ledger, kept: Path) -> None:
    _with("update snapshots set checksum = zeroblob(32) where seq = (select max(seq) from snapshots)")(kept)
    with SnapshotFile(kept, ledger.store.salt) as file:
        found = file.nearest(SESSION, FOLD_VERSION, LENGTH)
    assert found is not None
    assert found.seq == 40


def test_a_snapshot_of_another_history_is_not_used(ledger: Ledger, kept: Path) -> None:
    """Same session id, same key, whole: but made after another record."""
    wrong = State(SESSION)
    wrong.seq = LENGTH
    wrong.put("about", "harness", "forged")
    with SnapshotFile(kept, ledger.store.salt) as file:
        file.put(SESSION, FOLD_VERSION, Snapshot(LENGTH, "f" * 64, encode_state(wrong)))
    assert reads_of(ledger, kept) > 0


def test_a_snapshot_of_another_ledger_is_not_used(ledger: Ledger, kept: Path, tmp_path: Path) -> None:
    with fresh_ledger(tmp_path / "other") as other:
        with SnapshotFile(kept, other.store.salt) as file:
            assert file.nearest(SESSION, FOLD_VERSION, LENGTH) is None
        message = other.recorder.keeper().json("x")
        other.recorder.append(
            SESSION, [Draft(MessageReceived(origin="human", message=message))], other.recorder.keeper()
        )


def test_a_snapshot_of_another_fold_version_is_not_used(ledger: Ledger, kept: Path) -> None:
    with SnapshotFile(kept, ledger.store.salt) as file:
        assert file.nearest(SESSION, FOLD_VERSION, LENGTH) is not None
        assert file.nearest(SESSION, FOLD_VERSION + 1, LENGTH) is None


def test_a_whole_snapshot_that_is_no_state_is_not_used(ledger: Ledger, kept: Path) -> None:
    last = ledger.store.record(SESSION, LENGTH).hash
    with SnapshotFile(kept, ledger.store.salt) as file:
        file.put(SESSION, FOLD_VERSION, Snapshot(LENGTH, last, b'{"seq":60}'))
    assert reads_of(ledger, kept) > 0


def test_a_home_that_cannot_be_written_is_no_hindrance(ledger: Ledger, kept: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert reads_of(ledger, blocked / "views" / "snapshots.sqlite") == LENGTH


def test_a_closed_file_is_empty(ledger: Ledger, kept: Path) -> None:
    file = SnapshotFile(kept, ledger.store.salt)
    file.close()
    file.close()
    file.put(SESSION, FOLD_VERSION, Snapshot(1, "", b""))
    assert file.nearest(SESSION, FOLD_VERSION, LENGTH) is None
