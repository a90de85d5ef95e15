"""A lake of Parquet files: takes in records exactly once, merges small files, forgets what was erased.

Only a manifest entry makes files count, so a crash at any point leaves the lake as it was, plus files that nothing
names, which `clear` removes. Several exporters may run at once: of two that start from the same entry one wins, and
the other goes on from there.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ledger.errors import InputError
from ledger.lake.columns import SENT_AGAIN, TEXTS
from ledger.lake.feed import Feed, Stored, StoredRow
from ledger.lake.files import EVENTS, date_of, read_files, split_by_date, write_file
from ledger.lake.manifest import LISTING, SCRATCH, DataFile, Manifest, Version
from ledger.lake.rows import Rows

GRACE_S = 3600.0
"""How long a file that no longer counts is kept for readers that still hold an older list."""

_MOST_ROWS = 50_000
_MOST_TEXT = 64 * 2**20
_MANY_SMALL = 8
_COMPACTED_BYTES = 64 * 2**20
_EMPTY = Version()


@dataclass(frozen=True)
class Exported:
    """What an export did."""

    events: int
    """Records taken in."""
    position: int
    """All records up to this position are in the lake."""
    files: int
    """Files that count now."""
    bytes: int
    """Their size."""


class Lake:
    """The lake in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = Manifest(folder)

    # -- taking in ---------------------------------------------------------------------------------------------------

    def export(
        self,
        feed: Feed,
        *,
        progress: Callable[[int], None] = lambda position: None,
        most_rows: int = _MOST_ROWS,
    ) -> Exported:
        """Take in all records that came since. Raises InputError when the lake is of another ledger or history."""
        self.manifest.make()
        (version, came), events = self._checked(feed), 0
        with ThreadPoolExecutor(1) as beside:  # reads the next rows while these are written

            def ahead(came: Iterator[StoredRow]) -> Iterator[Rows]:
                coming = beside.submit(_segment, came, feed, most_rows)
                while (rows := coming.result()) is not None:
                    coming = beside.submit(_segment, came, feed, most_rows)
                    yield rows

            segments = ahead(came)
            while (rows := next(segments, None)) is not None:
                if rows.erased:  # before the record of it counts: after a crash it is done again
                    version = self._erase(version, rows.erased)
                committed = self._commit(version, feed, rows)
                if committed is None:  # a rival was first: what it took in does not come again
                    version, came = self._checked(feed)
                    segments = ahead(came)
                    continue
                version, events = committed, events + rows.size
                progress(version.position)
        if events:
            version = self.compact(since=version)
        if events or not (self.folder / LISTING).exists():
            self.manifest.list_files(version)
        size = sum(file.bytes for file in version.files.values())
        return Exported(events, version.position, len(version.files), size)

    def _checked(self, feed: Feed) -> tuple[Version, Iterator[StoredRow]]:
        """Where the lake stands, and the records that it does not have yet."""
        version = self.manifest.read()
        if version.number == 0:
            return version, feed.rows(0)
        if version.ledger != feed.ledger:
            raise InputError(f"{self.folder} is the lake of another ledger: name another folder")
        came = feed.rows(version.position - 1)
        here = next(came, None)
        if here is None or feed.record_hash(Stored._make(here)) != version.head["hash"]:
            raise InputError(
                f"{self.folder} shows another history: its record at position {version.position} is"
                f" {version.head['session']}#{version.head['seq']} of hash {version.head['hash'][:12]}, the store has"
                " none or another there; remove the folder or name another"
            )
        return version, came

    def _commit(self, version: Version, feed: Feed, rows: Rows) -> Version | None:
        assert rows.last is not None
        last = Stored._make(rows.last)
        digest = feed.record_hash(last)
        head = {"session": last.session, "seq": last.seq, "hash": digest}
        told = {"ledger": feed.ledger, "head_hash": digest, "head_position": str(last.position)}
        table = _without_texts(rows.table(), rows.erased)
        files = [write_file(self.folder, day, part, "seg", told) for day, part in split_by_date(table)]
        committed = self.manifest.commit(
            version, ledger=feed.ledger, position=last.position, head=head, add=files, remove=[]
        )
        if committed is None:
            self._drop(files)
        return committed

    def _drop(self, files: list[DataFile]) -> None:
        for file in files:
            (self.folder / file.path).unlink(missing_ok=True)

    # -- rewriting ---------------------------------------------------------------------------------------------------

    def compact(
        self, *, many: int = _MANY_SMALL, target: int = _COMPACTED_BYTES, since: Version = _EMPTY
    ) -> Version:
        """Merge the small files of a date into files sorted by session and seq, where there are `many` of them.

        `since` is a state that is known: only what came after it is read.
        """
        version = self.manifest.read(since)
        while merged := _mergeable(version, many, target):
            version = self._replace(
                version, merged, _each_text_once(read_files(self.folder, merged))
            ) or self.manifest.read(version)
        return version

    def _replace(self, version: Version, old: list[DataFile], table: pa.Table) -> Version | None:
        """Let one sorted file take the place of others of its date."""
        for file in old:
            os.utime(self.folder / file.path)  # the grace of a file begins now
        told = {"ledger": version.ledger or "", "head_hash": version.head["hash"]}
        told["head_position"] = str(version.position)
        new = write_file(self.folder, date_of(old[0]), table, "cmp", told)
        assert new.rows == sum(file.rows for file in old)
        committed = self.manifest.commit(version, add=[new], remove=[file.path for file in old])
        if committed is None:
            self._drop([new])
        return committed

    def _erase(self, version: Version, digests: set[str]) -> Version:
        """Take the text of destroyed contents out of all files: the only rewrite of what a row says.

        Gives the version that it started from, or the last that it made itself.
        """
        for file in list(version.files.values()):
            path = self.folder / file.path
            names = [name for name in pq.read_schema(path).names if name in (*TEXTS, *TEXTS.values())]
            shown = pq.read_table(path, columns=names, partitioning=None)
            if _without_texts(shown, digests).equals(shown):
                continue
            table = _without_texts(read_files(self.folder, [file]), digests)
            replaced = self._replace(version, [file], table)
            if replaced is None:
                return version  # a rival was first: the commit that follows fails too, and all is tried again
            version = replaced
        for gone in self.manifest.removed() - version.files.keys():
            (self.folder / gone).unlink(missing_ok=True)  # no grace: an older list fails rather than shows it
        return version

    # -- clearing away -----------------------------------------------------------------------------------------------

    def clear(self, *, grace_s: float = GRACE_S, now: Callable[[], float] = time.time) -> int:
        """Remove files that do not count and are older than the grace period; give how many."""
        if not self.manifest.exists():
            return 0
        oldest = now() - grace_s
        self.manifest.list_files()
        counting = self.manifest.read().files
        count = self.manifest.clear_entries(oldest)
        for folder in (self.folder / EVENTS, self.folder / SCRATCH):
            for path in sorted(folder.rglob("*")):
                is_ours = path.is_file() and path.relative_to(self.folder).as_posix() not in counting
                if is_ours and path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
                    count += 1
        return count

    def paths(self) -> list[Path]:
        """The files that count now."""
        return [self.folder / path for path in self.manifest.read().files]


