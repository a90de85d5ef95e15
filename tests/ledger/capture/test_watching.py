"""A loop's workspace: what calls changed in files, however they did it, and whose a change is."""

import asyncio
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import CheckpointRules, record_loop
from ledger.errors import InputError, NotRecordedError
from ledger.events import Record
from ledger.events.effect import EffectDone
from ledger.events.recovery import CheckpointTaken, FilesSeen
from ledger.home import Ledger


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a file."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    return folder


def told(ledger: Ledger) -> list[tuple[str | None, str, str, str]]:
    """Call, operation, file and evidence of all changes of files."""
    return [
        (event.call_id, event.operation, Path(event.target).name, event.evidence)
        for record in ledger.store.read("s")
        if isinstance(event := record.event, EffectDone)
    ]


def looks(ledger: Ledger, session: str = "s") -> list[FilesSeen]:
    """All looks at files."""
    return [e for record in ledger.store.read(session) if isinstance(e := record.event, FilesSeen)]


def shell(work: Path, command: str) -> str:
    """Run a shell command in the workspace."""
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=work, check=True, capture_output=True, text=True
    ).stdout


def test_what_a_shell_command_wrote_is_seen_like_what_an_edit_tool_wrote(ledger: Ledger, work: Path) -> None:
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        loop.tool(lambda path: (work / path).write_text("b"), {"path": "b.txt"}, name="write", call_id="w")
        loop.tool(
            lambda command: shell(work, command),
            {"command": "rm a.txt; echo x >> b.txt"},
            name="sh",
            call_id="x",
        )
        loop.tool(lambda command: shell(work, command), {"command": "ls"}, name="sh", call_id="r")
    assert told(ledger) == [
        ("w", "create", "b.txt", "observed"),
        ("x", "delete", "a.txt", "observed"),
        ("x", "edit", "b.txt", "observed"),
    ]
    assert [seen.call_id for seen in looks(ledger)] == [None, "w", "x"]


def test_changes_stand_before_the_settlement_in_the_same_append(ledger: Ledger, work: Path) -> None:
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        loop.tool(lambda: (work / "b").write_text("b"), {}, name="write")
    types = [record.type for record in ledger.store.read("s")]
    assert types[-4:] == ["recovery.files_seen", "effect.done", "tool_call.settled", "session.ended"]


def test_a_change_between_two_calls_is_nobodys(ledger: Ledger, work: Path) -> None:
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        (work / "hand.txt").write_text("by hand")
        loop.tool(lambda: None, {}, name="look", call_id="l")
    assert told(ledger) == []
    assert [seen.call_id for seen in looks(ledger)] == [None, None]


def test_of_two_calls_at_once_whose_a_change_is_can_only_be_guessed(ledger: Ledger, work: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        inside.set()
        assert go_on.wait(120)
        (work / "slow").write_text("x")

    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        thread = threading.Thread(target=lambda: loop.tool(slow, {}, name="slow", call_id="1"))
        thread.start()
        assert inside.wait(120)
        loop.tool(lambda: (work / "fast").write_text("x"), {}, name="fast", call_id="2")
        go_on.set()
        thread.join()
    assert {(name, evidence) for _, _, name, evidence in told(ledger)} == {
        ("fast", "inferred"),
        ("slow", "inferred"),
    }


def test_what_a_delegated_loop_changed_is_known(ledger: Ledger, work: Path) -> None:
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        with loop.delegate(agent="helper") as child:
            child.tool(lambda: (work / "c").write_text("c"), {}, name="write", call_id="c")
        loop.tool(lambda: None, {}, name="look")
    assert [seen.by_session for seen in looks(ledger)] == [None, child.session]
    assert [seen.call_id for seen in looks(ledger, child.session)] == [None, "c"]


def test_an_asynchronous_tool_is_watched_too(ledger: Ledger, work: Path) -> None:
    async def write() -> None:
        await asyncio.to_thread((work / "b").write_text, "b")

    async def loop() -> None:
        async with record_loop(ledger, harness="h", session="s", workspace=work) as run:
            await run.atool(write, {}, name="write", call_id="w")

    asyncio.run(loop())
    assert told(ledger) == [("w", "create", "b", "observed")]


def test_a_failed_call_may_have_changed_files(ledger: Ledger, work: Path) -> None:
    def fails() -> None:
        (work / "half").write_text("h")
        raise ValueError("half-way")

    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        (work / "hand").write_text("by hand")
        with pytest.raises(ValueError, match="half-way"):
            loop.tool(fails, {}, name="fails", call_id="f")
    assert told(ledger) == [("f", "create", "half", "observed")]


def test_a_checkpoint_knows_the_files_and_the_loop_may_name_another_folder(
    ledger: Ledger, work: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o").write_text("o")
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        loop.checkpoint("here")
        loop.checkpoint("there", workspace=other)
        loop.checkpoint("there again", workspace=other)
    taken = [e for record in ledger.store.read("s") if isinstance(e := record.event, CheckpointTaken)]
    files = [one.files and one.files.digest for one in taken]
    assert None not in files
    assert files[0] != files[1] == files[2]
    assert len(looks(ledger)) == 2


def test_a_workspace_that_is_none_is_a_mistake_and_one_that_goes_away_stops_the_next_call(
    ledger: Ledger, work: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is no folder"):
        record_loop(ledger, harness="h", workspace=tmp_path / "nothing")
    calls: list[str] = []
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        loop.tool(lambda: work.rename(tmp_path / "gone"), {}, name="move")
        with pytest.raises(NotRecordedError):
            loop.tool(calls.append, {"object": "x"}, name="next")
    assert calls == []
    settled = [record for record in ledger.store.read("s") if record.type == "tool_call.settled"]
    assert len(settled) == 1


def test_a_mistaken_compensation_is_told_before_the_call(ledger: Ledger) -> None:
    bad: list[Any] = [{}, {"tool": "a", "command": ["b"]}, {"shell": "rm"}]
    with record_loop(ledger, harness="h", session="s", checkpoints=CheckpointRules()) as loop:
        for one in bad:
            with pytest.raises(NotRecordedError, match="compensation"):
                loop.tool(lambda: None, {}, name="act", compensate=one)
    assert not [record for record in ledger.store.read("s") if _is_call(record)]


def _is_call(record: Record) -> bool:
    return record.type.startswith("tool_call.")
