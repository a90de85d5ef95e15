"""Messages that went out of the state, or became shorter in it, as compactions."""

from collections.abc import Iterator

from ledger.events.compaction import CompactionDone
from ledger.importers import Item
from ledger.importers._langgraph.lanes import Change, Lane
from ledger.importers._langgraph.messages import Message
from ledger.importers._langgraph.scribe import Scribe, Step


def stands_in(step: Step, message: Message) -> bool:
    """Whether a message that came in when others went out speaks in their place."""
    if message.is_summary():
        return True
    return message.kind in ("human", "system") and step.source in ("loop", "update", "fork")


def shrunk(
    scribe: Scribe, step: Step, lane: Lane, channel: str, change: Change, after: list[Message], *, told: bool
) -> Item:
    """Messages went out of a list; what came in with them stands in for them. `told`: they were told to go."""
    stand_ins = [message for message in change.added if stands_in(step, message)]
    logged = told or any(message.is_summary() for message in stand_ins)
    before, length = lane.chain.head, len(lane.chain)
    arriving = {message.identity for message in change.added} - {message.identity for message in stand_ins}
    lane.chain.replace([message.ref for message in after if message.identity not in arriving])
    summary = step.values.get("summary")
    ref = stand_ins[0].ref if stand_ins else None
    if ref is None and isinstance(summary, str) and summary:
        ref = scribe.desk.keep.text(summary, "summary")
    event = CompactionDone(
        compaction_id=f"{step.id}:{channel}",
        trigger="manual" if step.source == "update" else "auto",
        evidence="logged" if logged else "inferred",
        evidence_detail=None
        if logged
        else f"{len(change.removed)} messages of channel {channel} are gone from the next checkpoint",
        context_before=before,
        context_after=lane.chain.head,
        context_added=lane.chain.take_added(),
        messages_before=length,
        messages_after=len(lane.chain),
        summary=ref,
    )
    removed = [message.id or message.identity for message in change.removed]
    kept = scribe.desk.keep.json({"removed": removed}, "removed")
    draft = scribe.draft(event, step.id, time=step.time, actor="system", rest=kept)
    return scribe.item(f"compaction:{step.id}:{channel}", [draft], step.line)


def rewritten(
    scribe: Scribe, step: Step, lane: Lane, channel: str, change: Change, after: list[Message]
) -> Iterator[Item]:
    """The same messages with other content: results that were cleared are a compaction, edited answers are none."""
    sizes = {message.identity: message.ref.size for message in lane.messages}
    is_shorter = sum(message.ref.size for message in change.changed) < sum(
        sizes.get(message.identity, 0) for message in change.changed
    )
    before, length = lane.chain.head, len(lane.chain)
    arriving = {message.identity for message in change.added}
    lane.chain.replace([message.ref for message in after if message.identity not in arriving])
    if not is_shorter or all(message.kind == "ai" for message in change.changed):
        return
    event = CompactionDone(
        compaction_id=f"{step.id}:{channel}",
        trigger="auto",
        evidence="inferred",
        evidence_detail=f"{len(change.changed)} messages of channel {channel} became shorter",
        context_before=before,
        context_after=lane.chain.head,
        context_added=lane.chain.take_added(),
        messages_before=length,
        messages_after=len(lane.chain),
    )
    draft = scribe.draft(event, step.id, time=step.time, actor="system")
    yield scribe.item(f"compaction:{step.id}:{channel}", [draft], step.line)
