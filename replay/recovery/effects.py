"""What the tool calls of a session did outside, one entry a call: class, target, how it ended, what takes it back.

Reads records and the arguments of calls; runs nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ledger.effects import Effect, EffectPolicy, classify
from ledger.effects.policy import Compensation
from ledger.errors import ContentMissingError
from ledger.events import ContentRef, Record
from ledger.events.canonical import decode_json
from ledger.events.capability import CapabilityLoaded
from ledger.events.delegation import DelegationStarted
from ledger.events.effect import (
    CompensationRegistered,
    CompensationStarted,
    EffectCompensated,
    EffectDone,
    EffectNotUndone,
)
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.store import EventStore
from replay.conversation import decode_content

Outcome = Literal["open", "returned", "failed", "denied", "not_started", "unknown"]
"""How a call ended; `open`: it did not."""

_OUTSIDE = ("external", "irreversible", "credential")


@dataclass(slots=True)
class CallEffect:
    """One tool call and what it did."""

    session: str
    """Session that made it."""

    seq: int
    """Record of its request."""

    call_id: str
    """Its id."""

    tool: str
    """Its tool."""

    arguments: ContentRef
    """Its arguments."""

    effect: Effect
    """Class, operation, target, and who says so."""

    idempotency_key: str | None
    """Key under which it acts once."""

    starts_are_seen: bool
    """Whether its source tells that a call began."""

    started: int | None = None
    """Record of its start."""

    settled: int | None = None
    """Record of its end."""

    outcome: Outcome = "open"
    """How it ended."""

    result: ContentRef | None = None
    """What it returned."""

    files: list[str] = field(default_factory=list)
    """Files that it is known to have changed, as they are named on record."""

    file_effects: list[str] = field(default_factory=list)
    """Ids of these changes."""

    compensation: Compensation | None = None
    """What takes it back, as registered by the loop or stated by the user's policy."""

    by_policy: bool = False
    """Whether the user's policy states it."""

    undone: Literal["compensated", "began", "failed", None] = None
    """What an earlier rollback did about it."""

    duplicate_of: int | None = None
    """Earlier call that did the same."""

    @property
    def effect_id(self) -> str:
        """Its name in the records of a rollback."""
        return f"{self.session}#{self.seq}"

    @property
    def may_have_acted(self) -> bool:
        """Whether it did something, or may have."""
        if self.outcome in ("denied", "not_started"):
            return False
        return self.outcome != "open" or self.started is not None or not self.starts_are_seen

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "session": self.session,
            "seq": self.seq,
            "call_id": self.call_id,
            "tool": self.tool,
            "class": self.effect.effect_class,
            "said_by": self.effect.said_by,
            "why": self.effect.why,
            "operation": self.effect.operation,
            "target": self.effect.target,
            "idempotency_key": self.idempotency_key,
            "outcome": self.outcome,
            "settled": self.settled,
            "files": self.files,
            "compensation": None if self.compensation is None else self.compensation.how,
            "duplicate_of": self.duplicate_of,
        }


