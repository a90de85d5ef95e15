"""The LangGraph importer on databases: PostgreSQL, copies, growth, pruning, and which files it takes."""

import base64
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from ledger.events import Record
from ledger.events.approval import ApprovalDecided, ApprovalUsed
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import CheckpointTaken
from ledger.home import Ledger, open_ledger
from ledger.importers import Sniff, discover, importer_named
from ledger.importers._files import sniff
from ledger.importers._intake import import_paths
from ledger.importers._langgraph import thread
from ledger.store import verify
from tests.ledger.importers.fixtures import case_folders
from tests.ledger.importers.langgraph_cases import (
    FOLDER,
    brought_in,
    case,
    change,
    check_stale_approval,
    column,
    events,
    records,
    unpacked,
)

TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")
CASES = [folder.name for folder in case_folders("langgraph")]


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    """A fresh ledger."""
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened


@pytest.fixture
def saver_database(postgres_database: str) -> str:
    """A PostgreSQL database with the tables of a real run."""
    dump = json.loads(gzip.decompress((FOLDER / "postgres.json.gz").read_bytes()))
    with psycopg.connect(postgres_database) as connection:
        for table, content in dump.items():
            columns = [
                sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(kind)) for n, kind in content["columns"]
            ]
            connection.execute(
                sql.SQL("create table {} ({})").format(sql.Identifier(table), sql.SQL(",").join(columns))
            )
            marks = sql.SQL(",").join([sql.Placeholder()] * len(columns))
            for row in content["rows"]:
                values = [
                    base64.b64decode(value)
                    if kind == "bytea" and value is not None
                    else json.dumps(value)
                    if kind == "jsonb"
                    else value
                    for value, (_, kind) in zip(row, content["columns"], strict=True)
                ]
                connection.execute(
                    sql.SQL("insert into {} values ({})").format(sql.Identifier(table), marks), values
                )
    return postgres_database


def test_the_tables_of_postgres_saver_give_the_same(ledger: Ledger, saver_database: str) -> None:
    report = import_paths(ledger.recorder, [saver_database], format_name="langgraph")
    entry = report.files[0]
    assert (entry["format"], entry["lines"], entry["model_calls"], entry["compactions"]) == (
        "langgraph",
        69,
        6,
        3,
    )
    check_stale_approval(ledger)
    assert brought_in(ledger, saver_database)["records"] == 0
    assert verify(ledger.store).problems == []
    password = saver_database.partition("://")[2].partition("@")[0].partition(":")[2]
    told = json.dumps(report.as_json()) + "".join(str(record.source) for record in records(ledger))
    assert password and password not in told and "postgresql://127.0.0.1" in told


def test_a_database_without_checkpoints_or_without_a_server_is_named(
    ledger: Ledger, postgres_database: str
) -> None:
    empty = brought_in(ledger, postgres_database)
    assert empty["format"] is None and "no importer" in empty["reason"]
    gone = brought_in(ledger, "postgresql://somebody:hush@127.0.0.1:1/none")
    assert gone["format"] is None and "cannot be opened" in gone["reason"] and "hush" not in str(gone)
    other = brought_in(ledger, "mysql://somebody:hush@127.0.0.1/none")
    assert other["format"] is None and "hush" not in str(other)


def test_a_copy_under_another_name_adds_nothing_and_another_run_of_the_same_thread_is_another_session(
    ledger: Ledger, tmp_path: Path
) -> None:
    first = brought_in(ledger, case("one-run"))
    copy = unpacked("one-run", tmp_path)
    assert brought_in(ledger, copy)["records"] == 0
    other = brought_in(ledger, case("stale-approval"))  # its thread is called order-1 as well
    assert not set(first["sessions"]) & set(other["sessions"])
    assert all(session.startswith("order-1-") for session in (*first["sessions"], *other["sessions"]))


_FIRST_ANSWERS = """
update writes set value = (
    select substr(taken.value, 2) from writes as taken
    where taken.checkpoint_id = writes.checkpoint_id and taken.checkpoint_ns = writes.checkpoint_ns
        and taken.channel = '__resume__' and taken.task_id <> writes.task_id
)
where channel = '__resume__' and task_id like '00000000-%' and exists (
    select 1 from writes as taken
    where taken.checkpoint_id = writes.checkpoint_id and taken.checkpoint_ns = writes.checkpoint_ns
        and taken.channel = '__resume__' and taken.task_id <> writes.task_id
)
"""
# What stood in the rows before a second answer overwrote them: a task keeps a list (one byte more) of one answer.


@pytest.mark.parametrize("name", CASES)
def test_a_database_that_grows_is_told_as_if_read_at_once(
    name: str, tmp_path: Path, clock: Callable[[], str]
) -> None:
    whole = unpacked(name, tmp_path / "whole")
    with open_ledger(tmp_path / "at-once", clock=clock) as ledger:
        brought_in(ledger, whole)
        expected = [_essence(record) for record in records(ledger)]
    with open_ledger(tmp_path / "grown", clock=clock) as ledger:
        for upto in column(whole, "select checkpoint_id from checkpoints order by 1")[::2]:
            path = tmp_path / "part" / whole.name
            path.parent.mkdir(exist_ok=True)
            shutil.copy(whole, path)
            for table in ("checkpoints", "writes"):
                change(path, f"delete from {table} where checkpoint_id > '{upto}'")
            change(path, _FIRST_ANSWERS)
            brought_in(ledger, path)
        brought_in(ledger, whole)
        told = [_essence(record) for record in records(ledger)]
        assert verify(ledger.store).problems == []
    assert set(expected) <= set(told)
    extra = {kind for _, kind, _ in set(told) - set(expected)}
    assert extra <= {"session.ended", "ledger.source_kept"}  # a run that seemed over; writes not yet taken up


