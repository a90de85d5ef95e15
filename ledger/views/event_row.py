"""What a list of events tells of one record, and how weighty it is by its own facts. Reads no content."""

from typing import Literal, NamedTuple

from ledger.events import Event, Record
from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.effect import EffectDone, EffectNotUndone
from ledger.events.governance import ArtifactChanged, ConstraintWithdrawn, ModeChanged
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed
from ledger.events.policy import BreakerTripped, BudgetExceeded, Held, PolicyEvaluated
from ledger.events.recovery import DamageFound, RolledBack
from ledger.events.replaying import ReplayDiverged
from ledger.events.review import FindingRaised
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

Level = Literal["low", "medium", "high"]
"""How weighty an event is: by its effect class, its outcome, the severity of a finding."""

LEVELS: tuple[Level, ...] = ("low", "medium", "high")
"""The levels, the least first."""

_LONGEST = 160
_ALWAYS: dict[type[Event], Level] = {
    EffectNotUndone: "high",
    DamageFound: "high",
    BreakerTripped: "high",
    ReplayDiverged: "high",
    ModelCallFailed: "medium",
    CompactionDone: "medium",
    ArtifactChanged: "medium",
    ConstraintWithdrawn: "medium",
    ModeChanged: "medium",
    BudgetExceeded: "medium",
    RolledBack: "medium",
    Held: "medium",
}
_BY_CLASS: dict[str, Level] = {
    "write": "low",
    "external": "medium",
    "irreversible": "high",
    "credential": "high",
}
_BY_SEVERITY: dict[str, Level] = {"critical": "high", "high": "high", "medium": "medium"}


class EventRow(NamedTuple):
    """One line of a list of events."""

    seq: int
    """Its place in the session."""

    type: str
    """Stored name of the event."""

    level: int
    """Index into LEVELS."""

    agent: str | None
    """Agent that acted."""

    at: str | None
    """When: as the source says it, or the time of recording of a live record."""

    said: str
    """Its fields in few words."""

    tokens: int = 0
    """Tokens of models that it tells of."""

    findings: int = 0
    """Findings that name it as witness."""

    tool: str | None = None
    """Tool that a call asks for."""

    cost_usd: float | None = None
    """Cost of a model's answer, as the source says it."""

    @property
    def weight(self) -> Level:
        """The level as a word."""
        return LEVELS[self.level]


def row_of(record: Record, said: str) -> EventRow:
    """The row of a record."""
    at = record.occurred_at or (record.recorded_at if record.source is None else None)
    level = LEVELS.index(level_of(record.event))
    event = record.event
    tool = event.tool[:_LONGEST] if isinstance(event, ToolCallRequested) else None
    return EventRow(
        record.seq,
        record.type,
        level,
        record.agent,
        at,
        said[:_LONGEST],
        _tokens(event),
        tool=tool,
        cost_usd=_cost(event),
    )


def level_of(event: Event) -> Level:
    """How weighty an event is by its own facts."""
    match event:
        case FindingRaised():
            return level_of_severity(event.severity)
        case ToolCallRequested() | EffectDone():
            return _BY_CLASS.get(event.effect_class or "", "low")
        case ToolCallSettled():
            return "low" if event.outcome == "returned" else "medium"
        case ApprovalDecided():
            return "low" if event.outcome == "approved" else "medium"
        case PolicyEvaluated():
            return "medium" if event.verdict in ("deny", "error") else "low"
        case SessionEnded():
            return "low" if event.outcome in ("completed", "unknown") else "medium"
        case _:
            return _ALWAYS.get(type(event), "low")


def level_of_severity(severity: str) -> Level:
    """The level that a finding gives its witnesses."""
    return _BY_SEVERITY.get(severity, "low")


def _tokens(event: Event) -> int:
    if not isinstance(event, ModelCallAnswered) or event.usage is None or event.synthetic:
        return 0
    usage = event.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return sum(count or 0 for count in counts)


def _cost(event: Event) -> float | None:
    if not isinstance(event, ModelCallAnswered) or event.cost_usd is None or event.synthetic:
        return None
    return float(event.cost_usd)
