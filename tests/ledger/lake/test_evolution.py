"""A lake that an earlier version wrote is read, continued and merged by this one."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ledger.lake import Lake, connect
from ledger.lake.columns import SCHEMA, SCHEMA_VERSION
from ledger.lake.connection import tables
from tests.ledger.lake.feeds import assert_exactly_once, feed_of, golden_rows
from tests.ledger.lake.golden import COUNT, FOLDER

VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def test_there_is_a_lake_of_this_version() -> None:
    assert f"v{SCHEMA_VERSION}" in VERSIONS, "run python -m tests.ledger.lake.golden"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_released_lake_is_read_and_continued(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "lake"
    shutil.copytree(FOLDER / version, folder)
    with connect(folder) as connection:
        rows = connection.execute("select count(*), count(distinct type), count(tool) from events").fetchone()
        assert rows is not None
        assert (rows[0], rows[1] > 50, rows[2] > 0) == (COUNT, True, True)
        for table in tables():
            connection.execute(f"select count(*) from {table.name}")
    lake = Lake(folder)
    assert assert_exactly_once(lake) == COUNT
    rows_then = golden_rows(COUNT)
    late = [
        row._replace(position=COUNT + place, seq=COUNT + place) for place, row in enumerate(rows_then[:10], 1)
    ]
    assert lake.export(feed_of([*rows_then, *late])).events == 10
    lake.compact(many=2)
    assert assert_exactly_once(lake) == COUNT + 10


def test_a_file_without_a_new_column_has_nulls_there(tmp_path: Path) -> None:
    """As a file of an earlier version is to a later one."""
    older = SCHEMA.remove(SCHEMA.get_field_index("tool"))
    rows = golden_rows(40)
    lake = Lake(tmp_path)
    lake.export(feed_of(rows[:20]))
    (path,) = lake.paths()
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.drop_columns(["tool"]), path)
    assert pq.read_schema(path).names == older.names
    entry = lake.manifest.path_of(1)
    entry.write_text(entry.read_text().replace(f'"schema": {SCHEMA_VERSION}', '"schema": 0'))
    lake.export(feed_of(rows))
    with connect(tmp_path) as connection:
        assert connection.execute("select count(*) from events").fetchone() == (40,)
        assert connection.execute("select count(tool) from events where position <= 20").fetchone() == (0,)
    lake.compact(many=2)
    (merged,) = lake.paths()
    assert pq.read_schema(merged).names == SCHEMA.names
    assert pq.read_table(merged, partitioning=None).num_rows == 40


@pytest.mark.parametrize("version", VERSIONS)
def test_released_columns_stay_and_keep_their_types_and_numbers(version: str) -> None:
    for path in Lake(FOLDER / version).paths():
        for field in pq.read_schema(path):
            now = SCHEMA.field(field.name)
            assert now.type == field.type
            assert now.metadata[b"PARQUET:field_id"] == field.metadata[b"PARQUET:field_id"]


def test_a_new_column_raises_the_schema_version() -> None:
    for path in Lake(FOLDER / f"v{SCHEMA_VERSION}").paths():
        assert pq.read_schema(path).names == SCHEMA.names, (
            "raise SCHEMA_VERSION and run tests.ledger.lake.golden"
        )
