"""Checkpoints that name a git commit, and snapshots that leave out what git ignores. With the real git."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.home import open_ledger
from ledger.workspace import Limits, Workspace
from replay.recovery.rollback import roll_back as roll_back_here
from tests.commands import answer, record_session, run
from tests.replay.recovery.world import picture

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def git(folder: Path, *words: str) -> str:
    """Run git as a person would."""
    names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    names |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **names}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A working tree as it is committed, with files of all sorts and a file that git ignores."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / ".gitignore").write_text("build/\n*.log\n")
    (folder / "notes.txt").write_text("first\n")
    (folder / "src" / "run.sh").write_text("#!/bin/sh\necho hello\n")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "photo.bin").write_bytes(bytes(range(256)) * 40)
    (folder / "settings").write_text(f"aws_access_key_id={SECRET}\n")
    (folder / "link").symlink_to("notes.txt")
    (folder / "naïve name").write_text("odd")
    (folder / "build").mkdir()
    (folder / "build" / "out.o").write_bytes(b"built")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def spoil(folder: Path) -> None:
    """Change everything there is to change, as an agent with a shell does."""
    (folder / "notes.txt").write_text("spoiled\n")
    (folder / "src" / "run.sh").unlink()
    (folder / "src").rmdir()
    (folder / "photo.bin").chmod(0o755)
    (folder / "settings").write_text("gone\n")
    (folder / "link").unlink()
    (folder / "link").write_text("a file")
    (folder / "new").mkdir()
    (folder / "new" / "file.txt").write_text("new")


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """What the working tree holds, without git's own."""
    return {
        path: held
        for path, held in picture(folder).items()
        if not path.startswith(".git/") and path != ".git"
    }


def roll_back(home: Path, to: str, *more: str) -> dict[str, Any]:
    """Roll back cleanly."""
    told = answer(home, "rollback", "s", "--to", to, "--reason", "spoiled", *more)
    assert told["clean"], told
    return dict(told)


def test_a_clean_tree_is_kept_as_its_commit_and_comes_back_from_git(tmp_path: Path, repository: Path) -> None:
    home, before, commit = tmp_path / "home", files(repository), git(repository, "rev-parse", "HEAD")
    record_session(home, "s")
    good = answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "good")
    assert (good["commit"], good["snapshot"]) == (commit, False)
    assert "with git commit" in run(home, "checkpoint", "s", "--git", "--workspace", repository).stdout
    with open_ledger(home) as ledger:
        assert not any(b"echo hello" in ledger.store.content(digest) for digest in digests(ledger))
    spoil(repository)
    spoiled = files(repository)
    result = run(home, "rollback", "s", "--to", "good", "--reason", "x")
    assert (result.exit_code, "nothing was touched" in result.stderr) == (2, True)
    assert files(repository) == spoiled
    planned = run(home, "rollback", "s", "--to", "good", "--plan", "--json")
    assert (planned.exit_code, '"conflicts":[{' in planned.stdout.replace(" ", "")) == (1, True)
    answer(home, "checkpoint", "s", "--workspace", repository, "--gitignore", "--label", "bad")  # vouches
    told = roll_back(home, "good")
    assert told["files_digest"] == commit
    assert files(repository) == before
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "build" / "out.o").read_bytes() == b"built"
    roll_back(home, "bad")
    assert (repository / "new" / "file.txt").read_text() == "new"


def digests(ledger: Any) -> list[str]:
    """Of all content that checkpoints and looks name."""
    named = (getattr(record.event, "files", None) for record in ledger.store.read("s"))
    return [ref.digest for ref in named if ref is not None]


