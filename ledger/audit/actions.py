"""Each action's own verdict: what a guard that sees one tool call at a time would say of it, and nothing more.

The yardstick beside every finding over a trajectory: a run that fails while each of its actions passes is one that no
guard of single actions could have stopped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.audit.reader import Reader
from ledger.effects.classes import classify
from ledger.events import Record
from ledger.events.approval import ApprovalDecided
from ledger.events.policy import PolicyEvaluated
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

READS = (
    ToolCallRequested.TYPE,
    ToolCallStarted.TYPE,
    ToolCallSettled.TYPE,
    PolicyEvaluated.TYPE,
    ApprovalDecided.TYPE,
)
"""Events that it looks at."""

CHECKS = (
    "A rule of the loop's surroundings said deny or ask, and no yes is recorded.",
    "It was answered with a no.",
    "It uses a secret, or has no return (as declared, or as its name and arguments say), and no yes is recorded.",
)
"""What makes a single action fail."""

_GRAVE = ("irreversible", "credential")


@dataclass
class _Call:
    seq: int
    grave: str | None = None
    refused: str | None = None
    is_approved: bool = False

    @property
    def why(self) -> str | None:
        """Why it fails; None: it passes."""
        return None if self.is_approved else self.refused or self.grave


@dataclass
class Actions:
    """The actions of one session, each judged by itself."""

    checked: int = 0
    """Tool calls."""

    failed: dict[int, str] = field(default_factory=dict)
    """Those that fail, by the seq of their request, with the reason."""

    def passes(self) -> bool:
        """Whether every action passes."""
        return not self.failed


def judge(records: Iterable[Record], reader: Reader) -> Actions:
    """Judge each tool call of a session by its own records alone."""
    calls: dict[str, _Call] = {}
    actions = Actions()
    for record in records:
        event = record.event
        match event:
            case ToolCallRequested():
                _close(calls.pop(event.call_id, None), actions)
                actions.checked += 1
                effect = classify(event.tool, reader.value(event.arguments), declared=event.effect_class)
                grave = f"{event.tool}: {effect.effect_class}" if effect.effect_class in _GRAVE else None
                calls[event.call_id] = _Call(record.seq, grave)
            case PolicyEvaluated() if event.verdict in ("deny", "ask") and event.call_id in calls:
                calls[event.call_id].refused = f"rule {event.rule!r} said {event.verdict}"
            case ApprovalDecided() if event.call_id in calls:
                call = calls[event.call_id]
                call.is_approved = event.outcome == "approved"
                if event.outcome in ("denied", "timed_out", "cancelled"):
                    call.refused = f"it was {event.outcome.replace('_', ' ')}"
            case ToolCallSettled() if event.call_id in calls:
                if event.outcome in ("denied", "not_started"):
                    actions.checked -= 1  # it was no action after all
                    del calls[event.call_id]
                else:
                    _close(calls.pop(event.call_id), actions)
            case _:
                pass
    for call in calls.values():
        _close(call, actions)
    return actions


def _close(call: _Call | None, actions: Actions) -> None:
    if call is not None and call.why is not None:
        actions.failed[call.seq] = call.why
