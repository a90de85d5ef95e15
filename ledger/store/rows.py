"""What every recorder (SQLite, PostgreSQL) must offer beyond the library's interface, and the rows it takes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from eventsourcing.persistence import Notification, StoredEvent

from ledger.store.content import BlobRow, NodeRow

SCHEMA_VERSION = b"1"
"""Version of the tables, kept in `ledger_meta`."""

STORE_IS_CLOSED = "the store is closed"
"""What StoreUnavailableError says after `close`."""


class KeyRow(NamedTuple):
    """Says which source record a stored record came from, so that a second import adds nothing."""

    key: bytes
    """16-byte digest of session and native identity."""
    line: int
    """Line of the source record, 0 where there are no lines."""
    seq: int
    """Seq of the first record made from it."""
    check: int
    """64-bit check of the source record's bytes: the same identity with other bytes is not the same record."""


class Attachments(NamedTuple):
    """What commits in the same transaction as the records."""

    blobs: Sequence[BlobRow] = ()
    nodes: Sequence[NodeRow] = ()
    keys: Sequence[KeyRow] = ()
    durable: bool = False
    """Whether the commit must survive the death of the machine, not only of the process."""


class ScanRow(NamedTuple):
    """A record as verification wants it: where the index has it, and what its own row says.

    The types are those that were written. In a damaged database each may be another; None where there is no row.
    """

    key_session: str
    """Session in the index."""
    key_seq: int
    """Seq in the index."""
    position: int
    """Position."""
    session: str
    """Session in the row."""
    seq: int
    """Seq in the row."""
    name: str
    """Name of the event."""
    state: bytes
    """The record's bytes."""
    hash: bytes
    """Hash stored with it."""


class KeysTakenError(Exception):
    """Another importer recorded one of the source records first; nothing was written."""


class LedgerRecorder(Protocol):
    """The interface that the conformance suite tests on both databases."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Insert records (`hashes=` one per record) with `attachments=`; give positions. All or nothing.

        `heads=` maps each session to the seq and hash that the first of its new records follows.
        """

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

    def select_rows(self, after: int, limit: int) -> list[tuple[int, str, int, str, bytes]]:
        """Position, session, seq, name and state of the records after a position: what costs least to read."""

    def max_notification_id(self) -> int | None:
        """The last position; None or 0 for an empty ledger."""

    def scan(self, session: str, seq: int, limit: int) -> list[ScanRow]:
        """Rows for verification, in the order of session and seq, after the given one."""

    def next_key(self, session: str, seq: int) -> tuple[str, int] | None:
        """Session and seq of the record after the given one, by the index alone."""

    def count_positions(self) -> tuple[int, int, int]:
        """Number of records, lowest and highest position."""

    def find_gaps(self, limit: int) -> list[tuple[int, int]]:
        """First and last position of each hole in the positions, in order."""

    def find_sessions(self, prefix: str, limit: int) -> list[str]:
        """Session ids that start with the prefix, in order."""

    def get_blob(self, digest: bytes) -> BlobRow | None:
        """A blob's row."""

    def get_blobs(self, digests: Sequence[bytes]) -> Iterator[BlobRow]:
        """Rows of those blobs that are there, in any order. A few round trips for hundreds; memory stays bounded."""

    def get_nodes(self, nodes: Sequence[bytes]) -> dict[bytes, NodeRow]:
        """Rows of those context nodes that are there."""

    def list_blobs(self, after: bytes, limit: int) -> list[bytes]:
        """Digests of blobs, in order, after the given one."""

    def list_nodes(self, after: bytes, limit: int) -> list[bytes]:
        """Digests of context nodes, in order, after the given one."""

    def get_node(self, node: bytes) -> NodeRow | None:
        """A context node's row."""

    def get_chain(self, node: bytes) -> list[NodeRow]:
        """The context that ends at this node, first message first; shorter than its depth where nodes are missing."""

    def get_keys(self, keys: Sequence[bytes]) -> dict[bytes, KeyRow]:
        """Those of the source keys that are in the ledger."""

    def check_keys(self, limit: int) -> tuple[int, list[tuple[Any, Any]]]:
        """How many source keys there are; key and seq of those whose seq no session has, as far as the limit."""

    def get_meta(self, name: str, default: bytes) -> bytes:
        """A fact about the ledger itself, set to `default` when it was not set before."""

    def check_storage(self) -> list[str]:
        """What the database says about its own files; empty when it has no complaint."""

    def close(self) -> None:
        """Give all connections back."""
