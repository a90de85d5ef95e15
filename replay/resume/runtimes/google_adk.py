"""Google ADK: the events of a session up to a point, for a session service of yours."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ledger.errors import InputError
from ledger.events import ContentRef, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.events.governance import ArtifactChanged
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from replay.conversation import decode_content
from replay.resume.google_adk import FORMAT
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.turns import Call, Result, Text, turns_of

NAME = "google-adk"
TITLE = "Google ADK (2.13)"
READS_RECORDS = True

_FILE = "session.json"
_CONFIRMATION = "adk_request_confirmation"
_STATE = "state:"
_CALL = (
    "In your program: from google.adk.events import Event; from replay.resume.google_adk import resume_session; "
    "session = await resume_session(service, Event, {path!r})"
)
_ASKED = (
    "A confirmation that is open there is answered as ever, by a function response; "
    "nothing that was answered later is in the session."
)
_OWN = "Instructions, tools and artifacts: they are those of the app that goes on."
_FIRST_STATE = (
    "State that the session was created with: give it as `state=`; what events changed in it is carried."
)
_PENDING = {"error": "This tool call requires confirmation, please approve or reject."}
_REJECTED = {"error": "This tool call is rejected."}


def suits(started: SessionStarted) -> bool:
    """A session that the importer or the plugin recorded."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The session's events; a confirmation that was open there can be answered."""
    if point.started.parent is not None:
        raise InputError(
            f"{point.session} is an agent that was called as a tool: go back in {point.started.parent}, "
            "which calls it again"
        )
    about = _content(point, point.started.environment) or {}
    events = list(_Events(point).events())
    told = {
        "format": FORMAT,
        "session": point.session,
        "seq": point.seq,
        "app_name": about.get("app") or point.started.name,
        "user_id": about.get("user"),
        "events": events,
    }
    return Resumption(
        {_FILE: json.dumps(told, ensure_ascii=False, indent=1).encode() + b"\n"},
        not_carried=(_OWN, _FIRST_STATE),
        notes=(_CALL.format(path=str(into / _FILE)), _ASKED),
    )


def _content(point: Point, ref: ContentRef | str | None) -> Any:
    if ref is None:
        return None
    content = point.ledger.store.content(ref if isinstance(ref, str) else ref.digest)
    if isinstance(ref, ContentRef) and ref.kind == "text":
        return content.decode("utf-8", "replace")
    return decode_content(content)


