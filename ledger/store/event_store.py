"""Keeps records: append at an expected seq, read a session, follow the whole ledger. The one door to the database."""

import contextlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from eventsourcing.application import Application
from eventsourcing.persistence import IntegrityError, OperationalError, StoredEvent

from ledger.errors import (
    AmbiguousSessionError,
    ConflictError,
    ContentMissingError,
    InputError,
    LedgerError,
    RecordDamagedError,
    RecordNotFoundError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from ledger.events import Draft, Record
from ledger.store.content import NodeRow, unpack_blob
from ledger.store.linking import Head, Linked, Request, SourceKey, link, to_record
from ledger.store.mapper import GENESIS, decode_record, record_hash
from ledger.store.rows import SCHEMA_VERSION, Attachments, KeyRow, KeysTakenError, LedgerRecorder

_HEADS_KEPT = 4096
_COMMIT_TOGETHER = 256
_CHUNK = 1000
_DIGEST = re.compile("(?:[0-9a-f]{2})+")  # a damaged record may name anything
_Key = TypeVar("_Key", int, str)
_Heads = Mapping[str, "Head"]


class EventStore:
    """A ledger in a database. Threads may share it; processes open their own. Use as a context manager or `close()`."""

    def __init__(self, application: Application[str]) -> None:
        self._application = application
        self.recorder = cast(LedgerRecorder, application.recorder)
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._waiting: list[Request] = []
        self._waiting_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._news = threading.Condition()
        self._commits = self._followers = 0
        self.salt = self.recorder.get_meta("salt", secrets.token_bytes(32))
        """Key of all content digests of this ledger, 32 bytes."""
        schema = self.recorder.get_meta("schema", SCHEMA_VERSION)
        if schema != SCHEMA_VERSION:
            raise InputError(
                f"the store has schema {schema.decode(errors='replace')}, this version reads {SCHEMA_VERSION.decode()}"
            )

    def __enter__(self) -> "EventStore":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Give all connections back. Everything acknowledged is already kept."""
        self.recorder.close()
        self._application.close()

    # -- append -----------------------------------------------------------------------------------------------------

    def append(
        self,
        drafts: Mapping[str, Sequence[Draft]],
        *,
        stamp: Callable[[], str],
        expect: Mapping[str, int] | None = None,
        attachments: Attachments = Attachments(),  # noqa: B008 - immutable
        keys: Sequence[SourceKey] = (),
    ) -> list[Record]:
        """Append drafts to one or more sessions, all or nothing; give the records in the order of the drafts.

        `stamp` gives the time of recording. `expect` names the seq that a session must be at: ConflictError otherwise.
        O(1) in the length of the session. Callers in several threads share one commit.
        """
        request = Request(drafts, stamp, expect or {}, attachments, keys)
        with self._waiting_lock:
            self._waiting.append(request)
        with self._commit_lock:
            while not request.done:
                with self._waiting_lock:
                    batch, self._waiting = self._waiting[:_COMMIT_TOGETHER], self._waiting[_COMMIT_TOGETHER:]
                self._commit(batch)
        if request.error is not None:
            raise request.error
        return request.records

    def _commit(self, batch: list[Request]) -> None:
        try:
            while not self._try_commit(batch):
                pass  # a foreign writer was first: who conflicts now is asked again
        except BaseException as error:
            # One poisoned request must not fail the others that wait with it.
            if len(batch) > 1 and isinstance(error, Exception):
                for request in batch:
                    self._commit([request])
            else:
                for request in batch:
                    request.error = error
                if not isinstance(error, Exception):
                    raise
        finally:
            for request in batch:
                request.done = True
        self._commits += 1  # by one thread at a time: the one that commits
        if self._followers:
            with self._news:
                self._news.notify_all()

    def _try_commit(self, batch: list[Request]) -> bool:
        heads: dict[str, Head] = {}
        before: dict[str, Head] = {}
        linked: list[Linked] = []
        attachments: list[Attachments] = []
        key_rows: list[KeyRow] = []
        for request in batch:
            request.error = self._unexpected(request, heads) if request.expect else None
            if request.error is not None:
                continue
            attachments.append(request.attachments)
            for session, drafts in request.drafts.items():
                head = heads.get(session) or before.setdefault(session, self._head(session))
                heads[session] = link(request, session, drafts, head, linked)
                if request.keys:
                    key_rows += [
                        KeyRow(key.key, key.line, head.seq + 1 + key.place, key.check)
                        for key in request.keys
                        if key.session == session
                    ]
        if not attachments:
            return True
        together = _together(attachments, key_rows)
        try:
            positions = self._insert(linked, together, before)
        except IntegrityError:
            for session in heads:
                self._heads.pop(session, None)
            if all(self._head(session) == head for session, head in before.items()):
                raise  # nobody was first: the database refuses the rows themselves
            return False
        for item, position in zip(linked, positions, strict=True):
            item.request.records.append(to_record(item, position))
        for session, head in heads.items():
            self._remember(session, head)
        return True

    def _insert(self, linked: list[Linked], attachments: Attachments, heads: _Heads) -> Sequence[int]:
        stored = [item.stored for item in linked]
        told = {"hashes": [item.hash for item in linked], "heads": heads, "attachments": attachments}
        try:
            return self.recorder.insert_events(stored, **told) or ()
        except OperationalError as error:
            # The acknowledgement may be what was lost. If the last record is there, the whole transaction is.
            if stored and self._kept_position(stored[-1]) is not None:
                return [self._kept_position(item) or 0 for item in stored]
            raise StoreUnavailableError(
                f"the store did not take the records, nothing was written: {error}"
            ) from error

    def _kept_position(self, stored: StoredEvent) -> int | None:
        seq = stored.originator_version
        kept: Any = self.recorder.select_events(str(stored.originator_id), gt=seq - 1, lte=seq)
        return kept[0].id if kept and (kept[0].topic, kept[0].state) == (stored.topic, stored.state) else None

    def _unexpected(self, request: Request, heads: dict[str, Head]) -> ConflictError | None:
        for session, seq in request.expect.items():
            found = (heads.get(session) or self._head(session)).seq
            if found != seq and session not in heads:
                self._heads.pop(session, None)  # what we remember may be behind
                found = self._head(session).seq
            if found != seq:
                return ConflictError(session, seq, found)
        return None

    def _head(self, session: str) -> Head:
        head = self._heads.get(session)
        if head is None:
            last = self.recorder.select_events(session, desc=True, limit=1)
            head = Head(0, GENESIS)
            if last:
                row = last[0]
                head = Head(
                    row.originator_version, record_hash(session, row.originator_version, row.topic, row.state)
                )
            self._remember(session, head)
        return head

    def _remember(self, session: str, head: Head) -> None:
        self._heads[session] = head
        self._heads.move_to_end(session)
        if len(self._heads) > _HEADS_KEPT:
            self._heads.popitem(last=False)

    # -- read -------------------------------------------------------------------------------------------------------

    def head(self, session: str) -> Head:
        """Where the session stands now, as the database says."""
        with self._commit_lock:
            self._heads.pop(session, None)
            return self._head(session)

    def read(
        self, session: str, *, after: int = 0, upto: int | None = None, names: Collection[str] = ()
    ) -> Iterator[Record]:
        """Records of a session in the order of seq, in chunks: memory does not grow with the session.

        With event names, only those; the others are passed over by the database.
        """
        topics = tuple(names)
        while rows := self.recorder.select_events(session, gt=after, lte=upto, limit=_CHUNK, topics=topics):
            for row in rows:
                yield decode_record(row)
            after = _onward(after, rows[-1].originator_version, f"{session}#{after + 1}")

    def record(self, session: str, seq: int) -> Record:
        """One record. Raises RecordNotFoundError."""
        rows = self.recorder.select_events(session, gt=seq - 1, lte=seq)
        if not rows or seq < 1:
            raise RecordNotFoundError(session, seq, self.head(session).seq)
        return decode_record(rows[0])

    def read_all(
        self, *, after: int = 0, names: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[Record]:
        """Records of the whole ledger by position, in chunks; only those of the given event names, if any."""
        left = limit
        while left is None or left > 0:
            size = _CHUNK if left is None else min(_CHUNK, left)
            rows = self.recorder.select_notifications(after, size, None, names, inclusive_of_start=False)
            if not rows:
                return
            for row in rows:
                yield decode_record(row)
            after = _onward(after, rows[-1].id, f"position {after + 1}")
            left = None if left is None else left - len(rows)

    def last_position(self) -> int:
        """The last position in the ledger, 0 when it is empty."""
        return self.recorder.max_notification_id() or 0

    def follow(
        self, *, after: int = 0, stop: threading.Event | None = None, poll_s: float = 0.05
    ) -> Iterator[Record]:
        """Every record after a position, those still to come included, until `stop` is set.

        Appends of this process wake it; those of others are seen at the next poll. None is missed: positions become
        visible in order.
        """
        while stop is None or not stop.is_set():
            seen = self._commits
            for record in self.read_all(after=after):
                yield record
                after = record.position
            with self._news:
                self._followers += 1
                self._news.wait_for(lambda: self._commits != seen, poll_s)  # noqa: B023 - called here and now
                self._followers -= 1

    def wait(self, session: str, after: int, timeout_s: float, *, poll_s: float = 0.2) -> bool:
        """Wait until a session has a record after a seq; False when the time was over first.

        Appends of this process wake it; those of others are seen at the next poll.
        """
        ends_at = time.monotonic() + timeout_s
        while True:
            seen = self._commits
            if self.recorder.select_events(session, gt=after, limit=1):
                return True
            left = ends_at - time.monotonic()
            if left <= 0:
                return False
            with self._news:
                self._followers += 1
                self._news.wait_for(lambda: self._commits != seen, min(poll_s, left))  # noqa: B023 - called here
                self._followers -= 1

    def resolve(self, name: str) -> str:
        """The session whose id is `name` or starts with it. Raises SessionNotFoundError, AmbiguousSessionError."""
        found = self.recorder.find_sessions(name, 11) if name else []
        if not found:
            raise SessionNotFoundError(name)
        if name in found or all(other.startswith(found[0]) for other in found):
            return found[0]  # the shortest: sub-agent sessions extend the id of their parent
        raise AmbiguousSessionError(name, found[:10])

    def sessions(self) -> Iterator[str]:
        """Ids of all sessions, in order."""
        after = ""
        while (key := self.recorder.next_key(after, 2**62)) is not None:
            after = _onward(after, key[0], f"the session after {after!r}")
            yield after

    # -- content ----------------------------------------------------------------------------------------------------

    def content(self, digest: str) -> bytes:
        """Content of a blob. Raises ContentMissingError, or LedgerError when it is damaged."""
        row = self.recorder.get_blob(bytes.fromhex(digest))
        if row is None:
            raise ContentMissingError("blob", digest)
        try:
            return unpack_blob(row)
        except (ValueError, TypeError, OverflowError) as error:
            raise LedgerError(f"blob {digest} is damaged: {error}") from error

    def contents(self, digests: Collection[str]) -> dict[str, bytes]:
        """Contents of those blobs that are there and sound, by digest: far quicker than one by one.

        All of them are in memory at once: ask for as many as that bears.
        """
        found: dict[str, bytes] = {}
        try:
            keys = [bytes.fromhex(digest) for digest in digests]  # what is spelled otherwise is not found
        except ValueError:
            keys = [bytes.fromhex(digest) for digest in digests if _DIGEST.fullmatch(digest)]
        try:
            for row in self.recorder.get_blobs(keys):
                try:
                    content = unpack_blob(row)
                except (ValueError, TypeError, OverflowError):
                    continue  # damaged
                found[row.digest.hex()] = content
        except StoreUnavailableError:  # a damaged page: what lies beside it can still be read by itself
            for digest in {key.hex() for key in keys} - found.keys():
                with contextlib.suppress(LedgerError):
                    found[digest] = self.content(digest)
        return found

    def context(self, node: str) -> list[str]:
        """Digests of the messages of a context, first message first. Raises ContentMissingError."""
        rows = self.context_nodes(node)
        return [row.message.hex() for row in rows]

    def context_nodes(self, node: str) -> list[NodeRow]:
        """Nodes of a context, first message first. Raises ContentMissingError when one is not there."""
        rows = self.recorder.get_chain(bytes.fromhex(node))
        if not rows or rows[0].parent is not None or len(rows) != rows[-1].depth:
            missing = (rows[0].parent or b"").hex() if rows else node
            raise ContentMissingError("context node", missing)
        return rows

    def known_keys(self, keys: Sequence[bytes]) -> dict[bytes, KeyRow]:
        """Those of the source keys whose records are in the ledger."""
        return self.recorder.get_keys(keys)


def _together(parts: list[Attachments], keys: list[KeyRow]) -> Attachments:
    if len(parts) == 1:
        return parts[0]._replace(keys=keys) if keys else parts[0]
    return Attachments(
        blobs=[row for part in parts for row in part.blobs],
        nodes=[row for part in parts for row in part.nodes],
        keys=keys,
        durable=any(part.durable for part in parts),
    )


def _onward(before: _Key, now: _Key, place: str) -> _Key:
    """Where to read on. A damaged index could lead in a circle."""
    if type(now) is not type(before) or now <= before:
        raise RecordDamagedError(place, "the index of the records is not in order")
    return now


__all__ = ["EventStore", "Head", "KeysTakenError", "SourceKey"]
