"""Looks at a workspace again and again: reads only what may have changed, stages only what is new.

A file that holds a secret, is too large, or is no file is seen (its digest tells a change) and not kept: nothing puts
it back. Secrets are never written, not even to put them back later.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ledger.errors import InputError
from ledger.events import ContentRef
from ledger.recorder import Keeper
from ledger.workspace.git import Kept
from ledger.workspace.tree import FORMAT, HIDDEN_NAME, Entry, Tree, entry_json

IGNORED = (".git", ".hg", ".svn", ".loopledger", "node_modules", "__pycache__", ".venv", ".mypy_cache")
"""Names that are left out unless other ones are given."""

TEMPORARY = ".loopledger-restoring"
"""Name of a file that is being put back; never part of a tree."""

HOLDS_SECRET = "it holds a secret"  # noqa: S105 - says so
"""Why the content of a file or the target of a link is not kept."""

_FRESH_NS = 100_000_000
"""A file that changed so shortly before a look may change again without another time stamp."""


class Limits(NamedTuple):
    """What is looked at, and how much of it is kept."""

    ignored: tuple[str, ...] = IGNORED
    """Names of files and folders that are left out, wherever they are."""

    largest_file: int = 10_000_000
    """Bytes of the largest file that is kept."""

    largest_look: int = 200_000_000
    """Bytes of new content that one look keeps: it waits in memory for the append."""

    most_files: int = 200_000
    """Files and folders that a workspace may have."""

    gitignore: bool = False
    """Leave out what git ignores too. A path that was seen once is looked at for as long as it is there."""


class Look(NamedTuple):
    """What one look found."""

    tree: Tree
    """The files."""

    ref: ContentRef
    """Its root blob, staged."""

    added: tuple[ContentRef, ...]
    """Blobs that this look was the first to need."""


_Stamp = tuple[int, int, int, int, int]


class Workspace:
    """One folder and what is known of it from the last look."""

    def __init__(self, root: str | Path, limits: Limits = Limits()) -> None:  # noqa: B008 - immutable
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError(f"{root} is no folder: expected the workspace of the agent")
        if _is_home(self.root):
            raise InputError(f"{root} is the home of a ledger: expected the workspace of the agent")
        self._limits = limits
        self._keeper: Keeper | None = None
        self._known: dict[str, tuple[_Stamp, Entry]] = {}
        self._seen: frozenset[str] = frozenset()

    def twin(self) -> "Workspace":
        """The same folder, for another keeper."""
        return Workspace(self.root, self._limits)

    def look(self, keeper: Keeper, also: Iterable[str] = (), commit: str | None = None) -> Look:
        """The files as they are now; what is new is staged in the keeper, for its next append.

        `also` are paths that are looked at even when git ignores them by now; `commit` is what is checked out.
        """
        if keeper is not self._keeper:  # what an earlier keeper had staged may never have been written
            self._keeper, self._known = keeper, {}
        started = time.time_ns()
        added: list[ContentRef] = []
        entries: dict[str, Entry] = {}
        known: dict[str, tuple[_Stamp, Entry]] = {}
        kept = Kept(self.root, self._seen.union(also)) if self._limits.gitignore else None
        for path, shown, found in self._walk(keeper, kept):
            stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)
            before = self._known.get(path)
            if before is not None and before[0] == stamp:
                entry = before[1]
            else:
                entry = self._entry(keeper, path, found, added)
            if shown != path:
                entry = entry._replace(not_kept=HIDDEN_NAME)
            entries[shown] = entry
            if max(found.st_mtime_ns, found.st_ctime_ns) < started - _FRESH_NS:
                known[path] = (stamp, entry)
        self._known = known
        if kept is not None:
            self._seen = frozenset(path for path, entry in entries.items() if entry.kind != "folder")
        digest = self._keep_folders(keeper, entries, added)
        ignored = self._limits.ignored
        form: dict[str, Any] = {
            "format": FORMAT,
            "root": str(self.root),
            "tree": digest,
            "ignored": list(ignored),
        }
        if self._limits.gitignore:
            form["gitignore"] = True
        if commit is not None:
            form["commit"] = commit
        tree = Tree(str(self.root), digest, entries, ignored, self._limits.gitignore, commit)
        return Look(tree, keeper.json(form, "workspace"), tuple(added))

    def _walk(self, keeper: Keeper, kept: Kept | None) -> Iterator[tuple[str, str, os.stat_result]]:
        """Path below the root, the same without secrets, and what the system says of it."""
        waiting = [("", "")]
        count = 0
        while waiting:
            above, shown_above = waiting.pop()
            try:
                with os.scandir(self.root / above) as scan:
                    names = sorted(scan, key=lambda one: one.name)
            except OSError as error:
                if not above:
                    raise InputError(f"{self.root} cannot be read: {error.strerror}") from error
                continue
            for one in names:
                if one.name in self._limits.ignored or one.name == TEMPORARY:
                    continue
                count += 1
                if count > self._limits.most_files:
                    raise InputError(
                        f"{self.root} holds more than {self._limits.most_files} files: name what to leave out"
                    )
                try:
                    found = one.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone since
                if stat.S_ISDIR(found.st_mode) and _is_home(self.root / above / one.name):
                    continue  # a ledger that kept itself would never come to an end, and must not go back
                path = f"{above}{one.name}"
                if kept is not None and not kept.has(path, is_folder=stat.S_ISDIR(found.st_mode)):
                    continue
                shown = f"{shown_above}{os.fsdecode(keeper.cleaned(os.fsencode(one.name)))}"
                yield path, shown, found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append((f"{path}/", f"{shown}/"))

    def _entry(self, keeper: Keeper, path: str, found: os.stat_result, added: list[ContentRef]) -> Entry:
        mode = stat.S_IMODE(found.st_mode)
        try:
            if stat.S_ISDIR(found.st_mode):
                return Entry("folder", mode)
            if stat.S_ISLNK(found.st_mode):
                target = str((self.root / path).readlink())
                shown = os.fsdecode(keeper.cleaned(os.fsencode(target)))
                return Entry("link", 0, target=shown, not_kept=None if shown == target else HOLDS_SECRET)
            if stat.S_ISREG(found.st_mode):
                return self._file(keeper, path, found.st_size, mode, added)
        except OSError as error:
            return Entry("other", mode, not_kept=f"it cannot be read: {error.strerror}")
        return Entry("other", mode, not_kept="it is no file")

    def _file(self, keeper: Keeper, path: str, size: int, mode: int, added: list[ContentRef]) -> Entry:
        if size > self._limits.largest_file:
            # Too large to be read whole: size and time of change tell whether it is another.
            changed = (self.root / path).lstat().st_mtime_ns
            digest = keeper.digest(f"{size} {changed}".encode())
            return Entry(
                "file", mode, digest, size, not_kept=f"it is larger than {self._limits.largest_file} bytes"
            )
        content = (self.root / path).read_bytes()
        clean = keeper.cleaned(content)
        if clean != content:
            # The digest is that of the bytes without secrets: one of the whole would let a short secret be guessed.
            return Entry("file", mode, keeper.digest(clean), len(content), not_kept=HOLDS_SECRET)
        if keeper.staged_bytes > self._limits.largest_look:
            return Entry(
                "file",
                mode,
                keeper.digest(content),
                len(content),
                not_kept="there was too much to keep at once",
            )
        before = keeper.staged_bytes
        ref = keeper.raw(content, "workspace")
        if keeper.staged_bytes > before:
            added.append(ref)
        return Entry("file", mode, ref.digest, len(content))

    def _keep_folders(self, keeper: Keeper, entries: dict[str, Entry], added: list[ContentRef]) -> str:
        """Blobs of all folders, the deepest first; gives the digest of the root's."""
        listed: dict[str, list[tuple[str, Entry]]] = {"": []}
        for path, entry in entries.items():
            above, _, name = path.rpartition("/")
            listed.setdefault(above, []).append((name, entry))
            if entry.kind == "folder":
                listed.setdefault(path, [])
        digests: dict[str, str] = {}
        for folder in sorted(listed, key=lambda path: (path.count("/") + bool(path), path), reverse=True):
            forms = [
                entry_json(name, entry, digests.get(f"{folder}/{name}" if folder else name))
                for name, entry in sorted(listed[folder])
            ]
            before = keeper.staged_bytes
            ref = keeper.json(forms, "workspace")
            if keeper.staged_bytes > before:
                added.append(ref)
            digests[folder] = ref.digest
        return digests[""]


def _is_home(folder: Path) -> bool:
    """Whether a folder is that of a ledger, whatever its name."""
    return os.path.exists(folder / "keys" / "redaction.key")  # noqa: PTH110 - false where we may not look, too
