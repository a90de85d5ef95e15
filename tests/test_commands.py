"""Every command: its help, its JSON, its exit status, and that no trace can touch the terminal."""

import json
import re
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from tests.commands import DAMAGED, HOSTILE, answer, process, record_session, run
from webui.cli import HOMES, app, commands_of

COMMANDS = sorted(group.commands) if isinstance(group := typer.main.get_command(app), TyperGroup) else []


RUNS_UNTIL_STOPPED = {"demo", "hook", "mcp", "proxy", "record", "serve", "tap"}
"""Commands that answer nothing that a script would read."""


def test_the_commands() -> None:
    assert set(COMMANDS) >= {
        "approvals", "approve", "branch", "checkpoint", "checkpoints", "demo", "deny", "diff", "effects",
        "events", "export", "formats", "hold", "hook", "import", "join", "proxy", "queries", "record",
        "release", "replay", "request", "rollback", "serve", "sessions", "show", "sql", "state", "tap",
        "verify",
    }  # fmt: skip


@pytest.mark.parametrize("home", HOMES)
def test_a_home_adds_the_commands_that_are_listed_for_it(home: str) -> None:
    assert list(commands_of(home)) == HOMES[home].split()


def test_a_command_does_not_wait_for_the_parts_of_others() -> None:
    # Each of them takes longer to load than a harness wants to wait for a hook.
    heavy = {"aiohttp", "cel", "duckdb", "fastapi", "pyarrow"}
    hook = "from webui.cli import app; app(['hook', '--help'], standalone_mode=False)"
    code = f"import sys; {hook}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(tmp_path: Path, command: str) -> None:
    result = run(tmp_path, command, "--help")
    assert result.exit_code == 0
    assert f"Example: loopledger {command}" in " ".join(result.stdout.split())
    assert command in RUNS_UNTIL_STOPPED or "--json" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


# -- shapes ----------------------------------------------------------------------------------------------------------


def test_import_reports_and_adds_only_what_is_new(tmp_path: Path) -> None:
    first = answer(tmp_path, "import", DAMAGED)
    (entry,) = [entry for entry in first["files"] if entry["format"]]
    assert {
        "path", "format", "grade", "sessions", "lines", "records", "model_calls", "tool_calls", "tool_results",
        "unanswered_calls", "orphan_results", "compactions", "quarantined", "duplicates", "dangling_parents",
        "unknown", "tokens", "redacted", "cannot_show",
    } <= entry.keys()  # fmt: skip
    assert first["records_added"] == entry["records"] > 0
    assert first["sessions"] == entry["sessions"]
    assert all(place.keys() == {"line", "reason"} for place in entry["quarantined"])
    assert {entry["reason"] is not None for entry in first["files"] if not entry["format"]} == {True}
    assert answer(tmp_path, "import", DAMAGED)["records_added"] == 0
    assert answer(tmp_path, "verify")["ok"] is True


def test_import_for_people(tmp_path: Path) -> None:
    result = run(tmp_path, "import", DAMAGED)
    assert result.exit_code == 0
    (place, *_) = [entry for entry in answer(tmp_path, "import", DAMAGED)["files"] if entry["format"]]
    for damage in place["quarantined"]:
        assert f"{place['path']}:{damage['line']} {damage['reason']}" in result.stdout
    assert "what claude-code cannot show:" in result.stdout
    assert "all of it was in the ledger already" in run(tmp_path, "import", DAMAGED).stdout


def test_sessions_and_events(tmp_path: Path) -> None:
    record_session(tmp_path)
    (row,) = answer(tmp_path, "sessions")
    assert {
        "id", "name", "harness", "agent", "grade", "records", "started_at", "parent", "outcome", "tokens",
        "cost_usd", "findings", "integrity",
    } <= row.keys()  # fmt: skip
    assert (row["id"], row["harness"], row["outcome"], row["integrity"]) == (
        "live-1",
        "my-loop",
        "completed",
        "unknown",
    )
    assert row["tokens"] == {"input": 10, "output": 4, "cache_read": None, "cache_write": None}
    assert run(tmp_path, "verify").exit_code == 0
    assert answer(tmp_path, "sessions", "--rebuild")[0]["integrity"] == "unknown"
    assert run(tmp_path, "verify", "live").exit_code == 0
    assert answer(tmp_path, "sessions", "--last", 1)[0]["integrity"] == "ok"
    lines = [json.loads(line) for line in run(tmp_path, "events", "live", "--json").stdout.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, row["records"] + 1))
    assert {"session", "seq", "position", "type", "occurred_at", "actor", "cause", "data"} <= lines[0].keys()
    assert lines[0]["data"]["harness"] == "my-loop"
    some = run(tmp_path, "events", "live", "--from", 2, "--to", 4, "--type", "input", "--json").stdout
    assert [json.loads(line)["type"] for line in some.splitlines()] == ["input.message_received"]


