"""Inspect logs: approvals, agents in agents, branches, raw calls; archives that mean harm."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.policy import BreakerTripped
from ledger.events.session import SessionForked, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, records, shared

CASES = FIXTURES / "inspect"
AGENTS = CASES / "agents" / "weather.eval"


def test_a_refused_call_never_started(ledger: Ledger) -> None:
    imported(ledger, AGENTS)
    refused = next(event for event in events(ledger, ToolCallRequested) if event.tool == "delete")
    (decided,) = [event for event in events(ledger, ApprovalDecided) if event.call_id == refused.call_id]
    assert (decided.outcome, decided.decided_by, decided.evidence) == ("denied", "policy", "logged")
    (settled,) = [event for event in events(ledger, ToolCallSettled) if event.call_id == refused.call_id]
    assert settled.outcome == "denied"
    assert refused.call_id not in [event.call_id for event in events(ledger, ToolCallStarted)]


def test_an_agent_that_another_calls_is_a_session_and_comes_back_before_the_call_ends(ledger: Ledger) -> None:
    imported(ledger, AGENTS)
    (started,) = events(ledger, DelegationStarted)
    call = next(event for event in events(ledger, ToolCallRequested) if event.tool == "clerk")
    assert (started.to_agent, started.call_id) == ("clerk", call.call_id)
    child = [record.event for record in ledger.store.read(started.to_session)]
    assert isinstance(child[0], SessionStarted)
    assert child[0].agent == "clerk"
    asked = [event.purpose for event in child if isinstance(event, ModelCallRequested)]
    assert asked == ["sub-agent", "sub-agent"]
    parent = [record.event for record in ledger.store.read(child[0].parent or "")]
    places = {
        type(event).__name__: index for index, event in enumerate(parent) if _is_about(event, call.call_id)
    }
    assert places["ToolCallStarted"] < places["DelegationStarted"] < places["ToolCallSettled"]


def _is_about(event: Any, call_id: str) -> bool:
    return getattr(event, "call_id", None) == call_id


def test_a_call_of_the_client_is_rebuilt_in_the_shape_of_its_provider(ledger: Ledger) -> None:
    imported(ledger, AGENTS)
    first = events(ledger, ModelCallRequested)[0]
    assert (first.protocol, first.completeness) == ("openai.chat", "messages")
    assert content(ledger, first.system) == {"role": "developer", "content": "You are the chief."}
    assert {record.grade for record in records(ledger) if record.event == first} == {"near-wire"}
    answer = events(ledger, ModelCallAnswered)[0]
    assert answer.response_id is not None
    assert answer.usage.input_tokens == 100


def test_a_log_as_json_says_the_same(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "one_answer" / "weather.json")
    assert (report["model_calls"], report["native"]["samples"]) == (1, 1)
    assert report["tokens"] == {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0}


def test_compaction_branch_limit_failure_and_approval_of_a_person(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "events" / "drawer.json")
    (done,) = events(ledger, CompactionDone)
    assert (done.evidence, done.tokens_before, done.messages_before) == ("logged", 900, 2)
    (forked,) = events(ledger, SessionForked)
    assert forked.origin in report["sessions"]
    assert [event.breaker for event in events(ledger, BreakerTripped)] == ["message limit"]
    assert len(events(ledger, ModelCallFailed)) == 1
    assert [event.decided_by for event in events(ledger, ApprovalDecided)] == ["human"]
    assert [event.outcome for event in events(ledger, DelegationReturned)] == ["returned"]
    assert report["unknown"] == {"event:hologram": 1}
    assert (report["orphan_results"], report["unanswered_calls"]) == (0, 0)


def test_a_member_that_swells_is_refused_and_the_others_are_read(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}})
        )
        archive.writestr("samples/1_epoch_1.json", b" " * (40 * 1024 * 1024))
        archive.writestr(
            "samples/2_epoch_1.json", json.dumps({"id": 2, "epoch": 1, "messages": [], "events": []})
        )
    report = imported(ledger, path)
    assert [entry["reason"].partition(":")[0] for entry in report["quarantined"]] == [
        "'samples/1_epoch_1.json'"
    ]
    assert report["native"]["samples"] == 1
    assert verify(ledger.store).problems == []


def test_names_that_are_paths_write_nothing(ledger: Ledger, tmp_path: Path) -> None:
    sample = json.dumps({"id": "../../x", "epoch": 1, "messages": [{"role": "user", "content": "hi"}]})
    path = tmp_path / "paths.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
        for name in ("samples/../../../escaped.json", "/samples/absolute.json", "samples/a\\..\\b.json"):
            archive.writestr(name, sample)
    before = sorted(tmp_path.rglob("*"))
    report = imported(ledger, path)
    assert report["native"]["samples"] == 2
    grown = {file for file in tmp_path.rglob("*") if file not in before}
    assert all(tmp_path / "home" in (file, *file.parents) for file in grown)
    assert not any(".." in session and "/" in session.split("..")[0] for session in report["sessions"])


def test_an_archive_that_is_cut_is_reported(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "cut.eval"
    path.write_bytes(AGENTS.read_bytes()[:4000])
    report = imported(ledger, path)
    assert len(report["quarantined"]) == 1
    assert "expected a whole archive" in report["quarantined"][0]["reason"]


def test_attachments_and_pooled_messages_are_put_back(ledger: Ledger, tmp_path: Path) -> None:
    text, name = "a very long text", "0123456789abcdef0123456789abcdef"
    model: dict[str, Any] = {
        "event": "model",
        "timestamp": "2026-01-01T00:00:00Z",
        "model": "m",
        "input": [],
        "input_refs": [[0, 1]],
    }
    model["output"] = {"choices": [{"message": {"role": "assistant", "content": f"attachment://{name}"}}]}
    sample = {
        "id": 1,
        "epoch": 1,
        "events": [model],
        "attachments": {name: text},
        "events_data": {"messages": [{"role": "user", "content": f"attachment://{name}"}], "calls": []},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    path = tmp_path / "pools.eval"
    path.write_bytes(buffer.getvalue())
    imported(ledger, path)
    (request,) = events(ledger, ModelCallRequested)
    (digest,) = ledger.store.context(request.context)
    assert json.loads(ledger.store.content(digest))["content"] == text
    (answer,) = events(ledger, ModelCallAnswered)
    assert content(ledger, answer.message)["content"] == text


def test_scores_and_targets_are_kept_and_become_no_fact(ledger: Ledger) -> None:
    imported(ledger, AGENTS)
    kept = [event for event in events(ledger, SourceKept) if event.native_type == "sample"]
    assert "scores" in content(ledger, kept[0].body)


COUNTED = sorted(TRACES.rglob("*.eval")) if TRACES.exists() else []


@pytest.mark.parametrize("path", COUNTED, ids=[path.name for path in COUNTED])
def test_real_logs_have_the_counts_that_were_counted_apart(path: Path, ledger: Ledger) -> None:
    (counted,) = shared("EXPECTED.json")
    expected = json.loads(counted.read_text(encoding="utf-8"))[path.relative_to(TRACES).as_posix()]
    native = imported(ledger, path)["native"]
    assert {name: native.get(name, 0) for name in expected} == expected
