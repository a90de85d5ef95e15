"""Says how a replay left its recording: which kind of difference, where exactly, and why probably."""

from typing import Any

from ledger.errors import LedgerError
from ledger.events import ContentRef, Event
from ledger.events.approval import ApprovalAsked
from ledger.events.canonical import decode_json
from ledger.events.delegation import DelegationStarted
from ledger.events.draw import Drawn
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.tool_call import ToolCallRequested
from ledger.store import EventStore
from replay.context import rebuild_request
from replay.divergence import Divergence, Kind, Side, differences, excerpt
from replay.inprocess.script import Script, Step, key_of, kind_of
from replay.surroundings import digest_of

_WORDS = {
    "model": "a model call",
    "tool": "a tool call",
    "approval": "a question for approval",
    "draw": "a draw",
    "delegation": "a hand-over",
    "message": "a message",
    "compaction": "a compaction",
    "checkpoint": "a checkpoint",
}


def diverged(
    store: EventStore,
    script: Script,
    origin: str,
    session: str,
    event: Event | None,
    seq: int | None,
    reason: str | None,
) -> Divergence:
    """The divergence of a step that the recording does not have next; without one, of a loop that ended early."""
    due = script.first()
    if event is None:
        assert due is not None
        why = f"the loop ended{f' with {reason}' if reason else ''} and never came to {_named(due.event)}"
        return Divergence(
            "missing", origin, due.seq, recorded=_side(store, origin, due.seq, due.event), cause=why
        )
    if due is None:
        why = f"the recording holds nothing after seq {script.upto}"
        side = _side(store, session, seq, event)
        return Divergence("extra", origin, None, replayed=side, cause=f"{_named(event)} is new: {why}")
    kind, against = _kind(script, due, event)
    recorded, replayed = _side(store, origin, against.seq, against.event), _side(store, session, seq, event)
    if kind == "order" or isinstance(event, Drawn):
        cause = _out_of_place(kind, due, event, script)
        return Divergence(kind, origin, due.seq, recorded=recorded, replayed=replayed, cause=cause)
    found = differences(
        _document(store, origin, against.seq, against.event), _document(store, session, seq, event)
    )
    first = found[0] if found else None
    return Divergence(
        kind,
        origin,
        against.seq,
        pointer=None if first is None else first.pointer,
        recorded=recorded._replace(excerpt=recorded.excerpt if first is None else first.recorded),
        replayed=replayed._replace(excerpt=replayed.excerpt if first is None else first.replayed),
        cause=_cause(against.event, event, None if first is None else first.draw),
        differences=tuple(found),
    )


def _kind(script: Script, due: Step, event: Event) -> tuple[Kind, Step]:
    """What differs, and the recorded step that the new one stands against."""
    if isinstance(event, Drawn):
        return "undeclared_input", due
    key, sort = key_of(event), kind_of(event)
    if script.find(lambda step: step.key == key) is not None:
        return "order", due
    against = next((step for step in script.admissible() if step.kind == sort), None)
    if against is None:
        return ("effect_type" if due.kind not in ("draw", "message") else "missing"), due
    match against.event, event:
        case ModelCallRequested() as old, ModelCallRequested() as new:
            only_tools = (
                old.context == new.context
                and digest_of(old.system) == digest_of(new.system)
                and digest_of(old.parameters) == digest_of(new.parameters)
                and old.model == new.model
            )
            return (
                "schema" if only_tools and digest_of(old.tools) != digest_of(new.tools) else "request"
            ), against
        case (ToolCallRequested(tool=old), ToolCallRequested(tool=new)) | (
            ApprovalAsked(tool=old),
            ApprovalAsked(tool=new),
        ):
            return ("effect_arguments" if old == new else "effect_type"), against
        case DelegationStarted(to_agent=old), DelegationStarted(to_agent=new):
            return ("effect_arguments" if old == new else "effect_type"), against
        case MessageReceived(), MessageReceived():
            return "undeclared_input", against
    return "request", against