@pytest.mark.parametrize("after", range(4))
def test_a_rollback_that_was_stopped_is_finished_by_a_second_call(
    tmp_path: Path, repository: Path, after: int
) -> None:
    home, before = tmp_path / "home", files(repository)
    record_session(home, "s")
    answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "good")
    spoil(repository)
    answer(home, "checkpoint", "s", "--workspace", repository, "--gitignore")
    paths: list[str] = []

    def stop(path: str) -> None:
        paths.append(path)
        if len(paths) > after:
            raise KeyboardInterrupt

    with open_ledger(home) as ledger, pytest.raises(KeyboardInterrupt):
        roll_back_here(ledger, "s", "good", progress=stop)
    assert files(repository) != before
    roll_back(home, "good")
    assert files(repository) == before
    assert [one["type"] for one in events(home)].count("recovery.rolled_back") == 1


def events(home: Path) -> list[dict[str, Any]]:
    """All events of session s."""
    return [json.loads(line) for line in run(home, "events", "s", "--json").stdout.splitlines()]


def test_overwriting_is_for_those_who_ask_for_it(tmp_path: Path, repository: Path) -> None:
    home, before = tmp_path / "home", files(repository)
    record_session(home, "s")
    answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "good")
    spoil(repository)
    roll_back(home, "good", "--overwrite")
    assert files(repository) == before


def test_a_second_commit_vouches_for_what_it_holds(tmp_path: Path, repository: Path) -> None:
    home, before = tmp_path / "home", files(repository)
    record_session(home, "s")
    answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "good")
    spoil(repository)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "second")
    again = answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "bad")
    assert again["snapshot"] is False
    roll_back(home, "good")
    assert files(repository) == before
    assert git(repository, "log", "--format=%s") == "second\nfirst", "commits and branches are left alone"
    first = git(repository, "rev-parse", "HEAD~1")
    named = answer(home, "checkpoint", "s", "--at", 2, "--commit", "HEAD~1", "--workspace", repository)
    assert (named["commit"], named["seq"]) == (first, 2)


def test_a_dirty_tree_is_kept_as_a_snapshot_beside_the_commit(tmp_path: Path, repository: Path) -> None:
    home = tmp_path / "home"
    record_session(home, "s")
    (repository / "notes.txt").write_text("work under way\n")
    (repository / "draft.txt").write_text("not added\n")
    before = files(repository)
    dirty = answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "dirty")
    assert (dirty["commit"], dirty["snapshot"]) == (git(repository, "rev-parse", "HEAD"), True)
    (repository / "notes.txt").write_text("spoiled\n")
    (repository / "draft.txt").unlink()
    (repository / "build" / "out.o").write_bytes(b"built anew")
    answer(home, "checkpoint", "s", "--label", "bad")  # the same folder and the same rules, without a word
    told = roll_back(home, "dirty")
    assert {one["path"] for one in told["restores"]} == {"notes.txt", "draft.txt"}
    before["build/out.o"] = (before["build/out.o"][0], b"built anew")
    assert files(repository) == before


def test_a_shell_is_seen_and_what_git_ignores_is_not_claimed(tmp_path: Path, repository: Path) -> None:
    home = tmp_path / "home"

    def bash(command: str) -> str:
        """Run a command."""
        subprocess.run(["/bin/sh", "-c", command], cwd=repository, check=True)
        return "done"

    def write_file(path: str, content: str) -> str:
        """Write a file."""
        (repository / path).write_text(content)
        return "done"

    workspace = Workspace(repository, Limits(gitignore=True))
    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="h", session="s", workspace=workspace) as loop,
    ):
        loop.checkpoint("start")
        loop.tool(bash, {"command": "echo more >> notes.txt"})
        loop.tool(write_file, {"path": "build/out.o", "content": "other"})
        loop.tool(bash, {"command": "echo '*.txt' >> .gitignore; echo hidden > notes.txt"})
    result = run(home, "rollback", "s", "--to", "start", "--plan", "--json")
    assert result.exit_code == 1
    plan = answer_of(result)
    assert [(one["tool"], one["disposition"]) for one in plan["effects"]] == [
        ("bash", "restored"),
        ("write_file", "unknown"),
        ("bash", "restored"),
    ]
    assert "ignored by git" in plan["effects"][1]["reason"]
    assert {one["path"] for one in plan["restores"]} == {"notes.txt", ".gitignore"}
    assert run(home, "rollback", "s", "--to", "start", "--reason", "x").exit_code == 1
    assert (repository / "notes.txt").read_text() == "first\n"
    assert git(repository, "status", "--porcelain") == ""


