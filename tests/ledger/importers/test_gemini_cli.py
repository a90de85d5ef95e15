"""The Gemini CLI importer: patches, both file kinds, resumption, messages that vanish, damage."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.effect import EffectDone
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.session import SessionResumed
from ledger.events.tool_call import ToolCallSettled
from ledger.home import open_ledger
from ledger.importers import gemini_cli
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.harness_checks import (
    TRACES,
    check_foreign,
    check_import,
    check_traces,
    events_of,
    lines_of,
    mutated,
    with_damage,
    with_ledger,
    write_lines,
)

(LOG,) = trace_files(FIXTURES / "gemini-cli" / "resumed")


def _chat(rows: list[Any]) -> dict[str, Any]:
    """The chat as one object: the last state of every message."""
    messages: dict[str, Any] = {}
    for row in rows:
        for message in row.get("$set", {}).get("messages", []) or ([row] if "id" in row else []):
            if "tokens" in message or (message["id"] not in messages and "_response" not in message["id"]):
                messages[message["id"]] = message
    head = {name: rows[0][name] for name in ("sessionId", "projectHash", "startTime", "lastUpdated")}
    return {**head, "messages": list(messages.values())}


def test_rows_that_come_again_are_told_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [LOG]).files
        records = list(ledger.store.read_all())
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (4, 4, 4)
    assert report["tokens"] == {"input": 4000, "output": 100, "cache_read": 1200, "cache_write": 0}
    assert [one.context_length for one in events_of(records, ModelCallRequested)] == [2, 4, 6, 8]
    assert len(events_of(records, SessionResumed)) == 1
    assert events_of(records, CompactionDone) == []
    outcomes = [one.outcome for one in events_of(records, ToolCallSettled)]
    assert outcomes == ["returned", "returned", "returned", "failed"]
    assert [one.target for one in events_of(records, EffectDone)] == ["greeting.txt"]


def test_an_approval_that_left_no_record_is_unknown(tmp_path: Path) -> None:
    decided = events_of(with_ledger(tmp_path / "home", [LOG]), ApprovalDecided)
    assert {(one.outcome, one.decided_by, one.evidence) for one in decided} == {
        ("unknown", "unknown", "inferred")
    }
    assert [one.call_id for one in decided] == ["run_shell_command__call_0002", "replace__call_0003"]


def test_the_chat_as_one_object_gives_the_same_counts(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    path.write_text(json.dumps(_chat(lines_of(LOG)), indent=2), encoding="utf-8")
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [path]).files
        records = list(ledger.store.read_all())
        assert import_paths(ledger.recorder, [path]).records_added == 0
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (4, 4, 4)
    assert report["tokens"]["input"] == 4000
    assert [one.context_length for one in events_of(records, ModelCallRequested)] == [2, 4, 6, 8]


def test_a_chat_that_grows_adds_only_what_is_new(tmp_path: Path) -> None:
    chat = _chat(lines_of(LOG))
    path = tmp_path / "session-x.json"
    with open_ledger(tmp_path / "home") as ledger:
        report: dict[str, Any] = {}
        early = {**chat, "messages": [*chat["messages"][:2], {**chat["messages"][2], "toolCalls": []}]}
        for one in (early, {**chat, "messages": chat["messages"][:4]}, chat):
            path.write_text(json.dumps(one), encoding="utf-8")
            (report,) = import_paths(ledger.recorder, [path]).files
        answers = events_of(list(ledger.store.read_all()), ModelCallAnswered)
        assert report["model_calls"] == 4
        assert len({one.call_id for one in answers}) == 4


def test_messages_that_vanish_before_the_next_request_are_a_compaction(tmp_path: Path) -> None:
    rows = lines_of(LOG)
    summary = {
        "id": "sum",
        "timestamp": "2026-11-29T16:50:00Z",
        "type": "user",
        "content": [{"text": "SUMMARY"}],
    }
    rows.insert(-2, {"$set": {"messages": [summary]}})
    records = with_ledger(tmp_path / "home", [write_lines(tmp_path / "session-x.jsonl", rows)])
    (done,) = events_of(records, CompactionDone)
    assert (done.evidence, done.messages_before, done.messages_after) == ("inferred", 6, 1)
    assert "6 messages of the last request are gone" in (done.evidence_detail or "")
    last = events_of(records, ModelCallRequested)[-1]
    assert last.context_length == 1


def test_a_rewind_and_an_unknown_patch(tmp_path: Path) -> None:
    rows = lines_of(LOG)
    rows[-2:-2] = [{"$rewindTo": rows[2]["id"]}, {"$unset": {"x": 1}}]
    records = with_ledger(tmp_path / "home", [write_lines(tmp_path / "session-x.jsonl", rows)])
    assert [one.reason for one in events_of(records, RolledBack)] == ["$rewindTo"]
    assert events_of(records, CompactionDone) == []
    assert [one.native_type for one in events_of(records, SourceKept) if not one.recognized] == ["$unset"]
    assert events_of(records, ModelCallRequested)[-1].context_length == 1


def test_damage_in_the_middle_costs_its_own_line_alone(tmp_path: Path) -> None:
    records = with_damage(tmp_path, LOG, line=3, spoiled=b'{"$set":\n', cut=9)
    assert len(events_of(records, DamageFound)) == 2
    assert len(events_of(records, ModelCallAnswered)) == 4


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    check_foreign(gemini_cli, tmp_path)


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    rows = lines_of(LOG)
    with tempfile.TemporaryDirectory() as folder:
        if data.draw(st.booleans()):
            path = Path(folder) / "session-x.json"
            path.write_text(json.dumps(mutated(data, _chat(rows)), indent=1), encoding="utf-8")
        else:
            start = data.draw(st.integers(0, len(rows) - 8))
            path = write_lines(Path(folder) / "session-x.jsonl", mutated(data, rows[start : start + 8]))
        check_import([path], Path(folder) / "home", "gemini-cli")


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces(tmp_path: Path) -> None:
    taken = check_traces(gemini_cli)
    names = ["standard_session.json", "system_messages.json", "thinking_only.json", "tool_calls.json"]
    assert [path.name for path in taken] == names
    with open_ledger(tmp_path / "home") as ledger:
        files = import_paths(ledger.recorder, taken).files
    assert [(one["model_calls"], one["tool_calls"]) for one in files] == [(2, 0), (0, 0), (1, 0), (1, 1)]