def _document(store: EventStore, session: str, seq: int | None, event: Event) -> Any:
    """What is compared of a step, as one JSON value."""
    match event:
        case ModelCallRequested() if seq is not None:
            request = rebuild_request(store, session, seq)
            if request.body is not None:
                return request.body
            return {"model": request.model, "system": request.system, "messages": request.messages}
        case ToolCallRequested():
            return {"tool": event.tool, "arguments": _value(store, event.arguments)}
        case ApprovalAsked():
            return {
                "tool": event.tool,
                "arguments": event.arguments_digest,
                "context": _value(store, event.context),
            }
        case DelegationStarted():
            return {"agent": event.to_agent, "how": event.how, "payload": _value(store, event.payload)}
        case MessageReceived():
            return {"origin": event.origin, "message": _value(store, event.message)}
        case Drawn():
            return {"kind": event.kind, "label": event.label}
    return {"type": event.TYPE}


def _side(store: EventStore, session: str, seq: int | None, event: Event) -> Side:
    digest = None
    match event:
        case ModelCallRequested():
            digest = event.body_digest or event.context
        case ToolCallRequested():
            digest = event.arguments.digest
        case MessageReceived():
            digest = event.message.digest
        case DelegationStarted():
            digest = digest_of(event.payload)
    shown = _named(event)
    if isinstance(event, ToolCallRequested):
        shown = f"{shown} {excerpt(_value(store, event.arguments))}"
    return Side(session, seq, digest, shown)


def _named(event: Event) -> str:
    """A step in a few words."""
    sort = kind_of(event)
    word = event.TYPE if sort is None else _WORDS[sort]
    match event:
        case ToolCallRequested() | ApprovalAsked() if event.tool:
            return f"{word} of {event.tool!r}" if sort == "tool" else f"{word} about {event.tool!r}"
        case Drawn():
            return f"{word} of {event.kind} {event.label!r}"
        case DelegationStarted() if event.to_agent:
            return f"{word} to {event.to_agent!r}"
        case ModelCallRequested() if event.purpose != "main":
            return f"{word} for {event.purpose}"
    return word


def _out_of_place(kind: Kind, due: Step, event: Event, script: Script) -> str:
    if kind == "undeclared_input":
        return f"{_named(event)} was not recorded here: {_named(due.event)} was"
    later = script.find(lambda step: step.key == key_of(event))
    place = "" if later is None else f", which was recorded later, at seq {later.seq}"
    return f"{_named(event)}{place} came before {_named(due.event)}"


def _cause(recorded: Event, replayed: Event, draw: str | None) -> str | None:
    match recorded, replayed:
        case ModelCallRequested() as old, ModelCallRequested() as new:
            changed = [
                word
                for word, before, after in (
                    ("the system prompt", digest_of(old.system), digest_of(new.system)),
                    ("a tool's schema", digest_of(old.tools), digest_of(new.tools)),
                    ("a parameter", digest_of(old.parameters), digest_of(new.parameters)),
                    ("the model", old.model, new.model),
                    ("the conversation", old.context, new.context),
                )
                if before != after
            ]
            if changed == ["the conversation"] and new.context_length < old.context_length:
                changed = ["the conversation, which is shorter: a compaction"]
            if draw is not None:
                return f"it looks like {draw} that was read past the recorder"
            return f"{' and '.join(changed)} changed" if changed else None
        case MessageReceived(), MessageReceived():
            return "another message came in than was recorded"
    return None if draw is None else f"it looks like {draw} that was read past the recorder"


def _value(store: EventStore, ref: ContentRef | None) -> Any:
    if ref is None:
        return None
    try:
        content = store.content(ref.digest)
    except LedgerError as error:
        return str(error)
    return decode_json(content) if ref.kind == "json" else content.decode("utf-8", "replace")
