"""Which paths of a working tree git keeps, and what it compares. With the real git."""

import subprocess
from pathlib import Path

import pytest

from ledger.errors import InputError
from ledger.home import open_ledger
from ledger.workspace import Limits, Workspace
from ledger.workspace.git import GitFolder


def git(folder: Path, *words: str) -> None:
    """Run git."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working tree with an ignored folder, a repository inside, and a folder below of which only a part is kept."""
    work = tmp_path / "work"
    (work / "deep" / "down").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "work")
    (work / ".gitignore").write_text("build/\n*.log\n!deep/kept.log\n")
    (work / "deep" / "down" / "a.txt").write_text("a")
    (work / "deep" / "kept.log").write_text("kept")
    (work / "deep" / "left.log").write_text("left")
    (work / "build").mkdir()
    (work / "build" / "out").write_text("built")
    (work / "empty").mkdir()
    (work / "inner").mkdir()
    git(work / "inner", "init", "--quiet")
    (work / "inner" / "own.txt").write_text("own")
    return work


def seen(home: Path, workspace: Workspace, also: tuple[str, ...] = ()) -> set[str]:
    """The files that a look sees."""
    with open_ledger(home) as ledger:
        entries = workspace.look(ledger.recorder.keeper(), also).tree.entries
    return {path for path, entry in entries.items() if entry.kind == "file"}


KEPT = {".gitignore", "deep/down/a.txt", "deep/kept.log", "inner/own.txt"}


def test_what_git_ignores_is_left_out_and_a_repository_inside_is_looked_at(
    tmp_path: Path, folder: Path
) -> None:
    home = tmp_path / "home"
    assert seen(home, Workspace(folder, Limits(gitignore=True))) == KEPT
    assert seen(home, Workspace(folder)) == KEPT | {"deep/left.log", "build/out"}
    part = Workspace(folder / "deep", Limits(gitignore=True))
    assert seen(home, part) == {"down/a.txt", "kept.log"}


def test_a_path_that_was_seen_stays_in_sight_when_the_agent_ignores_it(tmp_path: Path, folder: Path) -> None:
    home, workspace = tmp_path / "home", Workspace(folder, Limits(gitignore=True))
    assert seen(home, workspace) == KEPT
    (folder / ".gitignore").write_text("*\n")
    assert seen(home, workspace) == KEPT
    fresh = Workspace(folder, Limits(gitignore=True))
    assert "deep/kept.log" not in seen(home, fresh)
    assert "deep/kept.log" in seen(home, Workspace(folder, Limits(gitignore=True)), ("deep/kept.log",))


def test_a_folder_that_is_no_working_tree_says_so(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(InputError, match=r"git rev-parse failed in .*plain"):
        GitFolder(tmp_path / "plain")
    with pytest.raises(InputError, match="git rev-parse failed"):
        seen(tmp_path / "home", Workspace(tmp_path / "plain", Limits(gitignore=True)))


def test_ignoring_is_asked_path_by_path(folder: Path) -> None:
    asked = GitFolder(folder)
    answers = {
        path: asked.ignores(path) for path in ("build/out", "deep/left.log", "deep/kept.log", "new.txt")
    }
    assert answers == {"build/out": True, "deep/left.log": True, "deep/kept.log": False, "new.txt": False}
