"""Nothing is rewritten: the database itself refuses to update, delete or truncate what is kept."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from ledger.events import Draft
from ledger.events.model_call import ModelCallRequested
from ledger.store import EventStore, SourceKey, open_store, verify
from tests.ledger.store.databases import Database, attach, note, stamp, started

_REFUSED = sqlite3.IntegrityError | psycopg.errors.RestrictViolation


@pytest.fixture
def filled(store: EventStore) -> EventStore:
    """A ledger with a record, a blob and two context nodes."""
    attachments, _ = attach(store, b"content", b"more")
    store.append({"a": [note(store, b"content"), started("1")]}, stamp=stamp, attachments=attachments)
    return store


@pytest.mark.parametrize(
    "statement",
    [
        "update stored_events set state = state",
        "update stored_events set nid = nid + 10",
        "update stored_events set originator_version = 9 where originator_version = 1",
        "delete from stored_events",
        "delete from stored_events where originator_version = 2",
        "update blobs set body = checksum",
        "update blobs set size = size + 1",
        "update context_nodes set depth = 1",
        "delete from context_nodes",
    ],
)
def test_changing_what_is_kept_is_refused(filled: EventStore, database: Database, statement: str) -> None:
    before = list(filled.read_all())
    with pytest.raises(Exception, match=r"never|refused") as caught:
        database.execute(statement)
    assert isinstance(caught.value, _REFUSED)
    assert list(filled.read_all()) == before
    assert verify(filled).ok


def test_sqlite_replacing_a_record_is_refused(tmp_path: Path) -> None:
    """`insert or replace` deletes without asking the triggers of deletion."""
    database = Database(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with open_store(database.url) as store:
        kept = store.append({"a": [started("1"), started("2")]}, stamp=stamp)
        for columns in ("nid, 'other', 9", "null, originator_id, originator_version", "1, originator_id, 2"):
            with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
                database.execute(
                    f"insert or replace into stored_events select {columns}, topic, state, hash"
                    " from stored_events"
                )
        assert list(store.read_all()) == kept
        assert verify(store).ok


def test_sqlite_replacing_content_does_nothing(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with open_store(database.url) as store:
        attachments, _ = attach(store, b"content", b"more")
        store.append({"a": [note(store, b"content")]}, stamp=stamp, attachments=attachments)
        database.execute("replace into blobs select digest, size, codec, x'', checksum from blobs")
        database.execute("replace into context_nodes select node, parent, message, 9 from context_nodes")
        assert store.content(attachments.blobs[0].digest.hex()) == b"content"
        assert store.recorder.get_node(attachments.nodes[1].node) == attachments.nodes[1]
        assert verify(store).ok


@pytest.mark.parametrize("table", ["stored_events", "blobs", "context_nodes"])
def test_postgresql_truncating_is_refused(postgres_database: str, table: str) -> None:
    database = Database(postgres_database)
    with open_store(database.url) as store:
        attachments, _ = attach(store, b"content")
        store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments)
        with pytest.raises(psycopg.errors.RestrictViolation):
            database.execute(f"truncate {table} cascade")
        with pytest.raises(psycopg.errors.RestrictViolation):
            database.execute(
                "insert into stored_events select * from stored_events on conflict (nid) do update set state = ''"
            )
        assert verify(store).records == 1


def test_a_blob_can_be_erased(filled: EventStore, database: Database) -> None:
    database.execute("delete from blobs")
    assert database.execute("select count(*) from blobs") == [(0,)]
    assert len(list(filled.read_all())) == 2


def test_a_guard_that_was_taken_away_is_missed(filled: EventStore, database: Database) -> None:
    if database.url.startswith("sqlite:"):
        database.execute("drop trigger records_are_not_deleted")
        expected = "trigger records_are_not_deleted is not there as it was made"
    else:
        database.execute("alter table stored_events disable trigger records_are_not_changed")
        expected = "the trigger records_are_not_changed is gone or disabled"
    assert [problem.detail for problem in verify(filled).problems] == [expected]


def test_one_session_shows_the_content_that_it_misses(filled: EventStore, database: Database) -> None:
    filled.append({"b": [started("2")]}, stamp=stamp)
    database.execute("delete from blobs")
    assert [(one.kind, one.session, one.seq) for one in verify(filled, "a").problems] == [
        ("blob_missing", "a", 1)
    ]
    assert verify(filled, "b").ok


def test_source_keys_are_checked_and_counted(filled: EventStore, database: Database) -> None:
    keys = [SourceKey("a", 0, bytes([number]) * 16, 1, 7) for number in range(3)]
    filled.append({"a": [started("2")]}, stamp=stamp, keys=keys)
    assert (verify(filled).source_keys, verify(filled).ok) == (3, True)
    database.execute("update source_keys set seq = 99 where key = ?", (keys[1].key,))
    (problem,) = verify(filled).problems
    assert (problem.kind, problem.session) == ("source_key_wrong", None)
    assert problem.detail == f"source key {keys[1].key.hex()} names seq 99, which no session has"


def test_content_is_checked_whatever_its_amount(store: EventStore) -> None:
    """More than is asked for at once, in one context, with a blob that is too large for company."""
    contents = [b"%d" % number for number in range(1201)]
    attachments, nodes = attach(store, *contents, b"large" * 4_000_000)
    asked = ModelCallRequested(
        call_id="1",
        protocol="anthropic.messages",
        completeness="body",
        context=nodes[-1].node.hex(),
        context_added=len(nodes),
    )
    store.append({"a": [Draft(asked)]}, stamp=stamp, attachments=attachments)
    assert verify(store).ok
    assert {row.digest for row in store.recorder.get_blobs([row.digest for row in attachments.blobs])} == {
        row.digest for row in attachments.blobs
    }
    assert store.recorder.get_nodes([node.node for node in nodes]) == {node.node: node for node in nodes}
    assert list(store.recorder.get_blobs([b"none"])) == [] and store.recorder.get_nodes([b"none"]) == {}


def test_postgresql_indexes_are_checked_where_the_extension_is_installed(postgres_database: str) -> None:
    database = Database(postgres_database)
    with open_store(database.url) as store:
        store.append({"a": [started("1")]}, stamp=stamp)
        database.execute("create extension if not exists amcheck")
        assert store.recorder.check_storage() == []
