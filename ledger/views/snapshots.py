"""Keeps bytes that can be made again from the records, to have them faster. Must never give back others.

The file may be deleted, cut or overwritten at any time: whatever is not whole or not ours counts as absent. A
failure to read or write here never fails the caller.
"""

import hmac
import sqlite3
from pathlib import Path
from typing import NamedTuple

_TABLE = """
create table if not exists snapshots (
    session text not null,
    version integer not null,
    seq integer not null,
    record_hash text not null,
    body blob not null,
    checksum blob not null,
    primary key (session, version, seq)
) without rowid
"""
_PIECES = """
create table if not exists pieces (
    name blob primary key,
    before blob not null,
    body blob not null
) without rowid
"""
_BUSY_TIMEOUT_S = 1


class Snapshot(NamedTuple):
    """A snapshot as kept."""

    seq: int
    """Record after which it was made."""

    record_hash: str
    """Hash of that record: a snapshot of another history has another one."""

    body: bytes
    """Whatever was kept."""


class Piece(NamedTuple):
    """A part that many snapshots share. Its name, which a snapshot holds, is for its reader to check."""

    before: bytes
    """Name of the piece before it; empty for the first."""

    body: bytes
    """Whatever was kept."""


class SnapshotFile:
    """A side file of snapshots. `key` is the ledger's own: what another one has kept is not taken for it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._connection: sqlite3.Connection | None = self._open()

    def __enter__(self) -> "SnapshotFile":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def nearest(self, session: str, version: int, seq: int) -> Snapshot | None:
        """The latest whole snapshot at or before a seq; damaged ones are passed over."""
        if self._connection is None:
            return None
        try:
            rows = self._connection.execute(
                "select seq, record_hash, body, checksum from snapshots"
                " where session = ? and version = ? and seq <= ? order by seq desc",
                (session, version, seq),
            )
            for found_seq, record_hash, body, checksum in rows:
                if self._is_whole(session, version, found_seq, record_hash, body, checksum):
                    return Snapshot(found_seq, record_hash, body)
        except sqlite3.Error:
            self.close()
        return None

    def put(self, session: str, version: int, snapshot: Snapshot) -> None:
        """Keep a snapshot, in the place of one of the same record."""
        if self._connection is None:
            return
        seq, record_hash, body = snapshot
        checksum = self._checksum(session, version, seq, record_hash, body)
        try:
            self._connection.execute(
                "insert or replace into snapshots values (?, ?, ?, ?, ?, ?)",
                (session, version, seq, record_hash, body, checksum),
            )
        except sqlite3.Error:
            self.close()

    def piece(self, name: bytes) -> Piece | None:
        """What is kept under a name."""
        if self._connection is None:
            return None
        try:
            found = self._connection.execute(
                "select before, body from pieces where name = ?", (name,)
            ).fetchone()
        except sqlite3.Error:
            self.close()
            return None
        return Piece(*found) if found is not None and all(isinstance(one, bytes) for one in found) else None

    def put_piece(self, name: bytes, before: bytes, body: bytes) -> None:
        """Keep a part that snapshots share."""
        if self._connection is None:
            return
        try:
            self._connection.execute("insert or replace into pieces values (?, ?, ?)", (name, before, body))
        except sqlite3.Error:
            self.close()

    def _open(self) -> sqlite3.Connection | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        try:
            return self._connect()
        except sqlite3.OperationalError:
            return None  # locked for long, or not ours to write
        except sqlite3.DatabaseError:
            pass  # not a database: nothing in it can be used, so make a new one
        try:
            self._path.unlink()
            return self._connect()
        except (OSError, sqlite3.Error):
            return None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            connection.execute("pragma journal_mode=wal")
            connection.execute("pragma synchronous=off")  # what a crash loses is made again
            connection.execute(_TABLE)
            connection.execute(_PIECES)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _is_whole(
        self, session: str, version: int, seq: object, record_hash: object, body: object, checksum: object
    ) -> bool:
        return (
            isinstance(seq, int)
            and isinstance(record_hash, str)
            and isinstance(body, bytes)
            and isinstance(checksum, bytes)
            and hmac.compare_digest(checksum, self._checksum(session, version, seq, record_hash, body))
        )

    def _checksum(self, session: str, version: int, seq: int, record_hash: str, body: bytes) -> bytes:
        head = repr((session, version, seq, record_hash, len(body))).encode("utf-8", "backslashreplace")
        return hmac.digest(self._key, head + body, "sha256")
