"""What each file of a lake says of itself, that Spark can read it, and that erased content is in none of them."""

import sqlite3
from pathlib import Path

import pyarrow.parquet as pq

from ledger.events import Draft
from ledger.events.keeping import Erased
from ledger.home import open_ledger
from ledger.lake import Lake, connect
from ledger.lake.columns import COLUMNS, OTEL_VERSION, SCHEMA_VERSION
from ledger.views.lake import lake_feed
from tests.commands import record_session
from tests.ledger.lake.feeds import feed_of, golden_rows

_READABLE = {"String", "Timestamp", "Decimal", "None", "Int"}


def test_every_file_merged_or_not_says_what_it_holds(tmp_path: Path) -> None:
    rows, lake = golden_rows(750), Lake(tmp_path)
    feed = feed_of(rows)
    for upto in range(100, 701, 100):
        lake.export(feed_of(rows[:upto]), most_rows=40)
    lake.compact(many=2)
    lake.export(feed)
    hashes = {row.position: feed.record_hash(row) for row in rows}
    kinds = set()
    for path in lake.paths():
        file = pq.ParquetFile(path)
        told = {name.decode(): value.decode() for name, value in file.schema_arrow.metadata.items()}
        kinds.add(path.name[:3])
        assert (told["schema_version"], told["otel.semconv"]) == (str(SCHEMA_VERSION), OTEL_VERSION)
        assert (told["producer"], told["ledger"]) == ("loopledger", feed.ledger)
        assert told["head_hash"] == hashes[int(told["head_position"])]
        assert int(told["first_position"]) <= int(told["last_position"]) <= int(told["head_position"])
        assert told["sort_order"] == ("position" if path.name.startswith("seg") else "session,seq")
        for column in COLUMNS:
            metadata = file.schema_arrow.field(column.name).metadata
            assert metadata[b"doc"].decode() == column.doc
            assert metadata.get(b"otel", b"").decode() == (column.otel or "")
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        for place in range(len(file.schema)):
            logical = file.schema.column(place).logical_type
            assert logical.type.title() in _READABLE, "Spark reads no other"
            assert "isSigned=false" not in str(logical) and "nanoseconds" not in str(logical)
        dates = {
            str(value)[:10] for value in file.read(["recorded_at"])["recorded_at"].drop_null().to_pylist()
        }
        assert dates == {path.parent.name.removeprefix("recorded_date=")}
    assert kinds == {"seg", "cmp"}


def test_content_that_the_store_destroyed_is_in_no_file(tmp_path: Path) -> None:
    record_session(tmp_path, text="the word zebrafinch")
    folder = tmp_path / "lake"
    with open_ledger(tmp_path) as ledger:
        for number in range(2, 12):  # merged on the way: what was merged away still lies there
            Lake(folder).export(lake_feed(ledger.store))
            record_session(tmp_path, session=f"live-{number}")
        Lake(folder).export(lake_feed(ledger.store))
        with connect(folder) as connection:
            found = connection.execute(
                "select distinct content_digest from events where text like '%zebrafinch%'"
            ).fetchall()
        digests = tuple(digest for (digest,) in found)
        assert digests
        with sqlite3.connect(tmp_path / "ledger.sqlite") as raw:
            for digest in digests:
                raw.execute("delete from blobs where digest = ?", [bytes.fromhex(digest)])
        raw.close()
        ledger.recorder.append(
            "live-1", [Draft(Erased(digests=digests, reason="asked for"))], ledger.recorder.keeper()
        )
        Lake(folder).export(lake_feed(ledger.store))
    with connect(folder) as connection:
        assert connection.execute(
            "select count(*) from events where text like '%zebrafinch%'"
        ).fetchone() == (0,)
        rows = connection.execute(
            "select count(*) from events where content_digest = ? and text is null", [digests[0]]
        ).fetchone()
        assert rows is not None and rows[0] > 0
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        for name in ("text", "system_prompt", "tool_schemas"):
            assert not any("zebrafinch" in text for text in table[name].drop_null().to_pylist())
