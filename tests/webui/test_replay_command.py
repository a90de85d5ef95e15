"""The commands `replay` and `branch` for functions of a user, and for sessions of `record`."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.events.replaying import ReplayEnded, ReplayStarted
from ledger.events.session import SessionForked
from ledger.home import open_ledger
from tests.commands import answer, process, record_session, run
from tests.scripted_model import ScriptedModel
from tests.webui.proxied import recorded
from tests.webui.rerunning import Case, command, counting
from tests.webui.test_rerun import can_hold_back, case

__all__ = ["can_hold_back", "case"]

LOOP = """
from pathlib import Path


def model(**request):
    said = f"answer {len(request['messages'])}"
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}


def write_down(words):
    with Path("effects.txt").open("a") as file:
        file.write(words)
    return "written"


def agent(run):
    messages = [{"role": "user", "content": "hello"}]
    answer = run.model(model, protocol="openai.chat", model="scripted", messages=messages)
    messages.append(answer["choices"][0]["message"])
    run.tool(write_down, {"words": messages[-1]["content"]})
    run.model(model, protocol="openai.chat", model="scripted", messages=messages)


def hasty(run):
    messages = [{"role": "user", "content": "hurry"}]
    run.model(model, protocol="openai.chat", model="scripted", messages=messages)


def curious(run):
    import time
    run.model(model, protocol="openai.chat", model=str(time.time()), messages=[])
"""


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a loop, which was recorded as session `live`."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my_loop.py"
    file.write_text(LOOP)
    names: dict[str, Any] = {}
    exec(compile(LOOP, str(file), "exec"), names)  # noqa: S102 - our own text, above
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        record_loop(ledger, harness="mine", session="live") as live,
    ):
        names["agent"](live)
    assert (tmp_path / "effects.txt").read_text() == "answer 1"
    return file


def test_a_function_runs_again_without_effect(loop: Path) -> None:
    home = loop.parent / "ledger"
    report = answer(home, "replay", "live", "--function", f"{loop}:agent")
    assert (report["verdict"], report["level"], report["effects"]) == ("equal", "rerun", 0)
    assert report["answers"] == {"recorded": 3, "live": 0, "blocked": 0}
    assert (loop.parent / "effects.txt").read_text() == "answer 1"
    shown = run(home, "replay", "live", "--function", f"{loop}:agent", "--tool", "write_down=live")
    assert shown.exit_code == 0 and "1 tools run for real" in shown.stdout
    assert (loop.parent / "effects.txt").read_text() == "answer 1answer 1"


def test_a_function_that_does_otherwise_is_bad_news(loop: Path) -> None:
    home = loop.parent / "ledger"
    result = run(home, "replay", "live", "--function", f"{loop}:hasty", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["divergence"]["kind"], report["divergence"]["pointer"]) == (
        1,
        "request",
        "/messages/0/content",
    )
    result = run(home, "replay", "live", "--function", f"{loop}:curious")
    assert result.exit_code == 1 and "time.time" in result.stdout
    result = run(home, "replay", "live", "--function", f"{loop}:nobody")
    assert (result.exit_code, "has no function 'nobody'" in result.stderr) == (2, True)


def test_a_function_branches(loop: Path) -> None:
    home = loop.parent / "ledger"
    with open_ledger(home) as ledger:
        seq = next(one.seq for one in ledger.store.read("live") if one.type == "tool_call.settled")
        asked = next(one.seq for one in ledger.store.read("live") if one.type == "model_call.requested")
    report = answer(home, "branch", "live", "--at", seq, "--function", f"{loop}:agent")
    assert (report["level"], report["answers"]["recorded"], report["answers"]["live"]) == ("branch", 2, 1)
    other = loop.parent / "other.json"
    other.write_text(json.dumps({"choices": [{"message": {"role": "assistant", "content": "no"}}]}))
    options = ["--at", seq, "--answer", f"{asked}={other}", "--tool", "write_down=blocked"]
    result = run(home, "branch", "live", *options, "--function", f"{loop}:agent", "--json")
    assert (result.exit_code, "does not run tool 'write_down'" in result.stderr) == (2, True)
    assert (loop.parent / "effects.txt").read_text() == "answer 1"
    assert {one.origin for one in recorded(home, SessionForked)} == {"live"}


def test_a_verdict_is_kept_when_asked(tmp_path: Path) -> None:
    record_session(tmp_path)
    assert "replay_session" not in answer(tmp_path, "replay", "live", "--level", "state")
    assert recorded(tmp_path, ReplayStarted) == []
    kept = answer(tmp_path, "replay", "live", "--level", "state", "--keep")["replay_session"]
    assert "kept as session" in run(tmp_path, "replay", "live", "--keep").stdout
    assert [(one.level, one.verdict) for one in recorded(tmp_path, ReplayEnded)] == [
        ("state", "equal"),
        ("request", "equal"),
    ]
    assert kept in {row["id"] for row in answer(tmp_path, "sessions")}


def test_what_record_recorded_is_replayed_by_its_own_words(case: Case, tmp_path: Path) -> None:
    with ScriptedModel(counting()) as model:
        words = ["record", "--name", "run-7", "--upstream", model.url, "--", *command("count the apples")]
        with process(case.home, *words, cwd=case.workspace) as running:
            _, errors = running.communicate(timeout=120)
        assert running.returncode == 0, errors
    assert case.counted() == 2
    case.counter.unlink()
    case.workspace.rename(elsewhere := tmp_path / "elsewhere")
    options = ["--level", "rerun", "--workspace", str(elsewhere), "--at-recorded-path", "--json"]
    with process(case.home, "replay", "run-7", *options) as running:
        output, errors = running.communicate(timeout=120)
    report = json.loads(output)
    assert (running.returncode, report["verdict"], errors.decode()) == (0, "equal", "All is counted.\n")
    assert report["sandbox"]["cwd"] == str(case.workspace)
    assert not case.workspace.exists() and not (elsewhere / "counter.txt").exists()
