"""Which formats there are; a format's library is loaded when it is asked for."""

import importlib
import importlib.util
from typing import Any

from ledger.errors import InputError
from ledger.lake.lake import Lake

FORMATS = {"delta": "deltalake", "iceberg": "pyiceberg"}
"""Name of a format, which is that of its extra too, and the library that it needs."""


def publish(lake: Lake, name: str) -> str:
    """Let a table of that format show what the lake holds; give where the table is. Raises InputError."""
    if name not in FORMATS:
        raise InputError(f"{name!r} is no format to publish: expected one of {', '.join(FORMATS)}")
    return str(_loaded(name, FORMATS[name]).publish(lake))


def push(lake: Lake, url: str) -> int:
    """Bring a mirror on object storage up to the lake; give how many files were sent. Raises InputError."""
    return int(_loaded("mirror", "obstore").push(lake, url))


def _loaded(name: str, library: str) -> Any:
    if importlib.util.find_spec(library) is None:
        raise InputError(f"{name} needs {library}: pip install 'loopledger[{name}]'")
    return importlib.import_module(f"ledger.lake.publish.{name}")
