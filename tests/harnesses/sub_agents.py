"""The harnesses that have sub-agents, with two of them at work at the same time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.harnesses.programs import CLAUDE, CODEX, DEEPSEEK, FINAL
from tests.scripted_model import Lane, Match, Step, Text, ToolCall
from tests.scripted_model.script import Ask

_PROMPT = ("Ask two agents.",)
_NAMESPACE = "multi_agent_v1"
_AGENT_ID = r"agent_id[^0-9a-f]{1,9}([0-9a-f]{8}-[0-9a-f-]{27})"


def _worker(name: str, calls: Sequence[ToolCall], *, header: str | None = None) -> Lane:
    """A sub-agent: tools, then a report."""

    def fits(ask: Ask) -> bool:
        return header is None or header in ask.headers

    match = Match(first_user=None if header else f"SUBTASK-{name}", any_user=f"SUBTASK-{name}", when=fits)
    return Lane(name, [Step(list(calls)), Step([Text(f"Report {name}.")])], match)


def _claude(repo: Path) -> list[Lane]:
    def started(name: str) -> ToolCall:
        task = {"description": f"task {name}", "prompt": f"SUBTASK-{name}: say what is in the file."}
        return ToolCall("Agent", {**task, "subagent_type": "general-purpose", "run_in_background": True})

    def work(name: str, seconds: float) -> list[ToolCall]:
        command = {"command": f"sleep {seconds}; echo {name}", "description": "Echo"}
        return [ToolCall("Read", {"file_path": f"{repo}/greeting.txt"}), ToolCall("Bash", command)]

    answers = ["Waiting for them.", "One came.", FINAL, FINAL]
    main = [Step([started("ALPHA"), started("BETA")]), *(Step([Text(text)]) for text in answers)]
    return [
        _worker("ALPHA", work("ALPHA", 1)),
        _worker("BETA", work("BETA", 0)),
        Lane("main", main, Match(any_user="Ask two agents")),
    ]


def _codex(repo: Path) -> list[Lane]:
    def started(name: str) -> ToolCall:
        return ToolCall("spawn_agent", {"message": f"SUBTASK-{name}: say the word."}, namespace=_NAMESPACE)

    def work(name: str, seconds: float) -> list[ToolCall]:
        return [ToolCall("exec_command", {"cmd": f"sleep {seconds}; echo {name}"})]

    def wait(*names: str) -> Step:
        targets = {"targets": [f"${{{name}}}" for name in names], "timeout_ms": 15000}
        captures = {"first": rf"{_AGENT_ID}(?=.*agent_id)", "second": _AGENT_ID}
        return Step([ToolCall("wait_agent", targets, namespace=_NAMESPACE)], captures=captures)

    main = [
        Step([started("ALPHA"), started("BETA")]),
        wait("first"),
        wait("second"),
        Step([Text(FINAL)]),
    ]
    return [
        _worker("ALPHA", work("ALPHA", 1), header="x-openai-subagent"),
        _worker("BETA", work("BETA", 0), header="x-openai-subagent"),
        Lane("main", main, Match(any_user="Ask two agents", has_tools=True)),
    ]


def _deepseek(repo: Path) -> list[Lane]:
    def started(name: str) -> ToolCall:
        task = {"description": f"task {name}", "prompt": f"SUBTASK-{name}: say what is in the file."}
        return ToolCall("subagent", task)

    def work(name: str) -> list[ToolCall]:
        return [ToolCall("read", {"file_path": f"{repo}/{name}"})]

    answers = ["Waiting for them.", "One came.", FINAL, FINAL, FINAL]
    main = [Step([started("ALPHA"), started("BETA")]), *(Step([Text(text)]) for text in answers)]
    return [
        _worker("ALPHA", work("greeting.txt")),
        _worker("BETA", work("notes.md")),
        Lane("main", main, Match(any_user="Ask two agents", has_tools=True)),
    ]


SUB_AGENTS = (
    replace(CLAUDE, lanes=_claude, prompt=_PROMPT, files={}),
    replace(CODEX, lanes=_codex, prompt=_PROMPT, files={}),
    replace(DEEPSEEK, lanes=_deepseek, prompt=_PROMPT, files={}),
)
"""The same programs with another task."""
