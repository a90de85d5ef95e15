"""Reads `.eval` archives: one member at a time, never by its path, never one that swells out of all proportion."""

import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import zstandard

from ledger.importers._files import open_source

_LARGEST_MEMBER = 512 * 1024 * 1024
_BOMB_FROM = 32 * 1024 * 1024
_BOMB_RATIO = 200
_COPIED = 4 * 1024 * 1024 * 1024
_ZSTANDARD = 93
_HEADER = struct.Struct("<4s5H3I2H")

ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    zstandard.ZstdError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What reading a damaged, locked or foreign archive may raise."""


class Member(NamedTuple):
    """A file in the archive."""

    name: str
    """Its name as given: a text, never a path that anything is written to."""

    refused: str | None
    """Why it is not opened; None when it may be."""


class Archive:
    """An open archive."""

    def __init__(self, zipped: zipfile.ZipFile) -> None:
        self._zip = zipped

    def members(self) -> Iterator[Member]:
        """Its files in the order of the directory; of several with one name only the last can be opened."""
        for info in self._zip.infolist():
            if not info.is_dir():
                yield Member(info.filename, _refusal(info))

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A member's bytes, as a stream that ends where its size says."""
        info = self._zip.getinfo(name)
        if info.compress_type != _ZSTANDARD:
            with self._zip.open(info) as stream:
                yield cast(BinaryIO, stream)
            return
        # Only the youngest interpreters unpack zstandard in archives themselves.
        raw = self._zip.fp
        if raw is None:
            raise ValueError("the archive is closed")
        raw.seek(info.header_offset)
        header = raw.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(b"PK\3\4"):
            raise zipfile.BadZipFile(f"no header where the directory says that {name!r} begins")
        named, extra = _HEADER.unpack(header)[-2:]
        raw.seek(info.header_offset + _HEADER.size + named + extra)
        packed = _Limited(cast(BinaryIO, raw), info.compress_size, ends=True)
        with zstandard.ZstdDecompressor().stream_reader(
            cast(Any, packed), read_across_frames=True, closefd=False
        ) as unpacked:
            yield cast(BinaryIO, _Limited(cast(BinaryIO, unpacked), info.file_size, ends=True))


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at a path, also when it is packed once more. Raises one of ARCHIVE_ERRORS."""
    with ExitStack() as stack:
        stream = stack.enter_context(open_source(path))
        if not stream.seekable():
            copied = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(_Limited(stream), copied)
            copied.seek(0)
            stream = cast(BinaryIO, copied)
        yield Archive(stack.enter_context(zipfile.ZipFile(stream)))


def _refusal(info: zipfile.ZipInfo) -> str | None:
    if info.file_size > _LARGEST_MEMBER:
        return f"expected at most {_LARGEST_MEMBER} bytes in one member, found {info.file_size}"
    if info.file_size > _BOMB_FROM and info.file_size > _BOMB_RATIO * max(1, info.compress_size):
        return f"expected a sample, found {info.compress_size} bytes that swell to {info.file_size}"
    return None


class _Limited:
    """A stream that does not go on for ever: it ends at its limit, or refuses to go beyond."""

    def __init__(self, stream: BinaryIO, limit: int = _COPIED, *, ends: bool = False) -> None:
        self._stream = stream
        self._left = limit
        self._ends = ends

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        wanted = size if size >= 0 else 1024 * 1024
        raw = self._stream.read(min(wanted, self._left) if self._ends else wanted)
        self._left -= len(raw)
        if self._left < 0:
            raise OSError(f"expected an archive of at most {_COPIED} bytes, found a longer one")
        return raw
