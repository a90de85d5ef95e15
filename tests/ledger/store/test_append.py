"""Append: all or nothing, at the expected seq, chained, with its content and its source keys."""

import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest
from eventsourcing.persistence import StoredEvent

from ledger.errors import ConflictError, ContentMissingError
from ledger.events import Draft, Sibling
from ledger.events.tool_call import ToolCallStarted
from ledger.store import Attachments, EventStore, KeysTakenError, SourceKey, open_store, verify
from ledger.store.rows import LedgerRecorder
from tests.ledger.store.databases import STAMP, Database, attach, call_ids, note, stamp, started


def test_records_have_seqs_positions_and_links(store: EventStore) -> None:
    first = store.append({"a": [started("1"), started("2")]}, stamp=stamp)
    second = store.append({"b": [started("3")]}, stamp=stamp)
    third = store.append({"a": [started("4")]}, stamp=stamp)

    records = [*first, *second, *third]
    assert [(record.session, record.seq, record.position) for record in records] == [
        ("a", 1, 1),
        ("a", 2, 2),
        ("b", 1, 3),
        ("a", 3, 4),
    ]
    assert first[0].previous == second[0].previous == "0" * 64
    assert first[1].previous == first[0].hash
    assert third[0].previous == first[1].hash
    assert {record.recorded_at for record in records} == {STAMP}
    assert list(store.read("a")) == [*first, *third]
    assert list(store.read_all()) == records
    assert store.last_position() == 4
    assert verify(store).ok


def test_an_empty_ledger_answers(store: EventStore) -> None:
    assert list(store.read("a")) == []
    assert list(store.read_all()) == []
    assert list(store.sessions()) == []
    assert store.last_position() == 0
    assert store.head("a").seq == 0
    assert store.recorder.count_positions() == (0, 0, 0)
    assert verify(store).ok


def test_several_sessions_in_one_append(store: EventStore) -> None:
    drafts = {"parent": [started("1"), started("2")], "child": [started("3")]}
    records = store.append(drafts, stamp=stamp, expect={"parent": 0, "child": 0})
    assert [(record.session, record.seq) for record in records] == [
        ("parent", 1),
        ("parent", 2),
        ("child", 1),
    ]

    with pytest.raises(ConflictError):
        store.append({"parent": [started("4")], "child": [started("5")]}, stamp=stamp, expect={"child": 0})
    assert call_ids(store, "parent") == ["1", "2"]
    assert call_ids(store, "child") == ["3"]


def test_a_cause_inside_the_same_append_becomes_a_seq(store: EventStore) -> None:
    store.append({"a": [started("1")]}, stamp=stamp)
    effect = Draft(ToolCallStarted(call_id="3"), cause=Sibling(0))
    records = store.append({"a": [started("2"), effect]}, stamp=stamp)
    assert records[1].cause == 2
    assert store.record("a", 3).cause == 2


def test_expectations_are_kept_or_refused(store: EventStore) -> None:
    store.append({"a": [started("1")]}, stamp=stamp, expect={"a": 0})
    with pytest.raises(ConflictError) as caught:
        store.append({"a": [started("2")]}, stamp=stamp, expect={"a": 0})
    assert (caught.value.session, caught.value.expected, caught.value.found) == ("a", 0, 1)
    store.append({"a": [started("3")]}, stamp=stamp, expect={"a": 1})
    assert call_ids(store, "a") == ["1", "3"]


def test_expectations_see_what_others_wrote_meanwhile(store: EventStore, database: Database) -> None:
    store.append({"a": [started("1")]}, stamp=stamp)
    with open_store(database.url) as other:
        other.append({"a": [started("2")]}, stamp=stamp)
        with pytest.raises(ConflictError):  # what this store remembers is the seq that is expected
            store.append({"a": [started("3")]}, stamp=stamp, expect={"a": 1})
        other.append({"a": [started("4")]}, stamp=stamp)
        store.append({"a": [started("5")]}, stamp=stamp, expect={"a": 3})  # what it remembers is older
        other.append({"a": [started("6")]}, stamp=stamp)  # and no expectation: links behind the newest
    assert call_ids(store, "a") == ["1", "2", "4", "5", "6"]
    assert verify(store).ok


