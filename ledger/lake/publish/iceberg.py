"""A lake as an Iceberg table: its metadata and a catalogue in one SQLite file, `_iceberg` beside the files of the lake.

Iceberg names files by their whole path: a lake that was moved or copied is published anew, by removing `_iceberg`.
"""

from contextlib import closing
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.table import Table

from ledger.errors import LakeDamagedError
from ledger.lake.columns import SCHEMA
from ledger.lake.lake import Lake
from ledger.lake.manifest import Version

FOLDER = "_iceberg"
"""Folder of the catalogue and the metadata, in the lake."""

TABLE = "loopledger.events"
"""Name of the table in the catalogue."""

_TRIES = 20
_LOCK_TIMEOUT_S = 60


def publish(lake: Lake) -> str:
    """Bring the table up to the manifest: one snapshot, none where nothing changed."""
    root = lake.folder.resolve()
    with closing(catalogue(root)) as opened:
        opened.create_namespace_if_not_exists("loopledger")
        if not opened.table_exists(TABLE):
            opened.create_table_if_not_exists(TABLE, SCHEMA)
        table = opened.load_table(TABLE)
        for _ in range(_TRIES):
            try:
                table.refresh()
                if not _brought_up(table, root, lake.manifest.read()):
                    return str(root / FOLDER)
            except (CommitFailedException, ValidationException):
                continue  # a rival was first
    raise LakeDamagedError(f"{root}: its Iceberg table did not come up to the manifest in {_TRIES} tries")


def catalogue(root: Path) -> SqlCatalog:
    """The catalogue beside a lake."""
    (root / FOLDER).mkdir(exist_ok=True)
    place = f"{root / FOLDER}/catalogue.db?timeout={_LOCK_TIMEOUT_S}"
    return SqlCatalog("loopledger", uri=f"sqlite:///{place}", warehouse=f"file://{root / FOLDER}")


def _brought_up(table: Table, root: Path, version: Version) -> bool:
    """Whether anything had to be done."""
    with table.update_schema() as update:
        update.union_by_name(
            SCHEMA
        )  # numbers of columns are those in the files: new ones come last there too
    counting = {f"file://{root / path}" for path in version.files}
    there = {task.file.file_path: task.file for task in table.scan().plan_files()}
    add, remove = counting - there.keys(), there.keys() - counting
    if not add and not remove:
        return False
    told = {"loopledger.manifest": str(version.number), "loopledger.position": str(version.position)}
    with table.transaction() as transaction:
        files = parquet_files_to_data_files(table.io, transaction.table_metadata, iter(sorted(add)))
        with transaction.update_snapshot(snapshot_properties=told).overwrite() as snapshot:
            for file in files:
                snapshot.append_data_file(file)
            for path in remove:
                snapshot.delete_data_file(there[path])
    return True
