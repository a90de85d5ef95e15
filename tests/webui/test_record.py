"""`record` runs a command as if it were started itself, and keeps what it asked of models."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.events.canonical import decode_json
from ledger.events.policy import BreakerTripped
from ledger.events.replaying import ReplayEnded
from ledger.events.session import SessionEnded, SessionLinked, SessionStarted
from ledger.home import open_ledger
from tests.commands import answer, process
from tests.scripted_model import ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import asked_raw, everything, recorded, script, waited

ROOT = Path(__file__).parent.parent.parent

AGENT = """
import json, os, sys, urllib.request

def ask(text):
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]})
    headers = {"content-type": "application/json", "x-api-key": os.environ.get("ANTHROPIC_API_KEY", "")}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)) as answer:
        return json.load(answer)["content"][0]["text"]
"""
"""What the commands of the tests share."""


def command(work: str) -> list[str]:
    """An agent of a few lines."""
    return [sys.executable, "-c", AGENT + work]


def ran(home: Path, *words: str, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """`record` as a process of its own."""
    with process(
        home, "record", *words, stdin=options.pop("stdin", subprocess.DEVNULL), **options
    ) as running:
        output, errors = running.communicate(options.pop("given", None), timeout=120)
    return subprocess.CompletedProcess(words, running.returncode, output, errors)


def report(done: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
    """The JSON report, which ends the standard error."""
    found = json.loads(done.stderr.strip().rpartition(b"\n")[2])
    assert isinstance(found, dict)
    return found


def environ(**more: str) -> dict[str, str]:
    """A small environment."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nowhere", **more}


def test_a_command_runs_as_always_and_its_model_calls_are_in_the_ledger(tmp_path: Path) -> None:
    work = 'print(ask("one"), ask("two")); print("to you", file=sys.stderr); sys.exit(5)'
    with ScriptedModel(script(Step([Text("first")]), Step([Text("second")]))) as model:
        done = ran(
            tmp_path / "home",
            "--name",
            "fix-typo",
            "--upstream",
            model.url,
            "--json",
            "--",
            *command(work),
            env=environ(ANTHROPIC_API_KEY="sk-ant-secret"),
        )
    assert (done.returncode, done.stdout) == (5, b"first second\n")
    assert done.stderr.startswith(b"to you\n")
    found = report(done)
    told = {name: found[name] for name in ("run", "status", "calls", "failed", "tokens", "verdict", "notes")}
    assert told == {
        "run": "fix-typo",
        "status": 5,
        "calls": 2,
        "failed": 0,
        "tokens": {"input": 200, "output": 40},
        "verdict": "equal",
        "notes": [],
    }
    assert len(asked_raw(tmp_path / "home")) == 2
    assert b"sk-ant-secret" not in everything(tmp_path / "home")


