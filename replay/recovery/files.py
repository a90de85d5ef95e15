"""The files of a workspace over a session: as they were at a checkpoint, as they were seen last, as they are now.

Changes that a call made are known; those that appeared between calls are somebody else's and are not undone unasked.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from ledger.errors import ContentMissingError, InputError
from ledger.events import ContentRef, Record
from ledger.events.recovery import CheckpointTaken, FilesSeen, RollbackStarted
from ledger.recorder import Keeper
from ledger.store import EventStore
from ledger.workspace import Change, Entry, Limits, Look, Tree, Workspace, changes, load_tree
from ledger.workspace.restoring import is_restorable


class Seen(NamedTuple):
    """Files as one record tells them."""

    seq: int
    """The record."""

    files: ContentRef
    """Root blob."""

    is_known: bool
    """Whether a call, a delegated session or a person answers for what changed since the look before."""


class FileReader:
    """Takes the records of a session and notes where it tells of its files."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        """All looks, in order."""

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        if isinstance(event, FilesSeen):
            by_hand = record.actor is not None and record.actor.kind == "human"
            known = by_hand or event.call_id is not None or event.by_session is not None
            self.seen.append(Seen(record.seq, event.files, known))
        elif isinstance(event, CheckpointTaken | RollbackStarted) and event.files is not None:
            self.seen.append(Seen(record.seq, event.files, True))


class Conflict(NamedTuple):
    """A file that a rollback must not touch unasked."""

    path: str
    """Path below the workspace."""

    why: str
    """Who may have changed it."""


class FilePlan(NamedTuple):
    """What a rollback does to files."""

    root: Path
    """The workspace."""

    wanted: Tree
    """Files at the checkpoint."""

    now: Look
    """Files as they are."""

    restores: list[Change]
    """What is put back: from what is there now to what was there then."""

    uncovered: list[Conflict]
    """What is other than it was and cannot be put back."""

    conflicts: list[Conflict]
    """What somebody else changed."""

    def covers(self, path: str) -> str | None:
        """Why a path that a call changed is not put back; None: it is."""
        relative = self.inside(path)
        if relative is None:
            return f"{path} is outside of the workspace"
        if any(part in self.wanted.ignored for part in PurePath(relative).parts):
            return f"{path} is left out of snapshots"
        return next((f"{path}: {one.why}" for one in self.uncovered if one.path == relative), None)

    def inside(self, path: str) -> str | None:
        """The path below the workspace; None when it is not there."""
        pure = PurePath(path)
        if not pure.is_absolute():
            return None if ".." in pure.parts else str(pure)
        try:
            return str(pure.relative_to(self.root))
        except ValueError:
            return None


def plan_files(
    store: EventStore,
    keeper: Keeper,
    files: ContentRef | None,
    seen: list[Seen],
    target: int,
    begun: ContentRef | None = None,
) -> FilePlan | None:
    """What going back to a checkpoint's files takes; None where it has none.

    `begun` are the files before a rollback that was begun and did not end: what it has put back already is no conflict.
    """
    wanted = None if files is None else _tree(store, files)
    if wanted is None:
        return None
    root = Path(wanted.root)
    if not root.is_dir():
        raise InputError(f"the workspace {root} is not there: its files cannot be put back")
    now = Workspace(root, Limits(ignored=wanted.ignored)).look(keeper)
    trees = _since(store, wanted, seen, target)
    last, foreign = wanted, dict[str, str]()
    for one, tree in trees:
        if not one.is_known and begun is None:  # whoever began the rollback has answered for these
            for change in changes(last.entries, tree.entries):
                foreign[change.path] = f"it changed between two calls, seen at record {one.seq}"
        last = tree
    known = [last.entries]
    if begun is not None and (before := _tree(store, begun)) is not None:
        known.append(before.entries)
    todo = changes(now.tree.entries, wanted.entries)
    conflicts = []
    for change in todo:
        if _folder_only(change):
            continue
        if all(entries.get(change.path) != change.before for entries in known):
            conflicts.append(Conflict(change.path, "it is not as it was seen last"))
        elif change.path in foreign:
            conflicts.append(Conflict(change.path, foreign[change.path]))
    restores = [change for change in todo if is_restorable(change)]
    uncovered = [
        Conflict(
            change.path, (change.after or change.before or Entry("other", 0)).not_kept or "it is no file"
        )
        for change in todo
        if not is_restorable(change)
    ]
    return FilePlan(root, wanted, now, restores, uncovered, conflicts)


def change_json(change: Change) -> dict[str, Any]:
    """A restoration for programs."""
    return {"path": change.path, "operation": change.operation}


def same_files(left: Mapping[str, Entry], right: Mapping[str, Entry]) -> bool:
    """Whether two trees hold the same, but for what cannot be put back."""
    return not any(is_restorable(change) for change in changes(left, right))


def _since(store: EventStore, wanted: Tree, seen: list[Seen], target: int) -> list[tuple[Seen, Tree]]:
    found = []
    for one in seen:
        if one.seq > target and (tree := _tree(store, one.files)) is not None and tree.root == wanted.root:
            found.append((one, tree))
    return found


def _tree(store: EventStore, files: ContentRef) -> Tree | None:
    try:
        return load_tree(store.content, files)
    except (ContentMissingError, ValueError):
        return None  # a source's own map, or erased


def _folder_only(change: Change) -> bool:
    return all(entry is None or entry.kind == "folder" for entry in (change.before, change.after))
