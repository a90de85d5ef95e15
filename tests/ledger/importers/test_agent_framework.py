"""Microsoft Agent Framework: sessions, checkpoints with pickled objects, middleware dumps, workflow events."""

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.recovery import CheckpointTaken, DamageFound
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, trace_files
from tests.ledger.importers.framework_traces import contexts, out_of_shape, recognized, survives, written
from tests.ledger.importers.plain_traces import TRACES, content, events, imported, records, shared

CASES = FIXTURES / "agent-framework"
FILES = [path for path in trace_files(CASES) if path.suffix == ".json"]
SAVES = sorted((CASES / "checkpoints").glob("[0-9].json"))
HOOKS = CASES / "middleware" / "middleware.json"
BODIES = [json.loads(path.read_text(encoding="utf-8")) for path in FILES]


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickled_object_is_kept_as_text_and_never_opened(ledger: Ledger, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    hostile = base64.b64encode(pickle.dumps(Canary(canary))).decode()
    body = json.loads(SAVES[1].read_text(encoding="utf-8"))
    body["pending_request_info_events"] = {
        "af-call-9": {"__pickled__": hostile, "__type__": "tests.x:Canary"}
    }
    body["state"]["_executor_state"]["gardener"]["full_conversation"] = [{"__pickled__": hostile}]
    path = tmp_path / "checkpoint.json"
    path.write_text(written(body), encoding="utf-8")
    assert imported(ledger, path)["format"] == "agent-framework"
    (kept,) = events(ledger, SourceKept)
    held = content(ledger, kept.body)
    assert held["pending_request_info_events"]["af-call-9"]["__type__"] == "tests.x:Canary"
    assert not canary.exists()
    pickle.loads(base64.b64decode(hostile))  # noqa: S301  # our own, to show that it would have
    assert canary.exists(), "the pickle would have written the file"


def test_checkpoints_of_a_run_share_a_session_and_tell_an_approval_once(ledger: Ledger) -> None:
    for path in SAVES:
        imported(ledger, path)
    assert len({record.session for record in records(ledger)}) == 1
    saved = [json.loads(path.read_text(encoding="utf-8"))["checkpoint_id"] for path in SAVES]
    assert [one.checkpoint_id for one in events(ledger, CheckpointTaken)] == saved
    (asked,) = events(ledger, ApprovalAsked)
    (decided,) = events(ledger, ApprovalDecided)
    assert (asked.call_id, asked.tool) == ("call_sow", "sow")
    assert (decided.approval_id, decided.outcome, decided.evidence) == (
        asked.approval_id,
        "unknown",
        "inferred",
    )


def test_a_session_saved_again_adds_its_new_messages(ledger: Ledger) -> None:
    for name in ("1-interrupted.json", "2-final.json"):
        imported(ledger, CASES / "session" / name)
    assert {one.call_id: one.outcome for one in events(ledger, ToolCallSettled)} == {
        "call_weather": "returned",
        "call_expert": "returned",
        "call_full": "failed",
        "call_free": "returned",
        "call_sow": "returned",
        "call_more": "denied",
    }
    assert len(events(ledger, ToolCallRequested)) == 6
    assert [one.call_id for one in events(ledger, ApprovalAsked)] == ["call_sow", "call_more"]
    assert [one.outcome for one in events(ledger, ApprovalDecided)] == ["approved", "denied"]
    assert {one.completeness for one in events(ledger, ModelCallRequested)} == {"none"}
    assert verify(ledger.store).problems == []


def test_hooks_give_requests_answers_and_tools_that_raised(ledger: Ledger) -> None:
    report = imported(ledger, HOOKS)
    entries = json.loads(HOOKS.read_text(encoding="utf-8"))
    sent = [one["messages"] for one in entries if one["hook"] == "chat_before"]
    asked = events(ledger, ModelCallRequested)
    seen = contexts(ledger)
    assert [seen[one.call_id] for one in asked] == sent
    assert {one.completeness for one in asked} == {"messages"}
    answered = events(ledger, ModelCallAnswered)
    ids = [entry["result"]["response_id"] for entry in entries if isinstance(entry.get("result"), dict)]
    assert [one.response_id for one in answered if one.completeness == "complete"] == ids
    assert [one.completeness for one in answered].count("partial") == 1, "the answer of the expert streamed"
    ends = {one.call_id: (one.outcome, one.error) for one in events(ledger, ToolCallSettled)}
    assert ends["call_full"] == ("failed", "ValueError('bed 1 is full')")
    assert ends["call_free"] == ("returned", None)
    assert (report["orphan_results"], report["tool_results"]) == (0, 6)
    assert report["tokens"] == {"input": 500, "output": 100, "cache_read": 200, "cache_write": 0}


def test_requests_whose_history_the_provider_keeps_are_partial(ledger: Ledger) -> None:
    imported(ledger, CASES / "middleware" / "kept-elsewhere.json")
    told = [one.completeness for one in events(ledger, ModelCallRequested)]
    assert told == ["messages", "partial", "messages", "partial", "partial", "partial"]


def test_a_checkpoint_alone_does_not_tell_that_an_approval_was_answered(ledger: Ledger) -> None:
    for _ in range(2):
        imported(ledger, SAVES[-1])
    assert events(ledger, ApprovalDecided) == []


def test_workflow_events_are_a_skeleton(ledger: Ledger) -> None:
    source = CASES / "events" / "workflow-events.json"
    listed = json.loads(source.read_text(encoding="utf-8"))
    report = imported(ledger, source)
    assert (report["grade"], report["unknown"]) == ("skeleton", {})
    asked = [one["request_id"] for one in listed if one["type"] == "request_info"]
    assert [one.approval_id for one in events(ledger, ApprovalAsked)] == asked
    assert [(one.to_agent, one.how) for one in events(ledger, DelegationStarted)] == [("gardener", "handoff")]
    (handed,) = [one for one in records(ledger) if isinstance(one.event, DelegationStarted)]
    assert handed.agent == "greeter"


def test_a_workflow_event_of_an_unknown_type_is_kept_and_counted(ledger: Ledger, tmp_path: Path) -> None:
    fields = {"executor_id": None, "data": "None", "request_id": None, "iteration": None}
    path = tmp_path / "events.json"
    path.write_text(
        written([{"type": kind, **fields} for kind in ("started", "something_new")]), encoding="utf-8"
    )
    assert imported(ledger, path)["unknown"] == {"something_new": 1}


def test_each_file_is_taken_by_this_importer_alone() -> None:
    assert recognized(CASES, "agent-framework") == {path: ["agent-framework"] for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_a_torn_file_gives_what_stands_before_the_tear(ledger: Ledger, tmp_path: Path, path: Path) -> None:
    raw = path.read_bytes().rstrip()
    torn = tmp_path / path.name
    torn.write_bytes(raw[:-1])
    assert imported(ledger, torn)["format"] == "agent-framework"
    assert events(ledger, DamageFound)
    assert verify(ledger.store).problems == []


@given(st.sampled_from(BODIES).flatmap(out_of_shape))
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_values_out_of_shape_break_nothing(value: Any) -> None:
    def write(path: Path) -> None:
        path.write_text(written(value), encoding="utf-8")

    survives(write, "agent-framework", "saved.json")


def test_real_traces_give_calls_that_went_over_the_wire(ledger: Ledger) -> None:
    hooks, wire, folder = shared(
        "frameworks/agent-framework/middleware-responses.json",
        "frameworks/agent-framework/proxy-agent-framework-sensitive-responses.jsonl",
        "frameworks/agent-framework",
    )
    report = imported(ledger, hooks)
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (16, 15, 14)
    assert (report["orphan_results"], report["error_results"]) == (0, 2)
    recorded = wire.read_text(encoding="utf-8")
    told = [one.response_id for one in events(ledger, ModelCallAnswered) if one.response_id]
    assert len(told) == 14
    assert all(f'"{name}' in recorded.replace("\\", "") for name in told)
    for path in sorted(folder.glob("checkpoint-*.json")):
        imported(ledger, path)
    assert len(events(ledger, CheckpointTaken)) == 6
    assert [one.outcome for one in events(ledger, ApprovalDecided)] == ["unknown"]
    taken = recognized(TRACES / "frameworks", "agent-framework")
    assert taken == {path: ["agent-framework"] for path in folder.glob("*.json")}