def test_show(tmp_path: Path) -> None:
    record_session(tmp_path)
    answer(tmp_path, "import", DAMAGED)
    report = answer(tmp_path, "show", "live")
    assert report["types"]["model_call.answered"] == 2
    assert "echo" in run(tmp_path, "show", "live").stdout
    imported = answer(tmp_path, "sessions")[0]["id"]
    assert "quarantined: line" in run(tmp_path, "show", imported).stdout
    record = answer(tmp_path, "show", "live#2")
    assert (record["seq"], record["contents"]["message"]) == (2, {"role": "user", "content": "hello 0"})
    assert "hello 0" in run(tmp_path, "show", "live#2").stdout
    assert '{"content":"hello 0","role":"user"}' in run(tmp_path, "show", "live#2", "--raw").stdout


def test_state_diff_request(tmp_path: Path) -> None:
    record_session(tmp_path)
    state = answer(tmp_path, "state", "live", "--at", 4)
    assert {
        "session", "seq", "digest", "context", "constraints", "artifacts", "tools", "open_calls", "approvals",
        "budget", "usage", "files", "checkpoints", "delegations",
    } <= state.keys()  # fmt: skip
    assert [message["content"] for message in state["context"]] == ["hello 0", "hello back"]
    changes = answer(tmp_path, "diff", "live", 4, 5)
    assert [change["op"] for change in changes] == ["add"]
    assert changes[0].keys() == {"op", "path", "old", "new", "seq"}
    request = answer(tmp_path, "request", "live", 3)
    assert request["body"] == {"model": "scripted", "messages": [{"role": "user", "content": "hello 0"}]}
    assert json.loads(run(tmp_path, "request", "live", 3, "--body").stdout) == request["body"]
    assert "it has the digest that was recorded" in run(tmp_path, "request", "live", 3).stdout
    assert "2 messages in context" in run(tmp_path, "state", "live", "--at", 4).stdout
    assert "+ /context/2" in run(tmp_path, "diff", "live", 4, 5).stdout
    assert "nothing changed" in run(tmp_path, "diff", "live", 4, 4).stdout


def test_formats(tmp_path: Path) -> None:
    formats = answer(tmp_path, "formats")
    assert all(one.keys() == {"format", "title", "grade", "cannot_show"} for one in formats)
    assert "claude-code" in {one["format"] for one in formats}
    assert "cannot show:" in run(tmp_path, "formats").stdout


