"""Checkpoints taken by hand, and the list of all. Reads no content for a list."""

from pathlib import Path
from typing import Any

from ledger.errors import InputError, RecordNotFoundError
from ledger.events import Actor, Draft, Event
from ledger.events.recovery import CheckpointTaken, FilesSeen
from ledger.home import Ledger
from ledger.views.checkpoints import CheckpointsView
from ledger.workspace import Limits, Workspace, changes, load_tree
from replay.recovery.files import FileReader


def take_checkpoint(
    ledger: Ledger,
    session: str,
    *,
    at: int | None = None,
    label: str | None = None,
    workspace: Path | None = None,
    ignored: tuple[str, ...] | None = None,
    person: str | None = None,
) -> dict[str, Any]:
    """Name a place of a session, durably.

    Files are kept as they are now: those of `workspace`, by default of the folder that was looked at last.
    """
    head = ledger.store.head(session).seq
    if at is not None and not 1 <= at <= head:
        raise RecordNotFoundError(session, at, head)
    if at is not None and workspace is not None:
        raise InputError(
            "a snapshot shows the files as they are now: expected --at or --workspace, found both"
        )
    keeper = ledger.recorder.keeper()
    checkpoint_id = ledger.recorder.ids()
    events: list[Event] = []
    files = None
    if at is None:
        reader = FileReader()
        for record in ledger.store.read(session):
            reader.take(record)
        last = load_tree(ledger.store.content, reader.seen[-1].files) if reader.seen else None
        root = workspace or (None if last is None else Path(last.root))
        if root is not None:
            limits = Limits() if last is None else Limits(ignored=last.ignored)
            look = Workspace(root, limits if ignored is None else limits._replace(ignored=ignored)).look(
                keeper
            )
            files = look.ref
            if last is None or last.digest != look.tree.digest:
                before = {} if last is None or last.root != look.tree.root else last.entries
                changed = len(changes(before, look.tree.entries))
                events.append(FilesSeen(files=look.ref, changed=changed, added=look.added))
    taken = CheckpointTaken(checkpoint_id=checkpoint_id, seq=at, files=files, taken_by="human", label=label)
    drafts = [Draft(event, actor=Actor("human", person)) for event in [*events, taken]]
    records = ledger.recorder.append(session, drafts, keeper, expect=head, durable=True)
    seq = next(record.seq for record in records if isinstance(record.event, CheckpointTaken))
    return {
        "session": session,
        "checkpoint": checkpoint_id,
        "seq": seq - 1 if at is None else at,
        "taken": seq,
        "label": label,
        "files": None if files is None else files.digest,
    }


def list_checkpoints(ledger: Ledger, session: str) -> list[dict[str, Any]]:
    """The checkpoints of a session, in the order in which they were taken."""
    with CheckpointsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return [row._asdict() for row in view.rows(session)]
