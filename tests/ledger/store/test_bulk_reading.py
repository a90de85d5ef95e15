"""Reading many contents and records at once: what an export does."""

from ledger.store import EventStore
from tests.ledger.store.databases import attach, stamp, started


def test_contents_are_read_together_and_missing_ones_left_out(store: EventStore) -> None:
    texts = [b"%d " % number * (number % 90) + b"end" for number in range(333)]
    attachments, _ = attach(store, *texts)
    store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments)
    digests = [blob.digest.hex() for blob in attachments.blobs]
    found = store.contents([*digests, "00" * 32, "no digest", "", "A" * 64])
    assert found == {digest: store.content(digest) for digest in digests}
    assert set(found.values()) == set(texts)
    assert store.contents([]) == {}


def test_a_damaged_content_is_left_out_alone(store: EventStore) -> None:
    attachments, _ = attach(store, b"sound", b"changed", b"sound too")
    first, changed, last = attachments.blobs
    damaged = attachments._replace(blobs=[first, changed._replace(body=b"another"), last])
    store.append({"a": [started("1")]}, stamp=stamp, attachments=damaged)
    found = store.contents([blob.digest.hex() for blob in attachments.blobs])
    assert sorted(found.values()) == [b"sound", b"sound too"]


def test_rows_are_as_the_records_they_hold(store: EventStore) -> None:
    store.append({"a": [started("1"), started("2")], "b": [started("3")]}, stamp=stamp)
    rows = store.recorder.select_rows(1, 2)
    assert [(position, session, seq, name) for position, session, seq, name, _ in rows] == [
        (2, "a", 2, "tool_call.started"),
        (3, "b", 1, "tool_call.started"),
    ]
    kept = store.recorder.select_notifications(1, 2, inclusive_of_start=False)
    assert [state for *_, state in rows] == [bytes(one.state) for one in kept]
    assert store.recorder.select_rows(3, 10) == []


def test_a_digest_that_is_spelled_otherwise_names_nothing(store: EventStore) -> None:
    attachments, _ = attach(store, b"one", b"two")
    store.append({"a": [started("1")]}, stamp=stamp, attachments=attachments)
    one, two = (blob.digest.hex() for blob in attachments.blobs)
    for strange in ([one.upper(), two], [f" {one}", two], ["", "zz", "abc", "ä", "0" * 64, two]):
        found = store.contents(strange)
        assert [found.get(name) for name in strange] == [None] * (len(strange) - 1) + [b"two"]
