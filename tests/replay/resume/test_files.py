"""What is written for a harness is read back by its importer as the same conversation."""

import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.capture import record_loop
from ledger.errors import InputError
from ledger.home import Ledger
from ledger.importers._intake import import_paths
from replay.resume.closing import NO_RESULT, closed
from replay.resume.point import load_point
from replay.resume.resuming import prepare
from replay.resume.runtimes import claude_code, deepseek_harness
from replay.resume.turns import Turn
from tests.replay.histories import fresh_ledger

from .conversations import CONVERSATIONS, CWD, PROTOCOLS, SESSION, VALUES, Exchange, record, spoken, told

HARNESSES = ("claude-code", "codex", "deepseek-harness", "pi")


def read_back(folder: Path) -> tuple[str, list[Turn]]:
    """Session and turns of what was written into a folder, by its importer."""
    with fresh_ledger() as ledger:
        report = import_paths(ledger.recorder, [folder])
        assert [entry["quarantined"] for entry in report.files] == [[]] * len(report.files), report.files
        (session,) = report.sessions
        return session, load_point(ledger, session, ledger.store.head(session).seq).turns


@settings(max_examples=30, deadline=None)
@given(CONVERSATIONS, st.integers(0, 2), st.sampled_from(PROTOCOLS), st.sampled_from(HARNESSES))
def test_a_written_session_is_imported_as_the_same_conversation(
    talk: list[Exchange], left_open: int, protocol: str, harness: str
) -> None:
    with TemporaryDirectory() as folder, fresh_ledger() as ledger:
        seq = record(ledger, protocol, spoken(protocol, talk, open_calls=left_open))
        prepared = prepare(ledger, SESSION, seq, Path(folder) / "into", harness)
        prepared.write()
        session, turns = read_back(prepared.into)
        assert session == prepared.resumption.native_id
        assert told(turns) == told(closed(load_point(ledger, SESSION, seq).turns))


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_at_any_record_what_is_written_holds_what_was_said_by_then(
    ledger: Ledger, tmp_path: Path, protocol: str, harness: str, talk: list[Exchange]
) -> None:
    head = record(ledger, protocol, spoken(protocol, talk))
    whole = told(load_point(ledger, SESSION, head).turns)
    for seq in range(3, head + 1):
        prepared = prepare(ledger, SESSION, seq, tmp_path / f"into-{seq}", harness)
        prepared.write()
        point = load_point(ledger, SESSION, seq)
        _, turns = read_back(prepared.into)
        assert told(turns) == told(closed(point.turns))
        so_far = [piece for _, pieces in told(point.turns) for piece in pieces]
        assert [piece for _, pieces in whole for piece in pieces][: len(so_far)] == so_far


def test_the_command_is_run_in_the_folder_of_the_session(
    ledger: Ledger, tmp_path: Path, talk: list[Exchange]
) -> None:
    seq = record(ledger, PROTOCOLS[0], spoken(PROTOCOLS[0], talk), harness="claude-code")
    into = tmp_path / "in to"
    written = prepare(ledger, SESSION, seq, into).write()
    assert written["runtime"] == "claude-code"
    name = written["native_id"]
    assert written["line"] == f"cd '{CWD}' && CLAUDE_CONFIG_DIR='{into}' claude --resume {name}"
    assert written["files"] == [f"projects/-work-a-project/{name}.jsonl"]
    assert [str(path.relative_to(into)) for path in into.rglob("*.jsonl")] == written["files"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_session_of_opencode_is_written_with_each_result_in_the_part_of_its_call(
    ledger: Ledger, tmp_path: Path, talk: list[Exchange]
) -> None:
    seq = record(ledger, "openai.chat", spoken("openai.chat", talk, open_calls=1), harness="opencode")
    prepared = prepare(ledger, SESSION, seq, tmp_path / "into")
    export = json.loads(prepared.resumption.files["session.json"])
    states = [part["state"] for one in export["messages"] for part in one["parts"] if part["type"] == "tool"]
    assert [state["status"] for state in states] == ["completed", "completed", "error"]
    assert states[-1]["error"] == NO_RESULT
    names = [one["info"]["id"] for one in export["messages"]]
    assert names == sorted(names)
    assert prepared.resumption.line.startswith(f"cd '{CWD}' && opencode import ")


def test_folders_are_named_as_the_harnesses_name_them() -> None:
    # What the harnesses' own functions give for these paths.
    assert claude_code.project_folder("/work/é😀_a.b") == "-work-----a-b"
    assert claude_code.project_folder("/work/" + "longer " * 40)[195:] == "longe-iabjm9"
    assert deepseek_harness.project_folder("/work/a_b/c d/é~x") == "--work-a_b-c~0020d-~00E9~007Ex--"
    assert deepseek_harness.project_folder("/") == "--root--"


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, max_size=3), VALUES)
def test_a_hostile_conversation_is_written_or_refused_by_every_runtime(said: list[Any], answer: Any) -> None:
    with fresh_ledger() as ledger:
        with record_loop(ledger, harness="my-loop", session=SESSION, cwd="../x\n'#") as loop:
            reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]}
            loop.model(lambda **_: reply, model="m", messages=said)
        for runtime in (*HARNESSES, "opencode", "plain-anthropic", "plain-openai"):
            with contextlib.suppress(InputError):
                prepare(ledger, SESSION, ledger.store.head(SESSION).seq, Path("/nowhere/new"), runtime)