def _segment(came: Iterator[StoredRow], feed: Feed, most_rows: int) -> Rows | None:
    """The next records, so many as memory bears; None when there are none."""
    rows = Rows(feed.contents)
    for stored in came:
        rows.add(stored)
        if rows.size >= most_rows or rows.text_size >= _MOST_TEXT:
            break
    return rows if rows.size else None


def _without_texts(table: pa.Table, digests: set[str]) -> pa.Table:
    """The rows without the texts of these contents."""
    wanted = pa.array(sorted(digests), pa.string())
    for digest, text in TEXTS.items():
        if digests and text in table.column_names:
            table = _emptied(table, text, pc.is_in(table[digest], wanted))
    return table


def _each_text_once(table: pa.Table) -> pa.Table:
    """The rows, where of equal system prompts and tool schemas the first alone is kept."""
    for digest, text in chain.from_iterable(fields.values() for fields in SENT_AGAIN.values()):
        places = pc.indices_nonzero(pc.is_valid(table[text]))
        seen: set[str] = set()
        again = []
        for place, name in zip(places.to_pylist(), table[digest].take(places).to_pylist(), strict=True):
            if name in seen:
                again.append(place)
            seen.add(name)
        if again:
            rows = pa.array(range(table.num_rows), pa.int64())
            table = _emptied(table, text, pc.is_in(rows, pa.array(again, pa.int64())))
    return table


def _emptied(table: pa.Table, column: str, where: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(column)
    values = pc.if_else(pc.fill_null(where, False), pa.scalar(None, pa.string()), table[column])
    return table.set_column(place, table.schema.field(column), values)


def _mergeable(version: Version, many: int, target: int) -> list[DataFile]:
    """Small files of one date that are worth merging; none when there are too few of them anywhere."""
    by_date: dict[str, list[DataFile]] = {}
    for file in version.files.values():
        if file.bytes < target // 2:
            by_date.setdefault(file.path.rpartition("/")[0], []).append(file)
    for files in by_date.values():
        if len(files) < many:
            continue
        chosen: list[DataFile] = []
        size = 0
        for file in sorted(files, key=lambda file: file.first):
            if len(chosen) > 1 and size + file.bytes > target:
                break
            chosen.append(file)
            size += file.bytes
        return chosen
    return []