def answer_of(result: Any) -> dict[str, Any]:
    """The JSON that a command printed."""
    return dict(json.loads(result.stdout))


def test_nothing_that_the_repository_names_is_run(tmp_path: Path, repository: Path) -> None:
    home, trap = tmp_path / "home", tmp_path / "trap"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.external", "core.pager"):
        git(repository, "config", name, str(script))
    git(repository, "config", "core.hooksPath", str(tmp_path))
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        (tmp_path / hook).write_text(script.read_text())
        (tmp_path / hook).chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=evil diff=evil\n")
    record_session(home, "s")
    answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "dirty")
    answer(home, "checkpoint", "s", "--commit", "HEAD", "--workspace", repository, "--label", "clean")
    spoil(repository)
    roll_back(home, "clean", "--overwrite")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--git",), "expected --workspace with --git"),
        (("--git", "--workspace", "{plain}"), "git rev-parse failed"),
        (("--commit", "nonsense", "--workspace", "{work}"), "no commit 'nonsense'"),
        (("--commit", "--upload-pack=x", "--workspace", "{work}"), "no commit '--upload-pack=x'"),
        (("--git", "--at", "2", "--workspace", "{work}"), "--commit names the files of an earlier record"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_kept(
    tmp_path: Path, repository: Path, words: tuple[str, ...], said: str
) -> None:
    home, plain = tmp_path / "home", tmp_path / "plain"
    plain.mkdir()
    record_session(home, "s")
    filled = [word.format(plain=plain, work=repository) for word in words]
    result = run(home, "checkpoint", "s", *filled)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert answer(home, "checkpoints", "s") == []


def test_a_commit_that_is_gone_stops_the_rollback(tmp_path: Path, repository: Path) -> None:
    home = tmp_path / "home"
    record_session(home, "s")
    answer(home, "checkpoint", "s", "--git", "--workspace", repository, "--label", "good")
    (repository / ".git").rename(tmp_path / "elsewhere")
    git(repository, "init", "--quiet")
    result = run(home, "rollback", "s", "--to", "good", "--reason", "x")
    assert (result.exit_code, "has no commit" in result.stderr) == (2, True)


def test_a_commit_that_codex_made_of_its_workspace_is_a_place_to_return_to(
    tmp_path: Path, repository: Path
) -> None:
    home, before = tmp_path / "home", files(repository)
    commit = git(repository, "rev-parse", "HEAD")
    rollout = tmp_path / "rollout-2025-10-01T09-00-00-0199a000-0000-7000-8000-000000000001.jsonl"
    ghost: dict[str, Any] = {
        "id": commit,
        "parent": None,
        "preexisting_untracked_files": [],
        "preexisting_untracked_dirs": [],
    }
    rows = [
        ("session_meta", {"id": rollout.stem[-36:], "cwd": str(repository), "cli_version": "0.46.0"}),
        (
            "response_item",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        ),
        ("response_item", {"type": "ghost_snapshot", "ghost_commit": ghost}),
    ]
    lines = [{"timestamp": "2025-10-01T09:00:00.000Z", "type": kind, "payload": body} for kind, body in rows]
    rollout.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (session,) = answer(home, "import", rollout)["sessions"]
    (checkpoint,) = answer(home, "checkpoints", session)
    assert checkpoint["checkpoint_id"] == commit
    spoil(repository)
    result = run(home, "rollback", session, "--to", commit, "--reason", "x")
    assert result.exit_code == 2
    how = ("--reason", "x", "--overwrite")
    assert run(home, "rollback", session, "--to", commit, *how).exit_code in (0, 1)
    assert files(repository) == before
