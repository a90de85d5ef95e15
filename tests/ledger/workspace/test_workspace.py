"""A workspace is looked at, kept by content, and put back byte for byte; a link never leads out of it."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.errors import InputError
from ledger.events import Draft
from ledger.events.recovery import FilesSeen
from ledger.home import Ledger, open_ledger
from ledger.workspace import Limits, Look, Workspace, changes, load_tree, restore
from tests.replay.recovery.world import fill_workspace, picture

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def keep(ledger: Ledger, workspace: Workspace) -> Look:
    """Look, and write what is staged."""
    keeper = ledger.recorder.keeper()
    look = workspace.look(keeper)
    seen = FilesSeen(files=look.ref, changed=len(look.tree.entries), added=look.added)
    ledger.recorder.append("files", [Draft(seen)], keeper)
    return look


def put_back(ledger: Ledger, folder: Path, wanted: Look) -> int:
    """Put a folder back to what a look saw, from the ledger alone."""
    tree = load_tree(ledger.store.content, wanted.ref)
    assert tree is not None
    assert tree == wanted.tree
    now = Workspace(folder, Limits(ignored=tree.ignored)).look(ledger.recorder.keeper())
    return restore(folder, now.tree.entries, tree.entries, ledger.store.content)


def test_everything_comes_back_with_bytes_modes_links_and_empty_folders(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    fill_workspace(folder)
    before = picture(folder)
    with open_ledger(tmp_path / "home") as ledger:
        first = keep(ledger, Workspace(folder))
        (folder / "notes.txt").unlink()
        (folder / "notes.txt").mkdir()
        (folder / "notes.txt" / "inner").write_text("a folder in the place of a file")
        (folder / "link").unlink()
        (folder / "link").write_text("a file in the place of a link")
        (folder / "src" / "run.sh").unlink()
        (folder / "src").rmdir()
        (folder / "src").symlink_to("/")
        (folder / "empty").chmod(0o700)
        assert put_back(ledger, folder, first) == 6
        assert picture(folder) == before
        assert put_back(ledger, folder, first) == 0


def test_a_link_in_a_folders_place_leads_nowhere(tmp_path: Path) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    fill_workspace(folder)
    outside.mkdir()
    (outside / "run.sh").write_text("precious")
    with open_ledger(tmp_path / "home") as ledger:
        first = keep(ledger, Workspace(folder))
        now = Workspace(folder).look(ledger.recorder.keeper())
        (folder / "src" / "run.sh").unlink()
        (folder / "src").rmdir()
        (folder / "src").symlink_to(outside)  # behind the back of the look
        wanted = {**first.tree.entries, "src/run.sh": first.tree.entries["notes.txt"]}
        with pytest.raises(InputError, match="could not be put back"):
            restore(folder, now.tree.entries, wanted, ledger.store.content)
    assert (outside / "run.sh").read_text() == "precious"


def test_what_holds_a_secret_is_seen_and_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".env").write_text(f"aws_access_key_id={SECRET}\n")
    (folder / f"{SECRET}.txt").write_text("a name")
    with open_ledger(tmp_path / "home") as ledger:
        first = keep(ledger, Workspace(folder))
        entry = first.tree.entries[".env"]
        assert entry.not_kept == "it holds a secret"
        assert all(entry.not_kept for entry in first.tree.entries.values())
        (folder / ".env").write_text("aws_access_key_id=AKIAIOSFODNN7EXAMPLZ\n")
        second = keep(ledger, Workspace(folder))
        assert [change.path for change in changes(first.tree.entries, second.tree.entries)] == [".env"]
        assert put_back(ledger, folder, first) == 0
    store = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("ledger.sqlite*"))
    assert SECRET.encode() not in store


def test_what_is_too_large_or_no_file_is_seen_and_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "large").write_bytes(b"x" * 1001)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as door, open_ledger(tmp_path / "home") as ledger:
        door.bind(str(folder / "door"))
        look = keep(ledger, Workspace(folder, Limits(largest_file=1000)))
    reasons = {path: entry.not_kept for path, entry in look.tree.entries.items()}
    assert reasons == {
        "large": "it is larger than 1000 bytes",
        "pipe": "it is no file",
        "door": "it is no file",
    }


def test_a_second_look_reads_and_keeps_only_what_changed(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    fill_workspace(folder)
    long_ago = 1_700_000_000
    with open_ledger(tmp_path / "home") as ledger:
        keeper = ledger.recorder.keeper()
        workspace = Workspace(folder)
        first = workspace.look(keeper)
        ledger.recorder.append(
            "files", [Draft(FilesSeen(files=first.ref, changed=1, added=first.added))], keeper
        )
        os.utime(folder / "notes.txt", (long_ago, long_ago))
        (folder / "notes.txt").write_text("other\n")
        os.utime(
            folder / "notes.txt", (long_ago, long_ago)
        )  # the time stamp lies; the time of the change does not
        second = workspace.look(keeper)
        assert [change.path for change in changes(first.tree.entries, second.tree.entries)] == ["notes.txt"]
        assert len(second.added) == 2  # the file and its folder
        assert len(first.added) > 4


def test_names_that_are_left_out_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    fill_workspace(folder)
    with open_ledger(tmp_path / "home") as ledger:
        first = keep(ledger, Workspace(folder))
        (folder / "new" / ".git").mkdir(parents=True)
        (folder / "new" / ".git" / "HEAD").write_text("ref")
        put_back(ledger, folder, first)
    assert (folder / "new" / ".git" / "HEAD").read_text() == "ref"


def test_a_ledger_inside_the_workspace_is_never_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    fill_workspace(folder)
    with open_ledger(folder / "some" / "home") as ledger:
        look = keep(ledger, Workspace(folder))
        assert "some" in look.tree.entries
        assert not [path for path in look.tree.entries if path.startswith("some/")]
        assert put_back(ledger, folder, look) == 0
    with pytest.raises(InputError, match="is the home of a ledger"):
        Workspace(folder / "some" / "home")


LOCKED = """
import sys
from pathlib import Path

