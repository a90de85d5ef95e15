"""The TrueForge importer: events and tables, approvals, sub-agents, inferred compactions, hostile rows."""

import contextlib
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
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import ModelCallRequested
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallSettled
from ledger.importers import trueforge
from ledger.importers._jsonb import decode_jsonb
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

(LOG,) = trace_files(FIXTURES / "trueforge" / "events")
(TABLES,) = trace_files(FIXTURES / "trueforge" / "tables")


@pytest.mark.parametrize("path", [LOG, TABLES], ids=["events", "tables"])
def test_approvals_and_sub_agents(path: Path, tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [path])
    assert [one.call_id for one in events_of(records, ApprovalAsked)] == ["c1", "c2"]
    decided = [
        (one.call_id, one.outcome, one.decided_by, one.how) for one in events_of(records, ApprovalDecided)
    ]
    assert decided == [("c1", "approved", "human", "allow"), ("c2", "denied", "human", "keep it")]
    assert {one.call_id: one.outcome for one in events_of(records, ToolCallSettled)} == {
        "c1": "returned",
        "c2": "denied",
        "c3": "returned",
    }
    (handed,), (back,) = events_of(records, DelegationStarted), events_of(records, DelegationReturned)
    assert (handed.call_id, back.outcome, handed.to_session) == ("c3", "returned", back.from_session)
    child = next(one for one in events_of(records, SessionStarted) if one.parent is not None)
    assert child.agent == "looker"


def test_a_compaction_without_an_event_is_inferred_from_tokens(tmp_path: Path) -> None:
    records = with_ledger(tmp_path / "home", [LOG])
    (done,) = events_of(records, CompactionDone)
    assert (done.evidence, done.tokens_before, done.tokens_after) == ("inferred", 800, 200)
    last = [one for one in events_of(records, ModelCallRequested) if one.purpose == "main"][-1]
    assert any("what a compaction left" in part for part in last.not_seen)


def test_a_compaction_is_inferred_from_context_rows_that_are_gone(tmp_path: Path) -> None:
    found: list[bytes] = []
    records = with_ledger(
        tmp_path / "home",
        [TABLES],
        lambda ledger: found.extend(
            ledger.store.content(one.summary.digest)
            for one in events_of(list(ledger.store.read_all()), CompactionDone)
        ),
    )
    (done,) = events_of(records, CompactionDone)
    assert (done.evidence, done.messages_before, done.messages_after) == ("inferred", 2, 1)
    assert "append ids 1 to 2" in (done.evidence_detail or "")
    assert b"SUMMARY: a was written." in found[0]


def test_a_listed_answer_of_the_api_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"data": lines_of(LOG), "pagination": {}}, indent=1), encoding="utf-8")
    records = with_ledger(tmp_path / "home", [path])
    assert len(events_of(records, ModelCallRequested)) == 3


def test_a_row_that_is_no_json_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "trueforge.db"
    path.write_bytes(TABLES.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("update session_event set event = x'ff00ff' where event_id = '01E005'")
        database.execute("update session_event set event = 7 where event_id = '01E007'")
        database.commit()
    assert len(events_of(with_ledger(tmp_path / "home", [path]), DamageFound)) == 2


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    check_foreign(trueforge, tmp_path)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"\x00", None),
        (b"\x01", True),
        (b"\x1312"[:2], 1),
        (b"\x357.5"[:4], 7.5),
        (b"\x27hi", "hi"),
        (b"\x48a\\nb", "a\nb"),
        (b"\x4b\x131\x131", [1, 1]),
        (b"\x4c\x17a\x131", {"a": 1}),
        (b"\xc7\x03abc", "abc"),
    ],
)
def test_binary_json(content: bytes, value: Any) -> None:
    assert decode_jsonb(content) == value


@given(st.binary(max_size=40))
def test_binary_json_of_any_bytes_is_a_value_or_a_value_error(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode_jsonb(content)


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_wrong_types_anywhere_do_no_harm(data: st.DataObject) -> None:
    changed = mutated(data, lines_of(LOG))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.ndjson"
        path.write_text("\n".join(json.dumps(row) for row in changed), encoding="utf-8")
        check_import([path], Path(folder) / "home", "trueforge")


@pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces here")
def test_shared_traces() -> None:
    assert check_traces(trueforge) == []
