"""What a segment is made of: rows by the thousand, contents as they are, dates as clocks gave them, known entries."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ledger.errors import LakeDamagedError
from ledger.lake import Lake, Stored
from ledger.lake.feed import StoredRow
from ledger.lake.files import split_by_date
from ledger.lake.rows import LONGEST_TEXT, Rows
from tests.ledger.lake.feeds import assert_exactly_once, feed_of, golden_rows


def record(position: int, name: str, data: dict[str, Any], *, day: int = 1) -> Stored:
    """A record of an event with these fields."""
    state = {"data": data, "grade": "wire", "prev": "", "recorded_at": f"2026-01-{day:02}T00:00:00Z", "v": 1}
    return Stored(position, "s", position, name, json.dumps(state).encode())


def settled(position: int, content: bytes, kind: str = "json") -> tuple[Stored, str]:
    """A record that shows a content, and its digest."""
    digest = hashlib.sha256(content).hexdigest()
    shown = {"digest": digest, "size": len(content), "kind": kind}
    return record(
        position, "tool_call.settled", {"call_id": "c", "outcome": "returned", "result": shown}
    ), digest


def test_rows_stay_in_order_however_many_there_are_and_damaged_ones_stay_in_their_place() -> None:
    rows = golden_rows(2_500)
    rows[1_100] = rows[1_100]._replace(state=b"{")
    made, asked = Rows(lambda digests: {}), Rows(lambda digests: {})
    for row in rows:
        made.add(row)
        asked.add(row)
        if row.position % 333 == 0:
            asked.table()  # a look at them on the way changes nothing
    table = made.table()
    assert table["position"].to_pylist() == [row.position for row in rows]
    assert table["type"].to_pylist() == [row.type for row in rows]
    damaged = [place for place, text in enumerate(table["damage"].to_pylist()) if text is not None]
    assert damaged == [1_100]
    assert table["payload"].null_count == 1
    assert asked.table().equals(table)


def test_a_content_is_shown_as_it_is_cut_at_a_mebibyte_and_half_characters_are_marked() -> None:
    contents = [
        b"plain",
        "ä".encode() * 3,
        b"\xff half",
        b"x" * (LONGEST_TEXT + 1),
        "ä".encode() * LONGEST_TEXT,
    ]
    pairs = [settled(place, content) for place, content in enumerate(contents, 1)]
    by_digest = {digest: content for (_, digest), content in zip(pairs, contents, strict=True)}
    rows = Rows(lambda digests: {digest: by_digest[digest] for digest in digests})
    for row, _ in pairs:
        rows.add(row)
    shown = rows.table()["text"].to_pylist()
    assert shown == ["plain", "äää", "\ufffd half", "x" * LONGEST_TEXT, "ä" * LONGEST_TEXT]


def test_contents_are_read_together_but_never_more_than_memory_bears() -> None:
    size = 6 * 2**20
    pairs = [settled(place, b"%d" % place + bytes(size)) for place in range(1, 10)]
    asked: list[int] = []

    def contents(digests: list[str]) -> dict[str, bytes]:
        asked.append(len(digests))
        return dict.fromkeys(digests, b"there")

    rows = Rows(contents)
    for row, _ in pairs:
        rows.add(row)
    assert rows.table()["text"].to_pylist() == ["there"] * 9
    assert asked == [3, 3, 3]
    assert rows.text_size >= 9 * LONGEST_TEXT


def test_a_number_that_is_no_whole_one_is_no_count() -> None:
    rows = Rows(lambda digests: {})
    for place, value in enumerate((3, 3.5, True, "3", None, 2**63), 1):
        rows.add(
            record(place, "tool_call.settled", {"call_id": "c", "outcome": "returned", "duration_ms": value})
        )
    assert rows.table()["duration_ms"].to_pylist() == [3, None, None, None, None, None]


@pytest.mark.parametrize("days", [[1, 1, 2, 3], [2, 1], [1, 2, 1, 2, 3], [3]])
def test_each_row_lies_under_the_date_of_its_recording_even_when_a_clock_goes_back(days: list[int]) -> None:
    rows = Rows(lambda digests: {})
    place = 0
    for day in days:
        for _ in range(600):
            place += 1
            rows.add(record(place, "session.ended", {"outcome": "completed"}, day=day))
        place += 1
        rows.add(Stored(place, "s", place, "session.ended", b"damaged"))
    parts = list(split_by_date(rows.table()))
    assert [day.day for day, _ in parts] == sorted(set(days))
    assert sorted(value for _, part in parts for value in part["position"].to_pylist()) == list(
        range(1, place + 1)
    )
    for folder, part in parts:
        assert part["position"].to_pylist() == sorted(part["position"].to_pylist())
        assert {moment.day for moment in part["recorded_at"].drop_null().to_pylist()} == {folder.day}
        assert part["recorded_at"].null_count == days.count(folder.day)


def test_records_alone_that_cannot_be_read_have_a_date_too() -> None:
    rows = Rows(lambda digests: {})
    rows.add(Stored(1, "s", 1, "session.ended", b"damaged"))
    assert [(day.isoformat(), part.num_rows) for day, part in split_by_date(rows.table())] == [
        ("1970-01-01", 1)
    ]


def test_an_export_reads_the_store_on_from_the_last_record_once(tmp_path: Path) -> None:
    rows = golden_rows(60)
    whole = feed_of(rows)
    started: list[int] = []

    def counted(after: int) -> Iterator[StoredRow]:
        started.append(after)
        return whole.rows(after)

    lake = Lake(tmp_path)
    lake.export(feed_of(rows[:40]))
    lake.export(dataclasses.replace(whole, rows=counted))
    assert started == [39]
    assert assert_exactly_once(lake) == 60


def test_of_a_state_that_is_known_only_what_came_after_is_read(tmp_path: Path) -> None:
    rows, lake = golden_rows(80), Lake(tmp_path)
    lake.export(feed_of(rows[:20]))
    known = lake.manifest.read()
    assert lake.manifest.read(known) is known
    for upto in (40, 60, 80):
        lake.export(feed_of(rows[:upto]))
    assert lake.manifest.read(known) == lake.manifest.read()
    with pytest.raises(LakeDamagedError, match="it follows another than"):
        lake.manifest.read(dataclasses.replace(known, digest="0" * 64))
    ahead = dataclasses.replace(known, number=known.number + 100)
    assert lake.manifest.read(ahead) == lake.manifest.read()


def test_a_lake_built_again_has_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    rows = golden_rows(2_200)
    built = [Lake(tmp_path / name) for name in ("first", "again")]
    for lake in built:
        lake.export(feed_of(rows), most_rows=1_500)
    first, again = ([file.sha256 for file in lake.manifest.read().files.values()] for lake in built)
    assert first == again and len(first) > 2


def test_a_table_in_pieces_is_written_as_one(tmp_path: Path) -> None:
    rows = golden_rows(2_200)
    lake = Lake(tmp_path)
    lake.export(feed_of(rows))
    assert assert_exactly_once(lake) == 2_200
    made = Rows(feed_of(rows).contents)
    for row in rows:
        made.add(row)
    table = made.table()
    assert table["position"].num_chunks == 3
    assert table.schema.field("position").type == pa.int64()
