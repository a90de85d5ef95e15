"""What the list of sessions tells of one session, and how each record changes it. Reads no content."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from decimal import Context, Decimal
from typing import Any, Literal, NamedTuple

from ledger.events import Record
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.credential import SecretRedacted
from ledger.events.keeping import Imported
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.record import Grade
from ledger.events.replaying import ReplayAnswered
from ledger.events.review import FindingRaised
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested

_GRADES: tuple[Grade, ...] = ("wire", "near-wire", "semantic", "skeleton")
_TOKENS = ("input", "output", "cache_read", "cache_write")
_EXACT = Context(prec=1000)


class Charge(NamedTuple):
    """What one model call counts for; kept so that its end, or a revision of it, can take its place."""

    calls: int
    tokens: dict[str, int]
    cost_usd: str | None
    cut: int = 0
    open: int = 0
    free: int = 0

    def packed(self) -> bytes:
        """As kept."""
        return canonical_json(list(self))

    @classmethod
    def unpacked(cls, body: bytes) -> "Charge":
        """From what was kept."""
        return cls(*decode_json(body))


_OPEN = Charge(0, {}, None, open=1)
_FROM_RECORD = Charge(0, {}, None, open=1, free=1)
_NOTHING = Charge(0, {}, None)


@dataclass
class SessionRow:
    """One line of the list of sessions."""

    id: str
    """Session."""
    name: str | None = None
    """Title for people."""
    harness: str | None = None
    """Program that ran the loop."""
    agent: str | None = None
    """Name or role of the agent."""
    model: str | None = None
    """Model asked for at the start, or the first that answered."""
    grade: Grade | None = None
    """The least that any of its records proves."""
    head_seq: int = 0
    """Last seq: the number of its records."""
    started_at: str | None = None
    """The first time that it tells, as given."""
    last_at: str | None = None
    """The last time that it tells, as given."""
    parent: str | None = None
    """Session that delegated to it."""
    outcome: str | None = None
    """How it ended; None while it has not."""
    tokens: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(_TOKENS))
    """Tokens by kind, each counted once; None: nobody said."""
    cost_usd: str | None = None
    """Cost as the source says it; None: it does not."""
    model_calls: int = 0
    """Answers of models."""
    tool_calls: int = 0
    """Tools asked for."""
    cut_answers: int = 0
    """Answers of models of which a part is missing."""
    open_calls: int = 0
    """Model calls whose end nobody told."""
    last_answer: str | None = None
    """Whether the last answer is `complete`, `partial` or `aborted`; None before the first."""
    findings: int = 0
    """Findings raised."""
    imports: int = 0
    """Files imported into it."""
    damaged: int = 0
    """Records that could not be read while the list was made."""
    verified_seq: int | None = None
    """How far the last verification saw it; None: never."""
    problems: int = 0
    """What that verification found wrong."""

    @property
    def integrity(self) -> Literal["ok", "problems", "unknown"]:
        """`ok` when the last verification saw all of it and found nothing wrong."""
        if self.problems or self.damaged:
            return "problems"
        return "ok" if self.verified_seq == self.head_seq else "unknown"

    @property
    def completeness(self) -> Literal["complete", "partial", "aborted"]:
        """`aborted`: broken off, and not gone on; `partial`: a model's answer is missing, or a part of one."""
        if "aborted" in (self.outcome, self.last_answer):
            return "aborted"
        return "partial" if self.cut_answers or self.open_calls else "complete"

    def packed(self) -> bytes:
        """As kept, without what other columns hold."""
        fields = asdict(self)
        for name in ("id", "verified_seq", "problems"):
            del fields[name]
        return canonical_json(fields)

    @classmethod
    def unpacked(cls, identity: str, body: bytes) -> "SessionRow":
        """From what was kept."""
        return cls(identity, **decode_json(body))

    def as_json(self) -> dict[str, Any]:
        """The documented form of `sessions --json`."""
        return {
            "id": self.id,
            "name": self.name,
            "harness": self.harness,
            "agent": self.agent,
            "model": self.model,
            "grade": self.grade,
            "records": self.head_seq,
            "started_at": self.started_at,
            "last_at": self.last_at,
            "parent": self.parent,
            "outcome": self.outcome,
            "completeness": self.completeness,
            "tokens": self.tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "findings": self.findings,
            "integrity": self.integrity,
        }

    def charge(self, charge: Charge, sign: Literal[1, -1]) -> None:
        """Count an answer, or take it back."""
        self.model_calls += sign * charge.calls
        self.cut_answers += sign * charge.cut
        self.open_calls += sign * charge.open
        for name, count in charge.tokens.items():
            self.tokens[name] = (self.tokens[name] or 0) + sign * count
        if charge.cost_usd is not None:
            self.cost_usd = str(_EXACT.add(Decimal(self.cost_usd or 0), sign * Decimal(charge.cost_usd)))


