"""Read: in order, in chunks, followed while others write, found by a prefix, and honest about the unknown."""

import threading

import orjson
import pytest
from eventsourcing.persistence import StoredEvent

from ledger.errors import (
    AmbiguousSessionError,
    ContentMissingError,
    LedgerError,
    RecordDamagedError,
    RecordNotFoundError,
    SessionNotFoundError,
    UnknownEventError,
)
from ledger.events import Record, UnknownEvent
from ledger.store import EventStore, open_store, verify
from ledger.store.mapper import record_hash
from tests.ledger.store.databases import STAMP, Database, attach, call_ids, note, stamp, started


def test_long_sessions_are_read_in_chunks(store: EventStore) -> None:
    count = 2_345
    store.append({"a": [started(str(number)) for number in range(1, count + 1)]}, stamp=stamp)
    assert call_ids(store, "a") == [str(number) for number in range(1, count + 1)]
    assert [record.seq for record in store.read("a", after=1_990, upto=2_010)] == list(range(1_991, 2_011))
    assert [record.seq for record in store.read("a", upto=1_000)] == list(range(1, 1_001))
    assert list(store.read("a", after=count)) == []
    assert [record.position for record in store.read_all(after=10, limit=1_500)] == list(range(11, 1_511))
    assert list(store.read_all(limit=0)) == []


def test_the_whole_ledger_is_read_by_name(store: EventStore) -> None:
    store.append({"a": [started("1"), note(store, b""), started("2")]}, stamp=stamp)
    assert [record.seq for record in store.read_all(names=["tool_call.started"])] == [1, 3]
    assert [record.seq for record in store.read_all(names=["tool_call.started"], after=1)] == [3]
    assert [record.seq for record in store.read_all(names=["no.such", "review.note_written"])] == [2]


def test_one_record_or_the_reason_why_not(store: EventStore) -> None:
    (kept,) = store.append({"a": [started("1")]}, stamp=stamp)
    assert store.record("a", 1) == kept
    for seq in (0, 2, -1):
        with pytest.raises(RecordNotFoundError, match="the session has records 1 to 1"):
            store.record("a", seq)


def test_sessions_are_found_by_prefix(store: EventStore) -> None:
    for session in ("abc1", "abc1/agent", "abc1/agent/deeper", "abx", "b%", "bx", "Z", "ü", "\U0001f600"):
        store.append({session: [started("1")]}, stamp=stamp)
    assert list(store.sessions()) == [
        "Z", "abc1", "abc1/agent", "abc1/agent/deeper", "abx", "b%", "bx", "ü", "\U0001f600",
    ]  # fmt: skip
    assert store.resolve("abc") == "abc1"  # all others extend it
    assert store.resolve("abc1") == "abc1"
    assert store.resolve("abc1/") == "abc1/agent"
    assert store.resolve("abc1/agent/") == "abc1/agent/deeper"
    assert store.resolve("b%") == "b%"  # not a pattern
    assert store.resolve("\U0001f600") == "\U0001f600"
    with pytest.raises(AmbiguousSessionError) as caught:
        store.resolve("ab")
    assert caught.value.candidates == ["abc1", "abc1/agent", "abc1/agent/deeper", "abx"]
    for missing in ("", "_", "abc1/agent/deeper/", "z", "%"):
        with pytest.raises(SessionNotFoundError):
            store.resolve(missing)


def test_no_more_session_ids_are_looked_up_than_asked_for(store: EventStore) -> None:
    store.append({f"s{number:02}": [started("1")] for number in range(30)}, stamp=stamp)
    assert store.recorder.find_sessions("s", 11) == [f"s{number:02}" for number in range(11)]
    assert store.recorder.find_sessions("s2", 11) == [f"s{number}" for number in range(20, 30)]
    with pytest.raises(AmbiguousSessionError):
        store.resolve("s")


def _follow(store: EventStore, count: int, into: list[Record], poll_s: float) -> None:
    for record in store.follow(poll_s=poll_s):
        into.append(record)
        if len(into) == count:
            return


def test_a_follower_is_woken_by_appends_of_its_own_process(store: EventStore) -> None:
    """With a poll of a day, only the wake-up can bring what is appended later."""
    seen: list[Record] = []
    store.append({"a": [started("0")]}, stamp=stamp)
    follower = threading.Thread(target=_follow, args=(store, 201, seen, 86_400.0))
    follower.start()
    for number in range(1, 101):
        store.append({"a": [started(f"{number}"), started(f"{number}b")]}, stamp=stamp)
    follower.join()
    assert [record.position for record in seen] == list(range(1, 202))


