"""The manifest of a lake: an append-only chain of numbered entries, the only thing that says which files count.

An entry names the files that it adds and takes away and the position that the lake has reached, so that data and
progress cannot disagree. It appears under its number by one atomic link: of two writers that saw the same entry
before, one wins and the other learns that it lost. Each entry holds the SHA-256 of the one before.
"""

import contextlib
import hashlib
import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ledger.errors import InputError, LakeDamagedError

FOLDER = "_manifest"
SCRATCH = "_tmp"
LISTING = "files.json"
"""The files that count now, for readers without this program. Made from the manifest, never read here."""

_WHOLE_EVERY = 50
_TRIES = 20


@dataclass(frozen=True)
class DataFile:
    """One Parquet file."""

    path: str
    """Where it lies in the lake."""
    rows: int
    """Its rows."""
    bytes: int
    """Its size."""
    sha256: str
    """Digest of its bytes."""
    first: int
    """Lowest position in it."""
    last: int
    """Highest position in it."""
    schema: int
    """Schema version of its columns."""


@dataclass(frozen=True)
class Version:
    """A lake as one entry of its manifest leaves it."""

    number: int = 0
    """Number of the entry; 0 before the first."""
    position: int = 0
    """All records up to this position are in the files, once each."""
    ledger: str | None = None
    """Identity of the ledger that they come from."""
    head: dict[str, Any] = field(default_factory=dict)
    """Session, seq and hash of the record at that position."""
    files: dict[str, DataFile] = field(default_factory=dict)
    """Files that count, by path."""
    digest: str = ""
    """SHA-256 of the entry's bytes."""


_EMPTY = Version()


class Manifest:
    """The manifest in the folder of a lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries = folder / FOLDER
        self.scratch = folder / SCRATCH

    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self._entries.is_dir()

    def make(self) -> None:
        """Make the folders."""
        try:
            for path in (self._entries, self.scratch):
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder} cannot be made: {error.strerror}") from error

    def numbers(self) -> list[int]:
        """Numbers of the entries there are, in order."""
        if not self.exists():
            return []
        return sorted(int(path.stem) for path in self._entries.iterdir() if path.stem.isdigit())

    def path_of(self, number: int) -> Path:
        """Where an entry lies."""
        return self._entries / f"{number:012}.json"

    def read(self, since: Version = _EMPTY) -> Version:
        """The lake as it stands, from the entries after a state that is known. Raises LakeDamagedError."""
        for _ in range(_TRIES):
            numbers = self.numbers()
            if not numbers:
                return Version()
            try:
                return self._read(numbers[-1], since if since.number <= numbers[-1] else _EMPTY)
            except FileNotFoundError:
                continue  # old entries were cleared away meanwhile: a newer one lists all files
            except (KeyError, TypeError) as error:
                raise LakeDamagedError(
                    f"{self.path_of(numbers[-1])} does not fit the entries before it: {error!r}"
                ) from None
        raise LakeDamagedError(
            f"{self._entries} has holes: expected each entry back to one that lists all files"
        )

    def _read(self, number: int, since: Version) -> Version:
        steps: list[tuple[dict[str, Any], str]] = []
        expected: str | None = None
        at = number
        while at > since.number:
            raw = self.path_of(at).read_bytes()
            digest = hashlib.sha256(raw).hexdigest()
            try:
                entry = json.loads(raw)
                if expected is not None and digest != expected:
                    raise ValueError("the entry after it names another digest")
                steps.append((entry, digest))
                expected = entry["previous"]
                is_whole = entry["files"] is not None
            except (ValueError, KeyError, TypeError) as error:
                raise LakeDamagedError(f"{self.path_of(at)} is no entry of a manifest: {error}") from error
            if is_whole:
                break
            at -= 1
        if at == since.number and steps and since.number and expected != since.digest:
            raise LakeDamagedError(
                f"{self.path_of(at + 1)} is no entry of a manifest: it follows another than {self.path_of(at)}"
            )
        return _folded(since, number, steps)

    def commit(
        self,
        before: Version,
        *,
        ledger: str | None = None,
        position: int | None = None,
        head: dict[str, Any] | None = None,
        add: list[DataFile],
        remove: list[str],
    ) -> Version | None:
        """Make a change count, durably; give the new state, or None when another writer was first."""
        files = {path: file for path, file in before.files.items() if path not in remove}
        files.update((file.path, file) for file in add)
        number = before.number + 1
        entry: dict[str, Any] = {
            "number": number,
            "previous": before.digest,
            "ledger": ledger or before.ledger,
            "position": before.position if position is None else position,
            "head": before.head if head is None else head,
            "add": [asdict(file) for file in add],
            "remove": remove,
            "files": [asdict(file) for file in files.values()] if number % _WHOLE_EVERY == 0 else None,
        }
        raw = json.dumps(entry, indent=1).encode()
        draft = self.scratch / f"{number}.{secrets.token_hex(8)}.json"
        write_durably(draft, raw)
        try:
            os.link(draft, self.path_of(number))
        except FileExistsError:
            return None
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(self._entries)
        return Version(
            number, entry["position"], entry["ledger"], entry["head"], files, hashlib.sha256(raw).hexdigest()
        )

    def removed(self) -> set[str]:
        """Files that the entries there are took away."""
        paths: set[str] = set()
        for number in self.numbers():
            with contextlib.suppress(FileNotFoundError):
                paths.update(json.loads(self.path_of(number).read_bytes())["remove"])
        return paths

    def list_files(self, since: Version = _EMPTY) -> None:
        """Write the listing for readers without this program."""
        while True:
            version = self.read(since)
            listed = [{"path": file.path, "rows": file.rows} for file in version.files.values()]
            draft = self.scratch / f"{LISTING}.{secrets.token_hex(8)}"
            draft.write_text(json.dumps(listed, indent=1), encoding="utf-8")
            draft.replace(self.folder / LISTING)
            if self.numbers()[-1:] in ([], [version.number]):
                return

    def clear_entries(self, older_than: float) -> int:
        """Remove entries before the last that lists all files, when they are older than a time; give how many."""
        whole = [number for number in self.numbers() if number % _WHOLE_EVERY == 0]
        count = 0
        for number in self.numbers():
            path = self.path_of(number)
            if whole and number < whole[-1] and path.stat().st_mtime < older_than:
                path.unlink(missing_ok=True)
                count += 1
        return count


def _folded(since: Version, number: int, steps: list[tuple[dict[str, Any], str]]) -> Version:
    if not steps:
        return since
    files = dict(since.files)
    for entry, _ in reversed(steps):
        if entry["files"] is not None:
            files = {one["path"]: DataFile(**one) for one in entry["files"]}
            continue
        for path in entry["remove"]:
            del files[path]
        files.update((one["path"], DataFile(**one)) for one in entry["add"])
    last, digest = steps[0]
    return Version(number, last["position"], last["ledger"], last["head"], files, digest)


def write_durably(path: Path, raw: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the disk has the names in a folder, where the system can say so."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
