"""The store on SQLite: one file, WAL, several writer processes, one dedicated writer connection in each."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    OperationalError,
    StoredEvent,
    Subscription,
)
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteDatastore,
    SQLiteFactory,
)

from ledger.errors import StoreUnavailableError
from ledger.store.content import BlobRow, NodeRow
from ledger.store.rows import STORE_IS_CLOSED, Attachments, KeyRow, KeysTakenError, ScanRow
from ledger.store.shared_reads import SharedReads
from ledger.store.sqlite_connection import DAMAGE, LedgerPool, connect
from ledger.store.subscription import PolledSubscription

_TABLES = Path(__file__).with_name("sqlite_tables.sql")
_DEFINITIONS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
_INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state, hash) VALUES (?,?,?,?,?)"
)
_STRANGE_KEYS = (
    "SELECT key, seq FROM source_keys WHERE typeof(key) <> 'blob' OR typeof(seq) <> 'integer' OR seq < 1"
    " OR seq > (SELECT coalesce(max(originator_version), 0) FROM stored_events) ORDER BY key LIMIT ?"
)
_TOGETHER = 100
# One search of the index each, as `get_blob` makes it: where one is damaged, a scan finds more.
_GET_BLOBS = (
    f"WITH w(digest) AS (VALUES {','.join(['(?)'] * _TOGETHER)}) SELECT r.* FROM w"  # noqa: S608
    " CROSS JOIN blobs AS k ON k.digest = w.digest CROSS JOIN blobs AS r ON r.rowid = k.rowid"
)
_EVENT_COLUMNS = "nid, originator_id, originator_version, topic, state"


class SQLiteRecorder(SharedReads, SQLiteApplicationRecorder):
    """Records, blobs, context nodes and source keys in one transaction."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self._lock = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._readers_lock = threading.Lock()  # not the writer's: reading does not wait for a commit
        self._readers: list[sqlite3.Connection] = []
        self._opened: list[sqlite3.Connection] = []
        self._is_closed = False
        self._path = datastore.pool.db_name

    def construct_create_table_statements(self) -> list[str]:
        """Our own tables; see sqlite_tables.sql. Triggers there refuse every update and delete of a record."""
        return []

    def create_table(self) -> None:
        """Make the tables where they do not exist yet."""
        try:
            with self._lock:
                writer = self._writing()
                # One statement, so that both facts are of one moment: another process may be making the tables.
                version, others = writer.execute(
                    "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
                ).fetchone()
                if version == 0 and others:
                    raise StoreUnavailableError(
                        f"{self._path} is not a ledger: expected an empty file or a ledger, found other tables"
                    )
                if version == 0:
                    writer.executescript(_TABLES.read_text(encoding="utf-8"))
        except DAMAGE as error:
            raise StoreUnavailableError(f"{self._path} is not a ledger: {error}") from error

    def _writing(self) -> sqlite3.Connection:
        self._refuse_when_closed()
        if self._writer is None:
            self._writer = connect(self._path)
            self._opened.append(self._writer)
        return self._writer

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, on a connection that no other thread uses meanwhile. Raises StoreUnavailableError."""
        try:
            with self._reading() as connection:
                return connection.execute(query, parameters).fetchall()
        except DAMAGE as error:
            raise StoreUnavailableError(f"{self._path} cannot be read: {error}") from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._readers_lock:
            self._refuse_when_closed()
            if not self._readers:
                self._readers.append(connect(self._path))
                self._opened.append(self._readers[-1])
            connection = self._readers.pop()
        try:
            yield connection
        finally:
            with self._readers_lock:
                self._readers.append(connection)

    def _refuse_when_closed(self) -> None:
        """A connection opened after `close` would be nobody's to close."""
        if self._is_closed:
            raise StoreUnavailableError(STORE_IS_CLOSED)

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Insert records with `hashes=` and `attachments=`; give their positions. All or nothing."""
        attachments: Attachments = kwargs.get("attachments", Attachments())
        hashes: Sequence[bytes] = kwargs.get("hashes") or [b""] * len(stored_events)
        rows = [
            (stored.originator_id, stored.originator_version, stored.topic, stored.state, digest)
            for stored, digest in zip(stored_events, hashes, strict=True)
        ]
        last = 0
        with self._lock:
            writer = self._writing()
            if attachments.durable:
                writer.execute(
                    "PRAGMA synchronous=FULL"
                )  # this commit's fsync also covers every commit before it
            try:
                writer.execute("BEGIN IMMEDIATE")
                self._insert_attachments(writer, attachments)
                if len(rows) > 1:
                    writer.executemany(_INSERT, rows[:-1])
                if rows:
                    last = writer.execute(_INSERT, rows[-1]).lastrowid or 0
                writer.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                raise IntegrityError(error) from error
            except sqlite3.OperationalError as error:
                raise OperationalError(error) from error
            except sqlite3.DatabaseError as error:
                raise StoreUnavailableError(f"{self._path} cannot be written: {error}") from error
            finally:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                if attachments.durable:
                    writer.execute("PRAGMA synchronous=NORMAL")
        return list(range(last - len(rows) + 1, last + 1))

    @staticmethod
    def _insert_attachments(writer: sqlite3.Connection, attachments: Attachments) -> None:
        if attachments.blobs:
            writer.executemany("INSERT OR IGNORE INTO blobs VALUES (?,?,?,?,?)", attachments.blobs)
        if attachments.nodes:
            writer.executemany("INSERT OR IGNORE INTO context_nodes VALUES (?,?,?,?)", attachments.nodes)
        if attachments.keys:
            cursor = writer.executemany(
                "INSERT OR IGNORE INTO source_keys VALUES (?,?,?,?)", attachments.keys
            )
            if cursor.rowcount != len(attachments.keys):
                raise KeysTakenError

    def select_events(
        self,
        originator_id: Any,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
        topics: Sequence[str] = (),
    ) -> Sequence[StoredEvent]:
        """Records of a session, as Notification (with position); only those of the given event names, if any."""
        order = "DESC" if desc else "ASC"
        rows = self._rows(
            f"SELECT {_EVENT_COLUMNS} FROM stored_events WHERE originator_id = ? AND originator_version > ?"  # noqa: S608
            f" AND originator_version <= ?{_among(topics)} ORDER BY originator_version {order} LIMIT ?",
            (originator_id, gt or 0, 2**62 if lte is None else lte, *topics, -1 if limit is None else limit),
        )
        return [
            Notification(session, seq, name, state, position) for position, session, seq, name, state in rows
        ]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Records of the whole ledger by position."""
        first = (start or 0) + (0 if inclusive_of_start else 1)
        rows = self._rows(
            f"SELECT {_EVENT_COLUMNS} FROM stored_events WHERE nid >= ? AND nid <= ?{_among(topics)}"  # noqa: S608
            " ORDER BY nid LIMIT ?",
            (first, 2**62 if stop is None else stop, *topics, limit),
        )
        return [
            Notification(session, seq, name, state, position) for position, session, seq, name, state in rows
        ]

    def select_rows(self, after: int, limit: int) -> list[tuple[int, str, int, str, bytes]]:
        """Position, session, seq, name and state of the records after a position."""
        query = f"SELECT {_EVENT_COLUMNS} FROM stored_events WHERE nid > ? ORDER BY nid LIMIT ?"  # noqa: S608
        return cast("list[tuple[int, str, int, str, bytes]]", self._rows(query, (after, limit)))

    def max_notification_id(self) -> int | None:  # type: ignore[override]  # as the library's own interface says
        """The last position; None for an empty ledger."""
        last: int | None = self._rows("SELECT max(nid) FROM stored_events")[0][0]
        return last

    def scan(self, session: str, seq: int, limit: int) -> list[ScanRow]:
        """Rows for verification, in the order of session and seq, after the given one."""
        rows = self._rows(
            # Joined with itself, because SQLite takes from an index what the index has: a row would never be asked.
            "SELECT k.originator_id, k.originator_version, r.nid, r.originator_id, r.originator_version,"
            " r.topic, r.state, r.hash FROM stored_events AS k LEFT JOIN stored_events AS r ON r.nid = k.nid"
            " WHERE (k.originator_id, k.originator_version) > (?, ?)"
            " ORDER BY k.originator_id, k.originator_version LIMIT ?",
            (session, seq, limit),
        )
        return [ScanRow(*row) for row in rows]

    def find_sessions(self, prefix: str, limit: int) -> list[str]:
        """Session ids that start with the prefix, in order: one index seek for each."""
        found: list[str] = []
        after = ""
        while len(found) < limit:
            rows = self._rows(
                "SELECT originator_id FROM stored_events WHERE originator_id > ? AND originator_id >= ?"
                " ORDER BY originator_id LIMIT 1",
                (after, prefix),
            )
            # In a damaged index an id may be anything.
            if not rows or not isinstance(rows[0][0], str) or not rows[0][0].startswith(prefix):
                break
            after = rows[0][0]
            found.append(after)
        return found

    def get_blob(self, digest: bytes) -> BlobRow | None:
        """A blob's row."""
        # Joined with itself for the reason that `scan` gives.
        rows = self._rows(
            "SELECT r.* FROM blobs AS k JOIN blobs AS r ON r.rowid = k.rowid WHERE k.digest = ?", (digest,)
        )
        return BlobRow(*rows[0]) if rows else None

    def get_blobs(self, digests: Sequence[bytes]) -> Iterator[BlobRow]:
        """Rows of those blobs that are there, in any order; one at a time is in memory."""
        for start in range(0, len(digests), _TOGETHER):
            part: list[bytes | None] = [*digests[start : start + _TOGETHER]]
            part += [None] * (_TOGETHER - len(part))  # the statement stays prepared; no digest is NULL
            try:
                with self._reading() as connection:
                    yield from map(BlobRow._make, connection.execute(_GET_BLOBS, part))
            except DAMAGE as error:
                raise StoreUnavailableError(f"{self._path} cannot be read: {error}") from error

    def get_nodes(self, nodes: Sequence[bytes]) -> dict[bytes, NodeRow]:
        """Rows of those context nodes that are there."""
        return {node: row for node in nodes if (row := self.get_node(node)) is not None}

    def get_keys(self, keys: Sequence[bytes]) -> dict[bytes, KeyRow]:
        """Those of the source keys that are in the ledger."""
        found: dict[bytes, KeyRow] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            for row in self._rows(f"SELECT * FROM source_keys WHERE key IN ({marks})", part):  # noqa: S608
                found[row[0]] = KeyRow(*row)
        return found

    def check_keys(self, limit: int) -> tuple[int, list[tuple[Any, Any]]]:
        """How many source keys there are; key and seq of those whose seq no session has."""
        count = self._rows("SELECT count(*) FROM source_keys")[0][0]
        return count, [(key, seq) for key, seq in self._rows(_STRANGE_KEYS, (limit,))]

    def get_meta(self, name: str, default: bytes) -> bytes:
        """A fact about the ledger itself, set to `default` when it was not set before."""
        select = "SELECT value FROM ledger_meta WHERE name = ?"
        rows = self._rows(select, (name,))
        if not rows:
            try:
                with self._lock:
                    self._writing().execute("INSERT OR IGNORE INTO ledger_meta VALUES (?,?)", (name, default))
            except DAMAGE as error:
                raise StoreUnavailableError(f"{self._path} cannot be written: {error}") from error
            rows = self._rows(select, (name,))
        if not rows or not isinstance(rows[0][0], bytes):
            raise StoreUnavailableError(f"{self._path} is damaged: it has no readable {name!r}")
        return rows[0][0]

    def check_storage(self) -> list[str]:
        """What `PRAGMA integrity_check` says, and which tables, indexes and triggers are not those of a ledger."""
        try:
            found = [str(row[0]) for row in self._rows("PRAGMA integrity_check(20)")]
            definitions = set(self._rows(_DEFINITIONS))
        except StoreUnavailableError as error:
            return [str(error)]
        pristine = sqlite3.connect(":memory:")
        pristine.executescript(_TABLES.read_text(encoding="utf-8"))
        expected = pristine.execute(_DEFINITIONS).fetchall()
        pristine.close()
        strange = [
            f"{row[0]} {row[1]} is not there as it was made" for row in expected if row not in definitions
        ]
        return strange + ([] if found == ["ok"] else found)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """A subscription of the library's kind, which its SQLite recorder lacks."""
        return PolledSubscription(self, gt=gt, topics=topics)

    def close(self) -> None:
        """Close every connection; the last one writes the WAL back."""
        with self._lock, self._readers_lock:
            self._is_closed = True
            opened, self._opened, self._readers, self._writer = self._opened, [], [], None
        for connection in opened:
            connection.close()


def _among(topics: Sequence[str]) -> str:
    return f" AND topic IN ({','.join('?' * len(topics))})" if topics else ""


class SQLiteLedgerFactory(SQLiteFactory):
    """Tells the library to use our recorder and pool."""

    application_recorder_class = SQLiteRecorder

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        name = self.datastore.pool.db_name
        self.datastore.pool.close()
        self.datastore.pool = LedgerPool(db_name=name)
