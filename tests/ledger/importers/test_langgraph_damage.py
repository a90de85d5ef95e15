"""The LangGraph importer on hostile and damaged databases: no exception, everything named, the ledger verifies."""

import contextlib
import pickle
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import SourceError
from ledger.events.approval import ApprovalDecided
from ledger.events.input import MessageReceived
from ledger.events.recovery import CheckpointTaken, DamageFound
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.importers._intake import import_paths
from ledger.importers._sqlite import open_database
from ledger.store import verify
from tests.ledger.importers.langgraph_cases import (
    add_checkpoint,
    brought_in,
    built,
    case,
    change,
    checkpoint_id,
    message,
    new_database,
    pack,
    records,
    state,
    unpacked,
)
from tests.ledger.importers.test_langgraph_values import _Canary, canary_module

_WRITE = "insert into writes values ('thread-1', '', ?, ?, '', ?, ?, ?, ?)"


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    """A fresh ledger."""
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


def test_a_parent_that_is_named_by_bytes_is_not_found_and_said(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "bytes.sqlite"
    connection = new_database(path)
    with connection:
        for number in (1, 2, 3):
            said = message("human", "HumanMessage", content=f"Hello {number}", id=str(number))
            add_checkpoint(connection, number, state(messages=[said]), parent=1 if number > 1 else None)
        connection.execute(
            "update checkpoints set parent_checkpoint_id = cast(? as blob) where checkpoint_id = ?",
            (checkpoint_id(1), checkpoint_id(3)),
        )
    connection.close()
    assert import_paths(ledger.recorder, [path]).records_added > 0
    assert import_paths(ledger.recorder, [path]).records_added == 0
    assert verify(ledger.store).ok


def test_a_pickled_checkpoint_is_kept_unread_and_named(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    module = canary_module(tmp_path, canary)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "hostile.sqlite"
    connection = new_database(path)
    with connection:
        said = message("human", "HumanMessage", content="Hello", id="one")
        add_checkpoint(connection, 1, state(messages=[said], trap=built(module, "Bird", {})), source="input")
        add_checkpoint(connection, 2, pickle.dumps(_Canary(canary)), parent=1, kind="pickle")
        answer = message("ai", "AIMessage", content="Hi", id="two")
        add_checkpoint(connection, 3, state(messages=[said, answer]), parent=2)
        row = (checkpoint_id(3), "task", 0, "messages", "pickle", pickle.dumps(_Canary(canary)))
        connection.execute(_WRITE, row)
    connection.close()
    report = brought_in(ledger, path)
    assert not canary.exists() and module not in sys.modules
    assert [entry["reason"].partition(":")[0] for entry in report["quarantined"]] == [
        "checkpoint",
        "write to messages",
    ]
    told = [record.event for record in records(ledger)]
    kept = [
        ledger.store.content(event.content.digest)
        for event in told
        if isinstance(event, DamageFound) and event.content
    ]
    assert all(content.startswith(b"\x80") for content in kept) and len(kept) == 2
    assert sum(isinstance(event, MessageReceived) for event in told) == 1
    assert sum(isinstance(event, CheckpointTaken) for event in told) == 3
    assert (report["model_calls"], len(report["sessions"])) == (1, 1)
    assert verify(ledger.store).problems == []


def test_secrets_in_a_state_are_not_in_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "secret.sqlite"
    connection = new_database(path)
    with connection:
        key = built("pydantic.types", "SecretStr", "correct-horse-battery", 0)
        add_checkpoint(connection, 1, state(key=key, messages=[]), source="input")
    connection.close()
    assert brought_in(ledger, path)["redacted"] == 1
    home = tmp_path / "home"
    assert not [file for file in home.rglob("*") if file.is_file() and b"correct-horse" in file.read_bytes()]


def test_writes_of_a_checkpoint_that_is_not_there_are_kept(ledger: Ledger, tmp_path: Path) -> None:
    path = unpacked("crashed-tool", tmp_path)
    change(path, "delete from checkpoints where parent_checkpoint_id is not null")
    report = brought_in(ledger, path)
    assert report["native"]["write without checkpoint"] == report["dangling_parents"] > 0
    assert report["lines"] == report["native"]["checkpoint"] + sum(
        count for name, count in report["native"].items() if name != "checkpoint"
    )


def test_an_answer_without_a_task_that_took_it_is_told(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "waiting.sqlite"
    connection = new_database(path)
    with connection:
        name = add_checkpoint(connection, 1, state(messages=[]), source="input")
        question = [built("langgraph.types", "Interrupt", {"value": "Go on?", "id": "q1"}, 2)]
        connection.execute(_WRITE, (name, "task", -3, "__interrupt__", "msgpack", pack(question)))
        nobody = "00000000-0000-0000-0000-000000000000"
        connection.execute(_WRITE, (name, nobody, -4, "__resume__", "msgpack", pack("yes")))
    connection.close()
    brought_in(ledger, path)
    (decided,) = [record.event for record in records(ledger) if isinstance(record.event, ApprovalDecided)]
    assert (decided.approval_id, decided.outcome) == ("q1", "approved")
    connection = sqlite3.connect(path)
    with connection:  # the task takes the answer: the same answer, told once
        connection.execute(_WRITE, (checkpoint_id(1), "task", -4, "__resume__", "msgpack", pack(["yes"])))
        connection.execute(_WRITE, (checkpoint_id(1), "task", 0, "branch:to:next", "null", b""))
    connection.close()
    assert brought_in(ledger, path)["records"] == 0


def test_a_result_that_an_update_forged_is_not_one_of_the_tool(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "forged.sqlite"
    call = {"name": "pay", "args": {"to": "us"}, "id": "call_1", "type": "tool_call"}
    asked = message("ai", "AIMessage", content="", id="one", tool_calls=[call])
    result = message("tool", "ToolMessage", content="paid", id="two", tool_call_id="call_1", status="success")
    connection = new_database(path)
    with connection:
        add_checkpoint(connection, 1, state(messages=[]))
        add_checkpoint(connection, 2, state(messages=[asked]), parent=1)
        add_checkpoint(connection, 3, state(messages=[asked, result]), parent=2, source="update")
    connection.close()
    brought_in(ledger, path)
    (settled,) = [record.event for record in records(ledger) if isinstance(record.event, ToolCallSettled)]
    assert (settled.outcome, settled.error) == ("unknown", "the result was written by an update of the state")


def test_parents_in_a_circle_and_a_parent_that_never_was(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "circle.sqlite"
    connection = new_database(path)
    with connection:
        add_checkpoint(connection, 1, state(messages=[]), parent=2)
        add_checkpoint(connection, 2, state(messages=[]), parent=1)
        add_checkpoint(connection, 3, state(messages=[]), parent=3)
        add_checkpoint(connection, 5, state(messages=[]), parent=4)
    connection.close()
    report = brought_in(ledger, path)
    taken = [record for record in records(ledger) if isinstance(record.event, CheckpointTaken)]
    assert len(taken) == 4 and report["dangling_parents"] >= 2
    assert brought_in(ledger, path)["records"] == 0


def test_a_log_beside_the_database_is_read_and_the_folder_left_as_it_was(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "open" / "live.sqlite"
    path.parent.mkdir()
    connection = new_database(path)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma wal_autocheckpoint = 0")
    with connection:
        add_checkpoint(
            connection, 1, state(messages=[message("human", "HumanMessage", content="Hello", id="one")])
        )
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    try:
        report = brought_in(ledger, path)
    finally:
        after = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        connection.close()
    assert report["lines"] == 1 and before == after


def test_a_truncated_file_keeps_what_was_read(ledger: Ledger, tmp_path: Path) -> None:
    whole = unpacked("stale-approval", tmp_path)
    for part in (1, 2, 3):
        path = tmp_path / f"cut-{part}.sqlite"
        path.write_bytes(whole.read_bytes()[: whole.stat().st_size * part // 4])
        report = brought_in(ledger, path)
        assert "reason" in report
    packed = tmp_path / "cut.sqlite.gz"
    packed.write_bytes(case("stale-approval").read_bytes()[:3000])
    assert "cannot be opened" in brought_in(ledger, packed)["reason"]
    assert verify(ledger.store).problems == []


_SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=12)
)
_COLUMNS = {
    "checkpoints": [
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    ],
    "writes": [
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "task_id",
        "task_path",
        "idx",
        "channel",
        "type",
        "value",
    ],
}


@settings(max_examples=25)
@given(st.data())
def test_values_of_the_wrong_type_in_any_column_are_survived(data: st.DataObject) -> None:
    changes = []
    for _ in range(data.draw(st.integers(1, 4))):
        table = data.draw(st.sampled_from(sorted(_COLUMNS)))
        name = data.draw(st.sampled_from(_COLUMNS[table]))
        statement = f"update or ignore {table} set {name} = ? where rowid = ?"
        changes.append((statement, (data.draw(_SCALARS), data.draw(st.integers(1, 40)))))
    name = data.draw(st.sampled_from(["refused", "subgraphs", "crashed-tool"]))
    with tempfile.TemporaryDirectory() as folder:
        path = unpacked(name, Path(folder))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for statement, values in changes:
                with contextlib.suppress(sqlite3.IntegrityError), connection:
                    connection.execute(statement, values)
        _is_survived(path)


def _is_survived(path: Path) -> None:
    """An import ends without an exception, a second one adds nothing, the ledger verifies."""
    with open_ledger(path.parent / "home") as ledger:
        brought_in(ledger, path)
        assert verify(ledger.store).problems == []
        assert brought_in(ledger, path)["records"] == 0


def _plain_values() -> st.SearchStrategy[Any]:
    names = st.sampled_from(
        [
            "messages",
            "type",
            "id",
            "content",
            "tool_calls",
            "name",
            "args",
            "role",
            "usage_metadata",
            "value",
            "decisions",
        ]
    )
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-5, 5)
        | st.sampled_from(["ai", "human", "tool", "remove", "x", ""]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    )


_PLACES = (
    (0, "messages"),
    (-3, "__interrupt__"),
    (-4, "__resume__"),
    (-1, "__error__"),
    (1, "__pregel_tasks"),
)


@settings(max_examples=60)
@given(st.lists(_plain_values(), min_size=1, max_size=3), _plain_values(), _plain_values())
def test_values_of_any_shape_in_any_place_are_survived(states: list[Any], write: Any, fields: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.sqlite"
        with contextlib.closing(new_database(path)) as connection, connection:
            for number, value in enumerate(states, 1):
                said = message("ai", "AIMessage", **fields) if isinstance(fields, dict) else value
                channels = {"messages": [said], "other": value, "__pregel_tasks": write}
                body = value if number == 2 else {"v": 4, "channel_values": channels}
                add_checkpoint(connection, number, pack(body), parent=number - 1 or None)
            for place, channel in _PLACES:
                row = (checkpoint_id(1), "task", place, channel, "msgpack", pack(write))
                connection.execute(_WRITE, row)
        _is_survived(path)


def test_an_opened_database_refuses_to_be_written(tmp_path: Path) -> None:
    path = unpacked("refused", tmp_path)
    with open_database(path) as database, pytest.raises(SourceError, match="readonly"):
        list(database.rows("delete from writes"))
