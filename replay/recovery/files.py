"""The files of a workspace over a session: as they were at a checkpoint, as they were seen last, as they are now.

Changes that a call made are known; those that appeared between calls are somebody else's and are not undone unasked.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from ledger.errors import InputError
from ledger.events import ContentRef, Record
from ledger.events.governance import ModeChanged
from ledger.events.recovery import CheckpointTaken, FilesSeen, RollbackStarted
from ledger.events.session import SessionStarted
from ledger.recorder import Keeper
from ledger.store import EventStore
from ledger.workspace import Change, Entry, Look, Tree, Workspace, changes
from ledger.workspace.restoring import is_restorable
from replay.recovery.edits import Edit, edited
from replay.recovery.sources import FileSource, GitSource, ListSource, open_files, open_tree, same_file


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
        self.cwd: str | None = None
        """Where the session ran, by what it said first."""

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        if isinstance(event, FilesSeen):
            by_hand = record.actor is not None and record.actor.kind == "human"
            known = by_hand or event.call_id is not None or event.by_session is not None
            self.seen.append(Seen(record.seq, event.files, known))
        elif isinstance(event, CheckpointTaken | RollbackStarted) and event.files is not None:
            self.seen.append(Seen(record.seq, event.files, True))
        elif isinstance(event, SessionStarted):
            self.cwd = self.cwd or event.cwd
        elif isinstance(event, ModeChanged) and event.mode == "cwd":
            self.cwd = self.cwd or event.new


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

    source: FileSource
    """Where the files of the checkpoint are kept."""

    now: Look
    """Files as they are."""

    restores: list[Change]
    """What is put back: from what is there now to what was there then."""

    uncovered: list[Conflict]
    """What is other than it was and cannot be put back."""

    conflicts: list[Conflict]
    """What somebody else changed."""

    also: frozenset[str] = frozenset()
    """Paths that are looked at whatever git ignores: those wanted, and those that a stopped rollback found."""

    @property
    def digest(self) -> str:
        """What names the files of the checkpoint."""
        return self.source.digest

    def look(self, keeper: Keeper) -> Look:
        """The files as they are by then."""
        return Workspace(self.root, self.source.limits).look(keeper, self.also)

    def is_done(self, now: Mapping[str, Entry]) -> bool:
        """Whether nothing is left to put back."""
        return not any(is_restorable(change) for change in changes(now, self.source.wanted(now)))

    def covers(self, path: str) -> str | None:
        """Why a path that a call changed is not put back; None: it is."""
        relative = self.inside(path)
        if relative is None:
            return f"{path} is outside of the workspace"
        if (why := self.source.leaves_out(relative)) is not None:
            return why
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
    reader: FileReader,
    target: int,
    begun: ContentRef | None = None,
    edits: list[Edit] | None = None,
) -> FilePlan | None:
    """What going back to a checkpoint's files takes; None where it has none.

    `begun` are the files before a rollback that was begun and did not end: what it has put back already is no conflict.
    `edits` are what calls since the checkpoint wrote, as far as their arguments tell.
    """
    later = [one for one in reader.seen if one.seq > target]
    source = (
        None
        if files is None
        else open_files(store, keeper, files, reader.cwd, [one.files for one in later], begun)
    )
    if source is None:
        return None
    root = source.root
    if not root.is_dir():
        raise InputError(f"the workspace {root} is not there: its files cannot be put back")
    before = None if begun is None else open_tree(store, begun)
    also = frozenset(source.also).union(() if before is None else before.entries)
    now = Workspace(root, source.limits).look(keeper, also)
    wanted = source.wanted(now.tree.entries)
    known, foreign = _known(store, keeper, source, wanted, now, later, before)
    written = edited(store, keeper, source, edits or []) if isinstance(source, ListSource) else {}
    todo = changes(now.tree.entries, wanted)
    conflicts = []
    for change in todo:
        if _folder_only(change):
            continue
        # A rollback that was stopped may have removed what stood there, to put another kind of thing in its place.
        is_half_way = begun is not None and change.before is None
        if not is_half_way and not _is_known(change, known, source, written):
            conflicts.append(Conflict(change.path, "it is not as it was seen last"))
        elif change.path in foreign:
            conflicts.append(Conflict(change.path, foreign[change.path]))
    restores = [change for change in todo if is_restorable(change)]
    uncovered = [Conflict(change.path, _why_not(change)) for change in todo if not is_restorable(change)]
    return FilePlan(root, source, now, restores, uncovered, conflicts, also)


def _known(
    store: EventStore,
    keeper: Keeper,
    source: FileSource,
    wanted: Mapping[str, Entry],
    now: Look,
    later: list[Seen],
    begun: Tree | None,
) -> tuple[list[Mapping[str, Entry]], dict[str, str]]:
    """Trees in which a path may be found as it is now, and paths that somebody else changed, with when."""
    last, foreign = wanted, dict[str, str]()
    for one in later:
        files = _seen_files(store, keeper, source, one, now)
        if files is None:
            continue
        if not one.is_known and begun is None:  # whoever began the rollback has answered for these
            for change in changes(last, files):
                foreign[change.path] = f"it changed between two calls, seen at record {one.seq}"
        last = files
    known = [last]
    if begun is not None:
        known.append(begun.entries)
    return known, foreign


def _seen_files(
    store: EventStore, keeper: Keeper, source: FileSource, one: Seen, now: Look
) -> Mapping[str, Entry] | None:
    """What a later look saw in the same workspace; None where it tells nothing of it."""
    tree: Tree | None = open_tree(store, one.files)
    if tree is not None:
        return tree.entries if tree.root == str(source.root) else None
    try:
        other = open_files(store, keeper, one.files, None)
    except InputError:  # another folder, or a commit that is gone: it vouches for nothing here
        return None
    if isinstance(other, GitSource) and other.root == source.root:
        return other.wanted(now.tree.entries)
    return None


def _is_known(
    change: Change, known: list[Mapping[str, Entry]], source: FileSource, written: Mapping[str, list[Entry]]
) -> bool:
    """Whether what stands at a path is what was seen there last, or what a call is known to have made of it."""
    if any(entries.get(change.path) == change.before for entries in known):
        return True
    if not isinstance(source, ListSource):
        return False
    before = change.before
    seen = [*source.seen.get(change.path, ()), *written.get(change.path, ())]
    return any(one is None if before is None else one is not None and same_file(before, one) for one in seen)


def change_json(change: Change) -> dict[str, Any]:
    """A restoration for programs."""
    return {"path": change.path, "operation": change.operation}


def _why_not(change: Change) -> str:
    """Why a change cannot be taken back: what was there was not kept, or what is there now is not to be replaced."""
    reasons = [entry.not_kept for entry in (change.after, change.before) if entry is not None]
    return next((reason for reason in reasons if reason is not None), "it is no file")


def _folder_only(change: Change) -> bool:
    return all(entry is None or entry.kind == "folder" for entry in (change.before, change.after))
