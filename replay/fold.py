"""The fold: what each event does to the state. Pure: the same records give the same state."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

from ledger.errors import RecordDamagedError
from ledger.events import Event, Record, compaction, model_call, recovery
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.session import SessionEnded, SessionForked, SessionResumed, SessionStarted
from replay.calls import CALL_HANDLERS, keep_used
from replay.said import is_answered
from replay.state import INHERITED, State
from replay.surroundings import SURROUNDINGS_HANDLERS, add_exactly, digest_of, put_in_force

_SIDE_PURPOSES = frozenset({"title", "compaction", "routing", "token-count", "summary", "embedding", "other"})
_ANSWERS_KEPT = 256

EARLY = 16
"""A fork that begins with its origin's state is told within so many records."""

Charge = list[Any]
"""What an answer counts for: calls, tokens by kind, cost as text (None: unknown), answers without usage."""


class Past(Protocol):
    """What lies too far back for a state to remember it. The fold asks for it in rare cases only."""

    def state(self, seq: int, asked_at: int) -> State:
        """The state at a seq before `asked_at`."""

    def charge(self, call_id: str, asked_at: int) -> Charge | None:
        """What the last answer of a call before `asked_at` counted for; None when there was none."""

    def origin(self, fork: Record) -> State | None:
        """The state that a forked session begins with: its origin's at the fork; None when that is not on record."""


def fold(state: State, record: Record, past: Past | None = None) -> State:
    """The state after one more record; the one given stays as it is.

    `past` is asked when the record goes back to an earlier seq, or revises an answer of long ago; without
    one, such a record raises ValueError. `replay.timeline` gives one.
    """
    after = state.copy()
    advance(after, record, past)
    return after


def advance(state: State, record: Record, past: Past | None = None) -> None:
    """Bring a state forward by one record, in place. Raises RecordDamagedError when it is not the next."""
    if record.seq != state.seq + 1 or record.session != state.session:
        expected = f"{state.session}#{state.seq + 1}"
        raise RecordDamagedError(record.place, f"it does not follow: expected {expected}")
    state.seq = record.seq
    if state.sections["about"]["started_at"] is None:
        # What was recorded live gives no time of its own: there the stamp is the time.
        time = record.occurred_at or (record.recorded_at if record.source is None else None)
        if time is not None:
            state.put("about", "started_at", time)
    event = record.event
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event, record)
    elif type(event) is recovery.RolledBack:
        _rolled_back(state, event, past)
    elif type(event) is SessionForked:
        _forked(state, event, record, past)
    elif type(event) is model_call.ModelCallAnswered:
        _answered(state, event, past)


def charge_of(event: model_call.ModelCallAnswered) -> Charge:
    """What an answer counts for. One that the harness wrote in a model's place counts for nothing."""
    if event.synthetic:
        return [0, None, None, None, None, None, None, 0]
    usage = event.usage or model_call.Usage()
    cost = None if event.cost_usd is None else str(event.cost_usd)
    return [
        1,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        cost,
        int(event.usage is None),
    ]


def go_back_target(event: recovery.RolledBack, named: Callable[[str], int | None]) -> int | None:
    """The seq that a rollback goes back to, by number or by checkpoint; None where nobody says."""
    if event.to_seq is not None:
        return event.to_seq
    return named(event.checkpoint_id) if event.checkpoint_id is not None else None


def checkpoint_target(event: recovery.CheckpointTaken, seq: int) -> int:
    """The seq that a checkpoint recorded at `seq` names."""
    return seq - 1 if event.seq is None else event.seq


# -- session -------------------------------------------------------------------------------------------------


def _started(state: State, event: SessionStarted, record: Record) -> None:
    for name in ("harness", "harness_version", "name", "agent", "model", "cwd", "parent"):
        state.put("about", name, getattr(event, name))
    put_in_force(state, event.charter)


