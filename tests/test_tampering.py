"""Tampering has a name: whatever is changed in a ledger's file, `verify` says what, in which session, at which seq.

What needs a seal that is kept elsewhere, because the file alone is whole again, is shown by the last tests.
"""

import sqlite3
from pathlib import Path

import orjson
import pytest

from ledger.store import open_store, verify
from ledger.store.content import RAW, BlobRow, pack_blob
from ledger.store.mapper import record_hash
from ledger.store.rows import Attachments
from tests.ledger.store.databases import stamp, started
from tests.ledger.store.tampering import RECORDS, named, path, tamper, verify_file, whole

__all__ = ["path", "whole"]

_AT_ALPHA_3 = "where originator_id = 'alpha' and originator_version = 3"
_ONE_LETTER = "cast(replace(cast(state as text), 'call 2', 'call 3') as blob)"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("nid = 100", {("position_missing", None, None), ("position_changed", "alpha", 4)}),
        ("originator_id = 'omega'", {("seq_missing", "alpha", 3), ("record_changed", "omega", 3)}),
        ("originator_id = cast('alpha' as blob)", {("seq_missing", "alpha", 3)}),
        ("originator_version = 300", {("seq_missing", "alpha", 3), ("record_changed", "alpha", 300)}),
        ("originator_version = 0", {("seq_missing", "alpha", 3), ("seq_changed", "alpha", 0)}),
        ("originator_version = -7", {("seq_missing", "alpha", 3), ("record_changed", "alpha", -7)}),
        ("originator_version = 'x'", {("seq_missing", "alpha", 3), ("record_unreadable", "alpha", None)}),
        ("originator_version = 3.5", {("seq_missing", "alpha", 3), ("record_unreadable", "alpha", None)}),
        ("topic = 'tool_call.started'", {("record_changed", "alpha", 3)}),
        ("topic = cast(topic as blob)", {("record_unreadable", "alpha", 3)}),
        (f"state = {_ONE_LETTER}", {("record_changed", "alpha", 3)}),
        ("state = cast(state as text)", {("record_unreadable", "alpha", 3)}),
        ("state = x''", {("record_changed", "alpha", 3), ("record_unreadable", "alpha", 3)}),
        ("state = 7", {("record_unreadable", "alpha", 3)}),
        ("hash = x'00'", {("record_changed", "alpha", 3)}),
        ("hash = zeroblob(32)", {("record_changed", "alpha", 3)}),
        ("hash = 'text'", {("record_unreadable", "alpha", 3)}),
        ("topic = cast(x'ff' as text)", {("record_unreadable", "alpha", 3)}),  # not UTF-8: cannot be read
        ("originator_id = cast(x'ff' as text)", {("seq_missing", "alpha", 3)}),
    ],
)
def test_every_column_of_a_record(path: Path, change: str, expected: set[tuple[str, str, int]]) -> None:
    tamper(path, f"update stored_events set {change} {_AT_ALPHA_3}")
    result = verify_file(path)
    assert expected <= named(result)
    assert not result.ok
    if "originator" not in change and "nid" not in change:
        assert expected == named(result)
        assert expected == named(verify_file(path, "alpha")), "one session alone"
        assert verify_file(path, "beta").ok


_BLOB = "where digest = (select message from context_nodes where depth = 4)"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("digest = zeroblob(32)", "blob_missing"),
        ("size = size + 1", "blob_changed"),
        ("size = 'x'", "blob_changed"),
        ("size = 9223372036854775807", "blob_changed"),
        ("codec = 0", "blob_changed"),
        ("codec = 9", "blob_changed"),
        ("codec = 'x'", "blob_changed"),
        ("body = substr(body, 2)", "blob_changed"),
        ("body = x''", "blob_changed"),
        ("body = 'text'", "blob_changed"),
        ("checksum = zeroblob(16)", "blob_changed"),
        ("checksum = 'text'", "blob_changed"),
    ],
)
def test_every_column_of_a_blob(path: Path, change: str, kind: str) -> None:
    tamper(path, f"update blobs set {change} {_BLOB}")
    assert (kind, "alpha", 3) in named(verify_file(path))  # the request whose context has it
    assert (kind, "alpha", 3) in named(verify_file(path, "alpha"))
    assert {problem.kind for problem in verify_file(path).problems} <= {kind, "blob_changed"}
    assert verify_file(path, "beta").ok


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("node = zeroblob(32)", "node_missing"),
        ("node = 'text'", "node_missing"),
        ("parent = zeroblob(32)", "node_changed"),
        ("parent = null", "node_changed"),
        ("parent = node", "node_changed"),
        ("parent = 'text'", "node_changed"),
        ("message = zeroblob(32)", "node_changed"),
        ("message = 7", "node_changed"),
        ("depth = depth + 1", "node_changed"),
        ("depth = -1", "node_changed"),
        ("depth = 'text'", "node_changed"),
        ("depth = 9223372036854775807", "node_changed"),
    ],
)
def test_every_column_of_a_context_node(path: Path, change: str, kind: str) -> None:
    tamper(path, f"update context_nodes set {change} where depth = 4")
    assert (kind, "alpha", 3) in named(verify_file(path))
    assert (kind, "alpha", 3) in named(verify_file(path, "alpha"))
    assert verify_file(path, "beta").ok


