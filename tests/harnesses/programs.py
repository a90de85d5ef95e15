"""The six harnesses: how each is started, what the scripted model says to it, and where its final answer stands."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harnesses.lab import INSTALLED, Lab
from tests.scripted_model import Lane, Match, Step, Text, Thinking, ToolCall

FINAL = "Fixed: the greeting now says Hello, world!"
"""The last words of the model in all of them."""

_TASK = "Fix the typo in greeting.txt, please."
_BIN = INSTALLED / "node_modules" / ".bin"
_NODE = INSTALLED / "node_modules"
_PATCH = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-Hello, wrold!\n+Hello, world!\n*** End Patch\n"


@dataclass(frozen=True)
class Program:
    """One harness."""

    name: str
    """Its name in the table."""
    executable: Path
    """What is installed."""
    arguments: Sequence[str]
    """Arguments, without the prompt."""
    lanes: Callable[[Path], Sequence[Lane]]
    """What the model says, for a repository."""
    prompt: Sequence[str] = (_TASK,)
    """The prompt, as arguments."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that it needs; {home} stands for the home."""
    prepare: Callable[[Lab, str], None] = lambda lab, url: None
    """Writes files into the repository that it needs."""
    files: dict[str, str] = field(default_factory=lambda: {"greeting.txt": "Hello, world!\n"})
    """What the run leaves in the repository."""

    @property
    def command(self) -> list[str]:
        """The command."""
        return [str(self.executable), *self.arguments, *self.prompt]

    def environ(self, home: Path) -> dict[str, str]:
        """Its variables."""
        return {name: value.replace("{home}", str(home)) for name, value in self.environment.items()}


def said(output: str) -> str:
    """What a harness tells in JSON lines: every text, and once more in one piece what came in several."""
    pieces: list[str] = []
    whole = "\n".join(_texts(output, pieces))
    return f"{whole}\n{''.join(pieces)}"


def _texts(output: str, pieces: list[str]) -> Iterator[str]:
    for line in output.splitlines():
        try:
            stack: list[Any] = [json.loads(line)]
        except ValueError:
            continue
        if isinstance(stack[0], dict) and stack[0].get("delta") is True:
            pieces.append(str(stack[0].get("content")))
        while stack:
            value = stack.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                stack.extend(reversed(list(value.values() if isinstance(value, dict) else value)))


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


def _steps(*answers: Sequence[Text | Thinking | ToolCall]) -> Lane:
    steps = [*(Step(list(blocks)) for blocks in answers), Step([Text(FINAL)])]
    return Lane("main", steps, Match(any_user="typo", has_tools=True))


def _claude(repo: Path) -> list[Lane]:
    return [
        _steps(
            [
                Thinking("Look first."),
                Text("I look at the files."),
                _call("Read", file_path=f"{repo}/greeting.txt"),
                _call("Bash", command="cat notes.md", description="Show notes"),
                _call("Bash", command="sleep 0.3; echo oops >&2; exit 3", description="Fails"),
            ],
            [_call("Edit", file_path=f"{repo}/greeting.txt", old_string="wrold", new_string="world")],
            [_call("Bash", command="cat greeting.txt", description="Check")],
        )
    ]


def _codex(repo: Path) -> list[Lane]:
    return [
        _steps(
            [
                Thinking("Look first."),
                Text("I look."),
                _call("exec_command", cmd="cat greeting.txt"),
                _call("exec_command", cmd="echo oops >&2; exit 3"),
            ],
            [ToolCall("apply_patch", _PATCH)],
            [_call("exec_command", cmd="cat greeting.txt")],
        )
    ]


def _opencode(repo: Path) -> list[Lane]:
    return [
        _steps(
            [
                _call("read", filePath=f"{repo}/greeting.txt"),
                _call("bash", command="cat notes.md", description="x"),
            ],
            [_call("edit", filePath=f"{repo}/greeting.txt", oldString="wrold", newString="world")],
            [_call("bash", command="cat greeting.txt", description="Check")],
        )
    ]


def _pi(repo: Path) -> list[Lane]:
    return [
        _steps(
            [_call("read", path="greeting.txt"), _call("bash", command="cat notes.md; exit 3")],
            [_call("edit", path="greeting.txt", edits=[{"oldText": "wrold", "newText": "world"}])],
            [_call("bash", command="cat greeting.txt")],
        )
    ]


def _gemini(repo: Path) -> list[Lane]:
    return [
        _steps(
            [
                _call("read_file", file_path=f"{repo}/greeting.txt"),
                _call("run_shell_command", command="cat notes.md", description="Show notes"),
            ],
            [
                _call(
                    "replace",
                    file_path=f"{repo}/greeting.txt",
                    instruction="Fix the typo.",
                    old_string="wrold",
                    new_string="world",
                )
            ],
            [_call("run_shell_command", command="cat greeting.txt", description="Check")],
        )
    ]


def _deepseek(repo: Path) -> list[Lane]:
    return [
        _steps(
            [_call("read", file_path=f"{repo}/greeting.txt"), _call("read", file_path=f"{repo}/absent.txt")],
            [_call("edit", file_path=f"{repo}/greeting.txt", old_string="wrold", new_string="world")],
            [_call("read", file_path=f"{repo}/greeting.txt")],
        )
    ]


def _describe_provider(lab: Lab, url: str) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lab",
        "options": {"baseURL": f"{url}/v1", "apiKey": "lab"},
        "models": {"scripted": {"name": "Scripted", "tool_call": True}},
    }
    settings = {
        "model": "lab/scripted",
        "small_model": "lab/scripted",
        "provider": {"lab": provider},
        "permission": {"bash": "allow", "edit": "allow"},
    }
    (lab.repo / "opencode.json").write_text(json.dumps(settings, indent=1))


def _choose_key(lab: Lab, url: str) -> None:
    settings = lab.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))


CLAUDE = Program(
    "Claude Code 2.1.332",
    _NODE / "@anthropic-ai" / "claude-code-linux-x64" / "claude",
    ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
    _claude,
    environment={
        "ANTHROPIC_API_KEY": "lab",
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
)
CODEX = Program(
    "Codex 0.171.0",
    _BIN / "codex",
    ["exec", "--json", "-m", "gpt-5.5-codex", "--dangerously-bypass-approvals-and-sandbox"],
    _codex,
    environment={"OPENAI_API_KEY": "lab"},
)
DEEPSEEK = Program(
    "DeepSeek Harness 0.2.1rc2",
    INSTALLED / "dsh" / "bin" / "dsh",
    ["headless", "--json"],
    _deepseek,
    environment={"DSH_HOME": "{home}/dsh", "DEEPSEEK_API_KEY": "lab"},
)
OPENCODE = Program(
    "opencode 1.18.33",
    _NODE / "opencode-linux-x64" / "bin" / "opencode",
    ["run", "--format", "json"],
    _opencode,
    prepare=_describe_provider,
    environment={"OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
)
PI = Program(
    "pi 0.73.1",
    _BIN / "pi",
    ["--mode", "json", "--provider", "openai", "--model", "gpt-5.1", "-p"],
    _pi,
    environment={"OPENAI_API_KEY": "lab"},
)
GEMINI = Program(
    "Gemini CLI 0.61.0",
    _BIN / "gemini",
    ["-o", "stream-json", "--yolo", "-m", "gemini-2.5-pro"],
    _gemini,
    prompt=("-p", _TASK),
    prepare=_choose_key,
    environment={"GEMINI_API_KEY": "lab", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
)
PROGRAMS = (CLAUDE, CODEX, DEEPSEEK, OPENCODE, PI, GEMINI)
"""All of them."""
