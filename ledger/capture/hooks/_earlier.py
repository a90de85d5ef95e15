"""What an earlier process left open in a session: read once, when the session goes on in this one. Writes nothing."""

from dataclasses import dataclass, field

from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.store import EventStore


@dataclass
class Left:
    """What has begun in a session and not ended."""

    tools: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Call id -> name of the tool, and the seq of its request."""

    questions: dict[str, tuple[ApprovalAsked, int]] = field(default_factory=dict)
    """Approval id -> the question, and its seq."""

    delegations: dict[str, str] = field(default_factory=dict)
    """Session that was delegated to -> id of the delegation."""

    agent: str | None = None
    """Name of the agent."""

    is_ended: bool = False
    """Whether the session had ended: then nothing in it is gone on with."""


def left_open(store: EventStore, session: str) -> Left:
    """Read a session from its first record; memory grows with what is open only."""
    left = Left()
    for record in store.read(session):
        event = record.event
        left.is_ended = isinstance(event, SessionEnded)
        match event:
            case SessionStarted():
                left.agent = event.agent
            case SessionEnded():
                left.tools.clear()
                left.delegations.clear()
            case ToolCallRequested():
                left.tools[event.call_id] = (event.tool, record.seq)
            case ToolCallSettled():
                left.tools.pop(event.call_id, None)
            case ApprovalAsked():
                left.questions[event.approval_id] = (event, record.seq)
            case ApprovalDecided():
                left.questions.pop(event.approval_id, None)
            case DelegationStarted(to_session=str() as child):
                left.delegations[child] = event.delegation_id
            case DelegationReturned(from_session=str() as child):
                left.delegations.pop(child, None)
    return left