def test_content_commits_with_its_record(store: EventStore, database: Database) -> None:
    contents = (b"first", b"second " * 100, b"", b"nul \x00 and \xff\xfe")
    attachments, nodes = attach(store, *contents)
    store.append({"a": [note(store, content) for content in contents]}, stamp=stamp, attachments=attachments)
    with open_store(database.url) as other:
        assert other.salt == store.salt
        for blob, content in zip(attachments.blobs, contents, strict=True):
            assert other.content(blob.digest.hex()) == content
        assert other.context(nodes[-1].node.hex()) == [blob.digest.hex() for blob in attachments.blobs]
        assert other.context(nodes[0].node.hex()) == [attachments.blobs[0].digest.hex()]
        assert other.recorder.get_node(nodes[1].node) == nodes[1]
        assert verify(other).ok


def test_equal_content_is_kept_once(store: EventStore, database: Database) -> None:
    for session in ("a", "b"):
        attachments, _ = attach(store, b"the same", b"text")
        store.append({session: [note(store, b"the same")]}, stamp=stamp, attachments=attachments)
    assert database.execute("select count(*) from blobs") == [(2,)]
    assert database.execute("select count(*) from context_nodes") == [(2,)]


def test_content_larger_than_a_statement_may_be(store: EventStore) -> None:
    contents = [bytes([number]) + bytes(range(256)) * 40_000 for number in range(4)]
    packed = [
        blob._replace(codec=0, body=content)
        for content, blob in zip(contents, attach(store, *contents)[0].blobs, strict=True)
    ]
    attachments = Attachments(packed)  # 40 MB, as they are when they do not compress
    store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments)
    for blob, content in zip(packed, contents, strict=True):
        kept = store.recorder.get_blob(blob.digest)
        assert kept is not None
        assert kept.body == content


class _Failing:
    """A recorder of which the database refuses one record, after content and keys are written."""

    def __init__(self, recorder: LedgerRecorder) -> None:
        self._recorder = recorder

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        nobody = cast("str", None)
        spoiled = [
            StoredEvent(nobody, each.originator_version, each.topic, each.state) for each in stored_events
        ]
        return self._recorder.insert_events([*stored_events, *spoiled], **kwargs | {"hashes": None})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)


def test_a_failed_append_leaves_nothing(store: EventStore, database: Database) -> None:
    store.append({"a": [started("1")]}, stamp=stamp)
    attachments, _ = attach(store, b"content")
    key = SourceKey("a", 0, b"k" * 16, 1, 7)
    recorder = store.recorder
    store.recorder = _Failing(recorder)
    with pytest.raises(Exception, match=r"(?i)null"):
        store.append({"a": [note(store, b"content")]}, stamp=stamp, attachments=attachments, keys=[key])
    store.recorder = recorder

    for table, count in (("stored_events", 1), ("blobs", 0), ("context_nodes", 0), ("source_keys", 0)):
        assert database.execute(f"select count(*) from {table}") == [(count,)], table
    with pytest.raises(ContentMissingError):
        store.content(attachments.blobs[0].digest.hex())
    store.append({"a": [note(store, b"content")]}, stamp=stamp, attachments=attachments, keys=[key])
    assert store.last_position() == 2
    assert verify(store).ok


def test_source_keys_are_claimed_once(store: EventStore, database: Database) -> None:
    store.append({"a": [started("0")]}, stamp=stamp)
    keys = [SourceKey("a", 0, b"x" * 16, 10, -(2**63)), SourceKey("a", 1, b"y" * 16, 11, 2**63 - 1)]
    store.append({"a": [started("1"), started("2")]}, stamp=stamp, keys=keys)
    known = store.known_keys([b"x" * 16, b"y" * 16, b"z" * 16])
    assert known.keys() == {b"x" * 16, b"y" * 16}
    assert tuple(known[b"x" * 16]) == (b"x" * 16, 10, 2, -(2**63))
    assert tuple(known[b"y" * 16]) == (b"y" * 16, 11, 3, 2**63 - 1)

    with open_store(database.url) as other, pytest.raises(KeysTakenError):
        other.append({"b": [started("3")]}, stamp=stamp, keys=[SourceKey("b", 0, b"y" * 16, 1, 1)])
    assert list(store.read("b")) == []
    assert store.known_keys([]) == {}


