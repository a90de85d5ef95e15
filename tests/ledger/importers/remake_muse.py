"""Write the Muse Code fixture: a transcript in our own words, after the types of `muse-code-msp` 1.4.13.

Usage: python -m tests.ledger.importers.remake_muse FOLDER_FOR_THE_LEDGER
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.ledger.importers.harness_runs import case_folder, jsonl, write_promise

SESSION = "ses-lab-1"


def _client(number: int, method: str, **params: Any) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return {"dir": "client", "raw": json.dumps(frame, separators=(",", ":"))}


def _notice(method: str, **params: Any) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "method": method, "params": {"sessionId": SESSION, **params}}
    return {"dir": "server", "raw": json.dumps(frame, separators=(",", ":"))}


def _item(event: str, name: str, kind: str, status: str, **more: Any) -> dict[str, Any]:
    item = {"itemId": name, "kind": kind, "status": status, "revision": 1, "turnId": "t1", **more}
    return _notice(f"item/{event}", item=item, viewCursor=f"c-{name}")


def _tokens(whole: int, output: int, cached: int) -> dict[str, Any]:
    usage = {"inputTokens": whole, "outputTokens": output, "cachedTokens": cached, "reasoningTokens": 5}
    return _notice(
        "session/tokenUsage", turnId="t1", modelId="lab-model", usage=usage, totalTokens=whole + output
    )


def transcript() -> list[dict[str, Any]]:
    """The lines: a rename that a person allows, a removal that a judge refuses, a compaction, damage."""
    session = {
        "sessionId": SESSION,
        "createdAt": "2026-11-29T10:00:00Z",
        "workspaceRoot": "/home/dev/repo",
        "modelId": "lab-model",
        "providerId": "lab",
        "forkedFrom": None,
        "approvalMode": {"mode": "ask", "source": "startup", "lastCommandId": None},
    }
    result = {"jsonrpc": "2.0", "id": 1, "result": {"session": session, "viewCursor": "c0"}}
    move = {"callId": "call-1", "tool": "shell", "args": '{"command":"mv a b"}'}
    remove = {"callId": "call-2", "tool": "shell", "args": '{"command":"rm notes.md"}'}
    shortened = {"outcome": "compacted", "trigger": "auto", "tokensBefore": 1400, "tokensAfter": 200}
    child = {"objective": "Look again", "childSessionId": "ses-lab-2", "result": {"text": "All well."}}
    return [
        _client(0, "initialize", protocolVersion="1"),
        _client(1, "session/start", workspaceRoot="/home/dev/repo"),
        {"dir": "server", "raw": json.dumps(result)},
        _client(2, "turn/start", sessionId=SESSION, input="Tidy up. RULE: never delete files."),
        _notice("turn/started", turnId="t1", commandId="k1"),
        _item("completed", "i1", "userMessage", "completed", text="Tidy up. RULE: never delete files."),
        _item("completed", "i2", "reasoning", "completed", summary=["I rename first."]),
        _item("started", "i3", "toolCall", "inProgress", **move),
        _notice(
            "approval/requested",
            turnId="t1",
            approvalId="a1",
            itemId="i3",
            toolCallId="call-1",
            toolName="shell",
        ),
        _client(3, "approval/respond", sessionId=SESSION, approvalId="a1", choice="session"),
        _notice(
            "approval/resolved",
            turnId="t1",
            approvalId="a1",
            itemId="i3",
            decision="approvedForSession",
            resolvedBy="user",
            policyResult="allow",
            amendment={"durability": "session", "rulePreview": "shell(mv *)"},
        ),
        _item(
            "completed",
            "i3",
            "toolCall",
            "completed",
            visibleOutput="done",
            exitCode=0,
            durationMs=12,
            **move,
        ),
        _tokens(1300, 20, 300),
        _item("started", "i4", "toolCall", "inProgress", **remove),
        _notice(
            "approval/requested",
            turnId="t1",
            approvalId="a2",
            itemId="i4",
            toolCallId="call-2",
            toolName="shell",
        ),
        _notice(
            "approval/resolved",
            turnId="t1",
            approvalId="a2",
            itemId="i4",
            decision="denied",
            resolvedBy="llmJudge",
            policyResult="deny",
        ),
        _item("completed", "i4", "toolCall", "rejected", visibleOutput="refused", **remove),
        _tokens(1400, 25, 300),
        _item("completed", "i5", "compaction", "completed", **shortened),
        _item("completed", "i6", "subagent", "completed", **child),
        _item("completed", "i7", "agentMessage", "completed", text="Renamed; nothing was deleted."),
        _tokens(500, 10, 0),
        _notice("turn/completed", turnId="t1", terminal="completed"),
        _item(
            "completed",
            "i8",
            "damagedRange",
            "completed",
            damagedRange={"unreadableLines": 2, "missingRecords": 3},
        ),
        _notice("session/approvalModeChanged", mode="auto", source="approvalReconfigure"),
        _notice("turn/retracted", turnId="t1"),
        _notice("view/gap", after="c-i8", next="c-i9"),
        _notice("brand/new", x=1),
    ]


def main() -> None:
    """Write the fixture."""
    target = case_folder("muse-code", "approvals")
    (target / "transcript.ndjson").write_bytes(jsonl(transcript()))
    write_promise(target, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
