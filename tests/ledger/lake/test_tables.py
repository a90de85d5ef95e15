"""Tables of the lake that join several records: branches, rollbacks, and what model calls were sent."""

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.canonical import canonical_json
from ledger.lake import Lake, Stored, connect
from ledger.lake.connection import connect_files
from tests.ledger.lake.feeds import feed_of


@cache
def empty() -> duckdb.DuckDBPyConnection:
    """All tables over no files, made once: that takes longer than what is asked of them."""
    return connect_files([])


def add(connection: duckdb.DuckDBPyConnection, session: str, seq: int, name: str, **fields: Any) -> None:
    columns = ", ".join(["session", "seq", "type", *fields])
    marks = ", ".join("?" * (3 + len(fields)))
    connection.execute(
        f"insert into events ({columns}) values ({marks})", [session, seq, name, *fields.values()]
    )


def standing(backs: dict[int, int], upto: int) -> set[int]:
    """What stands at a seq: the state of the seq that the last rollback went back to, and what came since."""
    seqs: set[int] = set()
    while upto > 0:
        last = max((seq for seq in backs if seq <= upto), default=None)
        if last is None:
            return seqs | set(range(1, upto + 1))
        seqs |= set(range(last, upto + 1))
        upto = backs[last]
    return seqs


@settings(max_examples=40, deadline=None)  # each asks two recursive views
@given(st.dictionaries(st.integers(2, 30), st.integers(0, 29), max_size=6), st.integers(0, 30))
def test_what_stands_after_rollbacks_of_rollbacks(backs: dict[int, int], fork: int) -> None:
    backs = {seq: target for seq, target in backs.items() if target < seq}
    connection = empty()
    connection.execute("delete from events")
    rows = [
        ("a", seq, "recovery.rolled_back" if seq in backs else "x", backs.get(seq)) for seq in range(1, 31)
    ]
    connection.executemany("insert into events (session, seq, type, to_seq) values (?, ?, ?, ?)", rows)
    add(connection, "b", 1, "session.forked", origin="a", origin_seq=fork)
    main = connection.execute("select seq from events_main where session = 'a'").fetchall()
    line = connection.execute("select seq from events_on('b') where session = 'a'").fetchall()
    assert {seq for (seq,) in main} == standing(backs, 30)
    assert {seq for (seq,) in line} == standing(backs, fork)


def test_a_rollback_to_a_checkpoint_and_a_branch_of_a_branch() -> None:
    with connect_files([]) as connection:
        for seq in range(1, 6):
            add(connection, "a", seq, "x")
        add(connection, "b", 1, "session.forked", origin="a", origin_seq=3)
        add(connection, "a", 6, "recovery.branch_opened", branch="b", at_seq=3)
        add(connection, "b", 2, "x")
        add(connection, "b", 3, "recovery.checkpoint_taken", checkpoint_id="here")
        add(connection, "b", 4, "x")
        add(connection, "b", 5, "recovery.rolled_back", checkpoint_id="here")
        add(connection, "c", 1, "session.forked", origin="b", origin_seq=4)
        add(connection, "again", 1, "session.forked", origin="a", origin_seq=5, runs_again=True)

        def line(session: str) -> list[tuple[str, int]]:
            query = "select session, seq from events_on(?) order by session, seq"
            return connection.execute(query, [session]).fetchall()

        assert line("b") == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 5)]
        assert line("c") == [
            *(("a", seq) for seq in (1, 2, 3)),
            *(("b", seq) for seq in (1, 2, 3, 4)),
            ("c", 1),
        ]
        assert line("again") == [("again", 1)], "its own records repeat those of its origin"
        branches = connection.execute(
            "select session, parent_session, at_seq, root_session, depth from branches order by session"
        ).fetchall()
    assert branches == [("again", "a", 5, "a", 1), ("b", "a", 3, "a", 1), ("c", "b", 4, "a", 2)]


# -- what model calls were sent ----------------------------------------------------------------------------------------


def request(position: int, system: str, tools: str) -> Stored:
    def reference(letter: str) -> dict[str, Any]:
        return {"digest": letter * 64, "kind": "json", "size": 10}

    data = {
        "call_id": f"m{position}",
        "completeness": "messages",
        "protocol": "anthropic.messages",
        "system": reference(system),
        "tools": reference(tools),
    }
    state = {"data": data, "grade": "wire", "prev": "", "recorded_at": "2026-01-02T03:04:05.000000Z", "v": 1}
    return Stored(position, "s", position, "model_call.requested", canonical_json(state))


def erased(position: int, letter: str) -> Stored:
    data = {"digests": [letter * 64], "reason": "asked"}
    state = {"data": data, "grade": "wire", "prev": "", "recorded_at": "2026-01-02T03:04:05.000000Z", "v": 1}
    return Stored(position, "s", position, "ledger.erased", canonical_json(state))


def texts_in(lake: Lake) -> list[list[str | None]]:
    return [
        pq.read_table(path, columns=["system_prompt"], partitioning=None)["system_prompt"].to_pylist()
        for path in lake.paths()
    ]


def test_system_prompts_and_tool_schemas_stand_once_in_a_file_and_can_be_erased(tmp_path: Path) -> None:
    rows = [request(position, "ab"[position % 2], "c") for position in range(1, 9)]
    feed = feed_of(rows)
    feed = dataclasses.replace(
        feed,
        contents=lambda digests: {digest: json.dumps(f"text {digest[0]}").encode() for digest in digests},
    )
    lake = Lake(tmp_path)
    lake.export(feed, most_rows=4)
    assert texts_in(lake) == [['"text b"', '"text a"', None, None]] * 2
    lake.compact(many=2)
    assert texts_in(lake) == [['"text b"', '"text a"', *[None] * 6]]
    with connect(tmp_path) as connection:
        found = connection.execute(
            "select kind, digest[1], first_seq, model_calls, sessions, content from instructions order by kind, digest"
        ).fetchall()
        assert found == [
            ("system_prompt", "a", 2, 4, 1, '"text a"'),
            ("system_prompt", "b", 1, 4, 1, '"text b"'),
            ("tool_schemas", "c", 1, 8, 1, '"text c"'),
        ]
        assert connection.execute("select count(distinct system_digest) from model_calls").fetchone() == (2,)
    rows += [erased(9, "a"), request(10, "a", "c")]
    gone = dataclasses.replace(
        feed,
        contents=lambda digests: {digest: b'"text"' for digest in digests if digest[0] != "a"},
        rows=feed_of(rows).rows,
    )
    lake.export(gone)
    with connect(tmp_path) as connection:
        query = "select digest[1], model_calls, content from instructions where kind = 'system_prompt' order by digest"
        assert connection.execute(query).fetchall() == [("a", 5, None), ("b", 4, '"text b"')]
    assert b"text a" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.parquet"))