def apply(
    row: SessionRow,
    record: Record,
    earlier: Callable[[str, str], Charge | None],
    remember: Callable[[str, str, Charge], None],
) -> None:
    """Take one more record into the row of its session; `earlier` and `remember` keep what calls counted for."""
    row.head_seq = record.seq
    if row.grade is None or _GRADES.index(record.grade) > _GRADES.index(row.grade):
        row.grade = record.grade
    event = record.event
    time = record.occurred_at
    if time is None and record.source is None and record.grade == "wire":
        # What was recorded live gives no time of its own: there the stamp is the time. Of an import it is not.
        time = None if isinstance(event, Imported | SecretRedacted) else record.recorded_at
    if time is not None:
        row.started_at = row.started_at or time
        row.last_at = time
    match event:
        case SessionStarted():
            row.name, row.harness, row.agent = event.name or row.name, event.harness, event.agent or row.agent
            row.model, row.parent = event.model or row.model, event.parent or row.parent
        case SessionEnded():
            row.outcome = event.outcome
        case SessionResumed():
            row.outcome = None
        case ModelCallRequested():
            if earlier(row.id, event.call_id) is None:
                row.charge(_OPEN, 1)
                remember(row.id, event.call_id, _OPEN)
        case ReplayAnswered() if event.source == "recorded" and event.call_id is not None:
            before = earlier(row.id, event.call_id)
            if before is not None and before.open:
                remember(row.id, event.call_id, _FROM_RECORD)
        case ModelCallAnswered():
            row.model = row.model or event.model
            row.last_answer = row.last_answer if event.synthetic else event.completeness
            before = earlier(row.id, event.call_id)
            _ended(row, event, before, remember, charge_of(event))
        case ModelCallFailed():
            before = earlier(row.id, event.call_id)
            if before is not None and before.open:
                _ended(row, event, before, remember, _NOTHING)
        case ToolCallRequested():
            row.tool_calls += 1
        case FindingRaised():
            row.findings += 1
        case Imported():
            row.imports += 1
        case _:
            pass


def _ended(
    row: SessionRow,
    event: ModelCallAnswered | ModelCallFailed,
    before: Charge | None,
    remember: Callable[[str, str, Charge], None],
    charge: Charge,
) -> None:
    """A fuller reading of an answer counts in the place of the one before; one that no model wrote, not at all."""
    is_revision = isinstance(event, ModelCallAnswered) and event.revision > 0
    if before is not None and (before.open or is_revision):
        row.charge(before, -1)
        if before.free:
            charge = charge._replace(
                tokens={}, cost_usd=None, free=1
            )  # the record answered: nothing was spent
    row.charge(charge, 1)
    remember(row.id, event.call_id, charge)


def charge_of(event: ModelCallAnswered) -> Charge:
    """What an answer counts for; one that no model wrote, for nothing."""
    if event.synthetic:
        return _NOTHING
    usage = event.usage
    given = {} if usage is None else {name: getattr(usage, f"{name}_tokens") for name in _TOKENS}
    tokens = {name: count for name, count in given.items() if count is not None}
    cost = None if event.cost_usd is None else str(event.cost_usd)
    return Charge(1, tokens, cost, int(event.completeness != "complete"))
