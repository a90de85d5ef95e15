"""What tool calls, approvals and delegations do to the state. A call without a result is never a good one."""

from collections.abc import Callable
from typing import Any

from ledger.events import Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from replay.state import State

_PAST_KEPT = 50
_USES_KEPT = 5000
_STANDING = ("session", "rule")

_NO_APPROVAL: dict[str, Any] = {
    "status": "open",
    "call_id": None,
    "tool": None,
    "arguments": None,
    "policy_version": None,
    "expires_at": None,
    "decided_by": None,
    "decider": None,
    "how": None,
    "scope": None,
    "evidence": None,
    "used": 0,
    "asked": None,
    "decided": None,
}


def _requested(state: State, event: ToolCallRequested, record: Record) -> None:
    # A live recorder, and a source that logs starts, say that a call began; of others nobody knows.
    starts_are_seen = record.source is None or state.get("usage", "tool_starts")
    call = {
        "tool": event.tool,
        "status": "not_started" if starts_are_seen else "unknown",
        "arguments": event.arguments.digest,
        "effect_class": event.effect_class,
        "idempotency_key": event.idempotency_key,
        "server": event.server,
        "seq": state.seq,
        "settled": None,
    }
    state.put("open_calls", event.call_id, call)
    state.count("usage", "tool_calls")


def _started(state: State, event: ToolCallStarted, record: Record) -> None:
    state.count("usage", "tool_starts")
    call = state.get("open_calls", event.call_id)
    if call is not None:
        state.put("open_calls", event.call_id, {**call, "status": "unknown"})


def _settled(state: State, event: ToolCallSettled, record: Record) -> None:
    call = state.get("open_calls", event.call_id)
    if call is not None and call["settled"] is not None:
        state.count("tool_outcomes", call["status"], -1)  # a result came after all
    state.count("tool_outcomes", event.outcome)
    if event.result is not None:
        state.say("tool", event.result, event.call_id)
    if event.outcome in ("not_started", "unknown") and call is not None:
        state.put("open_calls", event.call_id, {**call, "status": event.outcome, "settled": state.seq})
        return
    state.drop("open_calls", event.call_id)
    if state.sections["abandoned_calls"]:
        state.drop("abandoned_calls", f"tool:{event.call_id}")
    for approval_id in state.drop("call_approvals", event.call_id) or ():
        approval = state.get("approvals", approval_id)
        if approval is not None and approval["scope"] not in _STANDING:
            status = "lapsed" if approval["status"] == "open" else approval["status"]
            _place(state, "approvals", approval_id, {**approval, "status": status}, live=False)


def _asked(state: State, event: ApprovalAsked, record: Record) -> None:
    approval = {
        **_NO_APPROVAL,
        "call_id": event.call_id,
        "tool": event.tool,
        "arguments": event.arguments_digest,
        "policy_version": event.policy_version,
        "expires_at": event.expires_at,
        "asked": state.seq,
        "used": _uses(state, event.approval_id),
    }
    _place(state, "approvals", event.approval_id, approval, live=True)
    _belongs(state, event.approval_id, event.call_id)


def _belongs(state: State, approval_id: str, call_id: str | None) -> None:
    if call_id is not None:
        known = state.get("call_approvals", call_id) or []
        if approval_id not in known:
            state.put("call_approvals", call_id, [*known, approval_id])


def _decided(state: State, event: ApprovalDecided, record: Record) -> None:
    approval_id = event.approval_id
    asked = state.get("approvals", approval_id) or state.get("approvals_past", approval_id) or _NO_APPROVAL
    call_id = event.call_id or asked["call_id"]
    approval = {
        **asked,
        "status": event.outcome,
        "call_id": call_id,
        "arguments": event.arguments_digest or asked["arguments"],
        "decided_by": event.decided_by,
        "decider": event.decider,
        "how": event.how,
        "scope": event.scope,
        "evidence": event.evidence,
        "used": max(asked["used"], _uses(state, approval_id)),
        "decided": state.seq,
    }
    state.count("decisions", event.outcome)
    call_is_over = call_id is not None and state.get("open_calls", call_id) is None
    refused_for_good = event.outcome not in ("approved", "unknown") and call_id is None
    live = event.scope in _STANDING or not (call_is_over or refused_for_good)
    _place(state, "approvals", approval_id, approval, live=live)
    if live:
        _belongs(state, approval_id, call_id)


def _used(state: State, event: ApprovalUsed, record: Record) -> None:
    for section in ("approvals", "approvals_past"):
        approval = state.get(section, event.approval_id)
        if approval is not None:
            used = {**approval, "used": approval["used"] + 1}
            live = section == "approvals" and approval["scope"] != "once"
            _place(state, "approvals", event.approval_id, used, live=live)
            state.push("approval_uses", event.approval_id, used, _USES_KEPT)
            return


def _uses(state: State, approval_id: str) -> int:
    """How often an answer was used, before a rollback too."""
    known = state.get("approval_uses", approval_id)
    return 0 if known is None else int(known["used"])


def keep_used(state: State) -> None:
    """The session went back; what was used before that stays used."""
    for approval_id, used in state.sections["approval_uses"].items():
        for section in ("approvals", "approvals_past"):
            approval = state.get(section, approval_id)
            if approval is not None and approval["used"] < used["used"]:
                live = section == "approvals" and used["scope"] in _STANDING
                _place(state, "approvals", approval_id, {**used}, live=live)
                break


def _place(state: State, section: str, key: str, entry: dict[str, Any], *, live: bool) -> None:
    """Keep what matters now, and of what is over the last: a state does not grow with the session."""
    past = f"{section}_past"
    if live:
        state.drop(past, key)
        state.put(section, key, entry)
    else:
        state.drop(section, key)
        state.push(past, key, entry, _PAST_KEPT)


def _delegated(state: State, event: DelegationStarted, record: Record) -> None:
    delegation = {
        "status": "open",
        "to_session": event.to_session,
        "to_agent": event.to_agent,
        "how": event.how,
        "call_id": event.call_id,
        "payload": event.payload.digest if event.payload else None,
        "budget_usd": None if event.budget_usd is None else str(event.budget_usd),
        "result": None,
        "seq": state.seq,
        "returned": None,
    }
    _place(state, "delegations", event.delegation_id, delegation, live=True)


def _returned(state: State, event: DelegationReturned, record: Record) -> None:
    started = state.get("delegations", event.delegation_id) or state.get(
        "delegations_past", event.delegation_id
    )
    if state.sections["abandoned_calls"]:
        state.drop("abandoned_calls", f"delegation:{event.delegation_id}")
    result = event.result.digest if event.result else None
    unknown = dict.fromkeys(("to_session", "to_agent", "call_id", "payload", "budget_usd", "seq")) | {
        "how": "unknown"
    }
    returned = {**(started or unknown), "status": event.outcome, "result": result, "returned": state.seq}
    if returned["to_session"] is None:
        returned["to_session"] = event.from_session
    _place(state, "delegations", event.delegation_id, returned, live=False)


CALL_HANDLERS: dict[type[Event], Callable[[State, Any, Record], None]] = {
    ToolCallRequested: _requested,
    ToolCallStarted: _started,
    ToolCallSettled: _settled,
    ApprovalAsked: _asked,
    ApprovalDecided: _decided,
    ApprovalUsed: _used,
    DelegationStarted: _delegated,
    DelegationReturned: _returned,
}
"""Handlers of this file, for the fold."""
