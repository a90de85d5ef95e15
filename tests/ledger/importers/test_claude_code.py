"""Rows of Claude Code sessions: answers, calls, permissions, what governs, and the counts of logs in the wild."""

import json
import os
from pathlib import Path

import pytest

from ledger.events.approval import ApprovalDecided
from ledger.events.governance import ArtifactChanged
from ledger.events.input import ContextInjected
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.policy import PolicyEvaluated
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers.claude_rows import (
    SESSION,
    USAGE,
    Session,
    bring_in,
    call,
    context_of,
    events,
    simple_session,
    text,
    uuid,
)

# Answers and calls


def test_usage_that_repeats_on_each_row_of_an_answer_counts_once(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    log.part("msg_1", text("One."), usage=USAGE | {"output_tokens": 1})
    log.part("msg_1", text("Two."), usage=USAGE | {"output_tokens": 1})
    log.part("msg_1", call("call_1"), usage=USAGE | {"output_tokens": 40})
    report = bring_in(ledger, log.write(tmp_path))
    assert report["model_calls"] == 1
    assert report["tokens"] == {"input": 5, "output": 40, "cache_read": 11, "cache_write": 13}
    (answer,) = events(ledger, SESSION, ModelCallAnswered)
    message = json.loads(ledger.store.content(answer.message.digest))
    assert [block["type"] for block in message["content"]] == ["text", "text", "tool_use"]


def test_results_between_the_rows_of_one_answer_do_not_split_it(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    log.part("msg_1", call("call_1"))
    log.result("call_1", "first")
    log.part("msg_1", call("call_2"))
    log.result("call_2", "second")
    log.answers("msg_2", text("Done."))
    report = bring_in(ledger, log.write(tmp_path))
    assert (report["model_calls"], report["tool_calls"], report["tool_results"]) == (2, 2, 2)
    assert report["orphan_results"] == report["unanswered_calls"] == 0
    last = events(ledger, SESSION, ModelCallRequested)[-1]
    assert [
        content if isinstance(content, str) else content[0]["type"] for content in context_of(ledger, last)
    ] == [
        "Go.",
        "tool_use",
        "tool_result",
        "tool_result",
    ]


def test_an_answer_that_goes_on_after_a_prompt_takes_its_own_place(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    log.part("msg_1", call("call_1"))
    log.result("call_1")
    log.says("Typed while it answered.")
    log.part("msg_1", text("And more."))
    log.answers("msg_2", text("Done."))
    assert bring_in(ledger, log.write(tmp_path))["model_calls"] == 2
    assert [event.revision for event in events(ledger, SESSION, ModelCallAnswered)] == [0, 1, 0]
    shown = context_of(ledger, events(ledger, SESSION, ModelCallRequested)[-1])
    assert [len(content) for content in shown if isinstance(content, list)] == [2, 1]
    assert shown[3] == "Typed while it answered."


def test_a_call_without_result_stays_open_and_a_result_without_call_is_kept(
    ledger: Ledger, tmp_path: Path
) -> None:
    log = Session()
    log.says("Go.")
    log.answers("msg_1", call("call_1"), call("call_2"))
    log.result("call_1")
    log.result("call_unknown", "x" * 300_000)
    report = bring_in(ledger, log.write(tmp_path))
    assert (report["unanswered_calls"], report["orphan_results"]) == (1, 1)
    settled = {event.call_id: event for event in events(ledger, SESSION, ToolCallSettled)}
    assert settled.keys() == {"call_1", "call_unknown"}
    assert settled["call_unknown"].orphan
    assert b"x" * 300_000 in ledger.store.content(settled["call_unknown"].result.digest)


def test_a_parent_that_was_never_written_is_counted_once(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    log.rows[0]["parentUuid"] = uuid(999_999)
    report = bring_in(ledger, log.write(tmp_path))
    assert report["dangling_parents"] == 1
    assert report["dangling"] == [{"line": 1, "parent": uuid(999_999)}]


def test_a_parent_that_was_never_written_is_counted_within_an_answer_too(
    ledger: Ledger, tmp_path: Path
) -> None:
    log = simple_session()
    log.rows[2]["parentUuid"] = uuid(999_999)
    assert bring_in(ledger, log.write(tmp_path))["dangling"] == [{"line": 3, "parent": uuid(999_999)}]


def test_causes_follow_the_parents(ledger: Ledger, tmp_path: Path) -> None:
    bring_in(ledger, simple_session(turns=1).write(tmp_path))
    by_type = {record.type: record for record in ledger.store.read(SESSION)}
    at = {record.seq: record for record in ledger.store.read(SESSION)}
    assert at[int(by_type["tool_call.settled"].cause or 0)].type == "tool_call.requested"
    assert by_type["input.message_received"].cause is None


def test_an_answer_of_the_harness_is_no_model_call(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    log.part("made-up", text("No response requested."), model="<synthetic>", usage={"input_tokens": 0})
    log.says("Still there?")
    log.answers("msg_1", text("Yes."))
    report = bring_in(ledger, log.write(tmp_path))
    assert report["model_calls"] == 1
    assert report["tokens"]["input"] == 5
    made_up, answer = events(ledger, SESSION, ModelCallAnswered)
    assert (made_up.synthetic, made_up.usage, answer.synthetic) == (True, None, False)
    (request,) = events(ledger, SESSION, ModelCallRequested)
    assert context_of(ledger, request)[1] == [text("No response requested.")]


def test_the_zeros_of_a_copied_answer_are_no_usage(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.answers("msg_1", text("Copied."), usage=dict.fromkeys(USAGE, 0))
    bring_in(ledger, log.write(tmp_path))
    assert events(ledger, SESSION, ModelCallAnswered)[0].usage is None


def test_a_tool_that_the_provider_ran_is_requested_and_settled_within_the_answer(
    ledger: Ledger, tmp_path: Path
) -> None:
    log = Session()
    log.says("Search.")
    log.answers(
        "msg_1",
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"title": "A page"}]},
        {"type": "server_tool_use", "id": "srv_2", "name": "web_search", "input": {"query": "y"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_2",
            "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
        },
    )
    report = bring_in(ledger, log.write(tmp_path))
    assert all(event.provider_executed for event in events(ledger, SESSION, ToolCallRequested))
    assert [event.outcome for event in events(ledger, SESSION, ToolCallSettled)] == ["returned", "failed"]
    assert report["unanswered_calls"] == 0


def test_an_api_error_is_a_failed_call(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    log.add(
        "system",
        subtype="api_error",
        error={"status": 529, "message": "overloaded"},
        retryInMs=500,
        retryAttempt=1,
    )
    report = bring_in(ledger, log.write(tmp_path))
    (failed,) = events(ledger, SESSION, ModelCallFailed)
    assert (failed.status, failed.will_retry, report["failed_calls"]) == (529, True, 1)


# Permissions and what governs


@pytest.mark.parametrize(
    ("decision", "outcome", "by"),
    [
        ({"decision": "accept", "source": "config", "reasonType": "mode"}, "approved", "policy"),
        ({"decision": "reject", "source": "config", "reasonCode": "bashMiss"}, "denied", "policy"),
        ({"decision": "reject", "source": "hook"}, "denied", "policy"),
        ({"decision": "accept", "source": "user_temporary", "grantScope": "once"}, "approved", "human"),
        ({"decision": "reject", "source": "user_reject"}, "denied", "human"),
        ({"decision": "odd", "source": "elsewhere"}, "unknown", "unknown"),
    ],
)
def test_the_source_of_a_decision_tells_who_made_it(
    ledger: Ledger, tmp_path: Path, decision: dict[str, str], outcome: str, by: str
) -> None:
    log = Session()
    log.answers("msg_1", call("call_1"))
    misleading = "user-rejected" if by == "policy" else "permission-rule"
    log.result("call_1", error=outcome == "denied", permissionDecision=decision, toolDenialKind=misleading)
    bring_in(ledger, log.write(tmp_path))
    (decided,) = events(ledger, SESSION, ApprovalDecided)
    assert (decided.outcome, decided.decided_by, decided.evidence) == (outcome, by, "logged")
    assert events(ledger, SESSION, ToolCallSettled)[0].outcome == (
        "denied" if outcome == "denied" else "returned"
    )


def test_before_decisions_were_logged_a_refusal_is_inferred(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.answers("msg_1", call("call_1"), call("call_2"))
    log.result(
        "call_1",
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        error=True,
    )
    log.result("call_2", "Permission to use Bash with command rm has been denied.", error=True)
    bring_in(ledger, log.write(tmp_path))
    decided = events(ledger, SESSION, ApprovalDecided)
    assert [(event.decided_by, event.evidence) for event in decided] == [
        ("human", "inferred"),
        ("policy", "inferred"),
    ]


def test_hooks_are_policies_and_rule_files_artifacts(ledger: Ledger, tmp_path: Path) -> None:
    log = Session()
    log.says("Go.")
    hook = {
        "type": "hook_blocking_error",
        "hookName": "PreToolUse:Bash",
        "toolUseID": "call_1",
        "blockingError": "No.",
    }
    log.add("attachment", attachment=hook)
    rules = {"path": "/home/dev/project/CLAUDE.md", "type": "Project", "content": "Never delete."}
    log.add(
        "attachment",
        attachment={"type": "instructions", "files": [rules]},
        rendered=[{"content": "Rules: Never delete."}],
        renderedRole="user",
    )
    bring_in(ledger, log.write(tmp_path))
    (evaluated,) = events(ledger, SESSION, PolicyEvaluated)
    assert (evaluated.rule, evaluated.verdict, evaluated.call_id) == (
        "hook:PreToolUse:Bash",
        "deny",
        "call_1",
    )
    (changed,) = events(ledger, SESSION, ArtifactChanged)
    assert changed.artifact == "file:/home/dev/project/CLAUDE.md"
    assert ledger.store.content(changed.content.digest) == b"Never delete."
    injected = {event.provenance for event in events(ledger, SESSION, ContextInjected)}
    assert injected == {"hook_blocking_error", "instructions"}


def test_costs_and_other_state_of_the_harness_are_kept_whole(ledger: Ledger, tmp_path: Path) -> None:
    log = simple_session()
    cost = log.bare("cost-state", totalCostUSD=0.25, modelUsage={"claude-opus-5-5": {"costUSD": 0.25}})
    log.bare("invented-yesterday", value=1)
    report = bring_in(ledger, log.write(tmp_path))
    kept = {event.native_type: event for event in events(ledger, SESSION, SourceKept)}
    assert json.loads(ledger.store.content(kept["cost-state"].body.digest)) == cost
    assert kept["cost-state"].recognized
    assert not kept["invented-yesterday"].recognized
    assert report["unknown"] == {"invented-yesterday": 1}


# Logs of others: for development only, and not there on most machines

ROOT = Path(__file__).parents[3]
TRACES = Path(os.environ.get("LOOPLEDGER_TRACES", ROOT.parent / "shared" / "traces"))
WILD = sorted((TRACES / "wild" / "claude-code").rglob("*.jsonl"))
COUNTED = "lines model_calls tool_calls tool_results error_results unanswered_calls orphan_results compactions".split()


@pytest.mark.skipif(not WILD, reason="no traces of others on this machine")
def test_the_counts_of_logs_in_the_wild(ledger: Ledger) -> None:
    expected = json.loads((TRACES / "EXPECTED.json").read_text(encoding="utf-8"))
    files = import_paths(ledger.recorder, WILD).files
    compared = 0
    for report in files:
        told = expected.get(str(Path(report["path"]).relative_to(TRACES)))
        if told is not None:
            assert {name: report[name] for name in COUNTED} == {name: told.get(name, 0) for name in COUNTED}
            assert len(report["quarantined"]) == told.get("bad", 0)
            if "sessions" in told:
                assert len(report["sessions"]) == told["sessions"]
            compared += 1
    assert compared > 20
    assert import_paths(ledger.recorder, WILD).records_added == 0
    assert verify(ledger.store).problems == []
