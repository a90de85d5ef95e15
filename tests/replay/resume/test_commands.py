"""`rollback --into` and `branch --into`: what they write, and what they refuse without writing anything."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ledger.events import Draft
from ledger.events.session import SessionStarted
from ledger.home import open_ledger
from replay.recovery.checkpoints import take_checkpoint
from replay.recovery.rollback import roll_back
from replay.resume.point import load_point
from replay.resume.runtime import discover_runtimes
from tests.commands import answer, run

from .conversations import SESSION, Exchange, record, spoken, told

ANTHROPIC = "anthropic.messages"


@pytest.fixture
def home(tmp_path: Path, talk: list[Exchange]) -> Path:
    """A ledger with a session of Claude Code."""
    folder = tmp_path / "home"
    with open_ledger(folder) as ledger:
        record(ledger, ANTHROPIC, spoken(ANTHROPIC, talk), harness="claude-code", system="Be careful.")
    return folder


def _head(home: Path) -> int:
    with open_ledger(home) as ledger:
        return ledger.store.head(SESSION).seq


def _first_answer(home: Path) -> int:
    """The record with which the first answer is there."""
    with open_ledger(home) as ledger:
        return next(record.seq for record in ledger.store.read(SESSION, names=["model_call.answered"]))


def test_branch_into_writes_a_session_and_prints_the_command(home: Path, tmp_path: Path) -> None:
    into, head = tmp_path / "into", _head(home)
    told_so = run(home, "branch", SESSION, "--at", _first_answer(home), "--into", into)
    assert told_so.exit_code == 0, told_so.output
    (file,) = into.rglob("*.jsonl")
    assert told_so.output.rstrip().endswith(f"claude --resume {file.stem}")
    assert "I look." in file.read_text()
    assert "Done." not in file.read_text()
    assert _head(home) == head


def test_rollback_into_goes_back_and_writes(home: Path, tmp_path: Path) -> None:
    with open_ledger(home) as ledger:
        take_checkpoint(ledger, SESSION, at=_first_answer(home), label="early")
    into = tmp_path / "into"
    found = answer(home, "rollback", SESSION, "--to", "early", "--reason", "test", "--into", into)
    assert found["rolled_back"] == _head(home)
    written = found["resumption"]
    assert written["from_seq"] == found["to_seq"]
    assert [str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()] == written["files"]
    assert (
        answer(home, "state", SESSION)["context"]
        == answer(home, "state", SESSION, "--at", found["to_seq"])["context"]
    )


def test_rollback_without_into_writes_nothing_but_its_records(home: Path, tmp_path: Path) -> None:
    with open_ledger(home) as ledger:
        take_checkpoint(ledger, SESSION, at=_first_answer(home), label="early")
    before = sorted(path for path in tmp_path.rglob("*") if home not in path.parents)
    found = answer(home, "rollback", SESSION, "--to", "early", "--reason", "test")
    assert "resumption" not in found
    assert sorted(path for path in tmp_path.rglob("*") if home not in path.parents) == before


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--as", "nonsense"], "is not a runtime: expected one of"),
        (["--into", "{full}"], "holds other.txt: expected a new or empty folder"),
        (["--into", "{file}"], "is no folder"),
    ],
)
def test_what_is_refused_neither_goes_back_nor_writes(
    home: Path, tmp_path: Path, options: list[str], why: str
) -> None:
    with open_ledger(home) as ledger:
        take_checkpoint(ledger, SESSION, at=_first_answer(home), label="early")
    full = tmp_path / "full"
    full.mkdir()
    (full / "other.txt").write_text("mine")
    given = [one.format(full=full, file=full / "other.txt") for one in options]
    head, before = _head(home), sorted(tmp_path.rglob("*"))
    into = [] if "--into" in given else ["--into", tmp_path / "into"]
    for command in (["rollback", SESSION, "--to", "early", "--reason", "t"], ["branch", SESSION, "--at", 4]):
        refused = run(home, *command, *into, *given)
        assert refused.exit_code == 2, refused.output
        assert why in " ".join(refused.output.split())
    assert _head(home) == head
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "wrong",
    [
        ["rollback", SESSION, "--to", "early", "--plan", "--into", "x"],
        ["rollback", SESSION, "--to", "early", "--reason", "t", "--as", "codex"],
        ["branch", SESSION, "--at", "4", "--as", "codex"],
        ["branch", SESSION, "--at", "4", "--into", "x", "--", "true"],
    ],
)
def test_options_that_do_not_go_together_are_refused(home: Path, wrong: list[str]) -> None:
    assert run(home, *wrong).exit_code == 2
    assert not Path("x").exists()


def test_an_erased_message_is_named_and_nothing_is_written(home: Path, tmp_path: Path) -> None:
    with open_ledger(home) as ledger:
        digest = ledger.recorder.keeper().json({"role": "user", "content": "Look."}).digest
    with contextlib.closing(sqlite3.connect(home / "ledger.sqlite")) as database, database:
        database.execute("delete from blobs where digest = ?", (bytes.fromhex(digest),))
    refused = run(home, "branch", SESSION, "--at", _first_answer(home), "--into", tmp_path / "into")
    assert refused.exit_code == 2
    assert f"content {digest} of message 0" in " ".join(refused.output.split())
    assert not (tmp_path / "into").exists()


def test_an_outline_is_refused(home: Path, tmp_path: Path) -> None:
    with open_ledger(home) as ledger:
        started = Draft(SessionStarted(harness="codex", cwd="/work"), grade="skeleton")
        ledger.recorder.append_many({"outline": [started]}, ledger.recorder.keeper())
    refused = run(home, "branch", "outline", "--at", 1, "--into", tmp_path / "into")
    assert refused.exit_code == 2
    assert "only an outline" in " ".join(refused.output.split())


def test_a_loop_of_ones_own_has_to_name_its_runtime(home: Path, tmp_path: Path, talk: list[Exchange]) -> None:
    with open_ledger(home) as ledger:
        record(ledger, "openai.chat", spoken("openai.chat", talk), session="own", tools=TOOLS)
    refused = run(home, "branch", "own", "--at", 4, "--into", tmp_path / "into")
    assert refused.exit_code == 2
    assert ", ".join(discover_runtimes()) in " ".join(refused.output.split())
    for name in ("plain-openai", "plain-anthropic"):
        assert name in discover_runtimes()


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Reads.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]


def _body(home: Path, tmp_path: Path, session: str, runtime: str) -> dict[str, Any]:
    into = tmp_path / f"{session}-{runtime}"
    with open_ledger(home) as ledger:
        seq = next(one.seq for one in ledger.store.read(session, names=["model_call.answered"]))
    written = answer(home, "branch", session, "--at", seq, "--into", into, "--as", runtime)
    assert written["files"] == ["request.json"]
    body = json.loads((into / "request.json").read_text())
    assert isinstance(body, dict)
    return body


def test_a_request_body_can_be_had_in_the_other_protocol(
    home: Path, tmp_path: Path, talk: list[Exchange]
) -> None:
    with open_ledger(home) as ledger:
        record(ledger, "openai.chat", spoken("openai.chat", talk), session="own", tools=TOOLS, temperature=0)
    own = _body(home, tmp_path, "own", "plain-openai")
    assert (own["model"], own["temperature"], own["tools"]) == ("m", 0, TOOLS)
    assert [message["role"] for message in own["messages"]] == ["user", "assistant", "tool", "tool"]
    other = _body(home, tmp_path, "own", "plain-anthropic")
    assert other["tools"] == [
        {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert [message["role"] for message in other["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in other["messages"][2]["content"]] == ["tool_result", "tool_result"]
    claude = _body(home, tmp_path, SESSION, "plain-anthropic")
    assert claude["system"] == "Be careful."
    chat = _body(home, tmp_path, SESSION, "plain-openai")
    assert chat["messages"][0] == {"role": "system", "content": "Be careful."}


def test_what_an_earlier_rollback_abandoned_is_not_written(
    home: Path, tmp_path: Path, talk: list[Exchange]
) -> None:
    with open_ledger(home) as ledger:
        early = _first_answer(home)
        take_checkpoint(ledger, SESSION, at=early, label="early")
        abandoned = load_point(ledger, SESSION, ledger.store.head(SESSION).seq)
        roll_back(ledger, SESSION, "early", reason="test")
        point = load_point(ledger, SESSION, ledger.store.head(SESSION).seq)
        assert told(point.turns) == told(load_point(ledger, SESSION, early).turns)
        assert point.request is not None
        assert abandoned.request is not None
        assert point.request.seq < early < abandoned.request.seq
        assert all(record.seq <= early or record.seq > abandoned.seq for record in point.records())
