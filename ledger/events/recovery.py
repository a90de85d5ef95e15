"""Going back, branching, and damage."""

from typing import Literal

from ledger.events.record import ContentRef, Digest, Event


class CheckpointTaken(Event, name="recovery.checkpoint_taken"):
    """A place to return to was named."""

    checkpoint_id: str
    """Its name."""

    seq: int | None = None
    """Seq of the session that it names; None: the record before this one."""

    context: Digest | None = None
    """Context node at that point."""

    files: ContentRef | None = None
    """Snapshot of files: a map of path to digest, or a git reference."""

    taken_by: Literal["loop", "rule", "source", "human"] = "source"
    """Who took it."""

    label: str | None = None
    """Label for people."""


class FilesSeen(Event, name="recovery.files_seen"):
    """The files of a workspace were looked at, and were no longer as they had been seen before."""

    files: ContentRef
    """Root of the tree of files."""

    call_id: str | None = None
    """Tool call in which they changed; None: nobody knows who changed them, or it is the first look."""

    by_session: str | None = None
    """Delegated session in which they changed."""

    changed: int
    """How many files are other than at the last look; at the first, how many there are."""

    added: tuple[ContentRef, ...] = ()
    """Files and folders whose content was new to the ledger: this record answers for them."""


class RollbackStarted(Event, name="recovery.rollback_started"):
    """A rollback was about to begin: recorded before it touches anything."""

    rollback_id: str
    """Joins its records."""

    to_seq: int
    """State will be that of this seq again."""

    checkpoint_id: str | None = None
    """Checkpoint gone back to."""

    reason: str | None = None
    """Why."""

    plan: ContentRef | None = None
    """What will be restored, compensated, and not undone."""

    files: ContentRef | None = None
    """Files of the workspace before it, so that the abandoned future keeps them."""


class RolledBack(Event, name="recovery.rolled_back"):
    """The session's state went back; what came after stays on record as an abandoned future."""

    to_seq: int | None = None
    """State is that of this seq again; None when the source does not tell."""

    checkpoint_id: str | None = None
    """Checkpoint gone back to."""

    reason: str | None = None
    """Why."""

    plan: ContentRef | None = None
    """What was restored, compensated, and not undone."""

    evidence: Literal["logged", "inferred"] = "logged"
    """Whether the source logs it."""

    rollback_id: str | None = None
    """The rollback whose end this is, where loopledger did it."""


class BranchOpened(Event, name="recovery.branch_opened"):
    """A session was opened that continues this one from a seq."""

    branch: str
    """The new session."""

    at_seq: int
    """Last seq that it shares."""


class DamageFound(Event, name="recovery.damage_found"):
    """A part of the source could not be read; its bytes are kept."""

    reason: str
    """What was wrong with it."""

    content: ContentRef | None = None
    """The bytes, as found and redacted."""

    repaired: bool = False
    """True when its record was read all the same, with what is said in `reason`."""
