"""Export: every event, every field, once; rivals, erasure, damage, other ledgers."""

import dataclasses
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.errors import InputError, LakeDamagedError
from ledger.events import EVENTS, UnknownEvent
from ledger.home import open_ledger
from ledger.lake import Feed, Lake, Stored, connect
from ledger.lake.columns import COLUMNS, CONTENTS, PLANS, SCHEMA, SCHEMA_VERSION
from ledger.lake.feed import StoredRow
from ledger.lake.rows import Rows
from ledger.store.mapper import decode_record
from ledger.views.lake import lake_feed
from tests.commands import record_session
from tests.ledger.lake.feeds import TEXT, assert_exactly_once, feed_of, files_on_disk, golden_rows


def stored(state: dict[str, Any] | bytes, name: str = "session.ended", position: int = 1) -> Stored:
    raw = state if isinstance(state, bytes) else json.dumps(state).encode()
    return Stored(position, "s", position, name, raw)


def table_of(*rows: Stored) -> pa.Table:
    made = Rows(lambda digests: dict.fromkeys(digests, json.dumps(TEXT).encode()))
    for row in rows:
        made.add(row)
    return made.table()


def test_every_field_of_every_event_is_as_it_was_recorded(tmp_path: Path) -> None:
    rows = golden_rows()
    lake = Lake(tmp_path)
    assert lake.export(feed_of(rows)).events == len(rows)
    assert {row.type for row in rows} == {event.TYPE for event in EVENTS}
    with connect(tmp_path) as connection:
        found = connection.sql("select * from events order by position").to_arrow_table().to_pylist()
    for row, shown in zip(rows, found, strict=True):
        record = decode_record(_as_event(row))
        assert not isinstance(record.event, UnknownEvent)
        assert (shown["session"], shown["seq"], shown["type"]) == (row.session, row.seq, row.type)
        assert shown["damage"] is None
        assert json.loads(shown["payload"]) == json.loads(row.state)["data"]
        assert shown["grade"] == record.grade
        assert shown["actor"] == (record.actor.id if record.actor else None)
        assert shown["source_line"] == (record.source.line if record.source else None)
        assert record.recorded_at == shown["recorded_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for taken in PLANS[row.type]:
            value = getattr(record.event, taken.field)
            if taken.part is not None:
                value = getattr(value, taken.part) if value is not None else None
            assert shown[taken.column] == value, (row.type, taken.column)
        if shown["content_field"] is not None and shown["text"] is not None:
            assert json.loads(shown["text"]) == TEXT


def _as_event(row: Stored) -> Any:
    from eventsourcing.persistence import Notification  # noqa: PLC0415

    return Notification(row.session, row.seq, row.type, row.state, row.position)


def test_every_column_is_described_and_contents_are_fields() -> None:
    assert [column.name for column in COLUMNS if not column.doc] == []
    by_name = {event.TYPE: event for event in EVENTS}
    for name, field in CONTENTS.items():
        assert field in by_name[name].model_fields
    assert {field.type for field in SCHEMA} <= {
        pa.string(), pa.int64(), pa.bool_(), pa.timestamp("us", "UTC"), pa.decimal128(20, 10)
    }  # fmt: skip


def test_a_second_export_adds_only_what_is_new(tmp_path: Path) -> None:
    rows = golden_rows(500)
    lake = Lake(tmp_path)
    assert lake.export(feed_of(rows[:200])).events == 200
    assert lake.export(feed_of(rows[:200])).events == 0
    assert lake.export(feed_of(rows), most_rows=70).events == 300
    assert assert_exactly_once(lake) == 500
    listed = json.loads((tmp_path / "files.json").read_text())
    assert {one["path"] for one in listed} == set(lake.manifest.read().files)


def test_files_say_what_they_hold(tmp_path: Path) -> None:
    rows = golden_rows(300)
    Lake(tmp_path).export(feed_of(rows))
    (first, *_) = Lake(tmp_path).paths()
    assert first.parent.name.startswith("recorded_date=2026-01-0")
    schema = pq.read_schema(first)
    assert schema.metadata[b"schema_version"] == str(SCHEMA_VERSION).encode()
    assert schema.metadata[b"head_hash"].decode() == feed_of(rows).record_hash(rows[-1])
    assert schema.field("tool").metadata[b"otel"] == b"gen_ai.tool.name"
    assert schema.field("trigger").metadata[b"doc"] == b"What set it off."
    assert pq.ParquetFile(first).metadata.row_group(0).column(0).compression == "ZSTD"


def test_merging_keeps_every_row_and_sorts_by_session(tmp_path: Path) -> None:
    rows = golden_rows(900)
    lake = Lake(tmp_path)
    for upto in range(30, 901, 30):
        lake.export(feed_of(rows[:upto]))
    assert len(lake.manifest.read().files) < 20
    lake.compact(many=2)
    assert assert_exactly_once(lake) == 900
    assert len(files_on_disk(tmp_path)) > len(lake.paths())
    assert lake.clear() == 0  # readers may still hold an older list
    lake.clear(grace_s=0, now=lambda: 1e12)
    assert files_on_disk(tmp_path) == set(lake.manifest.read().files)
    for path in lake.paths():
        table = pq.read_table(path, columns=["session", "seq"], partitioning=None)
        assert table.equals(table.sort_by([("session", "ascending"), ("seq", "ascending")]))


def test_of_two_exporters_one_wins_and_nothing_is_doubled(tmp_path: Path) -> None:
    rows = golden_rows(400)
    whole = feed_of(rows)
    overtaken: list[int] = []

    def slow(after: int) -> Iterator[StoredRow]:
        for row in whole.rows(after):
            if row[0] == 150 and not overtaken:
                overtaken.append(Lake(tmp_path).export(feed_of(rows[:300])).events)
            yield row

    lake = Lake(tmp_path)
    assert lake.export(dataclasses.replace(whole, rows=slow)).events == 100
    assert overtaken == [300]
    assert assert_exactly_once(lake) == 400
    assert files_on_disk(tmp_path) == set(lake.manifest.read().files)


def test_exporters_in_parallel(tmp_path: Path) -> None:
    rows = golden_rows(1200)
    gate = threading.Barrier(3)
    done: list[int] = []

    def export() -> None:
        gate.wait()
        done.append(Lake(tmp_path).export(feed_of(rows), most_rows=50).events)

    threads = [threading.Thread(target=export) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == 1200
    assert assert_exactly_once(Lake(tmp_path)) == 1200


def test_a_lake_takes_one_ledger_and_one_history(tmp_path: Path) -> None:
    rows = golden_rows(100)
    Lake(tmp_path).export(feed_of(rows))
    with pytest.raises(InputError, match="the lake of another ledger"):
        Lake(tmp_path).export(feed_of(rows, ledger="b" * 64))
    with pytest.raises(InputError, match="shows another history: its record at position 100"):
        Lake(tmp_path).export(feed_of(rows[:50]))
    changed = [*rows[:-1], rows[-1]._replace(state=rows[0].state)]
    with pytest.raises(InputError, match="shows another history"):
        Lake(tmp_path).export(feed_of(changed))


def test_a_changed_manifest_is_found(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for upto in (50, 100):
        lake.export(feed_of(golden_rows(upto)))
    path = lake.manifest.path_of(1)
    path.write_bytes(path.read_bytes().replace(b'"rows": ', b'"rows": 1'))
    with pytest.raises(LakeDamagedError, match="names another digest"):
        lake.manifest.read()


def test_a_long_chain_of_entries_is_cleared_from_behind(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    rows = golden_rows(104)
    for upto in range(2, 105, 2):
        lake.export(feed_of(rows[:upto]))
    before = lake.manifest.read()
    lake.clear(grace_s=0, now=lambda: 1e12)
    assert lake.manifest.numbers()[0] >= 50
    assert lake.manifest.read() == before
    assert assert_exactly_once(lake) == 104


def test_erased_contents_leave_every_file(tmp_path: Path) -> None:
    rows = [row for row in golden_rows() if row.type != "ledger.erased"]
    rows = [row._replace(position=place) for place, row in enumerate(rows, 1)]
    lake = Lake(tmp_path)
    lake.export(feed_of(rows))
    with connect(tmp_path) as connection:
        (digest, before) = connection.execute(
            "select content_digest, count(text) from events group by 1 having count(text) > 0 order by 2 desc, 1"
        ).fetchone() or ("", 0)
        total = connection.execute("select count(text) from events").fetchone()
    state = {"data": {"digests": [digest], "reason": "asked"}, "grade": "wire", "prev": "", "v": 1}
    state["recorded_at"] = "2026-01-02T03:04:05Z"
    rows.append(stored(state, "ledger.erased", len(rows) + 1))
    assert lake.export(feed_of(rows)).events == 1
    assert assert_exactly_once(lake) == len(rows)
    with connect(tmp_path) as connection:
        left = connection.execute("select count(text) from events").fetchone()
        named = connection.execute(
            "select count(*) from events where content_digest = ?", [digest]
        ).fetchone()
    assert before > 0
    assert left == (total[0] - before,) if total else False
    assert named == (before,)
    assert files_on_disk(tmp_path) == set(lake.manifest.read().files)


def test_a_record_that_cannot_be_read_is_a_row_that_says_so() -> None:
    good = {
        "data": {"outcome": "failed"},
        "grade": "wire",
        "prev": "",
        "recorded_at": "2026-01-01T00:00:00Z",
        "v": 1,
    }
    table = table_of(
        stored(b"{", position=1),
        stored({"data": 1}, position=2),
        stored(good, position=3),
        stored(b"[]", position=4),
    )
    assert table["position"].to_pylist() == [1, 2, 3, 4]
    damage = table["damage"].to_pylist()
    assert [text is None for text in damage] == [False, False, True, False]
    assert table["outcome"].to_pylist() == [None, None, "failed", None]


def test_what_does_not_fit_a_column_stays_in_the_payload() -> None:
    base = {"grade": "wire", "prev": "", "recorded_at": "2026-01-01T00:00:00.123456789+02:00", "v": 1}
    data = {
        "call_id": 7,
        "cost_usd": "1e30",
        "duration_ms": 2**70,
        "usage": [],
        "model": "half \ud83d",
        "message": None,
    }
    fine = {"call_id": "c", "cost_usd": "0.00000123456", "duration_ms": 5, "usage": {"input_tokens": 3}}
    table = table_of(
        stored({**base, "data": data, "exact": True}, "model_call.answered", 1),
        stored({**base, "data": fine, "occurred_at": "yesterday"}, "model_call.answered", 2),
    )
    assert table["damage"].to_pylist() == [None, None]
    assert table["call_id"].to_pylist() == [None, "c"]
    assert table["cost_usd"].to_pylist() == [None, Decimal("0.0000012346")]
    assert table["duration_ms"].to_pylist() == [None, 5]
    assert table["input_tokens"].to_pylist() == [None, 3]
    assert table["model"].to_pylist() == ["half ?", None]
    assert table["occurred_at"].to_pylist() == [None, None]
    assert table["recorded_at"].to_pylist()[0].isoformat() == "2025-12-31T22:00:00.123456+00:00"
    assert str(2**70) in table["payload"].to_pylist()[0]
    assert '"half \\ufffd"' in table["payload"].to_pylist()[0]  # no engine reads JSON with half a character


def test_an_event_of_a_newer_version_is_a_row(tmp_path: Path) -> None:
    state = {"data": {"x": 1}, "grade": "wire", "prev": "", "recorded_at": "2026-01-01T00:00:00Z", "v": 9}
    table = table_of(stored(state, "future.event"))
    assert (table["type"].to_pylist(), table["payload"].to_pylist()) == (["future.event"], ['{"x":1}'])


def test_a_recorded_session_is_in_the_lake_with_its_texts(tmp_path: Path) -> None:
    record_session(tmp_path, text="hello")
    with open_ledger(tmp_path) as ledger:
        feed: Feed = lake_feed(ledger.store)
        done = Lake(tmp_path / "lake").export(feed)
        assert done.position == ledger.store.last_position() == done.events
    with connect(tmp_path) as connection:
        rows = connection.execute(
            "select author, readable from messages where session = 'live-1' order by seq"
        ).fetchall()
    assert ("human", "hello 0") in rows
    assert ("model", "hello back") in rows