def test_two_blobs_change_their_bodies(path: Path) -> None:
    digests = "(select message from context_nodes where depth in (2, 4))"
    tamper(
        path,
        f"create table other as select * from blobs where digest in {digests}",
        "update blobs set (size, codec, body, checksum) ="
        " (select size, codec, body, checksum from other where other.digest <> blobs.digest)"
        f" where digest in {digests}",
        "drop table other",
    )
    assert {("blob_changed", "alpha", 1), ("blob_changed", "alpha", 3)} <= named(verify_file(path))


def test_a_body_is_exchanged_and_its_checksum_made_anew(path: Path) -> None:
    digest = sqlite3.connect(path).execute("select message from context_nodes where depth = 4").fetchone()[0]
    forged: BlobRow = pack_blob(digest, b"what was never said")
    assert forged.codec == RAW
    tamper(
        path,
        (
            "update blobs set size = ?, codec = ?, body = ?, checksum = ? where digest = ?",
            (*forged[1:], digest),
        ),
    )
    assert named(verify_file(path)) == {("blob_changed", "alpha", 3)}


def test_a_blob_is_deleted(path: Path) -> None:
    tamper(path, f"delete from blobs {_BLOB}")
    assert named(verify_file(path)) == {("blob_missing", "alpha", 3)}


def test_a_blob_that_no_record_names_is_changed(path: Path) -> None:
    stray = pack_blob(b"s" * 32, b"stray")
    with open_store(f"sqlite:///{path}") as store:
        store.append({"beta": [started("6")]}, stamp=stamp, attachments=Attachments([stray]))
        assert verify(store).ok
    tamper(path, ("update blobs set body = x'00' where digest = ?", (stray.digest,)))
    assert named(verify_file(path)) == {("blob_changed", None, None)}


def test_a_record_in_the_middle_is_deleted(path: Path) -> None:
    tamper(path, f"delete from stored_events {_AT_ALPHA_3}")
    assert {("seq_missing", "alpha", 3), ("position_missing", None, None)} == named(verify_file(path))


def test_several_records_in_the_middle_are_deleted_and_the_rest_moved_up(path: Path) -> None:
    tamper(
        path,
        "delete from stored_events where originator_id = 'alpha' and originator_version in (3, 4)",
        "update stored_events set originator_version = originator_version - 2"
        " where originator_id = 'alpha' and originator_version > 4",
    )
    found = named(verify_file(path))
    assert {
        ("record_changed", "alpha", 3),
        ("chain_broken", "alpha", 3),
        ("record_changed", "alpha", 6),
    } <= found


def test_the_first_record_is_deleted(path: Path) -> None:
    tamper(path, "delete from stored_events where originator_id = 'alpha' and originator_version = 1")
    assert ("seq_missing", "alpha", 1) in named(verify_file(path))


def test_the_last_record_of_a_session_is_deleted(path: Path) -> None:
    """Seen by the hole in the positions, as long as another session has later records."""
    tamper(path, "delete from stored_events where originator_id = 'alpha' and originator_version = 8")
    result = verify_file(path)
    assert named(result) == {("position_missing", None, None)}
    assert result.problems[0].detail == "position 11 is gone"


def test_a_whole_session_is_deleted(path: Path) -> None:
    tamper(path, "delete from stored_events where originator_id = 'gamma'")
    assert named(verify_file(path)) == {("position_missing", None, None)}


def test_two_records_change_places(path: Path) -> None:
    tamper(
        path,
        f"update stored_events set originator_version = 99 {_AT_ALPHA_3}",
        "update stored_events set originator_version = 3 where originator_id = 'alpha' and originator_version = 4",
        "update stored_events set originator_version = 4 where originator_version = 99",
    )
    assert {("record_changed", "alpha", 3), ("record_changed", "alpha", 4)} <= named(verify_file(path))


def test_two_positions_of_a_session_are_exchanged(path: Path) -> None:
    tamper(
        path,
        "update stored_events set nid = 99 where nid = 1",
        f"update stored_events set nid = 1 {_AT_ALPHA_3}",
        "update stored_events set nid = 4 where nid = 99",
    )
    assert ("position_changed", "alpha", 2) in named(verify_file(path))


def test_a_record_is_doubled_at_the_end(path: Path) -> None:
    tamper(
        path,
        "insert into stored_events select 15, originator_id, 9, topic, state, hash from stored_events"
        f" {_AT_ALPHA_3}",
    )
    found = named(verify_file(path))
    assert {("record_changed", "alpha", 9), ("chain_broken", "alpha", 9)} == found