# -- exit status -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "/no/such/path"), "/no/such/path does not exist"),
        (("import", DAMAGED, "--format", "nonsense"), "'nonsense' is not a format: expected one of"),
        (("show", "nobody"), "no session has an id that starts with 'nobody'"),
        (("show", "live-1#99"), "live-1#99 does not exist: the session has records 1 to"),
        (("show", "live-1#x"), "expected SESSION#SEQ"),
        (("show", "live-1", "--raw"), "--raw shows one record"),
        (("events", "live-"), "is the start of several session ids"),
        (("events", "live-1", "--type", "tool"), "no event type or family"),
        (("state", "live-1", "--at", 99), "does not exist"),
        (("diff", "live-1", 1, 99), "does not exist"),
        (("request", "live-1", 1), "has no model request at or before seq 1"),
        (("--store", "mysql://x", "sessions"), "is no store"),
    ],
)
def test_a_mistake_is_a_message_and_status_2(
    tmp_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    record_session(tmp_path, "live-1")
    record_session(tmp_path, "live-2")
    for json_option in ((), ("--json",)):
        result = run(tmp_path, *arguments, *(() if "--raw" in arguments else json_option))
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""


def test_a_mistyped_folder_is_no_empty_ledger(tmp_path: Path) -> None:
    result = run(tmp_path / "nothing", "verify")
    assert (result.exit_code, "there is no ledger at" in result.stderr) == (2, True)
    assert not (tmp_path / "nothing").exists()


def test_a_folder_without_traces_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear Ada")
    result = run(tmp_path / "home", "import", tmp_path / "letter.txt", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["files"][0]["format"] is None


def test_usage_errors_are_status_2(tmp_path: Path) -> None:
    assert run(tmp_path, "state").exit_code == 2
    assert run(tmp_path, "nonsense").exit_code == 2


def test_damage_is_status_1_and_named(tmp_path: Path) -> None:
    record_session(tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        connection.execute("drop trigger records_are_not_updated")
        changed = "cast(replace(cast(state as text), 'my-loop', 'my-l00p') as blob)"
        connection.execute(f"update stored_events set state = {changed} where nid = 1")
        connection.commit()
    result = run(tmp_path, "verify", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["ok"] is False
    found = {(problem["kind"], problem["session"], problem["seq"]) for problem in report["problems"]}
    assert ("record_changed", "live-1", 1) in found
    people = run(tmp_path, "verify")
    assert people.exit_code == 1
    assert "live-1#1  record_changed" in people.stdout
    assert answer(tmp_path, "sessions")[0]["integrity"] == "problems"


def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path: Path) -> None:
    record_session(tmp_path, turns=400)
    with process(tmp_path, "events", "live-1", "--json") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(120) == 141


def test_the_program_as_a_process(tmp_path: Path) -> None:
    with process(tmp_path, "show", "nobody") as running:
        output, errors = running.communicate(timeout=120)
    assert (running.returncode, output) == (2, b"")
    assert errors.startswith(b"loopledger: there is no ledger at")
    with process(tmp_path, "import", DAMAGED, env={"PYTHONIOENCODING": "ascii", "PATH": ""}) as running:
        output, errors = running.communicate(timeout=120)
    assert (running.returncode, errors) == (0, b"")  # no progress bar where there is no terminal


# -- hostile content -------------------------------------------------------------------------------------------------

VIEWS = (
    ("sessions",),
    ("events", "live"),
    ("show", "live"),
    ("show", "live#2"),
    ("show", "live#2", "--raw"),
    ("state", "live"),
    ("diff", "live", 0, 6),
    ("request", "live", 3),
    ("request", "live", 3, "--body"),
)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("as_json", [False, True])
def test_no_trace_touches_the_terminal(tmp_path: Path, view: tuple[Any, ...], as_json: bool) -> None:
    record_session(tmp_path, text=HOSTILE)
    result = run(tmp_path, *view, *(["--json"] if as_json else []))
    assert result.exit_code == 0
    bad = {char for char in result.output if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert bad <= {"\n"}


def test_json_keeps_hostile_text_as_it_was(tmp_path: Path) -> None:
    record_session(tmp_path, text=HOSTILE)
    request = answer(tmp_path, "request", "live", 3)
    assert request["messages"][0]["content"] == f"{HOSTILE} 0"


@pytest.mark.parametrize("view", [view for view in VIEWS if "--raw" not in view and "--body" not in view])
def test_answers_fit_a_narrow_terminal(tmp_path: Path, view: tuple[Any, ...]) -> None:
    record_session(tmp_path, text="long " * 100)
    answer(tmp_path, "import", DAMAGED)
    lines = run(tmp_path, *view).stdout.splitlines()
    limit = 820 if view == ("show", "live#2") else 80  # content is shown whole, up to a point
    assert max(len(line) for line in lines) <= limit


def test_the_demo(tmp_path: Path) -> None:
    result = run(tmp_path, "demo")
    assert result.exit_code == 0
    shown = re.findall(r"^\$ loopledger (\w+)", result.stdout, re.MULTILINE)
    assert shown == ["import", "sessions", "events", "state", "diff", "request", "verify", "export", "sql"]
    assert "are as they were written" in result.stdout
    assert "credential.secret_redacted" in result.stdout
    assert "sk-proj-" not in result.stdout
    assert (tmp_path / "ledger.sqlite").is_file()
