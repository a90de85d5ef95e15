"""Microsoft Agent Framework: saved sessions, workflow checkpoints, workflow events, responses, dumps of middleware.

Checkpoints hold pickled objects as text. They are kept as that text and never opened.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.delegation import DelegationStarted
from ledger.events.record import Grade
from ledger.events.recovery import CheckpointTaken
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._agent_framework.hooks import Hooks
from ledger.importers._agent_framework.talk import (
    FORMAT,
    Talk,
    approval_id,
    around,
    pending_approvals,
    pending_items,
    response_facts,
)
from ledger.importers._files import open_source
from ledger.importers._frameworks.document import pieces_of
from ledger.importers._harness.values import items, record, rest, words
from ledger.importers._json_pieces import Piece, partial_json
from ledger.importers._plain.scribe import identity, utc_time
from ledger.protocols.drafting import Place

__all__ = ["CANNOT_SHOW", "FORMAT", "GRADE", "TITLE", "read", "recognizes"]

TITLE = (
    "Microsoft Agent Framework (1.23): sessions, workflow checkpoints and events, responses, middleware dumps"
)
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "The bytes that went over the wire, and retries of model calls.",
    "Tool schemas and parameters of requests as they were sent.",
    "With the Responses client, messages that the provider keeps: a session holds the last response id alone.",
    "Who decided on an approval, and in a checkpoint what was decided: only that the workflow went on.",
    "In a checkpoint, what its pickled objects hold: they are kept as text and never opened.",
    "Checkpoints of which the writing failed: the workflow goes on without them.",
    "In workflow events and middleware dumps, times and the objects that they print.",
    "In middleware dumps, what came through a stream, and which of two parallel calls of a tool raised.",
)
_PRINTED = re.compile(r"""\b(source|target)=['"]([^'"\\]*)['"]""")
_HOOKS = frozenset({"chat_before", "chat_after", "fn_before", "fn_after", "fn_error"})
_EVENTS = frozenset(
    {
        "started",
        "status",
        "output",
        "failed",
        "error",
        "warning",
        "executor_invoked",
        "executor_completed",
        "executor_failed",
        "superstep_started",
        "superstep_completed",
        "handoff_sent",
        "request_info",
    }
)


def recognizes(sniff: Sniff) -> bool:
    """A saved session, a checkpoint, a response, or a list of workflow events or of middleware entries."""
    return _shape(sniff.json) is not None


def _shape(first: Any) -> str | None:
    """`session`, `checkpoint`, `response`, `events` or `hooks`, by what a document begins with."""
    if isinstance(first, list):
        entry = record(next(iter(first), None))
        if isinstance(hook := entry.get("hook"), str) and hook in _HOOKS:
            return "hooks"
        kind = entry.get("type")
        is_event = {"executor_id", "data"} <= entry.keys() and isinstance(kind, str) and kind in _EVENTS
        return "events" if is_event else None
    fields = record(first)
    if {"workflow_name", "checkpoint_id", "graph_signature_hash"} <= fields.keys():
        return "checkpoint"
    if fields.get("type") == "session" and {"session_id", "service_session_id"} <= fields.keys():
        return "session"
    return "response" if fields.get("type") == "agent_response" and "messages" in fields else None


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The records of a file."""
    with open_source(path) as stream:
        first = partial_json(stream.read(64 * 1024))
    shape = _shape(first)
    if isinstance(first, list):
        yield from _hooks(path, desk) if shape == "hooks" else _events(path, desk)
        return
    whole: dict[str, Any] = {}
    damaged: list[Item] = []
    for piece in pieces_of(path, desk, frozenset(), FORMAT, desk.fallback_session(FORMAT)):
        if isinstance(piece, Item):
            damaged.append(piece)
        elif piece.path and isinstance(piece.path[0], str):
            whole[piece.path[0]] = piece.value
    desk.tally.lines += 1
    desk.tally.native[shape or "none"] += 1
    if shape == "checkpoint":
        yield from _checkpoint(whole, desk)
    elif shape == "response":
        yield from _response(whole, desk)
    else:
        yield from _session(whole, desk)
    yield from damaged


