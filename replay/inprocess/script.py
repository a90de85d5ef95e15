"""What a recorded session did, step by step, as the measure of a run that is made again. Holds a window, not the whole.

A step is one thing that the loop did by itself: it asked a model, a tool or a person, read an outside input, handed
work over, took a message in. Steps must come again in recorded order, but for those that overlapped when they were
recorded: of two calls that were open at the same time either may come first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ledger.events import Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.draw import Drawn
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import CheckpointTaken
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from replay.surroundings import digest_of

StepKind = Literal["model", "tool", "approval", "draw", "delegation", "message", "compaction", "checkpoint"]
"""Sort of a step."""

Ending = ModelCallAnswered | ModelCallFailed | ToolCallSettled | ApprovalDecided | DelegationReturned
"""What can end a step that lasts."""

_LOOKED_AHEAD = 2000


@dataclass(eq=False)
class Step:
    """One recorded step."""

    kind: StepKind
    """Sort of step."""

    seq: int
    """Record of its beginning."""

    event: Event
    """Event of its beginning."""

    position: int
    """Place of that record in the whole ledger."""

    key: str
    """What must be the same when it comes again."""

    end_seq: int | None = None
    """Record of its end; None while it was not read, or where it never ended."""

    end_position: int = 0
    """Place of that record in the whole ledger."""

    end: Ending | None = None
    """Event of its end."""


def kind_of(event: Event) -> StepKind | None:
    """The sort of step that an event begins; None for one that begins none."""
    if isinstance(event, CheckpointTaken) and event.taken_by != "loop":
        return None  # a rule took it, or a person: the loop does not do it again
    return _KINDS.get(type(event))


def key_of(event: Event) -> str:
    """What makes two steps the same. Contents enter by their keyed digests, redacted on both sides alike."""
    match event:
        case ModelCallRequested():
            body = event.body_digest or _joined(
                event.context, digest_of(event.system), digest_of(event.tools), digest_of(event.parameters)
            )
            return _joined("model", event.protocol, event.purpose, event.model, body)
        case ToolCallRequested():
            return _joined("tool", event.tool, event.arguments.digest)
        case ApprovalAsked():
            return _joined("approval", event.tool, event.arguments_digest, digest_of(event.context))
        case Drawn():
            return _joined("draw", event.kind, event.label)
        case DelegationStarted():
            return _joined("delegation", event.to_agent, event.how, digest_of(event.payload))
        case MessageReceived():
            return _joined("message", event.origin, event.message.digest)
        case CompactionDone():
            return _joined("compaction", event.context_after)
        case CheckpointTaken():
            return _joined("checkpoint", event.label)
    raise TypeError(f"{event.TYPE} begins no step")


class Script:
    """The steps of one recorded session that are still to come."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self._pending: dict[int, Step] = {}
        self._open: dict[str, Step] = {}
        self._is_read = False
        self.upto = 0
        """Last seq that was read."""

    def take(self, event: Event) -> Step | None:
        """The recorded step that this event begins again; None when no step that may come now is the same."""
        key = key_of(event)
        for step in self.admissible():
            if step.key == key:
                return self._consume(step)
        return None

    def next_draw(self, kind: str, label: str) -> Step | None:
        """The recorded draw that may come now."""
        wanted = _joined("draw", kind, label)
        return next((step for step in self.admissible() if step.key == wanted), None)

    def admissible(self) -> Iterator[Step]:
        """Steps that may come now: the first, and those that had begun before any earlier one ended."""
        earliest_end: int | None = None
        for seen, step in enumerate(self._ahead()):
            if earliest_end is not None and earliest_end < step.seq:
                return
            yield step
            if step.end_seq is None:
                self._read_until(lambda step=step: step.end_seq is not None)  # type: ignore[misc]
            if step.end_seq is not None:
                earliest_end = min(earliest_end or step.end_seq, step.end_seq)
            if seen > _LOOKED_AHEAD:
                return

    def first(self) -> Step | None:
        """The step that is due; None at the end."""
        return next(self._ahead(), None)

    def find(self, wanted: Callable[[Step], bool]) -> Step | None:
        """The first step to come that answers a question, within the window."""
        for count, step in enumerate(self._ahead()):
            if wanted(step):
                return step
            if count >= _LOOKED_AHEAD:
                return None
        return None

    def ended(self, step: Step) -> Ending | None:
        """How a step ended; None when the recording stops before its end."""
        if step.end is None:
            self._read_until(lambda: step.end is not None, bounded=False)
        return step.end

    def _ahead(self) -> Iterator[Step]:
        """Steps to come, in recorded order, reading on as far as they are asked for."""
        place = 0
        while True:
            later = next((seq for seq in self._pending if seq > place), None)
            if later is None:
                before = len(self._pending)
                self._read_until(lambda before=before: len(self._pending) > before)  # type: ignore[misc]
                if len(self._pending) == before:
                    return
                continue
            place = later
            yield self._pending[place]

    def _consume(self, step: Step) -> Step:
        del self._pending[step.seq]
        return step

    def _read_until(self, is_enough: Callable[[], bool], *, bounded: bool = True) -> None:
        while not self._is_read and not is_enough():
            if bounded and len(self._pending) > _LOOKED_AHEAD:
                return
            record = next(self._records, None)
            if record is None:
                self._is_read = True
                return
            self._note(record)

    def _note(self, record: Record) -> None:
        self.upto = record.seq
        event = record.event
        if (kind := kind_of(event)) is not None:
            step = Step(kind, record.seq, event, record.position, key_of(event))
            self._pending[record.seq] = step
            if (name := _call_name(event)) is None:
                step.end_seq, step.end_position = record.seq, record.position
            else:
                self._open[name] = step
        elif isinstance(event, Ending) and (name := _call_name(event)) is not None:
            ended = self._open.pop(name, None)
            if ended is not None:
                ended.end_seq, ended.end = record.seq, event
                ended.end_position = record.position


_KINDS: dict[type[Event], StepKind] = {
    ModelCallRequested: "model",
    ToolCallRequested: "tool",
    ApprovalAsked: "approval",
    Drawn: "draw",
    DelegationStarted: "delegation",
    MessageReceived: "message",
    CompactionDone: "compaction",
    CheckpointTaken: "checkpoint",
}


def _call_name(event: Event) -> str | None:
    """What joins a step's beginning to its end; None for a step that is over at once."""
    match event:
        case ModelCallRequested() | ModelCallAnswered() | ModelCallFailed():
            return f"model {event.call_id}"
        case ToolCallRequested() | ToolCallSettled():
            return f"tool {event.call_id}"
        case ApprovalAsked() | ApprovalDecided():
            return f"approval {event.approval_id}"
        case DelegationStarted() | DelegationReturned():
            return f"delegation {event.delegation_id}"
    return None


def _joined(*parts: str | None) -> str:
    return "\x00".join("" if part is None else part for part in parts)
