"""A workspace that is a git working tree: its commit, what git ignores, what a commit holds. Asks the `git` program.

Runs nothing that the repository's own settings name: no hooks, no file watcher, no filters, no diff programs. Files on
disk are compared with a commit by their bytes.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ledger.errors import InputError

FORMAT = "git/1"
"""Mark of a checkpoint's files that are those of a commit."""

_FILE, _PROGRAM, _LINK = "100644", "100755", "120000"
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
_TIMEOUT_S = 120
_CHUNK = 1 << 20


class GitEntry(NamedTuple):
    """A file or a link of a commit."""

    name: str
    """Object id of its bytes."""

    is_link: bool
    """Whether it is a link."""

    is_program: bool
    """Whether it may be executed."""


class GitFolder:
    """A folder in a git working tree. Raises InputError where it is none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if self._asked("rev-parse", "--is-inside-work-tree").strip() != b"true":
            raise InputError(f"{root} is in no git working tree")
        self._hash = self._asked("rev-parse", "--show-object-format").decode().strip()

    def commit(self) -> str:
        """The commit that is checked out."""
        return self.resolved("HEAD")

    def resolved(self, name: str) -> str:
        """The id of a commit. Raises InputError when the repository does not hold it."""
        try:
            words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            return self._asked(*words).decode().strip()
        except InputError as error:
            raise InputError(f"the git repository of {self.root} has no commit {name!r}") from error

    def branch(self) -> str | None:
        """The branch that is checked out; None when it is a commit."""
        name = self._asked("rev-parse", "--abbrev-ref", "HEAD").decode(errors="replace").strip()
        return None if name == "HEAD" else name

    def listed(self) -> set[str]:
        """Paths that git keeps or would keep; a folder of another repository ends with `/`."""
        return set(_paths(self._asked("ls-files", "-z", "--cached", "--others", "--exclude-standard")))

    def ignores(self, path: str) -> bool:
        """Whether git leaves a path out: ignored, and not kept all the same."""
        done = self._run(["check-ignore", "--quiet", "--stdin", "-z"], os.fsencode(path) + b"\0")
        return done.returncode == 0

    def tree(self, commit: str) -> dict[str, GitEntry]:
        """Files and links of a commit by path below this folder. What belongs to other repositories is left out."""
        found = {}
        for line in self._asked("ls-tree", "-r", "-z", commit).split(b"\0"):
            head, tab, path = line.partition(b"\t")
            if tab:
                mode, _, name = head.decode().split(" ")
                if mode in (_FILE, _PROGRAM, _LINK):
                    found[os.fsdecode(path)] = GitEntry(name, mode == _LINK, mode == _PROGRAM)
        return found

    def content(self, name: str) -> bytes:
        """The bytes of an object."""
        return self._asked("cat-file", "blob", name)

    def holds(self, path: str, entry: GitEntry) -> bool:
        """Whether what is on disk is what a commit has there, by bytes, kind and the right to execute."""
        place = self.root / path
        try:
            found = place.lstat()
            if stat.S_ISLNK(found.st_mode):
                return entry.is_link and self._name(os.fsencode(place.readlink())) == entry.name
            if not stat.S_ISREG(found.st_mode) or entry.is_link:
                return False
            is_program = bool(found.st_mode & stat.S_IXUSR)
            return is_program == entry.is_program and self._name_of_file(place, found.st_size) == entry.name
        except OSError:
            return False

    def changed(self, commit: str) -> list[str]:
        """Paths at which the folder is not as in a commit: other, gone, or new and not ignored."""
        tree = self.tree(commit)
        other = {path for path, entry in tree.items() if not self.holds(path, entry)}
        new = {path for path in self.listed() - tree.keys() if os.path.lexists(self.root / path)}
        return sorted(other | new)

    def _name(self, content: bytes) -> str:
        digest = hashlib.new(self._hash, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(content) + content)
        return digest.hexdigest()

    def _name_of_file(self, place: Path, size: int) -> str:
        digest = hashlib.new(self._hash, usedforsecurity=False)
        digest.update(b"blob %d\0" % size)
        with place.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    def _asked(self, *words: str) -> bytes:
        done = self._run(list(words))
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise InputError(
                f"git {words[0]} failed in {self.root}: {said[-1] if said else 'it said nothing'}"
            )
        return done.stdout

    def _run(self, words: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = ["git", *_OPTIONS, "-C", str(self.root), *words]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "LC_ALL": "C",
        }
        try:
            return subprocess.run(
                command, input=given, capture_output=True, env=environment, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"the git program could not be run in {self.root}: {error}") from error


class Kept:
    """Which paths of a folder git keeps or would keep, and which paths more are wanted. Made anew for each look."""

    def __init__(self, root: Path, also: Iterable[str] = ()) -> None:
        listed = GitFolder(root).listed()
        self._files = listed.union(also)
        self._folders = {folder for path in self._files for folder in _above(path.rstrip("/"))}

    def has(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path is looked at. Below a folder of another repository, everything is."""
        if path in self._files or (is_folder and (path in self._folders or f"{path}/" in self._files)):
            return True
        return any(above in self._files or f"{above}/" in self._files for above in _above(path))


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _paths(listed: bytes) -> Iterator[str]:
    return (os.fsdecode(path) for path in listed.split(b"\0") if path)
