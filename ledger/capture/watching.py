"""Watches the workspace of a loop: what its calls changed in files, however they did it; checkpoints by rule.

Files are looked at before and after each call that may change some, so what a shell command wrote is seen like what an
edit tool wrote. A change that happened between two calls is nobody's: a rollback will not undo it unasked.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from ledger.capture.journal import Journal
from ledger.effects import EffectPolicy, classify
from ledger.errors import InputError
from ledger.events import Actor, ContentRef, Draft
from ledger.events.effect import EffectDone
from ledger.events.recovery import CheckpointTaken, FilesSeen
from ledger.events.tool_call import EffectClass
from ledger.protocols.plain import plain
from ledger.recorder import Keeper
from ledger.workspace import Change, Tree, Workspace, changes

_SYSTEM = Actor("system")
_EFFECTS_TOLD = 1000


class CheckpointRules(NamedTuple):
    """When a recorded loop takes checkpoints by itself."""

    before_irreversible: bool = True
    """Before each call of a tool that cannot be taken back."""

    before_compaction: bool = True
    """Before messages go out of the model's sight."""

    every: int | None = None
    """After so many records."""


class FilesWatch:
    """What is known of one workspace in one session."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.ref: ContentRef | None = None
        """Root blob of the last look."""
        self._keeper: Keeper | None = None
        self._recorded: Tree | None = None
        self._staged: Tree | None = None

    def look(
        self,
        journal: Journal,
        call_id: str | None = None,
        *,
        session: str | None = None,
        evidence: Literal["observed", "inferred"] = "observed",
    ) -> list[Draft]:
        """What to record of the files as they are now: nothing when they are as they were."""
        if journal.keep is self._keeper and self._staged is not None:
            self._recorded = self._staged
        self._keeper = journal.keep
        look = self.workspace.look(journal.keep)
        self.ref, self._staged = look.ref, look.tree
        before = self._recorded
        if before is not None and before.digest == look.tree.digest:
            return []
        found = [] if before is None else changes(before.entries, look.tree.entries)
        seen = FilesSeen(
            files=look.ref,
            call_id=call_id,
            by_session=session,
            changed=len(look.tree.entries) if before is None else len(found),
            added=look.added,
        )
        drafts = [journal.draft(seen, actor=_SYSTEM)]
        if call_id is not None:
            files = [change for change in found if not _is_folder(change)][:_EFFECTS_TOLD]
            drafts += [
                journal.draft(self._effect(journal, change, call_id, evidence), actor=_SYSTEM)
                for change in files
            ]
        return drafts

    def _effect(
        self, journal: Journal, change: Change, call_id: str, evidence: Literal["observed", "inferred"]
    ) -> EffectDone:
        after = change.after
        kept = None
        if after is not None and after.kind == "file" and after.digest is not None and after.not_kept is None:
            kept = ContentRef(digest=after.digest, size=after.size, kind="bytes")
        return EffectDone(
            effect_id=journal.new_id(),
            call_id=call_id,
            target=str(PurePath(self.workspace.root, change.path)),
            operation=change.operation,
            effect_class="write",
            before=None if change.before is None else change.before.digest,
            after=kept,
            evidence=evidence,
        )


class Watch:
    """Stands beside the calls of one session: files, and checkpoints by rule. Called with the journal's lock held."""

    def __init__(
        self,
        journal: Journal,
        files: FilesWatch | None,
        rules: CheckpointRules,
        policy: EffectPolicy | None = None,
    ) -> None:
        self._journal = journal
        self.files = files
        self.rules = rules
        self.policy = policy
        self._keeper = journal.keep
        self._open: dict[str, bool] = {}
        self._delegated: list[str] = []
        self._since = 0

    def begin(self) -> list[Draft]:
        """The first look, before anything happened."""
        return [] if self.files is None else self.files.look(self._journal)

    def before(
        self, call_id: str, tool: str, arguments: Any, effect_class: EffectClass | None
    ) -> list[Draft]:
        """A call is about to be recorded, and then to run."""
        fields = plain(arguments)
        effect = classify(
            tool, fields if isinstance(fields, Mapping) else {}, declared=effect_class, policy=self.policy
        )
        drafts = self._caught_up()
        if self.rules.before_irreversible and effect.effect_class == "irreversible":
            drafts.append(self._checkpoint(f"before {tool}"))
        if (
            self._journal.keep is not self._keeper
        ):  # an append failed, and with it perhaps a call that never ran
            self._keeper, self._open = self._journal.keep, {}
        self._open.pop(call_id, None)
        for other in self._open:
            self._open[other] = False  # two at once: whose a change is can only be guessed
        self._open[call_id] = not self._open
        return drafts

    def after(self, call_id: str) -> list[Draft]:
        """A call has ended: what files are other than before it."""
        alone = self._open.pop(call_id, False)
        if self.files is None:
            return []
        try:
            return self.files.look(self._journal, call_id, evidence="observed" if alone else "inferred")
        except InputError:
            return []  # the settlement must not be lost; the next look finds what changed

    def for_child(self, journal: Journal) -> "Watch":
        """For a session that work is handed to: it may change the same files."""
        self._delegated.append(journal.session)
        files = None if self.files is None else FilesWatch(self.files.workspace.twin())
        return Watch(journal, files, self.rules, self.policy)

    def compacting(self) -> list[Draft]:
        """The context is about to be replaced."""
        return (
            [*self._caught_up(), self._checkpoint("before compaction")]
            if self.rules.before_compaction
            else []
        )

    def counted(self, records: int) -> None:
        """So many records were appended."""
        self._since += records

    def due(self) -> list[Draft]:
        """A checkpoint, when enough records came since the last."""
        if self.rules.every is None or self._since < self.rules.every or self._open:
            return []
        return [*self._caught_up(), self._checkpoint(f"every {self.rules.every} records")]

    def taken(self, label: str | None, checkpoint_id: str) -> list[Draft]:
        """A checkpoint that the loop asks for."""
        return [*self._caught_up(), self._checkpoint(label, "loop", checkpoint_id)]

    def _caught_up(self) -> list[Draft]:
        """What changed since the last look: in the one open call, in a delegated session, or by nobody known."""
        if self.files is None:
            return []
        call_id = next(iter(self._open)) if len(self._open) == 1 else None
        session = self._delegated[-1] if self._delegated else None
        self._delegated = []
        return self.files.look(self._journal, call_id, session=session, evidence="inferred")

    def _checkpoint(
        self,
        label: str | None,
        taken_by: Literal["loop", "rule"] = "rule",
        checkpoint_id: str | None = None,
    ) -> Draft:
        self._since = 0
        chain = self._journal.chains.get("main")
        taken = CheckpointTaken(
            checkpoint_id=checkpoint_id or self._journal.new_id(),
            context=None if chain is None else chain.head,
            files=None if self.files is None else self.files.ref,
            taken_by=taken_by,
            label=label,
        )
        return self._journal.draft(taken, actor=Actor("policy") if taken_by == "rule" else _SYSTEM)


def _is_folder(change: Change) -> bool:
    return all(entry is None or entry.kind == "folder" for entry in (change.before, change.after))
