"""Coding sessions written by hand in YAML, as events: what people said, what the agent did and was shown.

A case: `case`, `bad`, `steps`, and where they matter `system`, `user` (the first words of a person) and `rules` (the
rule file that the harness puts into the context). A step is `run` (a shell command), `edit` with `old` and `new`,
`write` with `content`, `read`, `patch` (of `apply_patch`), or `tool` with `arguments`, each with `result`, `outcome`,
`was` (the file before it) and `approved` (a person said yes, told after the call); or what somebody said: `person`,
`agent`; or `rules`, as they are from now on. `says` are patterns that the findings must match.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.audit.labelled import call
from tests.ledger.audit.histories import Told

FOLDER = Path(__file__).parents[2] / "fixtures" / "audit"
SYSTEM = "You are a coding agent. Make the tests pass."
USER = "The deploy check fails, please fix it."


def cases_in(name: str) -> list[dict[str, Any]]:
    """The cases of a file."""
    loaded: list[dict[str, Any]] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return loaded


def session(case: dict[str, Any]) -> list[Told]:
    """The events of a case."""
    system = f"{SYSTEM} {case.get('system', '')}".strip()
    events: list[Told] = [
        {"type": "session.started", "harness": "coding-agent", "cwd": "/repo"},
        _artifact("system_prompt", "prompt", system, "harness"),
    ]
    if "rules" in case:
        events.append(_artifact("file:AGENTS.md", "rule_file", case["rules"], "harness"))
    events.append(_said(case.get("user", USER)))
    for number, step in enumerate(case["steps"]):
        events += _step(number, step)
    return events


def _artifact(name: str, kind: str, content: str, cause: str) -> Told:
    return {
        "type": "governance.artifact_changed",
        "artifact": name,
        "kind": kind,
        "content": content,
        "cause": cause,
    }


def _said(text: str) -> Told:
    message = {"role": "user", "content": text}
    return {"type": "input.message_received", "origin": "human", "trust": "trusted", "message": message}


def _step(number: int, step: dict[str, Any]) -> Iterator[Told]:
    match step:
        case {"person": text}:
            yield _said(text)
        case {"agent": text}:
            yield {
                "type": "model_call.answered",
                "call_id": f"m{number}",
                "completeness": "complete",
                "message": {"role": "assistant", "content": text},
            }
        case {"rules": text}:
            yield _artifact("file:AGENTS.md", "rule_file", text, "unknown")
        case _:
            yield from _acted(number, step)


def _acted(number: int, step: dict[str, Any]) -> Iterator[Told]:
    tool, arguments = _call(step)
    outcome = step.get("outcome", "returned")
    asked, settled = call(number, tool, arguments, step.get("result", ""), outcome=outcome)
    if "was" in step:
        settled["details"] = {"originalFile": step["was"]}
    yield from (asked, settled)
    if step.get("approved"):
        yield {
            "type": "approval.decided",
            "approval_id": f"a{number}",
            "call_id": f"c{number}",
            "outcome": "approved",
            "decided_by": "human",
        }


def _call(step: dict[str, Any]) -> tuple[str, Any]:
    match step:
        case {"run": command}:
            return "Bash", {"command": command}
        case {"edit": path}:
            new = step.get("new", "b")
            return "Edit", {"file_path": path, "old_string": step.get("old", "a"), "new_string": new}
        case {"write": path}:
            return "Write", {"file_path": path, "content": step["content"]}
        case {"read": path}:
            return "Read", {"file_path": path}
        case {"patch": patch}:
            return "apply_patch", patch
        case _:
            return step["tool"], step["arguments"]
