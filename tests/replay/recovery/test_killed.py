"""A rollback that is killed at every one of its steps: a second call finishes it, and runs no compensation again."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.home import open_ledger
from ledger.store import EventStore
from replay.recovery.compensations import Compensator
from replay.recovery.rollback import Done, roll_back
from tests.commands import answer
from tests.replay.recovery.world import fill_workspace, picture

_DISK = ("replace", "unlink", "mkdir", "rmdir", "symlink", "fchmod", "fsync")


class Steps:
    """Counts the steps that write, before and after each, and kills this process at one of them."""

    def __init__(self, deadly: int | None) -> None:
        self.count = 0
        self._deadly = deadly

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a step before it and one after."""

        def run(*arguments: Any, **options: Any) -> Any:
            self._step()
            result = function(*arguments, **options)
            self._step()
            return result

        return run

    def _step(self) -> None:
        self.count += 1
        if self.count == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def rolled_back(folder: Path, steps: Steps | None = None) -> Done:
    """Roll the session of a folder back; compensations note in a file of theirs that they ran."""

    def release(room: str) -> None:
        with (folder / "ran").open("a") as file:
            file.write(f"{room}\n")

    run = release if steps is None else steps.watched(release)
    with open_ledger(folder / "home") as ledger:
        return roll_back(ledger, "trip", "start", reason="no trip", compensator=Compensator({"release": run}))


def prepare(folder: Path) -> dict[str, Any]:
    """A session that booked two rooms and changed files; gives the files as they were."""
    folder.mkdir()
    fill_workspace(folder / "work")
    before = picture(folder / "work")

    def change(step: int) -> str:
        work = folder / "work"
        if step == 1:
            (work / "notes.txt").write_text("changed")
            (work / "old.txt").unlink()
        else:
            (work / "empty").rmdir()
            (work / "link").unlink()
            (work / "new").mkdir()
            (work / "new" / "file").write_text("new")
        return "ok"

    with (
        open_ledger(folder / "home") as ledger,
        record_loop(ledger, harness="h", session="trip", workspace=folder / "work") as loop,
    ):
        loop.checkpoint("start")
        undo = {"tool": "release", "arguments": {"room": "/arguments/room"}}
        for step, room in ((1, "room-17"), (2, "room-18")):
            loop.tool(change, {"step": step}, effect_class="write")
            loop.tool(
                lambda room: room, {"room": room}, name="book", effect_class="external", compensate=undo
            )
    return before


def killed_at(folder: Path, deadly: int | None) -> tuple[int, int]:
    """Roll back in a process of its own; give its status and how many steps there are."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            steps = Steps(deadly)
            for name in _DISK:
                setattr(os, name, steps.watched(getattr(os, name)))
            EventStore.append = steps.watched(EventStore.append)  # type: ignore[method-assign]
            rolled_back(folder, steps)
            os.write(writing, str(steps.count).encode())
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    counted = os.read(reading, 100)
    os.close(reading)
    return os.waitstatus_to_exitcode(status), int(counted or 0)


@pytest.mark.slow
def test_killed_anywhere_a_second_call_finishes_and_nothing_runs_twice(tmp_path: Path) -> None:
    folder, copy = tmp_path / "trip", tmp_path / "copy"
    before = prepare(folder)
    shutil.copytree(folder, copy, symlinks=True)
    status, count = killed_at(folder, None)
    assert status == 0
    assert count > 40
    assert (folder / "ran").read_text() == "room-18\nroom-17\n"
    unknown = 0
    for deadly in range(1, count + 1):
        shutil.rmtree(folder)
        shutil.copytree(copy, folder, symlinks=True)
        assert killed_at(folder, deadly)[0] == -signal.SIGKILL
        done = rolled_back(folder)
        ran = (folder / "ran").read_text().split() if (folder / "ran").exists() else []
        assert len(ran) == len(set(ran)), f"step {deadly}: {ran}"
        assert picture(folder / "work") == before, f"step {deadly}"
        assert done.state_digest == done.plan.state_digest
        dispositions = [one.judgement.disposition for one in done.plan.effects if one.call.tool == "book"]
        for room, disposition in zip(("room-17", "room-18"), dispositions, strict=True):
            # Killed between intent and settlement, nobody can say whether it ran: it is not run again, and told.
            assert (disposition, room in ran) in (
                ("compensated", True),
                ("unknown", True),
                ("unknown", False),
            )
            unknown += disposition == "unknown"
        if deadly % 20 == 0:
            assert answer(folder / "home", "verify")["ok"]
    assert unknown == 2 * 4  # after the append of the intent, before and after the run, before the settlement