def test_a_follower_sees_appends_of_other_stores(store: EventStore, database: Database) -> None:
    seen: list[Record] = []
    follower = threading.Thread(target=_follow, args=(store, 50, seen, 0.01))
    follower.start()
    with open_store(database.url) as other:
        for number in range(50):
            other.append({f"s{number % 3}": [started(f"{number}")]}, stamp=stamp)
    follower.join()
    assert [record.position for record in seen] == list(range(1, 51))


def test_a_follower_stops_when_told(store: EventStore) -> None:
    stop = threading.Event()
    store.append({"a": [started("1")]}, stamp=stamp)
    seen = []
    for record in store.follow(stop=stop):
        seen.append(record.seq)
        stop.set()
    assert seen == [1]


def _insert_foreign(store: EventStore, name: str, fields: dict[str, object]) -> None:
    """A record as a newer version of the ledger would write it."""
    previous = store.head("a")
    state = orjson.dumps(
        {"data": {"x": 1}, "grade": "wire", "prev": previous.hash.hex(), "recorded_at": STAMP} | fields
    )
    seq = previous.seq + 1
    from_future = [StoredEvent("a", seq, name, state)]
    store.recorder.insert_events(from_future, hashes=[record_hash("a", seq, name, state)])


def test_an_unknown_event_is_shown_if_it_may_be_ignored(store: EventStore) -> None:
    store.append({"a": [started("1")]}, stamp=stamp)
    _insert_foreign(store, "weather.changed", {"v": 3, "ignorable": True})
    _insert_foreign(store, "tool_call.started", {"v": 99, "ignorable": True})
    store.append({"a": [started("2")]}, stamp=stamp)
    records = list(store.read("a"))
    assert records[1].event == UnknownEvent(stored_type="weather.changed", stored_version=3, data={"x": 1})
    assert records[1].type == "weather.changed"
    assert isinstance(records[2].event, UnknownEvent)
    assert records[3].seq == 4
    assert verify(store).ok


@pytest.mark.parametrize("name", ["weather.changed", "tool_call.started"])
def test_an_unknown_event_is_refused_if_it_may_not_be_ignored(store: EventStore, name: str) -> None:
    store.append({"a": [started("1")]}, stamp=stamp)
    _insert_foreign(store, name, {"v": 99})
    with pytest.raises(UnknownEventError, match=f"a#2 is a '{name}' of version 99"):
        list(store.read("a"))
    assert verify(store).ok  # it is intact, all the same


def test_bytes_that_are_no_record_are_named(store: EventStore) -> None:
    state = b"{}"
    store.recorder.insert_events([StoredEvent("a", 1, "tool_call.started", state)])
    with pytest.raises(RecordDamagedError, match="a#1 cannot be read as a record"):
        list(store.read("a"))


def test_missing_content_is_named(store: EventStore, database: Database) -> None:
    attachments, nodes = attach(store, b"one", b"two", b"three")
    store.append(
        {"a": [note(store, b"one")]},
        stamp=stamp,
        attachments=attachments._replace(nodes=[nodes[0], nodes[2]]),
    )
    with pytest.raises(ContentMissingError, match=nodes[1].node.hex()):
        store.context(nodes[2].node.hex())
    with pytest.raises(ContentMissingError, match=nodes[1].node.hex()):
        store.context(nodes[1].node.hex())
    digest = attachments.blobs[0].digest
    database.execute("delete from blobs where digest = ?", (digest,))  # an erasure does that
    with pytest.raises(ContentMissingError, match=digest.hex()):
        store.content(digest.hex())
    assert [problem.kind for problem in verify(store).problems] == ["blob_missing"]


def test_damaged_content_is_named(store: EventStore) -> None:
    attachments, _ = attach(store, b"content")
    (blob,) = attachments.blobs
    store.append(
        {"a": [started("1")]}, stamp=stamp, attachments=attachments._replace(blobs=[blob._replace(size=6)])
    )
    with pytest.raises(LedgerError, match="is damaged"):
        store.content(blob.digest.hex())


def test_a_context_that_runs_in_a_circle_ends(store: EventStore) -> None:
    attachments, nodes = attach(store, b"one", b"two")
    circle = [nodes[0]._replace(parent=nodes[1].node, depth=2**40), nodes[1]._replace(depth=2**40)]
    store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments._replace(nodes=circle))
    with pytest.raises(ContentMissingError):
        store.context(nodes[1].node.hex())


def test_a_long_context_is_read_without_recursion(store: EventStore) -> None:
    contents = [str(number).encode() for number in range(3_000)]
    attachments, nodes = attach(store, *contents)
    store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments)
    assert len(store.context(nodes[-1].node.hex())) == 3_000
