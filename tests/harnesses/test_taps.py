"""What hooks and taps keep of real harnesses, beside what the proxy and the harness' own log tell."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import open_ledger
from tests.harnesses.lab import ROOT, Lab
from tests.harnesses.measured import Measured, recorded
from tests.harnesses.programs import CLAUDE, CODEX
from tests.scripted_model import Lane, Script, ScriptedModel, Step, Text, ToolCall

_TIMEOUT_S = 120


def test_hooks_of_claude_code_tell_of_the_same_tool_calls_and_are_joined(tmp_path: Path) -> None:
    def prepare(lab: Lab, url: str) -> None:
        home = ["--home", str(lab.ledger)]
        command = [sys.executable, "-m", "webui", *home, "hook", "claude-code", "--settings"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        settings = lab.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(told.stdout)

    row = Measured(CLAUDE.name, "with hooks")
    lab = recorded(replace(CLAUDE, prepare=prepare), tmp_path, row)
    with open_ledger(lab.ledger) as ledger:
        (hooked,) = [one for one in ledger.store.recorder.find_sessions("", 100) if one.endswith(".hooks")]
        events = [record.event for record in ledger.store.read(hooked)]
        links = [record.event for record in ledger.store.read("run-1", names=["session.linked"])]
    asked = [event.call_id for event in events if isinstance(event, ToolCallRequested)]
    settled = [event.call_id for event in events if isinstance(event, ToolCallSettled)]
    assert len(asked) == row.tools
    assert sorted(asked) == sorted(settled)
    assert hooked in {getattr(event, "other", None) for event in links}


def test_a_tap_of_codex_keeps_approvals_that_are_in_no_log_of_codex(tmp_path: Path) -> None:
    if not CODEX.executable.exists():
        pytest.skip(f"{CODEX.name} is not installed: build/harnesses/install.log tells why")
    lab = Lab(tmp_path, CODEX.environ(tmp_path / "home"))
    lab.commit()
    calls = [Step([ToolCall("exec_command", {"cmd": f"touch {name}"})]) for name in ("one", "two")]
    with ScriptedModel(Script([Lane("main", [*calls, Step([Text("Done.")])])])) as model:
        spoken = _spoken(lab, model.url)
    assert spoken == ["accept", "decline"]
    assert [(lab.repo / name).exists() for name in ("one", "two")] == [True, False]
    with open_ledger(lab.ledger) as ledger:
        events = [record.event for record in ledger.store.read_all()]
    asked = [event for event in events if isinstance(event, ApprovalAsked)]
    decided = [event.outcome for event in events if isinstance(event, ApprovalDecided)]
    assert len(asked) == 2
    assert decided == ["approved", "denied"]


def _spoken(lab: Lab, url: str) -> list[str]:
    """Drive the app server behind the tap through one turn: the first question is granted, the second refused."""
    described = f'{{name="lab",base_url="{url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    tap = [sys.executable, "-m", "webui", "--home", str(lab.ledger), "tap", "codex", "--"]
    server = [str(CODEX.executable), "-c", 'model_provider="lab"', "-c", f"model_providers.lab={described}"]
    command = [*tap, *server, "-c", 'model="gpt-5.5-codex"', "app-server"]
    answers: list[str] = []
    with subprocess.Popen(
        command, cwd=lab.repo, env=lab.environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tapped:
        assert tapped.stdin is not None
        assert tapped.stdout is not None
        stdin = tapped.stdin
        watch = threading.Timer(_TIMEOUT_S, tapped.kill)
        watch.start()

        def send(**message: Any) -> None:
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            stdin.flush()

        client = {"clientInfo": {"name": "lab", "version": "1"}, "capabilities": {"experimentalApi": True}}
        send(id=1, method="initialize", params=client)
        send(method="initialized")
        rules = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        send(id=2, method="thread/start", params={"cwd": str(lab.repo), **rules})
        for line in tapped.stdout:
            message = json.loads(line)
            if message.get("id") == 2 and "result" in message:
                thread = message["result"]["thread"]["id"]
                words = [{"type": "text", "text": "Go."}]
                send(id=3, method="turn/start", params={"threadId": thread, "input": words})
            elif "method" in message and "id" in message:
                answers.append("decline" if answers else "accept")
                send(id=message["id"], result={"decision": answers[-1]})
            elif message.get("method") == "turn/completed":
                break
        stdin.close()
        for _ in tapped.stdout:
            pass
        watch.cancel()
    return answers
