"""Feeds made from the golden records: every event there is, as often as a test wants it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from ledger.lake import Feed, Lake, Stored
from ledger.store.mapper import record_hash
from tests.ledger.events.histories import read_golden

TEXT = {"role": "user", "content": "find me"}
"""What every content says."""


def golden_rows(count: int | None = None) -> list[Stored]:
    """The golden records, once or again and again: each time another session, every third time the next day."""
    golden = sorted(read_golden(), key=lambda one: one.seq)
    rows = []
    for position in range(1, (count or len(golden)) + 1):
        turn, place = divmod(position - 1, len(golden))
        one = golden[place]
        state = (
            one.state
            if turn % 3
            else one.state.replace('recorded_at":"2026-01-02', 'recorded_at":"2026-01-03')
        )
        rows.append(Stored(position, f"session-{turn % 5}", position, one.event, state.encode()))
    return rows


def feed_of(rows: list[Stored], ledger: str = "a" * 64) -> Feed:
    """A feed of these rows."""

    def after(position: int) -> Iterator[Stored]:
        return iter(rows[max(0, position) :])

    def contents(digests: list[str]) -> dict[str, bytes]:
        return dict.fromkeys(digests, json.dumps(TEXT).encode())

    def hash_of(row: Stored) -> str:
        return record_hash(row.session, row.seq, row.type, row.state).hex()

    return Feed(ledger, after, contents, hash_of)


def assert_exactly_once(lake: Lake) -> int:
    """Every record up to the lake's position is in its files, once; give that position."""
    version = lake.manifest.read()
    positions: list[int] = []
    for file in version.files.values():
        path = lake.folder / file.path
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
        found = pq.read_table(path, columns=["position"], partitioning=None)["position"].to_pylist()
        assert (len(found), min(found), max(found)) == (file.rows, file.first, file.last)
        positions += found
    assert sorted(positions) == list(range(1, version.position + 1))
    return version.position


def files_on_disk(folder: Path) -> set[str]:
    """Parquet files that lie in a lake, whether they count or not."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
