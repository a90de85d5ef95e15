"""What a loop tells of itself beside its calls: governance, checkpoints, compactions, reported usage."""

import warnings
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from ledger.capture.journal import Journal
from ledger.capture.watching import CheckpointRules, FilesWatch, Watch
from ledger.events import Actor, Draft, Event
from ledger.events.compaction import CompactionDone
from ledger.events.governance import ArtifactChanged, ConstraintDeclared, ConstraintWithdrawn
from ledger.events.policy import BudgetCharged
from ledger.events.recovery import CheckpointTaken
from ledger.events.review import NoteWritten
from ledger.protocols.plain import plain
from ledger.workspace import Workspace

ArtifactKind = Literal[
    "prompt", "rule_file", "tool_schema", "policy", "memory", "hook", "mode", "skill", "other"
]
"""Sort of a governing artifact."""


class Notes:
    """The part of a recorded loop that runs nothing and only tells."""

    def __init__(self, journal: Journal, protocol: str) -> None:
        self._journal = journal
        self._protocol = protocol
        self._artifacts: dict[str, str] = {}
        self._reported_tokens = 0
        self._model_calls = 0
        self._workspaces: dict[Path, FilesWatch] = {}

    def checkpoint(self, label: str | None = None, *, workspace: str | Path | None = None) -> str:
        """Name this place, to return to; kept durably. Gives the checkpoint's id.

        `workspace` is a folder whose files are kept with it; by default that of the loop, where it has one.
        """
        checkpoint_id = self._journal.new_id()
        with self._journal.fact("checkpoint"):
            watch = self._journal.watch
            if workspace is not None:
                root = Path(workspace).resolve()
                if root not in self._workspaces:
                    self._workspaces[root] = FilesWatch(Workspace(root))
                looker = Watch(self._journal, self._workspaces[root], CheckpointRules())
                self._journal.append(looker.taken(label, checkpoint_id))
                return checkpoint_id
            if watch is not None:
                self._journal.append(watch.taken(label, checkpoint_id))
                return checkpoint_id
            chain = self._journal.chains.get("main")
            self._tell(
                CheckpointTaken(
                    checkpoint_id=checkpoint_id,
                    context=None if chain is None else chain.head,
                    taken_by="loop",
                    label=label,
                )
            )
        return checkpoint_id

    def compacted(
        self,
        messages: Sequence[Any],
        *,
        summary: str | None = None,
        trigger: Literal["auto", "manual", "unknown"] = "auto",
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        model: str | None = None,
        call_id: str | None = None,
    ) -> None:
        """The context was replaced by these messages."""
        with self._journal.fact("compaction"):
            if self._journal.watch is not None and (first := self._journal.watch.compacting()):
                self._journal.append(first)
            chain = self._journal.chain("main")
            before, length = chain.head, len(chain)
            chain.replace(self._journal.requests.split(self._protocol, list(messages)))
            self._tell(
                CompactionDone(
                    compaction_id=self._journal.new_id(),
                    trigger=trigger,
                    evidence="logged",
                    context_before=before,
                    context_after=chain.head,
                    context_added=chain.take_added(),
                    messages_before=length,
                    messages_after=len(chain),
                    summary=None if summary is None else self._journal.keep.text(summary, "summary"),
                    model=model,
                    call_id=call_id,
                    tokens_before=tokens_before,
                    tokens_after=tokens_after,
                )
            )

    def artifact(
        self,
        name: str,
        content: Any,
        kind: ArtifactKind = "other",
        *,
        cause: Literal["human", "agent", "harness", "unknown"] = "unknown",
        call_id: str | None = None,
    ) -> None:
        """A governing artifact is (now) this; None: it was removed. Says nothing when it is what it was."""
        with self._journal.fact(f"artifact {name!r}"):
            keep = self._journal.keep
            kept = None
            if content is not None:
                kept = (
                    keep.text(content, name) if isinstance(content, str) else keep.json(plain(content), name)
                )
            old, new = self._artifacts.get(name), None if kept is None else kept.digest
            if old == new:
                return
            self._tell(
                ArtifactChanged(artifact=name, kind=kind, old=old, content=kept, cause=cause, call_id=call_id)
            )
            if new is None:
                del self._artifacts[name]
            else:
                self._artifacts[name] = new

    def constraint(
        self,
        name: str,
        text: str,
        *,
        modality: Literal["prohibition", "requirement", "permission", "unknown"] = "unknown",
        hardness: Literal["hard", "soft", "unknown"] = "unknown",
        origin: Literal["system", "user", "file", "tool", "policy", "unknown"] = "unknown",
        scope: str | None = None,
    ) -> None:
        """A rule that the agent must keep is in force from now on."""
        with self._journal.fact(f"constraint {name!r}"):
            self._tell(
                ConstraintDeclared(
                    constraint=name,
                    text=self._journal.keep.text(text, "constraint"),
                    modality=modality,
                    hardness=hardness,
                    origin=origin,
                    scope=scope,
                )
            )

    def withdraw(self, name: str, reason: str | None = None) -> None:
        """A rule is no longer in force, by somebody's act."""
        with self._journal.fact(f"constraint {name!r}"):
            self._tell(ConstraintWithdrawn(constraint=name, reason=reason))

    def report_usage(self, tokens: int, *, cost_usd: Decimal | None = None) -> None:
        """Usage that somebody else counted: the provider's dashboard, a framework's total."""
        with self._journal.fact("reported usage"):
            drafts = [self._telling(BudgetCharged(budget="reported", amount=Decimal(tokens), unit="tokens"))]
            if cost_usd is not None:
                drafts.append(
                    self._telling(BudgetCharged(budget="reported cost", amount=cost_usd, unit="usd"))
                )
            self._journal.append(drafts)
            self._reported_tokens += tokens

    def _check_usage(self) -> list[Draft]:
        """What to say when tokens were used and no model call was recorded: it went past the recorder."""
        if not self._reported_tokens or self._model_calls:
            return []
        text = (
            f"{self._reported_tokens} tokens of usage were reported and no model call was recorded: "
            "the loop calls its model past the recorder; pass each call through run.model(...)"
        )
        return [self._say_loudly(text)]

    def _say_loudly(self, text: str) -> Draft:
        """A warning to the program, and the note that keeps it."""
        warnings.warn(f"session {self._journal.session}: {text}", RuntimeWarning, stacklevel=5)
        note = NoteWritten(about=self._journal.session, text=self._journal.keep.text(text, "note"))
        return self._telling(note)

    def _telling(self, event: Event) -> Draft:
        return self._journal.draft(event, actor=Actor("system"))

    def _tell(self, event: Event) -> None:
        self._journal.append([self._telling(event)])
