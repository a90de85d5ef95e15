"""A lake as a Delta table: `_delta_log` beside its files. Readers of Delta then need no list of files."""

import json

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from ledger.errors import LakeDamagedError
from ledger.lake.columns import RECORDED_DATE, SCHEMA
from ledger.lake.lake import Lake
from ledger.lake.manifest import DataFile, Version

_TRIES = 20


def publish(lake: Lake) -> str:
    """Bring the table up to the manifest: one transaction, none where nothing changed.

    Of two that publish at once both end at the same table: whoever commits last looks at the manifest once more.
    """
    folder = str(lake.folder.resolve())
    for _ in range(_TRIES):
        version = lake.manifest.read()
        try:
            table = DeltaTable(folder)
        except TableNotFoundError:
            table = None
        try:
            if table is None:
                create_table_with_add_actions(
                    folder, _schema(), [], partition_by=[RECORDED_DATE.name], name="events", mode="ignore"
                )
            elif not _brought_up(table, version):
                return folder
        except CommitFailedError:
            continue  # a rival was first
    raise LakeDamagedError(f"{folder}: its Delta table did not come up to the manifest in {_TRIES} tries")


def _brought_up(table: DeltaTable, version: Version) -> bool:
    """Whether anything had to be done."""
    known = {field.name for field in table.schema().fields}
    missing = [field for field in _schema().fields if field.name not in known]
    if missing:  # files of an earlier version lack columns, which readers of Delta then show as NULL
        table.alter.add_columns(missing)
        table.update_incremental()
    there = set(pa.table(table.get_add_actions())["path"].to_pylist())
    actions: list[AddAction | RemoveAction] = [
        *(_added(file) for path, file in version.files.items() if path not in there),
        *(
            RemoveAction(path, True, 0, partition_values=_partition(path))
            for path in there - set(version.files)
        ),
    ]
    if not actions:
        return bool(missing)
    told = {"loopledger.manifest": str(version.number), "loopledger.position": str(version.position)}
    table.create_write_transaction(
        actions,
        mode="append",
        schema=table.schema(),
        partition_by=[RECORDED_DATE.name],
        commit_properties=CommitProperties(custom_metadata=told),
    )
    return True


def _schema() -> Schema:
    fields = Schema.from_arrow(
        pa.schema([field.remove_metadata() for field in (*SCHEMA, RECORDED_DATE)])
    ).fields
    return Schema([Field(one.name, one.type, nullable=True, metadata=_told(one.name)) for one in fields])


def _told(name: str) -> dict[str, str]:
    place = SCHEMA.get_field_index(name)
    doc = "Date of recording, in UTC." if place < 0 else SCHEMA.field(place).metadata[b"doc"].decode()
    return {"comment": doc}


def _added(file: DataFile) -> AddAction:
    stats = {
        "numRecords": file.rows,
        "minValues": {"position": file.first},
        "maxValues": {"position": file.last},
        "nullCount": {"position": 0},
    }
    return AddAction(file.path, file.bytes, _partition(file.path), 0, True, json.dumps(stats))


def _partition(path: str) -> dict[str, str | None]:
    return {RECORDED_DATE.name: path.rpartition("/")[0].rpartition("=")[2]}