def _essence(record: Record) -> tuple[str, str, str]:
    """What a record says, without the ledger's own keys and places."""
    event = record.event
    names = (
        "call_id",
        "outcome",
        "checkpoint_id",
        "approval_id",
        "branch",
        "origin",
        "how",
        "compaction_id",
        "reason",
    )
    facts = {name: getattr(event, name, None) for name in names}
    return record.session, record.type, json.dumps(facts)


@pytest.mark.parametrize("name", CASES)
def test_what_is_forgotten_to_save_memory_is_read_again(
    name: str, tmp_path: Path, clock: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for kept in (64, 1):
        monkeypatch.setattr(thread, "_OPEN", kept)
        monkeypatch.setattr(thread, "_PLACES_KEPT", kept)
        with open_ledger(tmp_path / str(kept), clock=clock) as ledger:
            brought_in(ledger, case(name))
            told.append([_essence(record) for record in records(ledger)])
    assert told[0] == told[1]


def test_a_pruned_database_goes_on_in_the_session_that_holds_its_oldest_checkpoint(
    ledger: Ledger, tmp_path: Path
) -> None:
    before = brought_in(ledger, case("one-run"))
    path = unpacked("one-run", tmp_path)
    last = column(path, "select max(checkpoint_id) from checkpoints where checkpoint_ns = ''")[0]
    for table in ("checkpoints", "writes"):
        change(path, f"delete from {table} where checkpoint_id <> '{last}'")
    change(path, "update checkpoints set parent_checkpoint_id = null")
    after = brought_in(ledger, path)
    assert after["sessions"] == before["sessions"][:1]
    kept = [event.checkpoint_id for event in events(ledger, CheckpointTaken)]
    assert kept.count(last) == 1


def test_a_parent_whose_id_is_younger_than_its_childs_comes_first_all_the_same(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = unpacked("refused", tmp_path)
    second = column(path, "select checkpoint_id from checkpoints order by 1 limit 1 offset 1")[0]
    late = "9" + second[1:]
    for table, name in (
        ("checkpoints", "checkpoint_id"),
        ("checkpoints", "parent_checkpoint_id"),
        ("writes", "checkpoint_id"),
    ):
        change(path, f"update {table} set {name} = '{late}' where {name} = '{second}'")
    report = brought_in(ledger, path)
    assert (report["dangling_parents"], len(report["sessions"])) == (0, 1)
    assert [event.checkpoint_id for event in events(ledger, CheckpointTaken)][1] == late


@needs_traces
def test_the_shared_database_with_a_stale_approval(ledger: Ledger) -> None:
    report = brought_in(ledger, TRACES / "frameworks" / "langgraph" / "checkpoints-plain.sqlite.gz")
    assert {
        name: report[name] for name in ("lines", "model_calls", "tool_calls", "tool_results", "compactions")
    } == {
        "lines": 131,
        "model_calls": 12,
        "tool_calls": 10,
        "tool_results": 11,  # one call ran twice: in the run and in its fork
        "compactions": 4,
    }
    assert sorted(event.outcome for event in events(ledger, ApprovalDecided)) == ["approved", "denied"]
    assert [event.approval_id for event in events(ledger, ApprovalUsed)] == [
        "9867cccf8ffe9747af7c8a5d49ac5e97"
    ] * 2
    wire = TRACES / "frameworks" / "langgraph" / "proxy-langgraph-plain.jsonl"
    sent = wire.read_text(encoding="utf-8")
    for event in events(ledger, ModelCallAnswered):
        assert event.response_id is not None and event.response_id in sent
    assert verify(ledger.store).problems == []


@needs_traces
def test_only_databases_of_langgraph_are_recognised() -> None:
    importer = importer_named("langgraph")
    taken = [
        path for path in sorted(TRACES.rglob("*")) if path.is_file() and importer.recognizes(sniff(path))
    ]
    assert {path.name for path in taken} == {
        "checkpoints-plain.sqlite.gz",
        "langgraph_checkpoints_openinference.sqlite",
        "langgraph_checkpoints_traceloop.sqlite",
    }
    others = [one for name, one in discover().items() if name != "langgraph"]
    assert not [(one.FORMAT, path) for path in taken for one in others if one.recognizes(sniff(path))]


def test_a_file_that_only_begins_like_a_database_is_none(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"SQLite format 3\0" + bytes(5000))
    importer: Any = importer_named("langgraph")
    assert not importer.recognizes(sniff(path))
    assert not importer.recognizes(Sniff(tmp_path / "gone", b"SQLite format 3\0", 16))
