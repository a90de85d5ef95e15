"""The store on PostgreSQL, for many writers or machines. Positions have no holes and appear in order."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    BaseInfrastructureFactory,
    InterfaceError,
    Notification,
    OperationalError,
    PersistenceError,
    StoredEvent,
    Subscription,
)
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresFactory
from psycopg.rows import DictRow, tuple_row

from ledger.errors import StoreUnavailableError
from ledger.store.content import BlobRow, NodeRow
from ledger.store.postgres_connection import LedgerDatastore, is_lost_connection, was_undone
from ledger.store.postgres_queries import (
    APPEND,
    EVENT_COLUMNS,
    FIND_SESSIONS,
    INDEXES,
    KEEP_BLOBS,
    LOCK,
    MISSING_GUARDS,
    SELECT_EVENTS,
    STRANGE_KEYS,
)
from ledger.store.rows import Attachments, KeyRow, KeysTakenError, ScanRow
from ledger.store.shared_reads import SharedReads
from ledger.store.subscription import PolledSubscription

_Item = TypeVar("_Item")

_ATTEMPTS = 3
_ASKS = 12
_WAIT_S = 0.1
_LARGE_BYTES = 16 * 2**20
_KEYS_TAKEN = "LK001"  # raised by ledger_append


class PostgresRecorder(SharedReads, PostgresApplicationRecorder):
    """Records, blobs, context nodes and source keys in one transaction, by one call of `ledger_append`.

    An append that is not durable commits with `synchronous_commit = off` for that transaction alone: it
    survives the death of this process, not surely that of the server or the machine. A later durable append
    makes everything before it durable too.
    """

    datastore: LedgerDatastore

    def create_table(self) -> None:
        """Make the tables where they do not exist yet. Raises StoreUnavailableError."""
        self.datastore.create_tables()

    # -- append ----------------------------------------------------------------------------------------

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Insert records with `hashes=` and `attachments=`; give their positions. All or nothing.

        `heads=` maps a session to the seq and hash that its records were linked to: IntegrityError when that
        record is not there, as after a crash of the server that took the last records before they were durable.
        Raises OperationalError when the commit was not acknowledged: it may be there or not, a read tells.
        """
        attachments: Attachments = kwargs.get("attachments", Attachments())
        hashes: Sequence[bytes] = kwargs.get("hashes") or [b""] * len(stored_events)
        columns = (
            [stored.originator_id for stored in stored_events],
            [stored.originator_version for stored in stored_events],
            [stored.topic for stored in stored_events],
            [stored.state for stored in stored_events],
            list(hashes),
        )
        heads = [(session, *head) for session, head in kwargs.get("heads", {}).items() if head[0]]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                last = self._append(columns, heads, attachments)
                return list(range(last - len(stored_events) + 1, last + 1))
            except (OperationalError, InterfaceError) as error:
                # Only what is certain not to be there, nor on its way, may be sent again.
                is_absent = was_undone(error) or self._never_arrived(error, stored_events)
                if attempt == _ATTEMPTS or not is_absent:
                    raise OperationalError(str(error)) from error
                time.sleep(_WAIT_S * attempt)
        raise AssertionError("the last attempt returns or raises")

    def _append(
        self, columns: tuple[list[Any], ...], heads: list[tuple[Any, ...]], attachments: Attachments
    ) -> int:
        blobs = attachments.blobs
        is_large = sum(len(blob.body) for blob in blobs) > _LARGE_BYTES
        parameters = [
            attachments.durable,
            *_columns(heads, 3),
            *columns,
            *_columns([] if is_large else blobs, 5),
            *_columns(attachments.nodes, 4),
            *_columns(attachments.keys, 4),
        ]
        with self.datastore.get_connection() as connection:
            try:
                if is_large:
                    with connection.transaction():
                        connection.execute(LOCK)  # first, so that no two writers wait in a circle
                        for part in _parts(blobs, lambda blob: len(blob.body)):
                            connection.execute(KEEP_BLOBS, _columns(part, 5))
                        return self._call_append(connection, parameters)
                return self._call_append(connection, parameters)
            except psycopg.DatabaseError as error:
                if error.sqlstate == _KEYS_TAKEN:
                    raise KeysTakenError from error
                raise

    @staticmethod
    def _call_append(connection: psycopg.Connection[DictRow], parameters: Sequence[Any]) -> int:
        with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
            row = cursor.execute(APPEND, parameters, prepare=True).fetchone()
        assert row is not None  # a function that returns a number gives one row
        return cast("int", row[0])

    def _never_arrived(self, error: PersistenceError, stored_events: Sequence[StoredEvent]) -> bool:
        """Whether a lost append is surely not there: asked under the lock, after any backend still at it."""
        if not stored_events or not is_lost_connection(error):
            return False
        last = stored_events[-1]
        for attempt in range(1, _ASKS + 1):
            self.datastore.pool.check()
            try:
                with self.datastore.get_connection() as connection, connection.transaction():
                    connection.execute(LOCK)
                    found = connection.execute(
                        "select 1 from stored_events where originator_id = %s and originator_version = %s",
                        (last.originator_id, last.originator_version),
                    ).fetchone()
                return found is None
            except (OperationalError, InterfaceError) as failure:
                if not is_lost_connection(failure):
                    return False  # no connection within the pool's time: the server stays away
                time.sleep(
                    _WAIT_S * attempt
                )  # a server that recovers from a crash loses connections meanwhile
        return False

    # -- read ------------------------------------------------------------------------------------------

    def _read(self, query: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Rows of a query; asked again when the connection is lost, a few times. Raises StoreUnavailableError."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with (
                    self.datastore.get_connection() as connection,
                    connection.cursor(row_factory=tuple_row, binary=True) as cursor,
                ):
                    return cursor.execute(query, parameters, prepare=True).fetchall()
            except PersistenceError as error:
                if attempt == _ATTEMPTS or not is_lost_connection(error):
                    raise StoreUnavailableError(f"the database cannot be read: {error}") from error
                self.datastore.pool.check()  # after a restart of the server, all idle connections are lost
                time.sleep(_WAIT_S * attempt)
        raise AssertionError("the last attempt returns or raises")

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._read(query.replace("?", "%b"), parameters)

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
        order = " desc" if desc else ""
        rows = self._read(
            f"{SELECT_EVENTS}{' and topic = any(%b)' if topics else ''} order by originator_version{order} limit %b",
            (
                originator_id,
                gt or 0,
                2**62 if lte is None else lte,
                *([list(topics)] if topics else []),
                2**62 if limit is None else limit,
            ),
        )
        return [_notification(row) for row in rows]

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
        parameters = [first, 2**62 if stop is None else stop, *([list(topics)] if topics else []), limit]
        rows = self._read(
            f"select {EVENT_COLUMNS} from stored_events where nid >= %b and nid <= %b"  # noqa: S608
            f"{' and topic = any(%b)' if topics else ''} order by nid limit %b",
            parameters,
        )
        return [_notification(row) for row in rows]

    def select_rows(self, after: int, limit: int) -> list[tuple[int, str, int, str, bytes]]:
        """Position, session, seq, name and state of the records after a position."""
        query = f"select {EVENT_COLUMNS} from stored_events where nid > %b order by nid limit %b"  # noqa: S608
        return [(row[0], row[1], row[2], row[3], bytes(row[4])) for row in self._read(query, (after, limit))]

    def max_notification_id(self) -> int | None:
        """The last position; None for an empty ledger."""
        return cast("int | None", self._read("select max(nid) from stored_events")[0][0])

    def scan(self, session: str, seq: int, limit: int) -> list[ScanRow]:
        """Rows for verification, in the order of session and seq, after the given one."""
        rows = self._read(
            "select originator_id, originator_version, nid, originator_id, originator_version, topic, state, hash"
            " from stored_events where (originator_id, originator_version) > (%b, %b)"
            " order by originator_id, originator_version limit %b",
            (session, seq, limit),
        )
        return [ScanRow(*row) for row in rows]

    def find_sessions(self, prefix: str, limit: int) -> list[str]:
        """Session ids that start with the prefix, in order: one index seek for each."""
        return [row[0] for row in self._read(FIND_SESSIONS, {"prefix": prefix, "limit": limit})]

    def get_blob(self, digest: bytes) -> BlobRow | None:
        """A blob's row."""
        rows = self._read("select * from blobs where digest = %b", (digest,))
        return BlobRow(*rows[0]) if rows else None

    def get_blobs(self, digests: Sequence[bytes]) -> Iterator[BlobRow]:
        """Rows of those blobs that are there: their sizes first, then as many at once as memory should hold."""
        sizes = self._read(
            "select digest, octet_length(body) from blobs where digest = any(%b)", (list(digests),)
        )
        for part in _parts(sizes, lambda row: row[1]):
            rows = self._read("select * from blobs where digest = any(%b)", ([row[0] for row in part],))
            yield from map(BlobRow._make, rows)

    def get_nodes(self, nodes: Sequence[bytes]) -> dict[bytes, NodeRow]:
        """Rows of those context nodes that are there."""
        rows = self._read("select * from context_nodes where node = any(%b)", (list(nodes),))
        return {row[0]: NodeRow(*row) for row in rows}

    def get_keys(self, keys: Sequence[bytes]) -> dict[bytes, KeyRow]:
        """Those of the source keys that are in the ledger."""
        if not keys:
            return {}
        rows = self._read("select * from source_keys where key = any(%b)", (list(keys),))
        return {row[0]: KeyRow(*row) for row in rows}

    def check_keys(self, limit: int) -> tuple[int, list[tuple[Any, Any]]]:
        """How many source keys there are; key and seq of those whose seq no session has."""
        count = self._read("select count(*) from source_keys")[0][0]
        return count, [(key, seq) for key, seq in self._read(STRANGE_KEYS, (limit,))]

    def get_meta(self, name: str, default: bytes) -> bytes:
        """A fact about the ledger itself, set to `default` when it was not set before."""
        select = "select value from ledger_meta where name = %b"
        rows = self._read(select, (name,))
        if not rows:
            with self.datastore.get_connection() as connection:
                connection.execute(
                    "insert into ledger_meta values (%b, %b) on conflict do nothing", (name, default)
                )
            rows = self._read(select, (name,))
        return cast("bytes", rows[0][0])

    def check_storage(self) -> list[str]:
        """Which guards of the records are off; and what the extension `amcheck` says, where this user may ask it."""
        complaints = [f"the trigger {name} is gone or disabled" for (name,) in self._read(MISSING_GUARDS)]
        if not self._read("select 1 from pg_extension where extname = 'amcheck'"):
            return complaints
        for (index,) in self._read(INDEXES):
            try:
                with self.datastore.get_connection() as connection:
                    connection.execute("select bt_index_check(%s::regclass, true)", (index,))
            except PersistenceError as error:
                if not isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                    complaints.append(f"{index}: {error}")
        return complaints

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """A subscription that polls: NOTIFY would lock the whole cluster at each commit, and can be lost."""
        return PolledSubscription(self, gt=gt, topics=topics)

    def close(self) -> None:
        """Close every connection."""
        self.datastore.close()


class PostgresLedgerFactory(PostgresFactory):
    """Tells the library to use our recorder, and the database that `LEDGER_URL` names."""

    application_recorder_class = PostgresRecorder

    def __init__(self, env: Any) -> None:
        # Not the constructor between: it asks for a host and a password, which a URL need not have.
        BaseInfrastructureFactory.__init__(self, env)
        self.datastore = LedgerDatastore(self.env["LEDGER_URL"])


def _notification(row: tuple[Any, ...]) -> Notification:
    position, session, seq, name, state = row
    return Notification(session, seq, name, state, position)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any] | None]:
    """One array for each column; none where there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [None] * width


def _parts(blobs: Sequence[_Item], size_of: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Blobs in groups of about `_LARGE_BYTES`: the database refuses a gigabyte in one statement."""
    part: list[_Item] = []
    size = 0
    for blob in blobs:
        part.append(blob)
        size += size_of(blob)
        if size > _LARGE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
