"""Finds and opens trace files: folders, gzip, zstd. Knows no format."""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import zstandard

from ledger.errors import InputError
from ledger.importers import Sniff

_SNIFFED = 64 * 1024

UNPACK_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading a damaged archive may raise."""


def find_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files named, and those in folders named, by name. Raises InputError for a missing path."""
    for path in paths:
        if path.is_dir():
            yield from sorted(
                file
                for file in path.rglob("*")
                if file.is_file() and ".git" not in file.relative_to(path).parts
            )
        elif path.is_file():
            yield path
        else:
            raise InputError(f"{path} does not exist: expected a file or folder with traces")


def in_one_order(paths: Iterable[str]) -> list[Path | str]:
    """All files named, those in folders too, by name and each once; then URLs: however they are asked for."""
    given = sorted(set(paths))
    urls = [path for path in given if "://" in path]
    found = {file.absolute(): file for file in find_files(Path(path) for path in given if path not in urls)}
    return [*(found[name] for name in sorted(found)), *urls]


def url_without_secrets(url: str) -> str:
    """A database's address as reports and records may show it: no user, no password, no options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def open_source(path: Path) -> BinaryIO:
    """A file's bytes as a stream, unpacked when it is gzip or zstd (all frames of it)."""
    raw = path.open("rb")
    magic = raw.read(4)
    raw.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, _Gzip(fileobj=raw))
    if magic == b"\x28\xb5\x2f\xfd":
        stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
        return cast(BinaryIO, io.BufferedReader(cast(Any, stream)))
    return raw


class _Gzip(gzip.GzipFile):
    """Closes the file below with itself, which GzipFile leaves open when it was given one."""

    def close(self) -> None:
        below = cast(BinaryIO | None, self.fileobj)
        super().close()
        if below is not None:
            below.close()


def sniff(path: Path) -> Sniff:
    """Cheap facts of a file. A damaged archive gives what could be unpacked."""
    start = b""
    try:
        with open_source(path) as stream:
            # A piece at a time: a failure costs no piece before it.
            while len(start) < _SNIFFED and (piece := cast(Any, stream).read1(_SNIFFED - len(start))):
                start += piece
    except UNPACK_ERRORS:
        pass
    return Sniff(path, start, path.stat().st_size)
