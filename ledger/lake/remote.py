"""Reads a lake on object storage, by pyarrow's own file systems: `s3://bucket/place`, and what else they know."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from ledger.errors import InputError
from ledger.lake.columns import RECORDED_DATE, SCHEMA
from ledger.lake.files import EVENTS
from ledger.lake.manifest import FOLDER, DataFile

_URL = re.compile("^([a-z][a-z0-9]+):/+")  # a path that was made of a URL has lost a slash


def is_remote(place: str | Path) -> bool:
    """Whether a place names object storage."""
    return _URL.match(str(place)) is not None


def remote_rows(place: str | Path) -> ds.Dataset:
    """The rows of a mirrored lake, as its last entry lists them. Raises InputError."""
    url = _URL.sub(r"\1://", str(place))
    try:
        system, root = pafs.FileSystem.from_uri(url)
        entries = system.get_file_info(pafs.FileSelector(f"{root}/{FOLDER}", allow_not_found=True))
        numbered = [entry.path for entry in entries if entry.path.endswith(".json")]
        if not numbered:
            raise InputError(f"there is no lake at {url}: `loopledger export --mirror {url}` makes one")
        with system.open_input_file(max(numbered)) as file:
            files = [DataFile(**one) for one in json.load(file)["files"]]
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{url} cannot be read: {str(error).partition(chr(10))[0]}") from error
    schema = pa.schema([*SCHEMA, RECORDED_DATE])
    return ds.dataset(
        [f"{root}/{file.path}" for file in files],
        schema=schema,
        format="parquet",
        filesystem=system,
        partitioning=ds.partitioning(pa.schema([RECORDED_DATE]), flavor="hive"),
        partition_base_dir=f"{root}/{EVENTS}",
    )