def _begin(talk: Talk, name: str | None = None) -> Item:
    started = SessionStarted(harness=FORMAT, name=talk.loop.scribe.word(name, "name"))
    return Item(talk.loop.session, "start", [talk.loop.scribe.draft(Place("start"), started)], None)


def _session(fields: dict[str, Any], desk: Desk) -> Iterator[Item]:
    """A session as saved: its history, where it holds one, what it waits for, and the rest whole."""
    talk = Talk(desk, words(fields.get("session_id")) or desk.fallback_session(FORMAT))
    yield _begin(talk)
    line = 0
    for held in record(fields.get("state")).values():
        for message in items(record(held).get("messages")):
            line += 1
            yield _told(talk, message, line)
    yield from pending_items(talk, fields, line + 1)
    talk.loop.scribe.agent = None
    key = f"session:{identity(fields)}"
    draft = talk.loop.kept("session", fields, Place(key, line + 1))
    yield Item(talk.loop.session, key, [draft], line + 1, canonical_json(fields))


def _told(talk: Talk, message: Any, line: int) -> Item:
    talk.loop.desk.tally.native["message"] += 1
    key = words(record(message).get("message_id")) or f"message:{line}"
    drafts = talk.message(message, Place(key, line))
    return Item(talk.loop.session, key, drafts, line, canonical_json(message))


def _response(fields: dict[str, Any], desk: Desk) -> Iterator[Item]:
    """What a run gave back: the usage is that of all its model calls, and stands with the last."""
    talk = Talk(desk, f"{FORMAT}-{words(fields.get('response_id')) or identity(fields)}")
    yield _begin(talk)
    listed = items(fields.get("messages"))
    answers = [number for number, one in enumerate(listed) if record(one).get("role") == "assistant"]
    for number, message in enumerate(listed):
        desk.tally.native["message"] += 1
        place = Place(f"message:{number + 1}", number + 1, utc_time(fields.get("created_at")))
        facts = response_facts(fields) if answers and number == answers[-1] else {}
        drafts = talk.message(message, place, **facts)
        yield Item(talk.loop.session, place.key, drafts, number + 1, canonical_json(message))
    talk.loop.scribe.agent = None
    line = len(listed) + 1
    draft = talk.loop.kept("agent_response", around(fields), Place("response", line))
    yield Item(talk.loop.session, "response", [draft], line, canonical_json(rest(fields, "messages")))


def _checkpoint(fields: dict[str, Any], desk: Desk) -> Iterator[Item]:
    """A checkpoint. Those of one run share the sessions of its agents, and go into one session here."""
    executors = record(record(fields.get("state")).get("_executor_state"))
    sessions = [record(held).get("agent_session") for held in executors.values()]
    named = sorted(name for one in sessions if (name := words(record(one).get("session_id"))))
    workflow = words(fields.get("workflow_name")) or "workflow"
    native = words(fields.get("checkpoint_id")) or identity(fields)
    talk = Talk(desk, f"{workflow}-{identity(named)}" if named else f"{workflow}-{native}")
    time, key = utc_time(fields.get("timestamp")), f"checkpoint:{native}"
    yield _begin(talk, workflow)
    scribe, place = talk.loop.scribe, Place(key, 1, time)
    taken = CheckpointTaken(
        checkpoint_id=scribe.word(native, "checkpoint") or key, label=scribe.word(workflow, "workflow")
    )
    drafts = [talk.loop.kept("checkpoint", fields, place), scribe.draft(place, taken)]
    before = words(fields.get("previous_checkpoint_id"))
    follows = before is not None and desk.recorded(talk.loop.session, f"checkpoint:{before}")
    cause = f"checkpoint:{before}" if follows else None
    yield Item(talk.loop.session, key, drafts, 1, canonical_json(fields), cause)
    waiting = record(fields.get("pending_request_info_events"))
    for name, held in executors.items():
        scribe.agent = scribe.word(name, "agent")
        for content in pending_approvals(record(held).get("agent_session")):
            asked = approval_id(content, place)
            if asked in waiting:  # a mark, for the checkpoint that follows
                yield Item(talk.loop.session, _waits(native, asked), [], None)
            elif before is not None and desk.recorded(talk.loop.session, _waits(before, asked)):
                yield _went_on(talk, content, asked, time)
        yield from pending_items(talk, record(held).get("agent_session"), 1, time)


