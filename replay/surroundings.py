"""What governance, capabilities, budgets and effects do to the state."""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from ledger.events import ContentRef, Event, Record, effect, governance, policy
from ledger.events.capability import CapabilityLoaded, CapabilityUnloaded
from ledger.events.session import ArtifactInForce
from replay.state import State

_FILE_OPERATIONS = frozenset({"create", "edit", "delete"})
_EXACT = Context(prec=1000)


def add_exactly(left: str | None, right: Decimal) -> str:
    """Sum of two amounts, without rounding, as text."""
    return str(_EXACT.add(Decimal(left or 0), right))


def digest_of(ref: ContentRef | None) -> str | None:
    """Digest of content that may not be there."""
    return None if ref is None else ref.digest


# -- what governs the agent ----------------------------------------------------------------------------------


def put_in_force(state: State, artifacts: tuple[ArtifactInForce, ...]) -> None:
    """These artifacts govern the agent from now on; those that did already keep their seq."""
    for artifact in artifacts:
        _set_artifact(state, artifact.artifact, artifact.digest, None, None)


def _set_artifact(state: State, name: str, digest: str, kind: str | None, cause: str | None) -> None:
    known = state.get("artifacts", name)
    if known is None or known["digest"] != digest:
        kind = kind or (known["kind"] if known else None)
        state.put("artifacts", name, {"digest": digest, "kind": kind, "cause": cause, "seq": state.seq})


def _artifact_changed(state: State, event: governance.ArtifactChanged, record: Record) -> None:
    if event.content is None:
        state.drop("artifacts", event.artifact)
    else:
        _set_artifact(state, event.artifact, event.content.digest, event.kind, event.cause)


def _declared(state: State, event: governance.ConstraintDeclared, record: Record) -> None:
    constraint = {
        "text": event.text.digest,
        "modality": event.modality,
        "hardness": event.hardness,
        "origin": event.origin,
        "scope": event.scope,
        "pinned": None,
        "seq": state.seq,
    }
    state.put("constraints", event.constraint, constraint)


def _withdrawn(state: State, event: governance.ConstraintWithdrawn, record: Record) -> None:
    state.drop("constraints", event.constraint)


def _mode_changed(state: State, event: governance.ModeChanged, record: Record) -> None:
    state.put("modes", event.mode, {"value": event.new, "cause": event.cause, "seq": state.seq})


def _loaded(state: State, event: CapabilityLoaded, record: Record) -> None:
    loaded = {
        "kind": event.kind,
        "name": event.capability,
        "when": event.when,
        "server": event.server,
        "definition": digest_of(event.definition),
        "seq": state.seq,
    }
    state.put("capabilities", f"{event.kind}:{event.capability}", loaded)


def _unloaded(state: State, event: CapabilityUnloaded, record: Record) -> None:
    state.drop("capabilities", f"{event.kind}:{event.capability}")


def _charged(state: State, event: policy.BudgetCharged, record: Record) -> None:
    name, known = _budget(state, event.budget, event.unit)
    remaining = known["remaining"] if event.remaining is None else str(event.remaining)
    charged = add_exactly(known["charged"], event.amount)
    state.put("budget", name, {**known, "charged": charged, "remaining": remaining, "seq": state.seq})


def _exceeded(state: State, event: policy.BudgetExceeded, record: Record) -> None:
    name, known = _budget(state, event.budget, event.unit)
    limits = {"limit": str(event.limit), "reached": str(event.reached), "exceeded": state.seq}
    state.put("budget", name, {**known, **limits, "seq": state.seq})


def _budget(state: State, name: str, unit: str) -> tuple[str, dict[str, Any]]:
    known = state.get("budget", name)
    if known is not None and known["unit"] != unit:
        # The same name with another unit is another budget: amounts in different units do not add up.
        name = f"{name} ({unit})"
        known = state.get("budget", name)
    fresh = {
        "unit": unit,
        "charged": None,
        "remaining": None,
        "limit": None,
        "reached": None,
        "exceeded": None,
    }
    return name, known or fresh


def _tripped(state: State, event: policy.BreakerTripped, record: Record) -> None:
    state.put("breakers", event.breaker, {"limit": event.limit, "reached": event.reached, "seq": state.seq})


# -- what was done outside -----------------------------------------------------------------------------------


def _effect_done(state: State, event: effect.EffectDone, record: Record) -> None:
    on_files = event.effect_class in ("read", "write") or (
        event.operation in _FILE_OPERATIONS and "://" not in event.target
    )
    section = "files" if on_files else "outside"
    known = state.get(section, event.target)
    if known is not None:
        state.drop("effect_targets", known["effect_id"])
    touched = {
        "operation": event.operation,
        "class": event.effect_class,
        "status": "done",
        "effect_id": event.effect_id,
        "call_id": event.call_id,
        "after": digest_of(event.after),
        "evidence": event.evidence,
        "times": known["times"] + 1 if known else 1,
        "seq": state.seq,
    }
    state.put(section, event.target, touched)
    state.put("effect_targets", event.effect_id, [section, event.target])
    state.count("effects", "done")


def _effect_status(state: State, effect_id: str, status: str) -> None:
    state.count("effects", status)
    place = state.get("effect_targets", effect_id)
    if place is not None:
        section, target = place
        touched = state.get(section, target)
        state.put(section, target, {**(touched or {}), "status": status, "seq": state.seq})


def _compensated(state: State, event: effect.EffectCompensated, record: Record) -> None:
    _effect_status(state, event.effect_id, "compensated")


def _not_undone(state: State, event: effect.EffectNotUndone, record: Record) -> None:
    _effect_status(state, event.effect_id, "not_undone")


SURROUNDINGS_HANDLERS: dict[type[Event], Callable[[State, Any, Record], None]] = {
    governance.ArtifactChanged: _artifact_changed,
    governance.ConstraintDeclared: _declared,
    governance.ConstraintWithdrawn: _withdrawn,
    governance.ModeChanged: _mode_changed,
    CapabilityLoaded: _loaded,
    CapabilityUnloaded: _unloaded,
    policy.BudgetCharged: _charged,
    policy.BudgetExceeded: _exceeded,
    policy.BreakerTripped: _tripped,
    effect.EffectDone: _effect_done,
    effect.EffectCompensated: _compensated,
    effect.EffectNotUndone: _not_undone,
}
"""Handlers of this file, for the fold."""
