"""What a checkpoint's files are kept in: a snapshot in the ledger, a git commit, or a list that a source kept.

A source says what the workspace would have to hold, given what it holds now: a snapshot and a commit say it of every
path that is looked at, a list of its own paths alone. Reads only.
"""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from ledger.errors import ContentMissingError, InputError
from ledger.events import ContentRef
from ledger.events.canonical import decode_json
from ledger.recorder import Keeper
from ledger.store import EventStore
from ledger.workspace import Entry, Limits, Tree, load_tree
from ledger.workspace.git import FORMAT as GIT_FORMAT
from ledger.workspace.git import GitEntry, GitFolder
from ledger.workspace.listing import Listing, load_listing

_EXECUTE = 0o111


class FileSource(Protocol):
    """The files of a checkpoint."""

    @property
    def root(self) -> Path:
        """The workspace."""

    @property
    def limits(self) -> Limits:
        """How the workspace is looked at."""

    @property
    def digest(self) -> str:
        """What names these files."""

    @property
    def also(self) -> Iterable[str]:
        """Paths that are looked at even when git ignores them by now."""

    def wanted(self, now: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """What the workspace would hold, given what it holds now."""

    def leaves_out(self, path: str) -> str | None:
        """Why a path below the root is not covered; None: it is."""

    def content(self, digest: str) -> bytes:
        """The bytes of a wanted file."""


def open_files(
    store: EventStore,
    keeper: Keeper,
    files: ContentRef,
    cwd: str | None,
    later: Iterable[ContentRef] = (),
    begun: ContentRef | None = None,
) -> FileSource | None:
    """The files of a checkpoint; None where nothing can be put back from what is kept. Raises InputError.

    `cwd` is where the session ran; `later` are the files that were told of after the checkpoint; `begun` those before a
    rollback that did not end.
    """
    value = _value(store, files)
    if (commit := _commit(value)) is not None:
        root = value.get("root") or cwd
        before = None if begun is None else open_tree(store, begun)
        gone = {} if before is None else before.entries
        return None if root is None else GitSource(Path(str(root)), commit, keeper, gone)
    tree = open_tree(store, files)
    if tree is not None:
        return TreeSource(store, tree)
    listing = load_listing(value)
    if listing is None or cwd is None:
        return None
    more = [found for one in later if (found := load_listing(_value(store, one))) is not None]
    return ListSource(store, Path(cwd), listing, more)


def open_tree(store: EventStore, files: ContentRef) -> Tree | None:
    """A snapshot in the ledger; None where it is none, or was erased."""
    try:
        return load_tree(store.content, files)
    except (ContentMissingError, ValueError):
        return None


def _value(store: EventStore, files: ContentRef) -> Any:
    try:
        return decode_json(store.content(files.digest))
    except (ContentMissingError, ValueError):
        return None


def _commit(value: Any) -> str | None:
    """The commit that stands for a checkpoint's files: ours, or one that Codex made of its workspace."""
    if not isinstance(value, dict):
        return None
    ghost = value.get("ghost_commit")
    found = value.get("commit") if value.get("format") == GIT_FORMAT else None
    if found is None and value.get("type") == "ghost_snapshot":
        found = ghost.get("id") if isinstance(ghost, dict) else ghost
    is_name = (
        isinstance(found, str) and len(found) >= 40 and all(letter in "0123456789abcdef" for letter in found)
    )
    return found if is_name else None


class TreeSource:
    """A snapshot in the ledger."""

    def __init__(self, store: EventStore, tree: Tree) -> None:
        self.tree = tree
        """All files."""
        self.root, self.digest = Path(tree.root), tree.digest
        self.limits = Limits(ignored=tree.ignored, gitignore=tree.gitignore)
        self.also: Iterable[str] = tree.entries.keys()
        self.content = store.content

    @cached_property
    def _folder(self) -> GitFolder:
        return GitFolder(self.root)

    def wanted(self, now: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """All of it, whatever is there now."""
        return self.tree.entries

    def leaves_out(self, path: str) -> str | None:
        """What is left out by its name, or by git."""
        if any(part in self.limits.ignored for part in Path(path).parts):
            return f"{path} is left out of snapshots"
        if self.limits.gitignore and path not in self.tree.entries and self._folder.ignores(path):
            return f"{path} is ignored by git and left out of snapshots"
        return None


class GitSource:
    """A commit: its files come from git, and what is new and not ignored goes."""

    def __init__(
        self, root: Path, commit: str, keeper: Keeper, gone: Mapping[str, Entry] = MappingProxyType({})
    ) -> None:
        self.root = root
        if not root.is_dir():
            raise InputError(f"the workspace {root} is not there: its files cannot be put back")
        self._keeper, self._gone = keeper, gone
        self._git = GitFolder(root)
        self._tree = self._git.tree(self._git.resolved(commit))
        self._names: dict[str, str] = {}
        self.limits = Limits(gitignore=True)
        self.digest = commit
        self.also: Iterable[str] = self._tree.keys()

    def wanted(self, now: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """What is on disk where it is as in the commit, and the commit's everywhere else."""
        found: dict[str, Entry] = {}
        for path, entry in self._tree.items():
            if any(part in self.limits.ignored for part in Path(path).parts):
                continue
            before = now.get(path)
            is_same = before is not None and self._git.holds(path, entry)
            found[path] = before if is_same and before is not None else self._entry(entry, before)
            for folder in map(str, list(Path(path).parents)[:-1]):
                before = now.get(folder)
                is_folder = before is not None and before.kind == "folder"
                found[folder] = before if is_folder and before is not None else Entry("folder", 0o755)
        both = [*now.items(), *self._gone.items()]  # what a rollback that was stopped has removed counts
        new = {path for path, one in both if one.kind != "folder" and path not in self._tree}
        emptied = {str(folder) for path in new for folder in list(Path(path).parents)[:-1]}
        for path, here in now.items():  # git keeps no empty folders: those of before stay
            if here.kind == "folder" and path not in emptied:
                found.setdefault(path, here)
        return found

    def _entry(self, entry: GitEntry, here: Entry | None) -> Entry:
        content = self._git.content(entry.name)
        if entry.is_link:
            return Entry("link", 0, target=os.fsdecode(content))
        mode = here.mode if here is not None and here.kind == "file" else 0o644
        mode = mode | ((mode & 0o444) >> 2) if entry.is_program else mode & ~_EXECUTE
        digest = self._keeper.digest(content)
        self._names[digest] = entry.name
        return Entry("file", mode, digest, len(content))

    def leaves_out(self, path: str) -> str | None:
        """What git does not keep."""
        if any(part in self.limits.ignored for part in Path(path).parts):
            return f"{path} is left out of snapshots"
        if path not in self._tree and self._git.ignores(path):
            return f"{path} is ignored by git: no commit holds it"
        return None

    def content(self, digest: str) -> bytes:
        """The bytes of a file of the commit."""
        return self._git.content(self._names[digest])


class ListSource:
    """Files that a source kept one by one, before it changed them: those alone are put back."""

    def __init__(self, store: EventStore, root: Path, listing: Listing, later: list[Listing]) -> None:
        self.root, self.digest = root, listing.name
        self.limits = Limits()
        self.content = store.content
        self._wanted: dict[str, Entry | None] = {}
        self.also: Iterable[str] = ()
        self.seen: dict[str, list[Entry | None]] = {}
        """What each path was seen as, then and later."""
        for number, one in enumerate((listing, *later)):
            for path, entry in one.files.items():
                inside = self.inside(path)
                if inside is None:
                    continue
                self.seen.setdefault(inside, []).append(entry)
                # A file that was changed later for the first time is wanted as it was before that.
                if number == 0 or path in one.first:
                    self._wanted.setdefault(inside, entry)

    def inside(self, path: str) -> str | None:
        """A path below the root; None where it is none."""
        pure = Path(path)
        if pure.is_absolute():
            if not pure.is_relative_to(self.root):
                return None
            pure = pure.relative_to(self.root)
        return None if ".." in pure.parts or not pure.parts else str(pure)

    def wanted(self, now: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """What is there now, with the kept files in their places."""
        found = dict(now)
        for path, entry in self._wanted.items():
            here = now.get(path)
            if entry is None:
                found.pop(path, None)
            elif here is None or not same_file(here, entry):
                found[path] = (
                    entry._replace(mode=here.mode) if here is not None and here.kind == "file" else entry
                )
                for folder in map(str, list(Path(path).parents)[:-1]):
                    if found.get(folder, Entry("other", 0)).kind != "folder":
                        found[folder] = Entry("folder", 0o755)
        return found

    def leaves_out(self, path: str) -> str | None:
        """Every path that the source did not keep."""
        return None if path in self._wanted else f"{path} is not among the files that the source has kept"


def same_file(left: Entry, right: Entry) -> bool:
    """Whether two entries are files of the same bytes, whatever their permissions."""
    return (
        left.kind == right.kind == "file"
        and left.digest == right.digest is not None
        and left.size == right.size
    )