def _waits(checkpoint: str, asked: str) -> str:
    return f"waits:{checkpoint}:{asked}"


def _went_on(talk: Talk, content: dict[str, Any], asked: str, time: str | None) -> Item:
    """A request that the workflow waited for is answered; the answer itself lies in a pickled message."""
    key = f"decided:{asked}"
    call = record(content.get("function_call"))
    event = ApprovalDecided(
        approval_id=asked,
        call_id=talk.loop.scribe.word(call.get("call_id"), "call id"),
        outcome="unknown",
        decided_by="unknown",
        how="the workflow waits for it no longer",
        evidence="inferred",
    )
    return Item(talk.loop.session, key, [talk.loop.scribe.draft(Place(key, 1, time), event)], 1)


def _list(path: Path, desk: Desk, session: str) -> Iterator[tuple[int, Any] | Item]:
    for piece in pieces_of(path, desk, frozenset(), FORMAT, session):
        if isinstance(piece, Piece):
            yield next((part for part in piece.path if isinstance(part, int)), 0) + 1, piece.value
        else:
            yield piece


def _hooks(path: Path, desk: Desk) -> Iterator[Item]:
    """Entries of middleware."""
    hooks = Hooks(desk, desk.fallback_session(FORMAT))
    yield _begin(hooks.talk)
    for entry in _list(path, desk, hooks.talk.loop.session):
        yield entry if isinstance(entry, Item) else hooks.entry(entry[1], entry[0])


def _events(path: Path, desk: Desk) -> Iterator[Item]:
    """Events of a workflow: what they carry is printed, so little more than their order is told."""
    desk.tally.grade = "skeleton"
    talk = Talk(desk, desk.fallback_session(FORMAT))
    yield _begin(talk)
    for entry in _list(path, desk, talk.loop.session):
        if isinstance(entry, Item):
            yield entry
            continue
        line, value = entry
        fields = record(value)
        kind = words(fields.get("type")) or "none"
        desk.tally.lines += 1
        desk.tally.native[kind[:60]] += 1
        talk.loop.scribe.agent = talk.loop.scribe.word(fields.get("executor_id"), "executor")
        place = Place(f"event:{line}", line)
        drafts = [talk.loop.kept(kind, value, place, recognized=kind in _EVENTS)]
        drafts += _act(talk, kind, fields, place)
        yield Item(talk.loop.session, place.key, drafts, line, canonical_json(value))


def _act(talk: Talk, kind: str, fields: dict[str, Any], place: Place) -> Iterator[Draft]:
    scribe = talk.loop.scribe
    if kind == "request_info":
        name = scribe.word(fields.get("request_id"), "request") or place.key
        yield scribe.draft(place, ApprovalAsked(approval_id=name))
    elif kind == "handoff_sent":
        data = fields.get("data")
        printed = dict(_PRINTED.findall(data)) if isinstance(data, str) else record(data)
        scribe.agent = scribe.word(words(printed.get("source")), "source") or scribe.agent
        event = DelegationStarted(
            delegation_id=f"handoff:{place.line}",
            to_agent=scribe.word(words(printed.get("target")), "target"),
            how="handoff",
            payload=talk.loop.keep.json(data, "handoff"),
        )
        yield scribe.draft(place, event, "agent")
