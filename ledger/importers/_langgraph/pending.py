"""What was written after a checkpoint, decoded: who wrote which message, what waits, what failed. Makes no events."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.events.canonical import spelled
from ledger.importers._langgraph.branch import Author
from ledger.importers._langgraph.messages import Message, Messages, ToolRequest, text_or_none
from ledger.importers._langgraph.review import ERROR, INTERRUPT, RESUME, TASKS, Review, reviewed
from ledger.importers._langgraph.saver import Damaged, Key, Saver, Write, decoded
from ledger.importers._langgraph.scribe import Step
from ledger.importers._langgraph.values import Decoder, plain

_CONTROL = (TASKS, INTERRUPT, RESUME, ERROR, "__no_writes__", "__scheduled__")
_PUSHED = re.compile(r"~__pregel_push, (\d{1,10})\b")


@dataclass
class Pending:
    """The rows after one checkpoint."""

    writes: list[Write] = field(default_factory=list)
    """All of them, in the order of the step."""
    values: dict[tuple[str, int], Any] = field(default_factory=dict)
    """Decoded values by task and place."""
    damaged: list[tuple[Write, Damaged]] = field(default_factory=list)
    """Values that stayed bytes."""
    messages: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    """Messages written, by task and place."""
    authors: dict[str, Author] = field(default_factory=dict)
    """Who wrote a message: by call id for a result, else by identity."""
    removed: bool = False
    """Whether a message was told to go."""

    def written(self) -> dict[str, list[Any]]:
        """What was written to each channel, in order."""
        found: dict[str, list[Any]] = {}
        for write in self.writes:
            if (write.task, write.place) in self.values and write.place >= 0:
                found.setdefault(write.channel, []).append(self.values[write.task, write.place])
        return found

    def ended(self, task: str) -> bool:
        """Whether a task came to its end."""
        return any(write.task == task and write.place >= 0 for write in self.writes)

    def results(self, task: str) -> list[Message]:
        """Messages that a task wrote."""
        return [message for (name, _), group in self.messages.items() if name == task for message in group]

    def failures(self) -> list[tuple[Write, str]]:
        """Tasks that ended with an error and not otherwise, and what the error says."""
        return [
            (write, spelled(plain(self.values.get((write.task, write.place)))))
            for write in self.writes
            if write.channel == ERROR and not self.ended(write.task)
        ]

    def others(self) -> list[Write]:
        """Regular writes: to channels of the state, or what a task returned."""
        return [
            write
            for write in self.writes
            if write.channel not in _CONTROL
            and not write.channel.startswith("branch:")
            and (write.task, write.place) in self.values
        ]


def read_pending(saver: Saver, thread: Any, key: Key, decoder: Decoder, reader: Messages) -> Pending:
    """The rows after a checkpoint."""
    pending = Pending(saver.writes(thread, key))
    for write in pending.writes:
        damaged: list[Damaged] = []
        value = decoded(decoder, write.kind, write.value, f"write to {write.channel[:80]}", damaged)
        if damaged:
            pending.damaged.extend((write, one) for one in damaged)
            continue
        pending.values[write.task, write.place] = value
        if write.place < 0 or write.channel.startswith("__"):
            continue
        messages = reader.of_write(value) or []
        for message in messages:
            pending.removed = pending.removed or message.kind == "remove"
            pending.authors[message.call_id or message.identity] = Author(write.task, write.path)
        if messages:
            pending.messages[write.task, write.place] = messages
    return pending


def read_review(
    saver: Saver, thread: Any, pending: Pending, calls: Callable[[], Sequence[ToolRequest]], decoder: Decoder
) -> Review:
    """The questions and answers among the rows. `calls` gives the calls that wait for a result."""
    if not any(write.channel in (INTERRUPT, RESUME) for write in pending.writes):
        return Review()
    below: dict[str, list[Any]] = {}
    for write in pending.writes:
        if write.channel != INTERRUPT:
            continue
        rows = saver.answers_below(thread, write.task)
        if rows is not None:
            answers = below.setdefault(write.task, [])
            for row in rows:
                value = decoded(decoder, row.kind, row.value, "answer", [])
                answers.extend(value if isinstance(value, list) else [value])
    return reviewed(pending.writes, pending.values, calls(), below)


def sent_call(step: Step, path: str) -> str | None:
    """The tool call that a task was sent to run, from the queue in the checkpoint before it."""
    queue = step.values.get(TASKS)
    found = _PUSHED.search(path)
    if not isinstance(queue, list) or found is None or int(found[1]) >= len(queue):
        return None
    return _call_of(plain(queue[int(found[1])]))


def only_call(step: Step) -> str | None:
    """The tool call in the queue of a checkpoint, where there is just one."""
    queue = step.values.get(TASKS)
    return _call_of(plain(queue[0])) if isinstance(queue, list) and len(queue) == 1 else None


def _call_of(send: Any) -> str | None:
    arguments = send.get("arguments") if isinstance(send, dict) else None
    sent = arguments[1] if isinstance(arguments, list) and len(arguments) > 1 else None
    if isinstance(sent, list) and len(sent) == 1:
        sent = sent[0]
    if isinstance(sent, dict) and isinstance(sent.get("tool_call"), dict):
        sent = sent["tool_call"]
    return text_or_none(sent.get("id")) if isinstance(sent, dict) else None
