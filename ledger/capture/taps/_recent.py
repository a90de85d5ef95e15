"""What is open at the end of a session, for a tap that keeps nothing in memory between two events."""

from dataclasses import dataclass, field
from typing import Self

from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone, CompactionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.store import EventStore

_LOOKED_BACK = 1000
"""Records in which the call that a later event belongs to is looked for."""


@dataclass
class Recent:
    """What the last records of a session say of calls and questions."""

    calls: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Tool, digest of the arguments, and seq of each call that is open."""

    settled: set[str] = field(default_factory=set)
    """Calls that ended."""

    questions: dict[str, str | None] = field(default_factory=dict)
    """Questions without an answer, and the call that each is about."""

    compaction: str | None = None
    """The compaction that began and is not done."""

    @classmethod
    def of(cls, store: EventStore, session: str) -> Self:
        """What the last records of a session say, as it stands now."""
        recent, head = cls(), store.head(session).seq
        for record in store.read(session, after=max(0, head - _LOOKED_BACK)):
            recent.take(record)
        return recent

    def take(self, record: Record) -> None:
        """One record more."""
        match record.event:
            case ToolCallRequested() as call:
                self.calls[call.call_id] = (call.tool, call.arguments.digest, record.seq)
            case ToolCallSettled() as call:
                self.settled.add(call.call_id)
                self.calls.pop(call.call_id, None)
            case ApprovalAsked() as asked:
                self.questions[asked.approval_id] = asked.call_id
            case ApprovalDecided() as decided:
                self.questions.pop(decided.approval_id, None)
            case CompactionStarted() as started:
                self.compaction = started.compaction_id
            case CompactionDone():
                self.compaction = None
            case _:
                pass

    def question_of(self, call_id: str) -> str | None:
        """The open question about a call."""
        return next((question for question, call in self.questions.items() if call == call_id), None)
