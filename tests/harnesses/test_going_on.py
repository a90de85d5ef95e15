"""Real harnesses go on from a point that our rollback restored: their first request holds what came before, no more."""

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import open_ledger
from replay.resume.closing import NO_RESULT
from tests.harnesses.lab import Lab
from tests.harnesses.measured import Measured, recorded
from tests.harnesses.programs import CLAUDE, CODEX, DEEPSEEK, FINAL, OPENCODE, PI, Program
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, Text, ToolCall

_DONE = "Gone on from there."
_PROMPT = "Go on, please."
_TIMEOUT_S = 120

Written = dict[str, Any]
"""What `--into --json` tells."""


@dataclass(frozen=True)
class Resumer:
    """How a harness is told without a terminal to go on."""

    program: Program
    """The harness."""

    arguments: Callable[[Written], Sequence[str]]
    """Its arguments, from what was written; the prompt follows."""


def _claude(written: Written) -> Sequence[str]:
    return ["--resume", written["native_id"], *CLAUDE.arguments]


def _codex(written: Written) -> Sequence[str]:
    return ["exec", "resume", *CODEX.arguments[1:], written["native_id"]]


def _deepseek(written: Written) -> Sequence[str]:
    return [*DEEPSEEK.arguments, "--session-id", written["native_id"]]


def _opencode(written: Written) -> Sequence[str]:
    return [*OPENCODE.arguments, "-m", "lab/scripted", "--session", written["native_id"]]


def _pi(written: Written) -> Sequence[str]:
    *others, prompt = PI.arguments
    return ["--session", written["command"][2], *others, prompt]


RESUMERS = (
    Resumer(CLAUDE, _claude),
    Resumer(CODEX, _codex),
    Resumer(DEEPSEEK, _deepseek),
    Resumer(OPENCODE, _opencode),
    Resumer(PI, _pi),
)


def _named(resumer: Resumer) -> str:
    return resumer.program.name.rpartition(" ")[0].replace(" ", "-").lower()


@pytest.mark.parametrize("source", ["proxy", "log"])
@pytest.mark.parametrize("resumer", RESUMERS, ids=_named)
def test_after_a_rollback_a_harness_goes_on_from_the_restored_point(
    resumer: Resumer, source: str, tmp_path: Path
) -> None:
    lab = recorded(resumer.program, tmp_path, Measured(resumer.program.name, "to go back"))
    session, seq, before, after = _middle(lab, source)
    lab.ask("checkpoint", session, "--at", str(seq), "--label", "middle")
    into = tmp_path / "into"
    told = lab.rollback(session, "--to", "middle", "--into", str(into))
    request = _first_request(lab, resumer, told["resumption"])
    for known in before:
        assert known in request
    for unknown in after:
        assert unknown not in request
    assert _PROMPT in request
    assert (NO_RESULT in request) is (source == "proxy")


def test_claude_code_goes_on_with_the_files_and_the_words_of_the_checkpoint(tmp_path: Path) -> None:
    lab = recorded(CLAUDE, tmp_path, Measured(CLAUDE.name, "with its files"))
    (log,) = (lab.home / ".claude" / "projects").glob("*/*.jsonl")
    session, greeting = log.stem, lab.repo / "greeting.txt"
    lab.ask("checkpoint", session, "--workspace", str(lab.repo), "--label", "fixed", "--ignore", ".git")
    good = greeting.read_text()
    _spoil(lab, session)
    assert greeting.read_text() != good
    lab.ask("import", str(log))
    # No snapshot saw what the shell did to the file: it is put back because we say so.
    told = lab.rollback(session, "--to", "fixed", "--overwrite", "--into", str(tmp_path / "into"))
    assert greeting.read_text() == good
    request = _first_request(lab, RESUMERS[0], told["resumption"])
    assert FINAL in request
    assert "Spoil the greeting" not in request
    assert "spoilt on purpose" not in request
    resumed = lab.ask("sessions")
    assert told["resumption"]["native_id"] in {one["id"] for one in resumed}
    with open_ledger(lab.ledger) as ledger:
        (fork,) = ledger.store.read(told["resumption"]["native_id"], names=["session.forked"])
    assert getattr(fork.event, "origin", None) == session


def _spoil(lab: Lab, session: str) -> None:
    """A second turn of the session, after the checkpoint."""
    steps = [
        Step(
            [ToolCall("Bash", {"command": "echo spoilt on purpose > greeting.txt", "description": "Spoil"})]
        ),
        Step([Text("The greeting is spoilt on purpose.")]),
    ]
    with ScriptedModel(Script([Lane("main", steps, Match(any_user="Spoil", has_tools=True))])) as model:
        arguments = ["--resume", session, *CLAUDE.arguments, "Spoil the greeting, please."]
        ran = lab.record(model.url, str(CLAUDE.executable), *arguments, name="run-2")
    assert ran.status == 0, ran.errors


def _middle(lab: Lab, source: str) -> tuple[str, int, list[str], list[str]]:
    """Session, a seq in the middle, the calls asked for by then, and what came after.

    In the log: before the request that shows the first results; by the proxy: one call later, which is open then.
    """
    with open_ledger(lab.ledger) as ledger:
        names = ledger.store.recorder.find_sessions("", 100)
        (session,) = (
            [name for name in names if name == "run-1"]
            if source == "proxy"
            else [name for name in names if name != "run-1" and len(list(ledger.store.read(name))) > 10]
        )
        records = list(ledger.store.read(session))
    settled = next(record.seq for record in records if isinstance(record.event, ToolCallSettled))
    asked = (record.seq for record in records if isinstance(record.event, ModelCallRequested))
    seq = next(one for one in asked if one > settled) - 1
    calls = [record for record in records if isinstance(record.event, ToolCallRequested)]
    if source == "proxy":
        seq = next(record.seq for record in calls if record.seq > seq)
    before = [_native(record.event) for record in calls if record.seq <= seq]
    after = [_native(record.event) for record in calls if record.seq > seq]
    assert before
    assert after
    return session, seq, before, [*after, FINAL]


def _native(event: Any) -> str:
    """The id of a call as the wire has it: pi joins it with another in its log."""
    return str(event.call_id).partition("|")[0]


def _first_request(lab: Lab, resumer: Resumer, written: Written) -> str:
    """Let the harness go on; the messages of its first request, as JSON."""
    program = resumer.program
    variables = dict(written["environment"])
    if written["first"]:
        first = [str(program.executable), *written["first"][1:]]
        subprocess.run(
            first,
            cwd=lab.repo,
            env=lab.environ() | variables,
            check=True,
            capture_output=True,
            timeout=_TIMEOUT_S,
        )
    lanes = [Lane("main", [Step([Text(_DONE)])], Match(any_user="Go on", has_tools=True))]
    with ScriptedModel(Script(lanes)) as model:
        program.prepare(lab, model.url)
        command = [str(program.executable), *resumer.arguments(written), _PROMPT]
        ran = lab.record(model.url, *command, name="resumed", variables=variables)
        asked = [one for one in model.exchanges if one.lane == "main"]
    assert ran.status == 0, ran.errors
    assert _DONE in ran.output
    body = asked[0].body
    return json.dumps(body.get("messages", body.get("input")), ensure_ascii=False)
