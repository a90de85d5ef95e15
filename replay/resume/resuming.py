"""Prepares what a runtime needs to go on from a point, and writes it: whole into a folder of its own, or not at all."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ledger.errors import InputError
from ledger.home import Ledger
from replay.resume.point import load_point, start_of
from replay.resume.runtime import Resumption, choose_runtime, reads_records


@dataclass(frozen=True)
class Prepared:
    """What is to be written, ready before anything else is done."""

    runtime: str
    """The runtime that will go on."""

    seq: int
    """Last record that counts."""

    into: Path
    """The folder, absolute."""

    resumption: Resumption
    """What is written, and the command."""

    def write(self) -> dict[str, Any]:
        """Write it; give what was written, for programs. Raises InputError when the folder cannot be written."""
        try:
            self.into.parent.mkdir(parents=True, exist_ok=True)
            # A folder beside it that takes its place in one step: nobody finds half of it.
            beside = Path(tempfile.mkdtemp(prefix=f".{self.into.name}-", dir=self.into.parent))
            try:
                for name, content in self.resumption.files.items():
                    path = beside / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                beside.rename(self.into)
            except OSError:
                shutil.rmtree(beside, ignore_errors=True)
                raise
        except OSError as error:
            raise InputError(f"{self.into} cannot be written: {error.strerror}") from error
        return self.as_json()

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        head = {"runtime": self.runtime, "from_seq": self.seq, "into": str(self.into)}
        return head | self.resumption.as_json()


def prepare(ledger: Ledger, session: str, seq: int, into: Path, runtime: str | None = None) -> Prepared:
    """Everything that going on from a record takes, but for writing it.

    Raises InputError where the folder holds files, the runtime is not known, or the conversation is not whole.
    """
    into = into.absolute()
    _check_folder(into)
    chosen = choose_runtime(start_of(ledger, session), runtime)
    point = load_point(ledger, session, seq, whole=not reads_records(chosen))
    try:
        resumption = chosen.resumption(point, into)
    except RecursionError as error:
        raise InputError(
            f"{session}#{seq}: a value in the conversation is nested too deeply to be written"
        ) from error
    for name in resumption.files:
        path = PurePosixPath(name)
        assert not path.is_absolute() and ".." not in path.parts, name
    return Prepared(chosen.NAME, seq, into, resumption)


def _check_folder(into: Path) -> None:
    try:
        if into.is_symlink() or (into.exists() and not into.is_dir()):
            raise InputError(f"--into {into} is no folder: expected a new or empty one")
        if into.exists() and (found := next(into.iterdir(), None)) is not None:
            raise InputError(
                f"--into {into} holds {found.name}: expected a new or empty folder; nothing was written"
            )
    except OSError as error:
        raise InputError(f"--into {into} cannot be read: {error.strerror}") from error
