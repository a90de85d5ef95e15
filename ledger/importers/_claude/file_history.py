"""What Claude Code kept of files before it changed them: rows that name backups, and the backups beside its sessions.

They lie in `~/.claude/file-history/<session>/<hash>@v<number>`, two folders above the session file's own.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import ContentRef, Event
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.recovery import CheckpointTaken, FilesSeen
from ledger.importers._claude.row import Row, count_of, name_of
from ledger.intake import Desk
from ledger.recorder import Keeper
from ledger.workspace import Entry
from ledger.workspace.listing import NO_BACKUP, listing_json
from ledger.workspace.looking import HOLDS_SECRET

KINDS = ("file-history-snapshot", "file-history-delta")
"""Types of the rows."""

_FOLDER = "file-history"
_LARGEST = 10_000_000
_HASH = frozenset("0123456789abcdef")


class Backups:
    """The backups of one session; what is missing is counted."""

    def __init__(self, desk: Desk, session_file: Path, session: str) -> None:
        self._desk = desk
        self._missing: set[str] = set()
        self._kept: dict[str, Entry] = {}
        folder = session_file.absolute().parent
        tops = [folder, *list(folder.parents)[:2]]
        self._folders = [
            top / _FOLDER / session for top in tops if "/" not in session and session not in (".", "..")
        ]

    def events(self, row: Row, session: str) -> Iterator[Event]:
        """Events of a row, the first of which holds all of it.

        A snapshot is of the time before its prompt, whose row may stand well before it.
        """
        keep, data = self._desk.keep, row.data
        yield SourceKept(native_type=row.native_type, recognized=True, body=keep.json(data, row.native_type))
        snapshot = data.get("snapshot")
        if row.kind == KINDS[1]:
            tracked = {data.get("trackingPath"): data.get("backup")}
            name = name_of(data.get("snapshotMessageId")) or row.key
        else:
            found = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
            tracked = found if isinstance(found, dict) else {}
            name = name_of(data.get("messageId")) or row.key
        files: dict[str, tuple[Entry | None, int | None]] = {}
        added: list[ContentRef] = []
        for path, backup in tracked.items():
            if isinstance(path, str) and path and isinstance(backup, dict) and keep.is_clean(path):
                files[path] = (self._entry(keep, backup, added), count_of(backup.get("version")))
        listed = keep.json(listing_json(name, files), "file history")
        is_new = row.kind == KINDS[0] and data.get("isSnapshotUpdate") is not True
        if added or not is_new:
            yield FilesSeen(files=listed, changed=len(files), added=tuple(added))
        if is_new:
            seq = self._before(session, name)
            yield CheckpointTaken(checkpoint_id=name, seq=seq, files=listed, taken_by="source")

    def _before(self, session: str, prompt: str) -> int | None:
        """Last record before a prompt, as for a rewind of Claude Code; None where the prompt is not known yet."""
        known = self._desk.lookup(session, prompt)
        if known is None:
            return None
        first = self._desk.recall(session, prompt, 0)  # a rewind or a new mode may stand before the words
        return known.seq - 1 if isinstance(first, MessageReceived) and known.seq > 1 else known.seq

    def _entry(self, keep: Keeper, backup: dict[str, Any], added: list[ContentRef]) -> Entry | None:
        """A backup as a file; None where there was no file to back up."""
        name = backup.get("backupFileName")
        if name is None:
            return None
        if not isinstance(name, str) or not _is_name(name):
            return Entry("file", 0o644, not_kept=NO_BACKUP)
        if name not in self._kept:
            self._kept[name] = self._read(keep, name, added)
        return self._kept[name]

    def _read(self, keep: Keeper, name: str, added: list[ContentRef]) -> Entry:
        for folder in self._folders:
            try:
                # No link is followed: the folder may hold anything.
                with os.fdopen(
                    os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
                ) as file:
                    found = os.fstat(file.fileno())
                    if not stat.S_ISREG(found.st_mode):
                        continue
                    mode = stat.S_IMODE(found.st_mode)
                    if found.st_size > _LARGEST:
                        why = f"it is larger than {_LARGEST} bytes"
                        return Entry("file", mode, size=found.st_size, not_kept=why)
                    content = file.read(_LARGEST + 1)
            except OSError:
                continue
            clean = keep.cleaned(content)
            if clean != content:
                return Entry("file", mode, keep.digest(clean), len(content), not_kept=HOLDS_SECRET)
            ref = keep.raw(content, "file history")
            added.append(ref)
            return Entry("file", mode, ref.digest, len(content))
        self._missing.add(name)
        return Entry("file", 0o644, not_kept=NO_BACKUP)

    def finish(self) -> None:
        """Say what is missing."""
        if self._missing:
            self._desk.tally.notes.append(
                f"{len(self._missing)} file backups are not in {_FOLDER}: these files cannot be put back"
            )


def _is_name(name: str) -> bool:
    digest, mark, number = name.partition("@v")
    return (
        len(digest) == 16
        and _HASH.issuperset(digest)
        and bool(mark)
        and number.isdecimal()
        and len(number) < 10
    )
