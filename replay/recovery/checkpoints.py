"""Checkpoints taken by hand, and the list of all. Reads no content for a list."""

from pathlib import Path
from typing import Any, NamedTuple

from ledger.errors import InputError, RecordNotFoundError
from ledger.events import Actor, ContentRef, Draft
from ledger.events.recovery import CheckpointTaken, FilesSeen
from ledger.home import Ledger
from ledger.recorder import Keeper
from ledger.views.checkpoints import CheckpointsView
from ledger.workspace import Limits, Workspace, changes
from ledger.workspace.git import FORMAT, GitFolder
from replay.recovery.files import FileReader
from replay.recovery.sources import open_tree


class Wanted(NamedTuple):
    """Which files a checkpoint is to keep."""

    workspace: Path | None = None
    """Their folder; None: the one that was looked at last."""

    ignored: tuple[str, ...] | None = None
    """Names that are left out; None: those of the last look, or the usual ones."""

    gitignore: bool = False
    """Leave out what git ignores too."""

    git: bool = False
    """Keep the commit that is checked out; and a snapshot only where the folder is not as in the commit."""

    commit: str | None = None
    """Keep this commit alone, whatever the folder holds."""


def take_checkpoint(
    ledger: Ledger,
    session: str,
    *,
    at: int | None = None,
    label: str | None = None,
    wanted: Wanted = Wanted(),  # noqa: B008 - immutable
    person: str | None = None,
) -> dict[str, Any]:
    """Name a place of a session, durably.

    Files are kept as they are now, in a snapshot or as a commit; a commit that is named may go with any record.
    """
    head = ledger.store.head(session).seq
    if at is not None and not 1 <= at <= head:
        raise RecordNotFoundError(session, at, head)
    if at is not None and (wanted.workspace is not None or wanted.git) and wanted.commit is None:
        raise InputError(
            "a snapshot shows the files as they are now: expected --at or --workspace or --git, found both; "
            "--commit names the files of an earlier record"
        )
    keeper = ledger.recorder.keeper()
    checkpoint_id = ledger.recorder.ids()
    kept = _Kept()
    if at is None or wanted.commit is not None:
        reader = FileReader()
        for record in ledger.store.read(session):
            reader.take(record)
        kept = _kept(ledger, keeper, reader, wanted)
    taken = CheckpointTaken(
        checkpoint_id=checkpoint_id, seq=at, files=kept.files, taken_by="human", label=label
    )
    drafts = [Draft(event, actor=Actor("human", person)) for event in [*kept.seen, taken]]
    records = ledger.recorder.append(session, drafts, keeper, expect=head, durable=True)
    seq = next(record.seq for record in records if isinstance(record.event, CheckpointTaken))
    return {
        "session": session,
        "checkpoint": checkpoint_id,
        "seq": seq - 1 if at is None else at,
        "taken": seq,
        "label": label,
        "files": None if kept.files is None else kept.files.digest,
        "commit": kept.commit,
        "snapshot": bool(kept.is_snapshot),
    }


class _Kept(NamedTuple):
    """What was kept of files."""

    files: ContentRef | None = None
    seen: tuple[FilesSeen, ...] = ()
    commit: str | None = None
    is_snapshot: bool = False


def _kept(ledger: Ledger, keeper: Keeper, reader: FileReader, wanted: Wanted) -> _Kept:
    looks = [
        tree for one in reversed(reader.seen) if (tree := open_tree(ledger.store, one.files)) is not None
    ]
    last = looks[0] if looks else None
    root = wanted.workspace or (None if last is None else Path(last.root))
    is_git = wanted.git or wanted.commit is not None
    if root is None and is_git and reader.cwd is not None:
        root = Path(reader.cwd)
    if root is None:
        if is_git:
            raise InputError(
                "the session does not tell where it ran: expected --workspace with --git or --commit"
            )
        return _Kept()
    commit = None
    if is_git:
        if not root.is_dir():
            raise InputError(f"{root} is no folder: expected the git working tree of the session")
        folder = GitFolder(root.resolve())
        commit = folder.commit() if wanted.commit is None else folder.resolved(wanted.commit)
        if wanted.commit is not None or not folder.changed(commit):
            about = {"format": FORMAT, "root": str(folder.root), "commit": commit, "branch": folder.branch()}
            return _Kept(keeper.json(about, "git commit"), commit=commit)
    limits = Limits() if last is None else Limits(ignored=last.ignored, gitignore=last.gitignore)
    if wanted.ignored is not None:
        limits = limits._replace(ignored=wanted.ignored)
    if wanted.gitignore or wanted.git:
        limits = limits._replace(gitignore=True)
    look = Workspace(root, limits).look(keeper, () if last is None else last.entries, commit)
    seen: tuple[FilesSeen, ...] = ()
    if last is None or last.digest != look.tree.digest:
        before = {} if last is None or last.root != look.tree.root else last.entries
        changed = len(changes(before, look.tree.entries))
        seen = (FilesSeen(files=look.ref, changed=changed, added=look.added),)
    return _Kept(look.ref, seen, commit, is_snapshot=True)


def list_checkpoints(ledger: Ledger, session: str) -> list[dict[str, Any]]:
    """The checkpoints of a session, in the order in which they were taken."""
    with CheckpointsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return [row._asdict() for row in view.rows(session)]
