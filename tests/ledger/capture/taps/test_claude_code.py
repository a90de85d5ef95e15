"""Events as Claude Code 2.1.332 sends them to its hooks, recorded by us with the scripted model."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ledger.capture.taps.claude_code import record_hook
from ledger.errors import InputError
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from ledger.store import verify

SESSION = "378d4b28-20bb-481f-9c38-5551b11ec06f"


def event(name: str, **fields: Any) -> dict[str, Any]:
    """An event with what all of them have."""
    return {
        "session_id": SESSION,
        "transcript_path": f"/home/user/.claude/projects/-repo/{SESSION}.jsonl",
        "cwd": "/repo",
        "permission_mode": "default",
        "hook_event_name": name,
        **fields,
    }


def bash(name: str, call: str, command: str, **fields: Any) -> dict[str, Any]:
    """An event about a call of the shell."""
    return event(name, tool_name="Bash", tool_input={"command": command}, tool_use_id=call, **fields)


def asks(command: str) -> dict[str, Any]:
    """The event that a permission is asked for: it names no call."""
    return event("PermissionRequest", tool_name="Bash", tool_input={"command": command})


def batch(*results: tuple[str, str]) -> dict[str, Any]:
    """The event after all calls of an answer."""
    calls = [{"tool_name": "Bash", "tool_use_id": call, "tool_response": shown} for call, shown in results]
    return event("PostToolBatch", tool_calls=calls)


def told(ledger: Ledger, *events: dict[str, Any]) -> list[Record]:
    """The records of the main session after these events."""
    for one in events:
        record_hook(ledger.recorder, one)
    return list(ledger.store.read(f"{SESSION}.hooks"))


def test_a_call_is_recorded_before_it_runs_and_settled_after(ledger: Ledger) -> None:
    before = told(ledger, event("SessionStart", source="startup"), bash("PreToolUse", "toolu_1", "ls"))
    assert [one.type for one in before] == ["session.started", "tool_call.requested", "tool_call.started"]
    after = told(ledger, bash("PostToolUse", "toolu_1", "ls", tool_response={"stdout": "a"}, duration_ms=3))
    settled = after[-1].event
    assert isinstance(settled, ToolCallSettled)
    assert (settled.call_id, settled.outcome, settled.duration_ms) == ("toolu_1", "returned", 3)


def test_a_grant_and_a_refusal_are_told_from_what_happened(ledger: Ledger) -> None:
    records = told(
        ledger,
        bash("PreToolUse", "toolu_1", "mkdir one"),
        asks("mkdir one"),
        bash("PostToolUse", "toolu_1", "mkdir changed", tool_response={}),
        batch(("toolu_1", "done")),
        bash("PreToolUse", "toolu_2", "mkdir two"),
        asks("mkdir two"),
        batch(("toolu_2", "The human says no.")),
    )
    asked = [one.event for one in records if isinstance(one.event, ApprovalAsked)]
    decided = [one.event for one in records if isinstance(one.event, ApprovalDecided)]
    assert [one.call_id for one in asked] == ["toolu_1", "toolu_2"]
    assert [(one.call_id, one.outcome, one.evidence) for one in decided] == [
        ("toolu_1", "approved", "inferred"),
        ("toolu_2", "denied", "inferred"),
    ]
    # Whoever granted it changed the arguments: the digests say so.
    assert decided[0].arguments_digest != asked[0].arguments_digest
    outcomes = [one.event.outcome for one in records if isinstance(one.event, ToolCallSettled)]
    assert outcomes == ["returned", "denied"]


def test_a_rule_that_denies_without_a_question_is_a_denied_call(ledger: Ledger) -> None:
    records = told(ledger, bash("PreToolUse", "toolu_1", "rm x"), batch(("toolu_1", "denied by rule")))
    settled = next(one.event for one in records if isinstance(one.event, ToolCallSettled))
    assert settled.outcome == "denied"
    assert not any(isinstance(one.event, ApprovalDecided) for one in records)


def test_a_sub_agent_is_a_session_of_its_own(ledger: Ledger) -> None:
    agent = {"agent_id": "acc52a81", "agent_type": "general-purpose"}
    records = told(
        ledger,
        event("SubagentStart", **agent),
        bash("PreToolUse", "toolu_1", "ls", **agent),
        bash("PostToolUse", "toolu_1", "ls", tool_response={}, **agent),
        event("SubagentStop", last_assistant_message="Report.", **agent),
    )
    assert [type(one.event) for one in records] == [SessionStarted, DelegationStarted, DelegationReturned]
    child = list(ledger.store.read(f"{SESSION}.agent-acc52a81.hooks"))
    assert isinstance(child[0].event, SessionStarted)
    assert child[0].event.parent == f"{SESSION}.hooks"
    assert isinstance(child[-1].event, SessionEnded)
    assert {one.depth for one in child} == {1}


def test_compaction_and_end_are_told(ledger: Ledger) -> None:
    records = told(
        ledger,
        event("PreCompact", trigger="manual"),
        event("SubagentStop", agent_id="side", agent_type=""),
        event("SessionStart", source="compact"),
        event("PostCompact", trigger="manual", compact_summary="Short."),
        event("SessionEnd", reason="other"),
        event("SessionStart", source="resume"),
    )
    done = next(one.event for one in records if isinstance(one.event, CompactionDone))
    started = next(one.event for one in records if one.type == "compaction.started")
    assert done.compaction_id == started.model_dump()["compaction_id"]
    assert [one.type for one in records[-2:]] == ["session.ended", "session.resumed"]


def test_an_event_that_is_sent_twice_counts_once(ledger: Ledger) -> None:
    once = told(ledger, bash("PreToolUse", "toolu_1", "ls"))
    assert told(ledger, bash("PreToolUse", "toolu_1", "ls")) == once


def test_an_unknown_event_is_kept_whole_and_no_event_is_refused(ledger: Ledger) -> None:
    records = told(ledger, event("SomethingNew", detail={"deep": [1]}))
    kept = records[-1].event.model_dump()
    assert (kept["native_type"], kept["recognized"]) == ("SomethingNew", False)
    wrong: list[Any] = [[], {}, {"session_id": 1, "hook_event_name": "Stop"}]
    for payload in wrong:
        with pytest.raises(InputError, match="expected"):
            record_hook(ledger.recorder, payload)


def test_hooks_of_one_session_may_run_at_once(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    calls = [f"toolu_{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(lambda call: run_hook(home, bash("PreToolUse", call, "ls")), calls))
    assert [end.returncode for end in ends] == [0] * 6
    assert {(end.stdout, end.stderr) for end in ends} == {(b"", b"")}
    with open_ledger(home) as ledger:
        records = list(ledger.store.read(f"{SESSION}.hooks"))
        asked = {one.event.call_id for one in records if isinstance(one.event, ToolCallRequested)}
        assert asked == set(calls)
        assert sum(isinstance(one.event, SessionStarted) for one in records) == 1
        assert verify(ledger.store).ok


def test_what_is_not_recorded_blocks_only_where_the_user_chose_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    about_to = bash("PreToolUse", "toolu_1", "ls")
    assert run_hook(str(blocked), about_to).returncode == 1
    end = run_hook(str(blocked), about_to, "--fail-closed")
    assert end.returncode == 2
    assert b"was not recorded" in end.stderr
    assert run_hook(str(blocked), event("Stop"), "--fail-closed").returncode == 1


def run_hook(home: str, payload: dict[str, Any], *options: str) -> "subprocess.CompletedProcess[bytes]":
    """The program that the settings name, with an event on its standard input."""
    command = [sys.executable, "-P", "-m", "ledger.hook", "claude-code", "--home", home, *options]
    return subprocess.run(
        command, input=json.dumps(payload).encode(), capture_output=True, check=False, timeout=120
    )
