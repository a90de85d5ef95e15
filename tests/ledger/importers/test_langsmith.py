"""LangSmith runs and Anthropic's managed agents: calls, tools, refusals."""

import json
from pathlib import Path

from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.events.policy import PolicyEvaluated
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger
from tests.ledger.importers.fixtures import FIXTURES
from tests.ledger.importers.plain_traces import content, events, imported, shared

CHAIN = FIXTURES / "langsmith" / "chain" / "payload.json"
DENIED = FIXTURES / "managed-agents" / "denied" / "events.jsonl"


def test_a_trace_is_a_session_with_its_calls_in_order(ledger: Ledger) -> None:
    report = imported(ledger, CHAIN)
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (2, 1, 1)
    assert report["tokens"] == {"input": 200, "output": 40, "cache_read": 0, "cache_write": 0}
    (asked,), (started,) = events(ledger, ToolCallRequested), events(ledger, ToolCallStarted)
    (settled,) = events(ledger, ToolCallSettled)
    assert asked.call_id == started.call_id == settled.call_id
    assert content(ledger, settled.result) == "rain"
    assert [event.outcome for event in events(ledger, SessionEnded)] == ["completed"]


def test_messages_of_langchain_are_read_with_their_roles(ledger: Ledger, tmp_path: Path) -> None:
    def message(kind: str, **fields: object) -> dict[str, object]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", kind],
            "kwargs": fields,
        }

    call = {"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}
    said = message(
        "AIMessage", content="", tool_calls=[call], usage_metadata={"input_tokens": 9, "output_tokens": 2}
    )
    common = {
        "trace_id": "t",
        "run_type": "llm",
        "start_time": "2026-01-01T00:00:00",
        "end_time": "2026-01-01T00:00:01",
    }
    first = {
        **common,
        "id": "a",
        "inputs": {
            "messages": [[message("SystemMessage", content="s"), message("HumanMessage", content="h")]]
        },
        "outputs": {"generations": [[{"text": "", "message": said}]]},
    }
    second = {
        **common,
        "id": "b",
        "inputs": {
            "messages": [
                [
                    message("HumanMessage", content="h"),
                    said,
                    message("ToolMessage", content="x", tool_call_id="c1"),
                ]
            ]
        },
        "outputs": {"generations": [[{"text": "done", "message": message("AIMessage", content="done")}]]},
    }
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in (first, second)))
    report = imported(ledger, path)
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (2, 1, 1)
    assert report["tokens"]["input"] == 9
    assert report["orphan_results"] == 0


def test_a_run_that_was_posted_and_never_patched_has_no_answer(ledger: Ledger, tmp_path: Path) -> None:
    payload = json.loads(CHAIN.read_text())
    path = tmp_path / "posted.json"
    path.write_text(json.dumps({"post": [run for run in payload["post"] if run["run_type"] == "llm"][:1]}))
    imported(ledger, path)
    asked = events(ledger, ModelCallRequested)
    answered = {event.call_id for event in events(ledger, ModelCallAnswered)}
    assert len(asked) == 1
    assert answered <= {asked[0].call_id}


def test_a_refused_call_was_asked_for_and_denied_by_a_person(ledger: Ledger) -> None:
    report = imported(ledger, DENIED)
    (asked,), (decided,) = events(ledger, ApprovalAsked), events(ledger, ApprovalDecided)
    refused, looked = events(ledger, ToolCallRequested)
    assert (asked.call_id, decided.call_id, refused.server) == (refused.call_id, refused.call_id, "drawers")
    assert (decided.outcome, decided.decided_by, decided.evidence) == ("denied", "human", "logged")
    assert [event.outcome for event in events(ledger, ToolCallSettled)] == ["denied", "returned"]
    assert not events(ledger, ApprovalUsed)
    (rule,) = events(ledger, PolicyEvaluated)
    assert (rule.call_id, rule.verdict) == (looked.call_id, "allow")
    assert report["tokens"] == {"input": 5, "output": 23, "cache_read": 19, "cache_write": 5}
    assert report["unknown"] == {"session.hologram": 1}


def test_a_real_refusal_is_a_denied_call(ledger: Ledger) -> None:
    folder = "wild/langsmith/js/src/tests/test_data"
    imported(ledger, *shared(f"{folder}/anthropic_managed_mcp_tools_reject.jsonl"))
    assert [event.outcome for event in events(ledger, ApprovalDecided)] == ["denied"]
    assert [event.outcome for event in events(ledger, ToolCallSettled)] == ["denied", "returned"]
