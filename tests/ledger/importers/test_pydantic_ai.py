"""Pydantic AI: message histories, what became of calls that waited for an answer, and refused answers."""

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.capability import CapabilityLoaded
from ledger.events.compaction import CompactionDone
from ledger.events.input import ContextInjected
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionForked, SessionResumed
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.importers._intake import import_paths
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, shared

CASES = FIXTURES / "pydantic-ai"
HISTORY = json.loads((CASES / "responses" / "2-approved.json").read_text(encoding="utf-8"))


def test_a_history_that_goes_on_adds_to_its_session_and_another_answer_forks_it(ledger: Ledger) -> None:
    report = import_paths(ledger.recorder, trace_files(CASES / "responses"))
    run, _ = report.sessions
    (forked,) = events(ledger, SessionForked)
    (resumed, also) = events(ledger, SessionResumed)
    assert resumed == also
    assert forked.origin == run
    last_shared = list(ledger.store.read(run))[forked.origin_seq - 1].event
    assert isinstance(last_shared, ToolCallRequested)
    assert last_shared.tool == "erp_write"


def test_answers_leave_no_record_and_are_inferred_from_what_became_of_the_call(ledger: Ledger) -> None:
    import_paths(ledger.recorder, trace_files(CASES / "anthropic"))
    assert events(ledger, ApprovalAsked) == []
    decided = events(ledger, ApprovalDecided)
    assert [(one.outcome, one.decided_by, one.evidence) for one in decided] == [
        ("unknown", "unknown", "inferred"),
        ("denied", "unknown", "inferred"),
    ]
    settled = [event.outcome for event in events(ledger, ToolCallSettled)]
    assert settled[-2:] == ["returned", "denied"]


def test_a_retry_is_a_failed_call_with_its_cause(ledger: Ledger) -> None:
    imported(ledger, CASES / "responses" / "2-approved.json")
    (failed,) = [event for event in events(ledger, ToolCallSettled) if event.outcome == "failed"]
    assert failed.error == "model_retry"
    assert content(ledger, failed.result) == "policy PR-7: at most 15 %"


def test_feedback_on_an_answer_is_injected_by_the_harness(ledger: Ledger) -> None:
    imported(ledger, CASES / "chat" / "retries.json")
    assert [event.provenance for event in events(ledger, ContextInjected)] == ["retry"]
    outcomes = [(event.outcome, event.error) for event in events(ledger, ToolCallSettled)]
    assert outcomes == [("failed", "validation_error"), ("returned", None)]


def test_all_calls_of_the_wire_are_there_but_those_of_the_agent_inside_a_tool(ledger: Ledger) -> None:
    for case in ("responses", "anthropic", "chat"):
        wire = json.loads((CASES / case / "wire.json").read_text(encoding="utf-8"))
        report = import_paths(ledger.recorder, trace_files(CASES / case))
        new = [
            record
            for session in report.sessions
            for record in ledger.store.read(session)
            if isinstance(record.event, ModelCallAnswered)
        ]
        assert len(new) == sum(wire.values()) - wire.get("expert", 0)
        assert all(record.event.response_id for record in new)  # type: ignore[attr-defined]


def test_a_model_call_saw_the_messages_before_it_and_tokens_count_once(ledger: Ledger) -> None:
    report = imported(ledger, CASES / "responses" / "2-approved.json")
    assert report["tokens"] == {"input": 600, "output": 120, "cache_read": 60, "cache_write": 0}
    for count, messages in contexts(ledger).items():
        seen = int(count.removeprefix("message:")) - 1
        assert [one["parts"] for one in messages] == [one["parts"] for one in HISTORY[:seen]]
    (first, *_) = events(ledger, ModelCallRequested)
    assert content(ledger, first.system) == "You are the procurement agent."


def test_what_rare_parts_say_is_told(ledger: Ledger, tmp_path: Path) -> None:
    history = [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "user-prompt", "content": "Go on."},
                {"part_kind": "compaction", "content": "They talked."},
                {"part_kind": "tool-availability-delta", "tools_added": ["erp_write"]},
                {"part_kind": "dream"},
            ],
        },
        {
            "kind": "response",
            "parts": [
                {
                    "part_kind": "builtin-tool-call",
                    "tool_name": "web_search",
                    "args": {},
                    "tool_call_id": "w",
                },
                {
                    "part_kind": "builtin-tool-return",
                    "tool_name": "web_search",
                    "content": [],
                    "tool_call_id": "w",
                },
            ],
            "usage": {"request_tokens": 7, "response_tokens": 2},
            "failed_attempts": [{"model_name": "first", "outcome": "error", "error": "no luck"}],
            "state": "interrupted",
        },
    ]
    path = tmp_path / "history.json"
    path.write_text(json.dumps(history), encoding="utf-8")
    report = imported(ledger, path)
    assert report["unknown"] == {"part:dream": 1}
    assert (report["failed_calls"], report["compactions"], report["tokens"]["input"]) == (1, 1, 7)
    (loaded,) = events(ledger, CapabilityLoaded)
    (call,) = events(ledger, ToolCallRequested)
    (answered,) = events(ledger, ModelCallAnswered)
    assert (loaded.capability, call.provider_executed, answered.completeness) == (
        "erp_write",
        True,
        "aborted",
    )
    assert [event.will_retry for event in events(ledger, ModelCallFailed)] == [True]
    assert [event.evidence for event in events(ledger, CompactionDone)] == ["logged"]
    assert [event.attempt for event in events(ledger, ModelCallRequested)] == [1, 2]


def test_a_torn_history_keeps_what_can_be_read(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    whole = (CASES / "responses" / "2-approved.json").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    report = imported(ledger, path)
    assert len(report["quarantined"]) == 1
    assert report["model_calls"] >= 2
    assert len(events(ledger, DamageFound)) == 1


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(out_of_shape(HISTORY))
def test_a_history_out_of_shape_never_breaks_an_import(history: Any) -> None:
    def write(path: Path) -> None:
        path.write_text(written(history), encoding="utf-8")

    survives(write, "pydantic-ai", "history.json")


def test_real_histories_are_taken_by_this_importer_alone(ledger: Ledger) -> None:
    (folder,) = shared("frameworks/pydantic-ai")
    found = recognized(TRACES, "pydantic-ai")
    assert {path: names for path, names in found.items() if names != ["pydantic-ai"]} == {}
    assert len([path for path in found if path.parent == folder]) == 4
    for path in found:
        report = imported(ledger, path)
        assert (report["quarantined"], report["unknown"], report["orphan_results"]) == ([], {}, 0)


def test_a_real_history_holds_the_answers_of_the_wire(ledger: Ledger) -> None:
    history, wire = shared(
        "frameworks/pydantic-ai/messages-final-anthropic.json",
        "frameworks/pydantic-ai/proxy-pydantic-ai-anthropic.jsonl",
    )
    imported(ledger, history)
    sent: set[str] = set()
    for line in wire.read_text(encoding="utf-8").splitlines():
        sent.update(
            re.findall(r'"id": ?"(msg_[^"]+)"', "".join(text for _, text in json.loads(line)["chunks"]))
        )
    told = {event.response_id for event in events(ledger, ModelCallAnswered)}
    assert told <= sent
    assert len(told) == 8  # the two others: an agent inside a tool, and a run of its own
