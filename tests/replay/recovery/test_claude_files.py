"""Backups that Claude Code kept of files: restorable where they were there at import, and said where not."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger.home import open_ledger
from tests.commands import answer, run

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"
SESSION = "11111111-2222-4333-8444-555555555555"
TIME = "2026-11-29T10:00:00.000Z"


class Claude:
    """A home of Claude Code with one session, and the folder that it worked in."""

    def __init__(self, folder: Path) -> None:
        self.work, self.top = folder / "work", folder / "claude"
        self.work.mkdir()
        self.log = self.top / "projects" / "-work" / f"{SESSION}.jsonl"
        self.backups = self.top / "file-history" / SESSION
        self.log.parent.mkdir(parents=True)
        self.backups.mkdir(parents=True)
        self._rows: list[dict[str, Any]] = []
        self._last: str | None = None
        self._number = 0

    def row(self, kind: str, **fields: Any) -> str:
        """A row of the conversation."""
        self._number += 1
        name = f"00000000-0000-4000-8000-{self._number:012}"
        about = {"sessionId": SESSION, "cwd": str(self.work), "version": "2.1.332", "isSidechain": False}
        self._rows.append(
            {"type": kind, "uuid": name, "parentUuid": self._last, "timestamp": TIME, **about, **fields}
        )
        self._last = name
        return name

    def prompt(self, text: str, **tracked: dict[str, Any]) -> str:
        """A prompt and its snapshot."""
        name = self.row("user", message={"role": "user", "content": text})
        snapshot = {"messageId": name, "trackedFileBackups": tracked, "timestamp": TIME}
        self._rows.append(
            {
                "type": "file-history-snapshot",
                "messageId": name,
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )
        return name

    def call(self, tool: str, prompt: str = "", backup: dict[str, Any] | None = None, **given: Any) -> None:
        """A call that returns; with the backup that is made before it."""
        call = f"call_{self._number}"
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        self.row("assistant", message={"id": f"msg_{call}", "role": "assistant", "content": [block]})
        if backup is not None:
            path = str(Path(given["file_path"]).relative_to(self.work))
            self._rows.append(
                {
                    "type": "file-history-delta",
                    "messageId": self._last,
                    "snapshotMessageId": prompt,
                    "trackingPath": path,
                    "backup": backup,
                    "timestamp": TIME,
                }
            )
        done = {"type": "tool_result", "tool_use_id": call, "content": "done"}
        self.row("user", message={"role": "user", "content": [done]})

    def backup(self, path: str, version: int, content: bytes | None) -> dict[str, Any]:
        """What a row says of a backup; its file is written."""
        if content is None:
            return {"backupFileName": None, "version": version, "backupTime": TIME}
        name = f"{hashlib.sha256(path.encode()).hexdigest()[:16]}@v{version}"
        (self.backups / name).write_bytes(content)
        return {"backupFileName": name, "version": version, "backupTime": TIME}

    def write(self) -> Path:
        """The log."""
        self.log.write_text("".join(f"{json.dumps(row)}\n" for row in self._rows))
        return self.log


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    """Two prompts: the first changes a file and makes one, the second changes both by several tools."""
    one = Claude(tmp_path)
    notes, new = str(one.work / "notes.txt"), str(one.work / "new.txt")
    first = one.prompt("first")
    one.call(
        "Edit",
        first,
        one.backup("notes.txt", 1, b"one\n"),
        file_path=notes,
        old_string="one",
        new_string="two",
    )
    one.call("Write", first, one.backup("new.txt", 1, None), file_path=new, content="new\n")
    tracked = {
        "notes.txt": one.backup("notes.txt", 2, b"two\n"),
        "new.txt": one.backup("new.txt", 2, b"new\n"),
    }
    one.prompt("second", **tracked)
    one.call(
        "MultiEdit",
        file_path=notes,
        edits=[
            {"old_string": "two", "new_string": "three three"},
            {"old_string": "three", "new_string": "four", "replace_all": True},
        ],
    )
    one.call("Edit", file_path=new, old_string="new", new_string="newer")
    (one.work / "notes.txt").write_text("four four\n")
    (one.work / "new.txt").write_text("newer\n")
    (one.work / "other.txt").write_text("mine\n")
    return one


def held(claude: Claude) -> dict[str, str]:
    """What the folder holds."""
    return {path.name: path.read_text() for path in sorted(claude.work.iterdir())}


def test_each_prompt_is_a_way_back_for_the_files_that_were_backed_up(tmp_path: Path, claude: Claude) -> None:
    home = tmp_path / "home"
    (session,) = answer(home, "import", claude.write())["sessions"]
    first, second = answer(home, "checkpoints", session)
    plan = json.loads(
        run(home, "rollback", session, "--to", first["checkpoint_id"], "--plan", "--json").stdout
    )
    assert plan["conflicts"] == plan["uncovered_files"] == []
    assert {one["disposition"] for one in plan["effects"]} == {"restored"}
    assert answer(home, "rollback", session, "--to", second["checkpoint_id"], "--reason", "x")["clean"]
    assert held(claude) == {"new.txt": "new\n", "notes.txt": "two\n", "other.txt": "mine\n"}
    assert answer(home, "rollback", session, "--to", first["checkpoint_id"], "--reason", "x")["clean"]
    assert held(claude) == {"notes.txt": "one\n", "other.txt": "mine\n"}


def test_a_file_that_somebody_changed_since_stops_it(tmp_path: Path, claude: Claude) -> None:
    home = tmp_path / "home"
    (session,) = answer(home, "import", claude.write())["sessions"]
    first = answer(home, "checkpoints", session)[0]["checkpoint_id"]
    (claude.work / "notes.txt").write_text("by hand\n")
    before = held(claude)
    result = run(home, "rollback", session, "--to", first, "--reason", "x")
    assert (result.exit_code, "notes.txt: it is not as it was seen last" in result.stderr) == (2, True)
    assert held(claude) == before
    assert answer(home, "rollback", session, "--to", first, "--reason", "x", "--overwrite")["clean"]
    assert held(claude) == {"notes.txt": "one\n", "other.txt": "mine\n"}


def test_missing_backups_are_told_at_import_and_in_the_plan(tmp_path: Path, claude: Claude) -> None:
    home = tmp_path / "home"
    shutil.rmtree(claude.backups)
    report = answer(home, "import", claude.write())
    assert "3 file backups are not in file-history" in json.dumps(report)
    (session,) = report["sessions"]
    second = answer(home, "checkpoints", session)[1]["checkpoint_id"]
    result = run(home, "rollback", session, "--to", second, "--plan", "--json")
    plan = json.loads(result.stdout)
    assert (result.exit_code, plan["clean"]) == (1, False)
    assert {one["path"] for one in plan["uncovered_files"]} == {"notes.txt", "new.txt"}
    assert all("its backup was not there" in one["why"] for one in plan["uncovered_files"])


def test_a_backup_with_a_secret_or_behind_a_link_is_not_kept(tmp_path: Path, claude: Claude) -> None:
    home = tmp_path / "home"
    secret, linked = sorted(claude.backups.glob("*@v2"))
    secret.write_text(f"aws_access_key_id={SECRET}\n")
    (tmp_path / "elsewhere").write_text("not of Claude Code")
    linked.unlink()
    linked.symlink_to(tmp_path / "elsewhere")
    (session,) = answer(home, "import", claude.write())["sessions"]
    second = answer(home, "checkpoints", session)[1]["checkpoint_id"]
    plan = json.loads(run(home, "rollback", session, "--to", second, "--plan", "--json").stdout)
    why = sorted(one["why"] for one in plan["uncovered_files"])
    assert [text.split()[-1] for text in why] == ["secret", "imported"]
    with open_ledger(home) as ledger:
        kept = [
            record for record in ledger.store.read(session) if b"not of Claude" in str(record.event).encode()
        ]
    assert kept == []


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/outside.txt", ".", "a/../../outside.txt"])
def test_a_path_that_leaves_the_folder_is_no_file_of_it(tmp_path: Path, claude: Claude, path: str) -> None:
    home = tmp_path / "home"
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    third = claude.prompt("third", **{path: claude.backup(path, 1, b"overwritten")})
    (session,) = answer(home, "import", claude.write())["sessions"]
    assert run(home, "rollback", session, "--to", third, "--reason", "x").exit_code in (0, 1)
    assert outside.read_text() == "precious"
