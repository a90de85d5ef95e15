"""The opencode importer: its event log, the tables before it, compaction, permissions, damage."""

import contextlib
import gzip
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.effect import EffectDone
from ledger.events.governance import ModeChanged
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallSettled
from ledger.home import open_ledger
from ledger.importers import opencode
from ledger.importers._files import sniff
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.harness_checks import (
    TRACES,
    check_foreign,
    check_import,
    check_traces,
    events_of,
    mutated,
    with_ledger,
)

(PACKED,) = trace_files(FIXTURES / "opencode" / "permissions")


def _database(folder: Path, *statements: str) -> Path:
    path = folder / "opencode.db"
    path.write_bytes(gzip.decompress(PACKED.read_bytes()))
    with contextlib.closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


def _rows(path: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = database.execute("select seq, type, data from event order by seq").fetchall()
    return [{"seq": seq, "type": kind, "data": json.loads(data)} for seq, kind, data in found]


def _with_events(folder: Path, rows: list[Any]) -> Path:
    """The database with other events, and nothing but events."""
    path = _database(
        folder, "delete from event", "delete from part", "delete from message", "delete from session"
    )
    with contextlib.closing(sqlite3.connect(path)) as database:
        for index, row in enumerate(rows):
            native = row if isinstance(row, dict) else {}
            kind = native.get("type")
            values = (
                f"e{index}",
                "ses_x",
                index,
                kind if isinstance(kind, str) and kind.isascii() else "none",
            )
            database.execute(
                "insert into event values (?, ?, ?, ?, ?)", (*values, json.dumps(native.get("data")))
            )
        database.commit()
    return path


def _event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"sessionID": "ses_x", **data}}


def test_the_event_log_gives_each_call_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [PACKED]).files
        records = list(ledger.store.read_all())
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (4, 4, 4)
    assert report["tokens"] == {"input": 4000, "output": 80, "cache_read": 1200, "cache_write": 200}
    assert [one.context_length for one in events_of(records, ModelCallRequested)] == [1, 2, 3, 5]
    outcomes = {one.call_id: (one.outcome, one.error) for one in events_of(records, ToolCallSettled)}
    assert outcomes["call_0002"] == ("failed", "exit code 3")
    assert outcomes["call_0004"][0] == "denied"
    (decided,) = events_of(records, ApprovalDecided)
    assert (decided.call_id, decided.decided_by, decided.evidence) == ("call_0004", "policy", "inferred")
    assert [one.target for one in events_of(records, EffectDone)] == ["greeting.txt"]
    assert any(one.mode == "permission" for one in events_of(records, ModeChanged))
    assert [str(one.cost_usd) for one in events_of(records, ModelCallAnswered)] == ["0.0011"] * 4


def test_native_seqs_are_the_source_items(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [PACKED])
    found = {record.source.item for record in records if record.source is not None}
    assert found == {f"seq:{seq}" for seq in range(len(_rows(_database(tmp_path))))}


def test_without_an_event_log_the_tables_tell_the_same_story(tmp_path: Path) -> None:
    path = _database(tmp_path, "delete from event")
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [path]).files
        records = list(ledger.store.read_all())
        assert import_paths(ledger.recorder, [path]).records_added == 0
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (4, 4, 4)
    assert report["tokens"]["input"] == 4000
    assert [one.context_length for one in events_of(records, ModelCallRequested)] == [1, 2, 3, 5]
    assert [one.harness_version for one in events_of(records, SessionStarted)] == ["1.18.33"]


def test_compaction_permission_failure_and_revert(tmp_path: Path) -> None:
    user = {"id": "m1", "role": "user", "time": {"created": 1}}
    failed = {"id": "m2", "role": "assistant", "error": {"name": "APIError", "data": {"statusCode": 529}}}
    summary = {"id": "m3", "role": "assistant", "summary": True, "modelID": "lab"}
    after = {"id": "m4", "role": "assistant", "modelID": "lab"}
    finish = {
        "type": "step-finish",
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4}},
    }
    rows = [
        _event("message.updated.1", info=user),
        _event("message.part.updated.1", part={"id": "p1", "messageID": "m1", "type": "text", "text": "hi"}),
        _event("message.updated.1", info=failed),
        _event("permission.asked.1", id="per_1", permission="bash", tool={"callID": "c1"}),
        _event("permission.replied.1", requestID="per_1", reply="reject"),
        _event(
            "message.part.updated.1", part={"id": "p2", "messageID": "m1", "type": "compaction", "auto": True}
        ),
        _event("message.updated.1", info=summary),
        _event("message.part.updated.1", part={"id": "p3", "messageID": "m3", "type": "text", "text": "SUM"}),
        _event("message.part.updated.1", part={"id": "p4", "messageID": "m3", **finish}),
        _event("message.updated.1", info=after),
        _event("message.part.updated.1", part={"id": "p5", "messageID": "m4", "type": "step-start"}),
        _event("message.part.updated.1", part={"id": "p6", "messageID": "m4", "type": "text", "text": "on"}),
        _event("message.removed.1", messageID="m1"),
    ]
    records = with_ledger(tmp_path / "home", [_with_events(tmp_path, rows)])
    assert [(one.error, one.status) for one in events_of(records, ModelCallFailed)] == [("APIError", 529)]
    (asked,), (decided,) = events_of(records, ApprovalAsked), events_of(records, ApprovalDecided)
    assert (asked.approval_id, decided.approval_id, decided.outcome) == ("per_1", "per_1", "denied")
    (done,) = events_of(records, CompactionDone)
    assert (done.trigger, done.evidence, done.messages_after) == ("auto", "logged", 1)
    requests = events_of(records, ModelCallRequested)
    assert [one.purpose for one in requests] == ["main", "compaction", "main"]
    assert requests[-1].context_length == 1
    answers = events_of(records, ModelCallAnswered)
    assert [one.completeness for one in answers] == ["complete", "partial"]
    assert (answers[0].usage.output_tokens, answers[0].usage.reasoning_tokens) == (5, 3)
    assert len(events_of(records, RolledBack)) == 1


def test_a_row_that_is_no_json_is_damage(tmp_path: Path) -> None:
    cut = "update event set data = '{\"cut' where seq = 10"
    path = _database(tmp_path, cut, "update event set data = x'ff00' where seq = 11")
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [path]).files
        records = list(ledger.store.read_all())
    assert len(report["quarantined"]) == len(events_of(records, DamageFound)) == 2
    assert report["model_calls"] == 4


def test_a_cut_file_and_foreign_files(tmp_path: Path) -> None:
    check_foreign(opencode, tmp_path)
    path = _database(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    check_import([path], tmp_path / "home", "opencode")
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as database:
        database.execute("create table message (id text, session_id text, data text)")
        database.commit()
    assert not opencode.recognizes(sniff(other))


@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(_database(Path(folder)))
        start = data.draw(st.integers(0, len(rows) - 20))
        path = _with_events(Path(folder), mutated(data, rows[start : start + 20]))
        check_import([path], Path(folder) / "home", "opencode")


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces() -> None:
    assert check_traces(opencode) == []