def inherits(state: State, event: SessionForked) -> bool:
    """Whether a session that is forked here begins with its origin's state: its own records do not repeat that.

    A fork that is only found out late, after records of its own, holds what it shares already.
    """
    usage = state.sections["usage"]
    return (
        event.origin_seq is not None
        and not event.runs_again
        and event.origin != state.session
        and state.seq <= EARLY
        and state.get("about", "forked_from") is None
        and state.node is None
        and state.tail is None
        and not state.sections["rollbacks"]
        and not (usage["model_calls"] or usage["tool_calls"] or state.sections["open_model_calls"])
    )


def _forked(state: State, event: SessionForked, record: Record, past: Past | None) -> None:
    if inherits(state, event):
        if past is None:
            raise ValueError(
                f"{state.session}#{state.seq} goes on from another session: the fold needs its past"
            )
        origin = past.origin(record)
        if origin is not None:
            state.inherit(origin)
        else:
            _seen(state, "none", ["state of the session that it was forked from"])
    state.put("about", "forked_from", event.origin)
    state.put("about", "forked_from_seq", event.origin_seq)
    state.put("about", "forked_from_item", event.origin_item)


def _ended(state: State, event: SessionEnded, record: Record) -> None:
    state.put("outcome", "outcome", event.outcome)
    state.put("outcome", "outcome_reason", event.reason)


def _resumed(state: State, event: SessionResumed, record: Record) -> None:
    state.put("outcome", "outcome", None)
    state.put("outcome", "outcome_reason", None)


# -- conversation --------------------------------------------------------------------------------------------


def _received(state: State, event: MessageReceived, record: Record) -> None:
    state.say("user", event.message)


def _injected(state: State, event: ContextInjected, record: Record) -> None:
    state.say("user", event.message)


def _model_requested(state: State, event: model_call.ModelCallRequested, record: Record) -> None:
    if event.artifacts:
        put_in_force(state, event.artifacts)
    side = event.purpose in _SIDE_PURPOSES or (
        event.purpose == "sub-agent" and not record.depth and state.get("about", "parent") is None
    )
    call = {
        "purpose": event.purpose,
        "side": side,
        "model": event.model,
        "attempt": event.attempt,
        "seq": state.seq,
    }
    state.put("open_model_calls", event.call_id, call)
    if side:
        return
    if event.context is not None or event.completeness in ("body", "messages"):
        state.begin(event.context)
    _seen(state, event.completeness, list(event.not_seen))
    if event.tools is not None or event.completeness == "body":
        offered = event.tools.digest if event.tools else None
        if offered != state.get("offered", "offered"):
            state.put("offered", "offered", offered)


def _seen(state: State, completeness: str, not_seen: list[str]) -> None:
    if state.get("seen", "context_completeness") != completeness:
        state.put("seen", "context_completeness", completeness)
    if state.get("seen", "context_not_seen") != not_seen:
        state.put("seen", "context_not_seen", not_seen)


def _answered(state: State, event: model_call.ModelCallAnswered, past: Past | None) -> None:
    call_id = event.call_id
    call = state.drop("open_model_calls", call_id)
    earlier: Charge | None = None
    if event.revision > 0:
        earlier = state.get("answers", call_id)
        if earlier is None:
            if past is None:
                raise ValueError(
                    f"{state.session}#{state.seq} revises an earlier answer: the fold needs its past"
                )
            earlier = past.charge(call_id, state.seq)
    charge = charge_of(event)
    is_asked_again = (
        earlier is not None and call is not None and not call["side"] and not is_answered(state.tail, call_id)
    )
    if earlier is not None and is_asked_again:
        # The call was made again, with a context of its own: the earlier answer is no part of it.
        _charge(state, earlier, -1)
        state.say("assistant", event.message, call_id)
    elif earlier is not None:
        _charge(state, earlier, -1)
        revision = ["assistant", event.message.digest, event.message.kind, call_id]
        state.put("revised", call_id, revision)
        if state.trail is not None:
            state.trail.said.setdefault(event.message.digest, []).append(state.seq)
    elif call is None or not call["side"]:
        state.say("assistant", event.message, call_id)
    _charge(state, charge, 1)
    state.push("answers", call_id, charge, _ANSWERS_KEPT)


