"""The database took an append and the answer was lost, or it never took it: both end with every record once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from eventsourcing.persistence import OperationalError, StoredEvent

from ledger.errors import StoreUnavailableError
from ledger.store import EventStore, SourceKey, open_store, verify
from ledger.store.postgres_recorder import PostgresRecorder
from ledger.store.rows import LedgerRecorder
from tests.ledger.store.cut_wire import CutWire
from tests.ledger.store.databases import Database, attach, call_ids, note, stamp, started


class _Unreliable:
    """A recorder whose answer is lost once: after the commit, or with the append before it."""

    def __init__(self, recorder: LedgerRecorder, *, commits: bool) -> None:
        self._recorder = recorder
        self._commits = commits
        self._fails = True

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        if not self._fails:
            return self._recorder.insert_events(stored_events, **kwargs)
        self._fails = False
        if self._commits:
            self._recorder.insert_events(stored_events, **kwargs)
        raise OperationalError("the connection was lost")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)


def test_a_commit_without_an_answer_is_recognised(store: EventStore) -> None:
    store.append({"a": [started("0")]}, stamp=stamp)
    attachments, _ = attach(store, b"content")
    store.recorder = _Unreliable(store.recorder, commits=True)
    records = store.append(
        {"a": [started("1"), note(store, b"content")], "b": [started("2")]},
        stamp=stamp,
        attachments=attachments,
        keys=[SourceKey("a", 0, b"k" * 16, 1, 1)],
    )
    assert [(record.session, record.seq, record.position) for record in records] == [
        ("a", 2, 2),
        ("a", 3, 3),
        ("b", 1, 4),
    ]
    assert list(store.read("a", after=1)) == records[:2]
    store.append({"a": [started("3")]}, stamp=stamp)
    assert store.last_position() == 5
    assert verify(store).ok


def test_an_append_that_was_not_taken_says_so(store: EventStore) -> None:
    store.append({"a": [started("0")]}, stamp=stamp)
    store.recorder = _Unreliable(store.recorder, commits=False)
    with pytest.raises(StoreUnavailableError, match="nothing was written: the connection was lost"):
        store.append({"a": [started("1")]}, stamp=stamp)
    assert call_ids(store, "a") == ["0"]
    store.append({"a": [started("2")]}, stamp=stamp)
    assert call_ids(store, "a") == ["0", "2"]
    assert verify(store).ok


@pytest.fixture
def wire(postgres_database: str) -> Iterator[CutWire]:
    """A wire to an empty PostgreSQL database that can be cut."""
    parts = urlsplit(postgres_database)
    assert parts.hostname is not None
    with CutWire(parts.hostname, parts.port or 5432) as cut_wire:
        yield cut_wire


@pytest.fixture
def wired(postgres_database: str, wire: CutWire) -> Iterator[EventStore]:
    """A ledger behind that wire."""
    parts = urlsplit(postgres_database)
    user = parts.netloc.rpartition("@")[0]
    url = parts._replace(netloc=f"{user}@127.0.0.1:{wire.port}").geturl()
    with open_store(url) as opened:
        opened.append({"a": [started("0")]}, stamp=stamp)
        yield opened


@pytest.mark.parametrize("cut", [CutWire.lose_answer, CutWire.lose_question], ids=["answer", "question"])
def test_postgresql_a_cut_wire_loses_and_doubles_nothing(
    wired: EventStore, wire: CutWire, cut: Callable[[CutWire, bytes], None]
) -> None:
    attachments, _ = attach(wired, b"content", durable=True)
    for number in range(1, 6):
        cut(wire, b"lost-in-round-%d" % number)
        key = SourceKey("a", 0, number.to_bytes(16, "big"), 1, 1)
        drafts = [started(f"lost-in-round-{number}"), note(wired, b"content")]
        records = wired.append({"a": drafts}, stamp=stamp, attachments=attachments, keys=[key])
        assert wire.cuts == number
        assert [record.position for record in records] == [2 * number, 2 * number + 1]
    assert wired.last_position() == 11
    assert verify(wired).ok


def test_postgresql_a_wire_that_stays_cut_is_an_error_and_heals(wired: EventStore, wire: CutWire) -> None:
    recorder = wired.recorder
    assert isinstance(recorder, PostgresRecorder)
    patience_s, recorder.datastore.pool.timeout = recorder.datastore.pool.timeout, 0.2
    wire.stop_listening()
    with pytest.raises(StoreUnavailableError):
        wired.append({"a": [started("1")]}, stamp=stamp)
    with pytest.raises(StoreUnavailableError):
        list(wired.read("a"))
    recorder.datastore.pool.timeout = patience_s * 6  # the pool waits longer from one try to the next
    wire.listen_again()
    wired.append({"a": [started("2")]}, stamp=stamp)
    assert call_ids(wired, "a") == ["0", "2"]
    assert verify(wired).ok


def test_postgresql_connections_that_the_server_closed_are_replaced(
    postgres_database: str, wired: EventStore
) -> None:
    for number in range(1, 4):
        with psycopg.connect(postgres_database, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        if number % 2:
            wired.append({"a": [started(str(number))]}, stamp=stamp)
        else:
            assert call_ids(wired, "a") == ["0", "1"]
    assert call_ids(wired, "a") == ["0", "1", "3"]
    assert verify(wired).ok


def test_postgresql_records_that_a_crash_of_the_server_took_leave_no_hole(postgres_database: str) -> None:
    """What was not durable can be gone after a crash of the server; the writer that remembers it looks again."""
    database = Database(postgres_database)
    with open_store(database.url) as store, open_store(database.url) as other:
        store.append({"a": [started(str(number)) for number in range(1, 6)]}, stamp=stamp)
        for kept in ((1, 2, 3), (1, 2, 3, 10)):  # gone; gone, and others in their places
            database.execute("alter table stored_events disable trigger user")
            database.execute("delete from stored_events where originator_version > 3")
            database.execute("alter table stored_events enable trigger user")
            if len(kept) == 4:
                other.append({"a": [started("10")]}, stamp=stamp)
            store.append({"a": [started("6")]}, stamp=stamp)
            assert call_ids(store, "a") == [*map(str, kept), "6"]
            assert verify(store).ok