def test_the_session_tells_how_it_was_started_and_how_it_ended(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--allow-empty", "-qm", "first"]
    subprocess.run(["git", *commit], cwd=tmp_path, check=True)
    (tmp_path / "new.txt").touch()
    with ScriptedModel(script()) as model:
        words = ["--upstream", model.url, "--", *command('ask("one"); sys.exit(3)')]
        ran(tmp_path / "home", *words, env=environ(MY_TOKEN="kept-out"), cwd=tmp_path)
    (started,) = [one for one in recorded(tmp_path / "home", SessionStarted) if one.harness != "replay"]
    ended = recorded(tmp_path / "home", SessionEnded)[0]
    assert (started.harness, started.cwd) == ("generic", str(tmp_path))
    assert (ended.outcome, ended.reason) == ("failed", "the command exited with status 3")
    assert started.environment is not None
    with open_ledger(tmp_path / "home") as ledger:
        around = decode_json(ledger.store.content(started.environment.digest))
    assert around["command"][0] == sys.executable
    assert (around["home"], around["harness"]) == ("/nowhere", "generic")
    assert "MY_TOKEN" in around["environment"]
    assert (around["git"]["branch"], around["git"]["changed"], len(around["git"]["commit"])) == (
        "main",
        True,
        40,
    )
    assert b"kept-out" not in everything(tmp_path / "home")


def test_the_recording_is_checked_and_the_verdict_is_an_event(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        done = ran(tmp_path, "--upstream", model.url, "--json", "--", *command('ask("one")'), env=environ())
    (verdict,) = recorded(tmp_path, ReplayEnded)
    assert (done.returncode, verdict.verdict, verdict.level, verdict.checked) == (0, "equal", "request", 1)
    with open_ledger(tmp_path) as ledger:
        assert ledger.store.head(report(done)["verdict_session"]).seq > 0


def test_a_command_that_asks_no_model_is_told_loudly(tmp_path: Path) -> None:
    done = ran(tmp_path, "--", "true", env=environ())
    assert done.returncode == 1
    assert b"NOTHING WAS RECORDED" in done.stderr
    kept = ran(tmp_path, "--", "sh", "-c", "exit 9", env=environ())
    assert (kept.returncode, b"NOTHING WAS RECORDED" in kept.stderr) == (9, True)


def test_a_command_that_does_not_exist_is_told_as_a_shell_does(tmp_path: Path) -> None:
    done = ran(tmp_path, "--", "no-such-command", env=environ())
    assert (done.returncode, b"no-such-command: there is no such command" in done.stderr) == (127, True)


def test_mistakes_are_told_before_the_command_runs(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        words = ["--name", "taken", "--upstream", model.url, "--", *command('ask("one")')]
        assert ran(tmp_path, *words, env=environ()).returncode == 0
        again = ran(tmp_path, *words, env=environ())
    assert (again.returncode, b"there is a session taken already" in again.stderr) == (2, True)
    touch = ["--", "touch", str(tmp_path / "ran")]
    for mistake, text in (
        (["--harness", "nobody"], b"'nobody' is no harness: expected one of"),
        (["--upstream", "ftp://x"], b"expected an upstream as"),
        (["--name", "a b"], b"expected a run id"),
    ):
        done = ran(tmp_path, *mistake, *touch, env=environ())
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "ran").exists()


def test_standard_input_passes_through(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("from outside\n")
    with ScriptedModel(script()) as model, given.open() as stdin:
        words = ["--upstream", model.url, "--", *command("print(sys.stdin.read().upper()); ask('one')")]
        done = ran(tmp_path / "home", *words, env=environ(), stdin=stdin)
    assert (done.returncode, done.stdout) == (0, b"FROM OUTSIDE\n\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_go_to_the_command_and_what_it_did_is_kept(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    work = f"""
import signal
signal.signal({int(number)}, lambda *_: sys.exit(7))
ask("one")
open({str(ready)!r}, "w").close()
signal.pause()
"""
    with ScriptedModel(script()) as model:
        words = ["record", "--upstream", model.url, "--json", "--", *command(work)]
        # A group of its own: a signal to us alone, as `kill` sends it.
        with process(tmp_path / "home", *words, env=environ(), start_new_session=True) as running:
            waited(ready.exists)
            running.send_signal(number)
            _, errors = running.communicate(timeout=120)
    assert running.returncode == 7
    assert json.loads(errors.strip().rpartition(b"\n")[2])["calls"] == 1


def test_a_command_that_a_signal_ended_gives_the_status_of_a_shell(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        work = 'ask("one"); import signal; os.kill(os.getpid(), signal.SIGKILL)'
        done = ran(tmp_path, "--upstream", model.url, "--", *command(work), env=environ())
    assert done.returncode == 128 + signal.SIGKILL


def test_an_endpoint_of_the_environment_is_where_requests_go_on_to(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        done = ran(tmp_path, "--", *command('ask("one")'), env=environ(ANTHROPIC_BASE_URL=model.url))
        assert len(model.exchanges) == 1
    assert done.returncode == 0


def test_a_proxy_of_the_network_is_not_asked_for_this_machine(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        around = environ(http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9")
        done = ran(tmp_path, "--upstream", model.url, "--", *command('ask("one")'), env=around)
    assert done.returncode == 0


def test_a_store_that_is_gone_is_no_reason_to_hide_the_status_of_the_command(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    done = ran(blocked, "--", "touch", str(tmp_path / "ran"), env=environ())
    assert (done.returncode, done.stderr.startswith(b"loopledger: ")) == (2, True)
    assert not (tmp_path / "ran").exists()


LOGGING = """
import pathlib, time
with urllib.request.urlopen(urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}).encode(),
    {"content-type": "application/json"},
)) as answer:
    message = json.load(answer)
folder = pathlib.Path(os.environ["HOME"], ".claude", "projects", "-work")
folder.mkdir(parents=True, exist_ok=True)
common = {"sessionId": "11111111-1111-4111-8111-111111111111", "cwd": "/work", "version": "2.1.332"}
common |= {"timestamp": "2026-11-29T12:00:00.000Z", "isSidechain": False, "userType": "external"}
rows = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "go"}},
    {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": message},
]
text = "".join(json.dumps({**common, **row}) + chr(10) for row in rows)
(folder / "11111111-1111-4111-8111-111111111111.jsonl").write_text(text)
"""


def test_the_log_that_the_harness_wrote_meanwhile_is_imported_and_joined(tmp_path: Path) -> None:
    other = tmp_path / ".claude" / "projects" / "-work" / "22222222-2222-4222-8222-222222222222.jsonl"
    other.parent.mkdir(parents=True)
    row = {
        "type": "user",
        "uuid": "x",
        "parentUuid": None,
        "sessionId": "22222222-2222-4222-8222-222222222222",
    }
    other.write_text(json.dumps({**row, "message": {"role": "user", "content": "another session"}}) + "\n")
    step = Step([ToolCall("Read", {"file_path": "a"}, id="toolu_of_this_run")])
    with ScriptedModel(script(step)) as model:
        words = ["--harness", "claude-code", "--upstream", model.url, "--json", "--name", "run-7"]
        done = ran(tmp_path / "ledger", *words, "--", *command(LOGGING), env=environ(HOME=str(tmp_path)))
    found = report(done)
    session = "11111111-1111-4111-8111-111111111111"
    assert (done.returncode, found["imported"], found["tools_in_log"], found["notes"]) == (
        0,
        [session],
        1,
        [],
    )
    with open_ledger(tmp_path / "ledger") as ledger:
        (linked,) = [one.event for one in ledger.store.read("run-7") if isinstance(one.event, SessionLinked)]
        assert ledger.store.recorder.find_sessions("22222222", 10) == []
    assert (linked.other, linked.how, linked.matched) == (
        session,
        ("call_id", "response_id"),
        found["matched"],
    )


def test_a_log_that_is_missing_is_told(tmp_path: Path) -> None:
    with ScriptedModel(script()) as model:
        words = ["--harness", "claude-code", "--upstream", model.url, "--json"]
        done = ran(tmp_path / "ledger", *words, "--", *command('ask("one")'), env=environ(HOME=str(tmp_path)))
    assert report(done)["notes"] == [f"no session log of this run in {tmp_path}/.claude/projects"]


IN_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
"""Runs a command in a terminal of its own, whose keys come from standard input."""


def test_the_terminal_is_the_commands_own_and_its_keys_reach_it_once(tmp_path: Path) -> None:
    work = """