def _charge(state: State, charge: Charge, sign: int) -> None:
    calls, given, written, cache_read, cache_write, reasoning, cost, silent = charge
    if calls:
        state.count("usage", "model_calls", sign)
    if silent:
        state.count("usage", "answers_without_usage", sign)
    if given is not None:
        state.count("tokens", "input", sign * given)
    if written is not None:
        state.count("tokens", "output", sign * written)
    if cache_read is not None:
        state.count("tokens", "cache_read", sign * cache_read)
    if cache_write is not None:
        state.count("tokens", "cache_write", sign * cache_write)
    if reasoning is not None:
        state.count("tokens", "reasoning", sign * reasoning)
    if cost is not None:
        state.put("usage", "cost_usd", add_exactly(state.get("usage", "cost_usd"), sign * Decimal(cost)))


def _model_failed(state: State, event: model_call.ModelCallFailed, record: Record) -> None:
    state.drop("open_model_calls", event.call_id)
    state.count("usage", "failed_model_calls")


def _compacted(state: State, event: compaction.CompactionDone, record: Record) -> None:
    state.begin(event.context_after)
    if event.context_after is not None:
        _seen(state, "messages", [])
    elif event.summary is not None:
        state.say("user", event.summary)
        _seen(state, "partial", ["messages kept by the compaction"])
    else:
        _seen(state, "none", ["context after the compaction"])


def _pinned(state: State, event: compaction.ConstraintPinned, record: Record) -> None:
    state.say("user", event.message)
    constraint = state.get("constraints", event.constraint)
    if constraint is not None:
        state.put("constraints", event.constraint, {**constraint, "pinned": state.seq})


# -- going back ----------------------------------------------------------------------------------------------


def _checkpoint(state: State, event: recovery.CheckpointTaken, record: Record) -> None:
    checkpoint = {
        "seq": checkpoint_target(event, state.seq),
        "taken": state.seq,
        "taken_by": event.taken_by,
        "label": event.label,
        "context": event.context,
        "files": digest_of(event.files),
    }
    state.put("checkpoints", event.checkpoint_id, checkpoint)


def _rolled_back(state: State, event: recovery.RolledBack, past: Past | None) -> None:
    seq = state.seq
    named = state.sections["checkpoints"]
    target = go_back_target(event, lambda name: named[name]["seq"] if name in named else None)
    entry = {
        "to_seq": target,
        "checkpoint": event.checkpoint_id,
        "reason": event.reason,
        "evidence": event.evidence,
    }
    state.put("rollbacks", str(seq), entry)
    if target is None or not 0 <= target < seq:
        _seen(state, "none", ["state gone back to"])
        return
    if past is None:
        raise ValueError(f"{state.session}#{seq} goes back to seq {target}: the fold needs its past")
    earlier = past.state(target, seq)
    abandoned = [
        (f"{kind}:{name}", {**call, "kind": kind})
        for section, kind in (
            ("open_calls", "tool"),
            ("open_model_calls", "model"),
            ("delegations", "delegation"),
        )
        for name, call in state.sections[section].items()
        if call["seq"] > target and INHERITED not in call
    ]
    state.go_back(earlier)
    keep_used(state)
    for name, call in abandoned:
        state.put("abandoned_calls", name, call)


_HANDLERS: dict[type[Event], Callable[[State, Any, Record], None]] = {
    SessionStarted: _started,
    SessionEnded: _ended,
    SessionResumed: _resumed,
    MessageReceived: _received,
    ContextInjected: _injected,
    model_call.ModelCallRequested: _model_requested,
    model_call.ModelCallFailed: _model_failed,
    compaction.CompactionDone: _compacted,
    compaction.ConstraintPinned: _pinned,
    recovery.CheckpointTaken: _checkpoint,
    **CALL_HANDLERS,
    **SURROUNDINGS_HANDLERS,
}
"""Events without a handler leave the state as it is: a finding or a note does not change a session."""