class _Events:
    """Makes ADK's events of our records: all that came from one event of a source is one event again."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._tools: dict[str, str] = {}
        self._turn = 0
        self._open: dict[str, ApprovalAsked] = {}
        for event in point.events():
            if isinstance(event, ApprovalAsked):
                self._open[event.approval_id] = event
            elif isinstance(event, ApprovalDecided):
                self._open.pop(event.approval_id, None)

    def events(self) -> Iterator[dict[str, Any]]:
        """In order."""
        group: list[Record] = []
        for record in self._point.records():
            if group and not _is_same(group[-1], record):
                yield from self._event(group)
                group = []
            group.append(record)
        if group:
            yield from self._event(group)

    def _event(self, group: list[Record]) -> Iterator[dict[str, Any]]:
        native: dict[str, Any] = {}
        parts: list[dict[str, Any]] = []
        role, asked = "user", False
        for record in group:
            event: Any = record.event
            if isinstance(event, SourceKept) and event.native_type in ("event", "event:partial"):
                whole = _content(self._point, event.body)
                if event.native_type == "event" and isinstance(whole, dict):
                    yield whole
                return
            if record.source is not None and record.source.rest is not None:
                native = _content(self._point, record.source.rest) or native
            asked = asked or isinstance(event, ApprovalAsked)
            if isinstance(event, ModelCallAnswered) or asked:
                role = "model"
            parts += self._parts(record, event, native)
            native = self._actions(event, native)
        if not parts and not native.get("actions"):
            return
        first = group[0]
        made = {name: value for name, value in native.items() if name != "response"}
        made["author"] = next((record.agent for record in group if record.agent), None) or "user"
        made["timestamp"] = _seconds(group[-1].occurred_at or first.recorded_at)
        if parts:
            made["content"] = {"role": role, "parts": parts}
        if "invocation_id" not in made and "invocationId" not in made:
            self._turn += made["author"] == "user"
            native_id = first.correlation if first.source is not None else None
            made["invocation_id"] = native_id or f"{self._point.session}-{self._turn}"
        if asked and "long_running_tool_ids" not in made and "longRunningToolIds" not in made:
            made["long_running_tool_ids"] = [part["function_call"]["id"] for part in parts]
        yield made

    def _parts(self, record: Record, event: Any, native: dict[str, Any]) -> list[dict[str, Any]]:
        match event:
            case MessageReceived() | ModelCallAnswered():
                return [] if _is_summary(record) else self._said(_content(self._point, event.message))
            case ToolCallRequested():
                self._tools[event.call_id] = event.tool
            case ToolCallSettled():
                content = _content(self._point, event.result)
                if content is None:
                    content = (
                        _REJECTED if event.outcome == "denied" else {"error": event.error or event.outcome}
                    )
                return [self._response(event.call_id, content)]
            case ApprovalAsked() if record.source is not None or event.approval_id in self._open:
                return self._question(event)
            case ApprovalDecided() if record.source is not None and event.evidence != "inferred":
                response = native.get("response", {"confirmed": event.outcome == "approved"})
                return [
                    {
                        "function_response": {
                            "id": event.approval_id,
                            "name": _CONFIRMATION,
                            "response": response,
                        }
                    }
                ]
            case SourceKept() if event.native_type == "response:pending":
                return [{"function_response": _content(self._point, event.body)}]
        return []

    def _said(self, content: Any) -> list[dict[str, Any]]:
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list):
            return [part for part in parts if isinstance(part, dict)]
        found: list[dict[str, Any]] = []
        for turn in turns_of([content]):
            for piece in turn.pieces:
                match piece:
                    case Text(words):
                        found.append({"text": words})
                    case Call(call_id, tool, arguments, _):
                        found.append({"function_call": {"id": call_id, "name": tool, "args": arguments}})
                    case Result(call_id, tool, shown, _):
                        found.append(self._response(call_id or "", shown, tool))
                    case _:
                        pass
        return found

    def _response(self, call_id: str, content: Any, tool: str | None = None) -> dict[str, Any]:
        body = content if isinstance(content, dict) else {"result": content}
        name = tool or self._tools.get(call_id, "unknown")
        return {"function_response": {"id": call_id, "name": name, "response": body}}

    def _question(self, event: ApprovalAsked) -> list[dict[str, Any]]:
        args = _content(self._point, event.context)
        if not isinstance(args, dict) or not args.keys() & {"originalFunctionCall", "original_function_call"}:
            calls = {call.call_id: call.arguments for call in self._point.open_calls}
            arguments = calls.get(event.call_id, {})
            original = {"id": event.call_id, "name": event.tool, "args": arguments}
            args = {"originalFunctionCall": original, "toolConfirmation": args or {}}
        return [{"function_call": {"id": event.approval_id, "name": _CONFIRMATION, "args": args}}]

    def _actions(self, event: Any, native: dict[str, Any]) -> dict[str, Any]:
        """What an event does beside what it says, where the plugin recorded it."""
        actions: dict[str, Any] = {}
        if isinstance(event, DelegationStarted) and event.how == "handoff" and not native:
            actions = {"transfer_to_agent": event.to_agent}
        elif isinstance(event, ArtifactChanged) and event.artifact.startswith(_STATE) and not native:
            actions = {
                "state_delta": {event.artifact.removeprefix(_STATE): _content(self._point, event.content)}
            }
        return {**native, "actions": {**native.get("actions", {}), **actions}} if actions else native


def _is_same(record: Record, following: Record) -> bool:
    """Whether two records came from one event; of those of the plugin, results that follow each other."""
    if record.source is not None and following.source is not None:
        return record.source.item == following.source.item
    both = (record.event, following.event)
    return record.source is None and all(isinstance(event, ToolCallSettled) for event in both)


def _is_summary(record: Record) -> bool:
    """Whether it is the answer with which a compaction was made: the compaction itself tells it."""
    return record.source is not None and record.agent is None and record.type == "model_call.answered"


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