def test_many_keys_are_looked_up_at_once(store: EventStore) -> None:
    keys = [SourceKey("a", 0, number.to_bytes(16, "big"), number, number) for number in range(1_500)]
    store.append({"a": [started("1")]}, stamp=stamp, keys=keys)
    assert len(store.known_keys([key.key for key in keys])) == 1_500


def test_threads_share_commits_and_keep_their_own_conflicts(store: EventStore) -> None:
    threads, rounds = 16, 25
    outcomes: list[tuple[str, str]] = []
    together = threading.Barrier(threads)

    def work(number: int) -> None:
        together.wait()
        for turn in range(rounds):
            call = f"{number}.{turn}"
            store.append({"shared": [started(call)], f"own{number}": [started(call)]}, stamp=stamp)
            try:
                store.append({"contested": [started(call)]}, stamp=stamp, expect={"contested": turn})
                outcomes.append(("won", call))
            except ConflictError:
                outcomes.append(("lost", call))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    everything = {f"{number}.{turn}" for number in range(threads) for turn in range(rounds)}
    shared = call_ids(store, "shared")
    assert len(shared) == threads * rounds
    assert set(shared) == everything
    for number in range(threads):
        assert call_ids(store, f"own{number}") == [f"{number}.{turn}" for turn in range(rounds)]
    won = {call for outcome, call in outcomes if outcome == "won"}
    assert len(outcomes) == threads * rounds
    assert set(call_ids(store, "contested")) == won
    assert len(call_ids(store, "contested")) == len(won)
    assert verify(store).ok


def test_a_refused_append_does_not_fail_those_that_wait_with_it(store: EventStore) -> None:
    """Three callers share a commit; one claims a taken key. The two others must be kept, each once."""
    taken = SourceKey("first", 0, b"t" * 16, 1, 1)
    store.append({"first": [started("0")]}, stamp=stamp, keys=[taken])
    outcomes: dict[str, object] = {}
    inside, others_wait = threading.Event(), threading.Event()

    def slow_stamp() -> str:
        inside.set()
        others_wait.wait()
        return STAMP

    def run(name: str, **arguments: Any) -> None:
        try:
            outcomes[name] = store.append(**arguments)
        except (KeysTakenError, ConflictError) as error:
            outcomes[name] = error

    def start(name: str, **arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=run, args=(name,), kwargs=arguments)
        thread.start()
        return thread

    blocker = start("blocker", drafts={"b": [started("1")]}, stamp=slow_stamp)
    inside.wait()  # from here on, appends gather
    claim = SourceKey("s", 0, b"t" * 16, 1, 1)
    waiting = [blocker, start("poisoned", drafts={"s": [started("2")]}, stamp=stamp, keys=[claim])]
    _until_waiting(store, 1)
    # It comes behind the poisoned one in the same commit, yet its expectation is true of what is kept.
    waiting.append(start("expecting", drafts={"s": [started("3")]}, stamp=stamp, expect={"s": 0}))
    _until_waiting(store, 2)
    waiting.append(start("plain", drafts={"p": [started("4")]}, stamp=stamp))
    _until_waiting(store, 3)
    others_wait.set()
    for thread in waiting:
        thread.join()

    assert isinstance(outcomes["poisoned"], KeysTakenError)
    assert isinstance(outcomes["expecting"], list)
    assert call_ids(store, "s") == ["3"]
    assert call_ids(store, "p") == ["4"]
    assert call_ids(store, "b") == ["1"]
    assert store.last_position() == 4
    assert verify(store).ok


def _until_waiting(store: EventStore, count: int) -> None:
    while True:
        with store._waiting_lock:
            if len(store._waiting) >= count:
                return
