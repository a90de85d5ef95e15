"""Parquet files of the lake: written whole and durably before anything names them, never changed afterwards."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledger.lake.columns import COLUMNS, SCHEMA, SCHEMA_VERSION
from ledger.lake.manifest import DataFile, sync_folder

EVENTS = "events"
"""Folder of the files, in the lake."""

_ROW_GROUP = 122_880  # as DuckDB's own
_BUFFER = 2**18
_WORDS = {column.name for column in COLUMNS if column.kind == "word"}
_DELTAS = dict.fromkeys(("position", "seq", "recorded_at", "occurred_at"), "DELTA_BINARY_PACKED")
_SEGMENT_ORDER: tuple[str, ...] = ("position",)
_COMPACTED_ORDER: tuple[str, ...] = ("session", "seq")
_UNKNOWN_DATE = date(1970, 1, 1)


def split_by_date(table: pa.Table) -> Iterator[tuple[date, pa.Table]]:
    """The rows of each date of recording; a damaged record goes with the one before it."""
    dates = pc.fill_null(pc.fill_null_forward(pc.cast(table["recorded_at"], pa.date32())), _UNKNOWN_DATE)
    runs = pc.run_end_encode(dates.combine_chunks())
    days, ends = runs.values, runs.run_ends.to_pylist()
    if len(days) == len(pc.unique(days)):  # as it is while clocks go forward: nothing is copied
        for day, start, end in sorted(zip(days.to_pylist(), [0, *ends], ends, strict=False)):
            yield day, table.slice(start, end - start)
        return
    for day in pc.unique(days).sort():
        yield day.as_py(), table.filter(pc.equal(dates, day))


def write_file(
    lake: Path, day: date, table: pa.Table, kind: Literal["seg", "cmp"], told: dict[str, str]
) -> DataFile:
    """Write the rows of one date: `seg` in the order of positions, `cmp` sorted by session and seq."""
    order = _SEGMENT_ORDER if kind == "seg" else _COMPACTED_ORDER
    if kind == "cmp":
        table = table.sort_by([(name, "ascending") for name in order])
    positions = pc.min_max(table["position"])
    first, last = positions["min"].as_py(), positions["max"].as_py()
    metadata = {
        **SCHEMA.metadata,
        **{name.encode(): value.encode() for name, value in told.items()},
        b"first_position": str(first).encode(),
        b"last_position": str(last).encode(),
        b"sort_order": ",".join(order).encode(),
    }
    # The chance in its name: a writer that lost the race must not overwrite what the winner committed.
    name = f"{kind}-{first}-{last}-{secrets.token_hex(4)}.parquet"
    relative = f"{EVENTS}/recorded_date={day.isoformat()}/{name}"
    path = lake / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)
    options: dict[str, Any] = {}
    if kind == "seg":  # unsorted: only a filter can tell that a session is not in it
        options["bloom_filter_options"] = {
            name: {"ndv": max(1, pc.count_distinct(table[name]).as_py()), "fpp": 0.01}
            for name in ("session", "call_id")
        }
    # A column of which no row has anything, and most have none, costs more to pack than it is long.
    filled = [name for name in table.column_names if table[name].null_count < table.num_rows]
    # By a stream of its own: for one of Python's, the writer would wait at each column for who reads the next rows.
    with pa.output_stream(str(path), compression=None, buffer_size=_BUFFER) as sink:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            sink,
            compression={**dict.fromkeys(table.column_names, "none"), **dict.fromkeys(filled, "zstd")},
            compression_level=dict.fromkeys(filled, 1),
            row_group_size=_ROW_GROUP,
            use_dictionary=[name for name in filled if name in _WORDS],
            column_encoding=_DELTAS,
            write_page_index=True,
            sorting_columns=[pq.SortingColumn(SCHEMA.get_field_index(name)) for name in order],
            **options,
        )
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    sync_folder(path.parent)
    return DataFile(relative, table.num_rows, path.stat().st_size, digest, first, last, SCHEMA_VERSION)


def read_files(lake: Path, files: list[DataFile]) -> pa.Table:
    """The rows of some files, with the columns of now: an older file has NULL where it has no column."""
    tables = [pq.read_table(lake / file.path, partitioning=None) for file in files]
    return pa.concat_tables([_with_all_columns(table) for table in tables])


def _with_all_columns(table: pa.Table) -> pa.Table:
    names = set(table.column_names)
    columns = [
        table[field.name] if field.name in names else pa.nulls(table.num_rows, field.type) for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def date_of(file: DataFile) -> date:
    """The date that a file's folder names."""
    return date.fromisoformat(Path(file.path).parent.name.partition("=")[2])
