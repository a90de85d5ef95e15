"""`audit`, `detectors`, `verdict` and `note`, as a user and a pipeline run them."""

import json
import queue
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from sarif_kit import validation_errors

from tests.commands import FIXTURES, answer, process, record_session, run

ONLY = ("--detector", "control_tampering")
"""Other detectors may have their say about the same sessions."""

GATE = """
set -eu
{program} import {source} >/dev/null
if {program} audit --fail-on {level} --sarif {sarif} >{report}; then
  echo deploying
else
  echo "held with $?"
fi
"""


def conversation(path: Path, *commands: str) -> Path:
    """A file that an importer knows: a chat in which a shell runs commands."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": f"make {path.stem} pass"},
    ]
    for number, command in enumerate(commands):
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"{path.stem}-{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"{path.stem}-{number}", "content": "done"},
        ]
    path.write_text(json.dumps({"messages": [*messages, {"role": "assistant", "content": "done"}]}))
    return path


@pytest.fixture
def tampered(tmp_path: Path) -> Path:
    """A chat in which a hook goes."""
    return conversation(tmp_path / "tampered.json", "ls", "rm .claude/hooks/pre_tool_use.py")


def test_an_audit_names_what_it_found_and_its_exit_status_is_as_asked(tmp_path: Path, tampered: Path) -> None:
    home = tmp_path / "home"
    run(home, "import", tampered)
    told = answer(home, "audit", *ONLY)
    (finding,) = told["findings"]
    assert finding["detector"] == "control_tampering.control" and finding["severity"] == "critical"
    assert finding["verdict"] is None and finding["seq"] in finding["witnesses"]
    assert told["metrics"]["flagged"] == 1 and told["metrics"]["sessions"] == 1
    assert run(home, "audit", "--fail-on", "critical").exit_code == 1
    assert run(home, "audit", finding["session"][:8], "--detector", "duplicated_effect").exit_code == 0
    shown = run(home, "audit")
    assert shown.exit_code == 0 and "deleted .claude/hooks/pre_tool_use.py" in shown.output
    wrong = run(home, "audit", "--fail-on", "awful")
    assert wrong.exit_code == 2 and "expected one of info, low, medium, high, critical" in wrong.output


def test_a_verdict_settles_a_finding_and_is_counted(tmp_path: Path, tampered: Path) -> None:
    home = tmp_path / "home"
    run(home, "import", tampered)
    (finding,) = answer(home, "audit", *ONLY)["findings"]
    run(home, "note", f"{finding['session']}#{finding['seq']}", "asked for by mail")
    told = answer(home, "verdict", finding["id"][:6], "false-alarm", "--reason", "a test", "--by", "alice")
    assert told["verdict"] == "dismissed" and told["precision"]["of"] == 1
    after = answer(home, "audit", *ONLY)
    assert after["findings"] == [] and after["metrics"]["not_shown"] == 1
    assert [one["verdict"] for one in answer(home, "audit", *ONLY, "--all")["findings"]] == ["dismissed"]
    assert run(home, "audit", *ONLY, "--fail-on", "low").exit_code == 0
    listed = {one["name"]: one for one in answer(home, "detectors")}
    mine = listed["control_tampering"]
    assert (mine["findings"], mine["precision"]["hits"], mine["precision"]["of"]) == (1, 0, 1)
    assert mine["precision"]["high"] == pytest.approx(0.7935, abs=1e-3)
    types = [
        json.loads(line)["type"]
        for line in run(home, "events", finding["session"], "--json").stdout.splitlines()
    ]
    assert types[-3:] == ["review.finding_raised", "review.note_written", "review.verdict_given"]
    assert run(home, "verdict", finding["id"], "maybe").exit_code == 2
    assert run(home, "note", "nobody#1", "x").exit_code == 2


def test_files_in_another_order_give_the_same_bytes(tmp_path: Path, tampered: Path) -> None:
    other = conversation(tmp_path / "other.json", "pkill -f command-guard", "echo x >> AGENTS.md")
    shared = FIXTURES / "claude-code"
    told = []
    for home, paths in (("one", (tampered, shared, other)), ("two", (other, shared, tampered))):
        for path in paths:
            assert run(tmp_path / home, "import", path).exit_code == 0
        told.append(run(tmp_path / home, "audit", "--json").stdout)
        told.append(run(tmp_path / home, "audit", "--json").stdout)
    assert len(set(told)) == 1 and len(json.loads(told[0])["findings"]) >= 3


def test_a_shell_script_gates_a_pipeline(tmp_path: Path, tampered: Path) -> None:
    harmless = conversation(tmp_path / "harmless.json", "ls", "pytest -q")
    for name, source, said in (("good", harmless, "deploying"), ("bad", tampered, "held with 1")):
        words = {
            "program": f"{sys.executable} -m webui --home {tmp_path / name}",
            "source": source,
            "level": "high",
            "sarif": tmp_path / f"{name}.sarif",
            "report": tmp_path / f"{name}.txt",
        }
        ran = subprocess.run(
            ["sh", "-c", GATE.format(**words)], capture_output=True, text=True, timeout=120, check=True
        )
        assert ran.stdout.strip() == said, ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_is_no_verdict(tmp_path: Path, tampered: Path) -> None:
    """Neither "nothing found" nor "something is that bad": a pipeline can tell, and no traceback is in its log."""
    run(tmp_path, "import", tampered)
    code = "from webui.cli import main; main()"
    asked = [sys.executable, "-c", code, "--home", str(tmp_path), "audit", *ONLY, "--fail-on", "high"]
    for more in ([], ["--json"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*asked, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 2
        assert "No space left on device" in done.stderr and "Traceback" not in done.stderr


def test_sarif_is_valid_and_names_file_and_line(tmp_path: Path, tampered: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "findings.sarif"
    record_session(home)
    run(home, "import", FIXTURES / "claude-code", tampered)
    (finding,) = answer(home, "audit", *ONLY, "--sarif", file)["findings"]
    told = json.loads(file.read_text(encoding="utf-8"))
    assert validation_errors(told) == []
    (ran,) = told["runs"]
    (result,) = ran["results"]
    assert (
        ran["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == finding["detector"]
    )
    assert result["partialFingerprints"] == {"finding/v1": finding["id"]} and result["level"] == "error"
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == tampered.as_uri()
    assert place["logicalLocations"][0]["fullyQualifiedName"] == f"{finding['session']}#{finding['seq']}"
    run(home, "verdict", finding["id"], "accepted")
    run(home, "audit", *ONLY, "--sarif", file)
    again = json.loads(file.read_text(encoding="utf-8"))
    assert validation_errors(again) == [] and again["runs"][0]["results"][0]["suppressions"]


def test_audit_follow_tells_of_what_comes_and_stops_at_the_level(tmp_path: Path, tampered: Path) -> None:
    home = tmp_path / "home"
    record_session(home)
    with process(home, "audit", "--follow", "--fail-on", "high") as follower:
        assert follower.stdout is not None
        lines: queue.Queue[bytes] = queue.Queue()
        output = follower.stdout
        reader = threading.Thread(target=lambda: deque(map(lines.put, output), maxlen=0))
        reader.start()
        assert b"looking at what comes" in lines.get(timeout=120)
        run(home, "import", tampered)
        assert b"control_tampering.control" in lines.get(timeout=120)
        assert follower.wait(timeout=120) == 1
        reader.join(timeout=120)
