"""One file per source format, found by discovery: what to write is in `Importer`. Importers never stamp or link.

An importer module offers `FORMAT`, `TITLE`, `GRADE`, `CANNOT_SHOW`, `recognizes` and `read`; for databases behind a
URL `reads_url` and `read_url` too. It may live here, or in another package that names it under the entry point group
`loopledger.importers`.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeGuard, cast

from ledger.errors import InputError
from ledger.events.record import Grade
from ledger.importers._json_pieces import partial_json
from ledger.intake import Desk, Item

__all__ = ["Desk", "Importer", "Item", "Sniff", "UrlImporter", "discover", "importer_named", "reads_urls"]


@dataclass(frozen=True, slots=True)
class Sniff:
    """What `recognizes` may look at: cheap facts of a file."""

    path: Path
    """The file."""

    start: bytes
    """Its first 64 kB, unpacked when it is gzip or zstd."""

    size: int
    """Its size in bytes, as it lies on disk."""

    @property
    def opening(self) -> bytes:
        """`start` without a byte-order mark and the blanks before its first character."""
        return self.start.removeprefix(b"\xef\xbb\xbf").lstrip()

    @property
    def json(self) -> Any:
        """The object or list that the file begins with, as far as `start` goes; None where it begins with neither."""
        return partial_json(self.start) if self.opening[:1] in (b"{", b"[") else None


class Importer(Protocol):
    """What a module in this folder offers."""

    FORMAT: str
    """Name for `--format`, such as `claude-code`."""

    TITLE: str
    """Name for people, with the versions that were tested."""

    GRADE: Grade
    """What the format proves at best."""

    CANNOT_SHOW: tuple[str, ...]
    """What this source cannot show, one sentence each."""

    def recognizes(self, sniff: Sniff) -> bool:
        """Whether the file is of this format. Must be cheap and must not raise on any bytes."""

    def read(self, path: Path, desk: Desk) -> Iterator[Item]:
        """The file's records in file order, streaming. Nothing is dropped: see `Item` and `Desk`."""


class UrlImporter(Importer, Protocol):
    """What a module offers besides, whose source may also be a database behind a URL."""

    def reads_url(self, url: str) -> bool:
        """Whether such a source is there. May look, not write. Raises InputError when it is and cannot be reached."""

    def read_url(self, url: str, desk: Desk) -> Iterator[Item]:
        """The same as `read`, from the URL."""


def reads_urls(importer: Importer) -> TypeGuard[UrlImporter]:
    """Whether an importer reads databases behind a URL."""
    return hasattr(importer, "reads_url")


@functools.cache
def discover() -> Mapping[str, Importer]:
    """All importers by format name: the modules here, then those of other packages. Looked for once."""
    found: dict[str, Importer] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importer = cast(Importer, importlib.import_module(f"{__name__}.{module.name}"))
            found[importer.FORMAT] = importer
    for point in entry_points(group="loopledger.importers"):
        importer = cast(Importer, point.load())
        found.setdefault(importer.FORMAT, importer)
    return MappingProxyType(dict(sorted(found.items())))


def importer_named(name: str) -> Importer:
    """The importer of a format. Raises InputError that lists those there are."""
    importers = discover()
    if name not in importers:
        raise InputError(f"{name!r} is not a format: expected one of {', '.join(importers)}")
    return importers[name]