import signal, time
struck = []
signal.signal(signal.SIGINT, lambda *_: struck.append(1))
print("terminal", sys.stdin.isatty(), sys.stdout.isatty(), flush=True)
while not struck:
    time.sleep(0.01)  # not signal.pause(): the key may come before it
ask("one")
print("struck", len(struck), flush=True)
"""
    with ScriptedModel(script()) as model:
        program = [sys.executable, "-m", "webui", "--home", str(tmp_path), "record", "--upstream", model.url]
        with subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, *program, "--", *command(work)],
            env=environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            assert running.stdout.readline() == b"terminal True True\r\n"
            running.stdin.write(b"\x03")
            running.stdin.flush()
            said = running.stdout.read()
            assert running.wait(120) == 0
    assert b"struck 1\r\n" in said
    assert b"1 model call," in said


def test_a_policy_holds_the_command_until_it_is_released(tmp_path: Path) -> None:
    policy, home = tmp_path / "policy.yaml", tmp_path / "home"
    policy.write_text("budgets:\n  - {name: small, tokens: 1}\n")
    words = ("--name", "held", "--policy", str(policy))
    with ScriptedModel(script(Step([Text("one")]), Step([Text("two")]))) as model:
        work = command('print(ask("one"), ask("two"))')
        with process(home, "record", *words, "--upstream", model.url, "--", *work, env=environ()) as running:
            waited(lambda: home.exists() and recorded(home, BreakerTripped))
            assert len(model.exchanges) == 1
            answer(home, "release", "held")
            assert running.communicate(timeout=120)[0] == b"one two\n"
