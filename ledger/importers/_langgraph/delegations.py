"""Sub-graphs as work handed over: which call or node began one, and what came back."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.importers import Item
from ledger.importers._langgraph.branch import Branch
from ledger.importers._langgraph.messages import Messages
from ledger.importers._langgraph.pending import Pending, only_call, read_pending
from ledger.importers._langgraph.saver import Saver
from ledger.importers._langgraph.scribe import Scribe, Step
from ledger.importers._langgraph.values import Decoder, as_text


class Found(NamedTuple):
    """Where a sub-graph was started."""

    namespace: str
    """Namespace of the graph around it."""
    checkpoint: str
    """Checkpoint of that graph after which it ran."""
    task: str | None
    """Task that ran it; None for one that keeps its state from call to call."""
    call_id: str | None
    """Tool call that it answers."""
    owner: str
    """Session of the graph around it."""


class _Open(NamedTuple):
    task: str | None
    call_id: str | None
    session: str
    delegation_id: str


class Delegations:
    """Sub-graphs that have not come back yet, by the checkpoint after which they ran."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], list[_Open]] = {}

    def find(self, step: Step, saver: Saver, thread: Any, decoder: Decoder, reader: Messages) -> Found | None:
        """Where the sub-graph of a first checkpoint was started; None when its metadata does not say."""
        namespace = as_text(step.key.namespace)
        around, _, segment = namespace.rpartition("|")
        parents = step.metadata.get("parents")
        checkpoint = parents.get(around) if isinstance(parents, dict) else None
        if not isinstance(checkpoint, str):
            return None
        task = segment.partition(":")[2] or None
        key = saver.find(thread, around, checkpoint)
        call_id = None
        if key is not None and task is not None:
            results = read_pending(saver, thread, key, decoder, reader).results(task)
            call_id = next((message.call_id for message in results if message.call_id), None)
            if call_id is None:
                call_id = only_call(Step(key, saver.load(thread, key, decoder), step.line))
        return Found(around, checkpoint, task, call_id, "")

    def started(self, child: Branch, step: Step, found: Found, scribe: Scribe) -> Item:
        """The graph around it handed work to a sub-graph."""
        namespace = as_text(step.key.namespace)
        opened = _Open(found.task, found.call_id, child.scribe.session, namespace)
        self._open.setdefault((found.namespace, found.checkpoint), []).append(opened)
        event = DelegationStarted(
            delegation_id=namespace,
            to_session=child.scribe.session,
            to_agent=step.agent or namespace.rpartition("|")[2].partition(":")[0],
            how="tool" if found.call_id is not None else "spawn",
            call_id=found.call_id,
        )
        draft = scribe.draft(event, step.id, time=step.time)
        return scribe.item(f"delegated:{namespace}", [draft], step.line)

    def returned(
        self, branch: Branch, step: Step, parent: tuple[str, str], before: Pending
    ) -> Iterator[Item]:
        """Sub-graphs whose task came to its end before this checkpoint."""
        for opened in self._open.pop(parent, ()):
            if opened.task is not None and not before.ended(opened.task):
                continue
            results = before.results(opened.task) if opened.task is not None else []
            failed = any(message.data.get("status") == "error" for message in results)
            event = DelegationReturned(
                delegation_id=opened.delegation_id,
                outcome="failed" if failed else "returned",
                from_session=opened.session,
                result=results[-1].ref if results else None,
                returned="unknown" if not results else "transcript" if len(results) > 1 else "result",
            )
            draft = branch.scribe.draft(event, step.id, time=step.time)
            yield branch.scribe.item(f"returned:{opened.delegation_id}:{step.id}", [draft], step.line)