def test_a_record_is_doubled_in_its_place(path: Path) -> None:
    tamper(
        path,
        "drop index stored_events_by_session",
        "insert into stored_events select 15, originator_id, originator_version, topic, state, hash"
        f" from stored_events {_AT_ALPHA_3}",
    )
    assert ("seq_changed", "alpha", 3) in named(verify_file(path))


@pytest.mark.parametrize(
    ("previous", "rehash", "kind"),
    [("00" * 32, True, "chain_broken"), (None, False, "record_changed")],
    ids=["unlinked", "unhashed"],
)
def test_a_forged_record_is_appended(path: Path, previous: str | None, rehash: bool, kind: str) -> None:
    head = sqlite3.connect(path).execute("select hash from stored_events where nid = 14").fetchone()[0]
    state = orjson.dumps(
        {"data": {"call_id": "x"}, "grade": "wire", "prev": previous or head.hex(), "recorded_at": "", "v": 1}
    )
    digest = record_hash("beta", 6, "tool_call.started", state) if rehash else head
    row = (15, "beta", 6, "tool_call.started", state, digest)
    tamper(path, ("insert into stored_events values (?,?,?,?,?,?)", row))
    assert named(verify_file(path)) == {(kind, "beta", 6)}


@pytest.mark.parametrize(
    "state",
    [
        b"[]",
        b"7",
        b"{}",
        b'{"prev": 7, "data": {}}',
        b'{"prev": "zz", "data": {}}',
        b'{"prev": "%s", "data": 7}',
        b'{"prev": "%s", "data": {"x": {"digest": 7, "size": 1, "kind": ""}}}',
        b'{"prev": "%s", "data": {"x": {"digest": "zz", "size": 1, "kind": ""}}}',
        b'{"prev": "%s", "data": {"context": 7}}',
        b'{"prev": "%s", "data": {"context": "00", "context_added": "many"}}',
        b'{"prev": "%s", "data": {}, "source": 7}',
        b'{"prev": "%s", "data": {}, "source": {"rest": "zz"}}',
        b'{"prev": "%s", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(13),
)
def test_a_record_whose_bytes_are_hostile_isnamed(path: Path, state: bytes) -> None:
    head = sqlite3.connect(path).execute("select hash from stored_events where nid = 14").fetchone()[0]
    state = state.replace(b"%s", head.hex().encode())
    row = (15, "beta", 6, "tool_call.started", state, record_hash("beta", 6, "tool_call.started", state))
    tamper(path, ("insert into stored_events values (?,?,?,?,?,?)", row))
    assert ("record_unreadable", "beta", 6) in named(verify_file(path))


def test_problems_are_counted_beyond_those_that_are_listed(path: Path) -> None:
    tamper(
        path,
        "with recursive number (n) as (select 15 union all select n + 1 from number where n < 12000)"
        " insert into stored_events select n, 'forged', n, 'x', x'00', x'00' from number",
    )
    result = verify_file(path)
    assert len(result.problems) == 10_000
    assert result.unlisted > 10_000


# -- what a seal is needed for ------------------------------------------------------------------------------


def test_cutting_off_the_last_records_of_the_ledger_needs_a_seal(path: Path) -> None:
    tamper(path, "delete from stored_events where nid > 12")
    result = verify_file(path)
    assert result.ok, "nothing in the file tells that positions 13 and 14 were ever there"
    assert result.records == RECORDS - 2


def test_rewriting_the_end_and_hashing_it_anew_needs_a_seal(path: Path) -> None:
    connection = sqlite3.connect(path)
    (state,) = connection.execute("select state from stored_events where nid = 14").fetchone()
    connection.close()
    forged = state.replace(b'"5"', b'"6"')
    assert forged != state
    digest = record_hash("beta", 5, "tool_call.started", forged)
    tamper(path, ("update stored_events set state = ?, hash = ? where nid = 14", (forged, digest)))
    assert verify_file(path).ok


def test_rewriting_the_middle_and_hashing_it_anew_breaks_the_chain(path: Path) -> None:
    connection = sqlite3.connect(path)
    (state,) = connection.execute("select state from stored_events where nid = 3").fetchone()
    connection.close()
    forged = state.replace(b"call 1", b"call 9")
    assert forged != state
    digest = record_hash("beta", 1, "tool_call.started", forged)
    tamper(path, ("update stored_events set state = ?, hash = ? where nid = 3", (forged, digest)))
    assert named(verify_file(path)) == {("chain_broken", "beta", 2)}


def test_exchanging_the_positions_of_two_sessions_needs_a_seal(path: Path) -> None:
    tamper(
        path,
        "update stored_events set nid = 99 where nid = 2",
        "update stored_events set nid = 2 where nid = 3",
        "update stored_events set nid = 3 where nid = 99",
    )
    assert verify_file(path).ok
