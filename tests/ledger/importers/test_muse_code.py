"""The Muse Code importer: approvals with their deciders, compaction, damage that the host reports, hostile frames."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.governance import ModeChanged
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.tool_call import ToolCallSettled
from ledger.home import open_ledger
from ledger.importers import muse_code
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
    with_ledger,
)

(TRANSCRIPT,) = trace_files(FIXTURES / "muse-code" / "approvals")


def test_who_decided_and_how_far_it_reaches(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [TRANSCRIPT])
    assert [one.call_id for one in events_of(records, ApprovalAsked)] == ["call-1", "call-2"]
    decided = [
        (one.outcome, one.decided_by, one.scope, one.evidence) for one in events_of(records, ApprovalDecided)
    ]
    assert decided == [("approved", "human", "session", "logged"), ("denied", "judge", "once", "logged")]
    assert [one.outcome for one in events_of(records, ToolCallSettled)] == ["returned", "denied"]
    modes = [
        (one.old, one.new, one.cause) for one in events_of(records, ModeChanged) if one.mode == "approval"
    ]
    assert modes == [(None, "ask", "startup"), ("ask", "auto", "human")]


def test_model_calls_end_where_tokens_are_reported(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [TRANSCRIPT]).files
        records = list(ledger.store.read_all())
    assert (report["model_calls"], report["tool_calls"], report["compactions"]) == (3, 2, 1)
    assert report["tokens"] == {"input": 2600, "output": 55, "cache_read": 600, "cache_write": 0}
    requests = events_of(records, ModelCallRequested)
    assert [one.completeness for one in requests] == ["messages", "messages", "none"]
    (done,) = events_of(records, CompactionDone)
    assert (done.trigger, done.tokens_before, done.tokens_after) == ("auto", 1400, 200)
    assert any("what a compaction left" in part for part in requests[-1].not_seen)


def test_sub_agents_damage_gaps_and_what_is_unknown(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [TRANSCRIPT])
    (handed,), (back,) = events_of(records, DelegationStarted), events_of(records, DelegationReturned)
    assert (handed.to_session, back.outcome) == ("ses-lab-2", "returned")
    reasons = [one.reason for one in events_of(records, DamageFound)]
    assert "2 unreadable lines, 3 missing records" in reasons[0]
    assert "the view has a gap" in reasons[1]
    assert len(events_of(records, RolledBack)) == 1
    unknown = [one.native_type for one in events_of(records, SourceKept) if not one.recognized]
    assert unknown == ["server:brand/new"]


def test_damaged_lines_and_frames(tmp_path: Path) -> None:
    lines = TRANSCRIPT.read_bytes().splitlines(keepends=True)
    lines[6] = b'{"dir":"server","raw":"{cut"}\n'
    lines[7] = b'{"dir":"server","raw":7}\n'
    lines[-1] = lines[-1][:-9]
    path = tmp_path / "transcript.ndjson"
    path.write_bytes(b"".join(lines))
    with open_ledger(tmp_path / "home") as ledger:
        (report,) = import_paths(ledger.recorder, [path]).files
    assert [one["line"] for one in report["quarantined"]] == [7, 8, 24, 27, 28]
    assert report["model_calls"] == 3


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    check_foreign(muse_code, tmp_path)


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    rows = [{**row, "raw": json.loads(row["raw"])} for row in lines_of(TRANSCRIPT)]
    changed = mutated(data, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transcript.ndjson"
        lines = []
        for row in changed:
            packed = {**row, "raw": json.dumps(row["raw"])} if isinstance(row, dict) and "raw" in row else row
            lines.append(json.dumps(packed))
        path.write_text("\n".join(lines), encoding="utf-8")
        check_import([path], Path(folder) / "home", "muse-code")


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces() -> None:
    assert check_traces(muse_code) == []
