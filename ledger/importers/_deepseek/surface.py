"""What the model sees in a DeepSeek Harness session: nodes that events append, and ranges that they replace."""

from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.compaction import CompactionDone
from ledger.importers._harness.story import Story
from ledger.importers._harness.values import items, number, record


class Surface:
    """The nodes in order, each by the seq of its event, with the story's context kept in step."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._nodes: list[tuple[int, ContentRef]] = []

    def take(self, event: dict[str, Any], data: dict[str, Any], seq: int | None) -> ContentRef | None:
        """Apply an event that changes what the model sees; gives the message that it put there, if any."""
        message = data.get("message", data)
        how = event.get("surfaceOp")
        if how is None:
            return self._story.keep.json(message, "message") if _is_message(message) else None
        ref = self._story.keep.json(message, "message")
        operation = record(how)
        if operation.get("op") == "replace":
            start = number(operation.get("startSeq", operation.get("start")))
            end = number(operation.get("endSeq", operation.get("end")))
            self._replace(start, end, (seq or 0, ref))
        else:
            self._nodes.append((seq or 0, ref))
            self._story.context.append(ref)
        return ref

    def drop(self, seqs: list[Any]) -> None:
        """Take nodes out without anything in their place."""
        gone = {seq for seq in seqs if isinstance(seq, int)}
        self._nodes = [node for node in self._nodes if node[0] not in gone]
        self._sync()

    def pruned(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """Old results were taken out of the context; their place is taken by the events that follow."""
        story = self._story
        before, length = story.context.head, len(story.context)
        if event.get("surfaceOp") is not None:
            self.take(event, data, number(event.get("seq")))
        done = CompactionDone(
            compaction_id=story.place.key,
            trigger="auto",
            evidence="logged",
            evidence_detail="compaction/prune",
            context_before=before,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=length,
            messages_after=len(story.context),
        )
        yield story.draft(done, rest=data)

    def _replace(self, start: int | None, end: int | None, node: tuple[int, ContentRef]) -> None:
        places = [
            place
            for place, (seq, _) in enumerate(self._nodes)
            if start is not None and end is not None and start <= seq <= end
        ]
        if not places:
            self._story.missing = self._story.missing or "what a replacement of unknown messages left"
            self._nodes.append(node)
        else:
            self._nodes[places[0] : places[-1] + 1] = [node]
        self._sync()

    def _sync(self) -> None:
        self._story.context.replace([ref for _, ref in self._nodes])

    @property
    def shadowed(self) -> int:
        """How many messages the model sees."""
        return len(self._nodes)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and ("content" in message or "role" in message)


def shadowed_seqs(data: dict[str, Any]) -> list[int]:
    """Seqs that a compaction took out of sight."""
    return [seq for seq in items(data.get("shadowedSeqs")) if isinstance(seq, int)]