class EffectReader:
    """Takes the records of one session, one by one, and keeps what its calls did."""

    def __init__(self, store: EventStore, session: str, policy: EffectPolicy | None = None) -> None:
        self._store = store
        self._session = session
        self._policy = policy
        self._by_call: dict[str, CallEffect] = {}
        self._by_effect: dict[str, str] = {}
        self._annotations: dict[tuple[str | None, str], ContentRef] = {}
        self._tool_starts = False
        self.calls: list[CallEffect] = []
        """All calls, in order."""
        self.delegated: list[tuple[int, str, str | None]] = []
        """(seq, session, call) of work that was handed over."""
        self.undone: dict[str, Literal["compensated", "began", "failed"]] = {}
        """Effect -> what an earlier rollback of this session did about it."""

    def take(self, record: Record) -> None:
        """One more record."""
        match record.event:
            case ToolCallRequested() as event:
                self._requested(event, record)
            case ToolCallStarted() as event:
                self._tool_starts = True
                if (call := self._by_call.get(event.call_id)) is not None:
                    call.started = record.seq
            case ToolCallSettled() as event:
                if (call := self._by_call.get(event.call_id)) is not None:
                    call.outcome, call.settled, call.result = event.outcome, record.seq, event.result
            case EffectDone() as event:
                if (call := self._by_call.get(event.call_id or "")) is not None and "://" not in event.target:
                    call.files.append(event.target)
                    call.file_effects.append(event.effect_id)
            case CompensationRegistered() as event:
                if (call := self._by_call.get(event.call_id or "")) is not None and call.compensation is None:
                    call.compensation = self._registered(event.compensation)
            case CompensationStarted() as event:
                self.undone.setdefault(event.effect_id, "began")
            case EffectCompensated() as event:
                self.undone[event.effect_id] = "compensated"
            case EffectNotUndone() as event:
                # What began and was never seen to end stays so: "unknown" is no failure.
                if self.undone.get(event.effect_id) == "began" and not event.reason.startswith("unknown"):
                    self.undone[event.effect_id] = "failed"
            case DelegationStarted() as event if event.to_session is not None:
                self.delegated.append((record.seq, event.to_session, event.call_id))
            case CapabilityLoaded() as event if event.kind == "tool" and event.definition is not None:
                self._annotations[event.server, event.capability] = event.definition

    def _requested(self, event: ToolCallRequested, record: Record) -> None:
        arguments = self.value(event.arguments)
        fields = arguments if isinstance(arguments, Mapping) else {}
        effect = classify(
            event.tool,
            fields,
            declared=event.effect_class if event.effect_declared != "inferred" else None,
            annotations=self._annotations_of(event),
            policy=self._policy,
        )
        rule = None if self._policy is None else self._policy.rule_for(event.tool, fields)
        call = CallEffect(
            record.session,
            record.seq,
            event.call_id,
            event.tool,
            event.arguments,
            effect,
            event.idempotency_key or effect.idempotency_key,
            record.source is None or self._tool_starts,
        )
        if rule is not None and rule.compensation is not None:
            call.compensation, call.by_policy = rule.compensation, True
        self._by_call[event.call_id] = call
        self.calls.append(call)

    def _annotations_of(self, event: ToolCallRequested) -> Mapping[str, Any] | None:
        ref = self._annotations.get((event.server, event.tool))
        definition = None if ref is None else self.value(ref)
        found = definition.get("annotations") if isinstance(definition, dict) else None
        return found if isinstance(found, dict) else None

    def _registered(self, ref: ContentRef) -> Compensation | None:
        try:
            return Compensation.model_validate(decode_json(self._store.content(ref.digest)))
        except (ContentMissingError, ValueError):
            return None

    def value(self, ref: ContentRef) -> Any:
        """Content as a value; None where it was erased."""
        try:
            return decode_content(self._store.content(ref.digest))
        except ContentMissingError:
            return None


def find_duplicates(calls: list[CallEffect]) -> None:
    """Mark calls that reached outside twice: under one idempotency key, or with the same tool and arguments."""
    first: dict[tuple[str, str], CallEffect] = {}
    for call in calls:
        if call.effect.effect_class not in _OUTSIDE or not call.may_have_acted:
            continue
        names = [(call.tool, call.arguments.digest)]
        if call.idempotency_key is not None:
            names.append((call.tool, f"key {call.idempotency_key}"))
        earlier = [first[name] for name in names if name in first]
        if earlier:
            call.duplicate_of = min(one.seq for one in earlier)
        for name in names:
            first.setdefault(name, call)


def effects_of(store: EventStore, session: str, policy: EffectPolicy | None = None) -> list[CallEffect]:
    """The calls of a session and what they did."""
    reader = EffectReader(store, session, policy)
    for record in store.read(session):
        reader.take(record)
    find_duplicates(reader.calls)
    for call in reader.calls:
        call.undone = reader.undone.get(call.effect_id)
    return reader.calls


def with_delegated(
    store: EventStore, reader: EffectReader, after: int, policy: EffectPolicy | None
) -> Iterator[CallEffect]:
    """The calls of sessions to which work was handed after a seq, and of those that they handed on to."""
    waiting = [session for seq, session, _ in reader.delegated if seq > after]
    seen = set(waiting)
    while waiting:
        session = waiting.pop(0)
        child = EffectReader(store, session, policy)
        for record in store.read(session):
            child.take(record)
        yield from child.calls
        for _, further, _ in child.delegated:
            if further not in seen:
                seen.add(further)
                waiting.append(further)
