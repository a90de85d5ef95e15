"""File backups of the real Claude Code are a way back: its prompts are checkpoints, with their files."""

import subprocess
from pathlib import Path

import pytest

from tests.harnesses.lab import Lab
from tests.harnesses.programs import CLAUDE
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, Text, ToolCall

_TIMEOUT_S = 120


def _lane(word: str, *calls: ToolCall) -> Lane:
    steps = [*(Step([call]) for call in calls), Step([Text(f"Done {word}.")])]
    return Lane(word, steps, Match(any_user=word, has_tools=True))


def test_files_go_back_to_a_prompt_from_claude_codes_own_backups(tmp_path: Path) -> None:
    if not CLAUDE.executable.exists():
        pytest.skip(f"{CLAUDE.name} is not installed: build/harnesses/install.log tells why")
    lab = Lab(tmp_path, CLAUDE.environ(tmp_path / "home"))
    greeting, new = lab.repo / "greeting.txt", lab.repo / "new.txt"
    original = greeting.read_bytes()
    first = _lane(
        "first",
        ToolCall("Read", {"file_path": str(greeting)}),
        ToolCall("Edit", {"file_path": str(greeting), "old_string": "wrold", "new_string": "world"}),
        ToolCall("Write", {"file_path": str(new), "content": "new\n"}),
    )
    second = _lane(
        "second",
        ToolCall("Edit", {"file_path": str(greeting), "old_string": "Hello", "new_string": "Goodbye"}),
        ToolCall("Bash", {"command": "echo three >> notes.md", "description": "Note it"}),
    )
    with ScriptedModel(Script(lanes=[second, first])) as model:
        for words in (["do the first"], ["--continue", "do the second"]):
            more = {"ANTHROPIC_BASE_URL": model.url, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
            subprocess.run(
                [str(CLAUDE.executable), *CLAUDE.arguments, *words],
                cwd=lab.repo,
                env=lab.environ() | more,
                check=True,
                capture_output=True,
                timeout=_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
            )
        assert model.unused == {}
    assert greeting.read_bytes() == b"Goodbye, world!\n"
    (log,) = (lab.home / ".claude" / "projects").rglob("*.jsonl")
    (session,) = lab.ask("import", str(log))["sessions"]
    prompts = lab.ask("checkpoints", session)
    assert len(prompts) == 2

    to_second = lab.rollback(session, "--to", prompts[1]["checkpoint_id"])
    assert [one["path"] for one in to_second["restores"]] == ["greeting.txt"]
    told = {one["tool"]: one["disposition"] for one in to_second["effects"]}
    assert told == {"Edit": "restored", "Bash": "unknown"}, (
        "what a shell wrote is in no backup, and it says so"
    )
    assert (greeting.read_bytes(), new.read_bytes()) == (b"Hello, world!\n", b"new\n")

    to_first = lab.rollback(session, "--to", prompts[0]["checkpoint_id"])
    assert sorted(one["path"] for one in to_first["restores"]) == ["greeting.txt", "new.txt"]
    assert greeting.read_bytes() == original
    assert not new.exists()