from ledger.capture import record_loop
from ledger.home import open_ledger
from replay.recovery.rollback import roll_back

home, work = Path(sys.argv[1]), Path(sys.argv[2])
with open_ledger(home) as ledger:
    with record_loop(ledger, harness="h", session="s", workspace=work) as loop:
        loop.checkpoint("start")
        loop.tool(lambda: [(work / name).chmod(0) for name in ("locked", "file")], {}, name="bash")
    done = roll_back(ledger, "s", "start", reason="it locked itself out")
print(*[f"{one.path}: {one.why}" for one in done.plan.files.uncovered])
print((work / "locked").stat().st_mode & 0o777 == 0o750, (work / "locked" / "inner").read_text())
"""


def test_a_folder_that_the_agent_made_unreadable_is_recorded_and_comes_back(tmp_path: Path) -> None:
    people = (
        []
        if os.geteuid()
        else [shutil.which("setpriv") or "", "--bounding-set=-dac_override,-dac_read_search"]
    )
    if people and not people[0]:
        pytest.skip("an administrator may read everything, and nothing here takes that right away")
    (tmp_path / "work" / "locked").mkdir(parents=True)
    (tmp_path / "work" / "locked" / "inner").write_text("kept")
    (tmp_path / "work" / "locked").chmod(0o750)
    (tmp_path / "work" / "file").write_text("kept")
    command = [*people, sys.executable, "-c", LOCKED, str(tmp_path / "home"), str(tmp_path / "work")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["file: it cannot be read: Permission denied", "True kept"]


def test_a_folder_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        Workspace(tmp_path / "nothing")
    fill_workspace(tmp_path / "work")
    with open_ledger(tmp_path / "home") as ledger, pytest.raises(InputError, match="more than 2 files"):
        Workspace(tmp_path / "work", Limits(most_files=2)).look(ledger.recorder.keeper())


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 60
)
contents = st.one_of(st.binary(max_size=60), st.none())
trees = st.dictionaries(st.tuples(names) | st.tuples(names, names), contents, max_size=6)


def write(folder: Path, tree: dict[tuple[str, ...], bytes | None]) -> None:
    """Files (bytes) and folders (None) of a made-up tree, as far as they do not stand in each other's way."""
    folder.mkdir(exist_ok=True)
    for path, content in tree.items():
        place = folder.joinpath(*path)
        if any(parent.is_file() for parent in place.parents) or place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir()
        else:
            place.write_bytes(content)


@given(before=trees, after=trees)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_tree_comes_back_from_any_other(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[tuple[str, ...], bytes | None],
    after: dict[tuple[str, ...], bytes | None],
) -> None:
    base = tmp_path_factory.mktemp("any")
    write(base / "work", before)
    wanted = picture(base / "work")
    with open_ledger(base / "home") as ledger:
        first = keep(ledger, Workspace(base / "work", Limits(ignored=())))
        (base / "work").rename(base / "aside")
        write(base / "work", after)
        put_back(ledger, base / "work", first)
    assert picture(base / "work") == wanted
