"""Anthropic's managed agents: the events of a session as JSON lines, bare or as `[method, payload]` of a client."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.canonical import canonical_json
from ledger.events.capability import CapabilityLoaded
from ledger.events.governance import ArtifactChanged
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.policy import PolicyEvaluated
from ledger.events.record import Grade
from ledger.events.session import ArtifactInForce, SessionEnded, SessionStarted
from ledger.importers import Desk, Item, Sniff
from ledger.importers._files import open_source
from ledger.importers._jsonl import Damage, json_lines
from ledger.importers._plain.scribe import Scribe, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.responses import usage_of
from ledger.protocols.tool_calls import ToolCalls
from ledger.protocols.tool_use import ToolResult, ToolUse, text

FORMAT = "managed-agents"
TITLE = "Anthropic managed agents (session events of 2026-07, bare or of a client's calls)"
GRADE: Grade = "semantic"
CANNOT_SHOW = (
    "Model requests as they were sent: the service makes them, and only tells when one began and ended.",
    "The text of thinking, system prompts of agents that the session does not name, and most parameters.",
    "Who answered a question: a client's key did, and not which person held it.",
    "What a tool did in its container beside the result.",
    "Compactions that the service made without an event.",
)

_METHOD = "client.beta.sessions."
_VERDICTS: dict[str, Literal["allow", "deny"]] = {"allow": "allow", "deny": "deny"}
_OUTCOMES: dict[str, Literal["approved", "denied"]] = {"allow": "approved", "deny": "denied"}
_MOST_BLOCKS = 10_000
_IDS = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
_ONLY_KEPT = frozenset(
    """
    agent.thinking session.status_running session.status_idle session.thread_status_running
    session.thread_status_idle session.status_rescheduled session.thread_created session.thread_idle
    agent.thread_message_received agent.thread_message_sent agent.thread_context_compacted session.error
    """.split()
)


def recognizes(sniff: Sniff) -> bool:
    """Lines of a client's calls, or of events with the ids of this service."""
    match sniff.json:
        case [str() as method, *_]:
            return method.startswith(_METHOD)
        case {"id": str() as native, "type": str() as kind}:
            return native.startswith("sevt_") and kind.partition(".")[0] in (
                "session",
                "user",
                "agent",
                "span",
            )
    return False


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The file's events in file order, streaming."""
    told: _Told | None = None
    with open_source(path) as stream:
        for entry in json_lines(stream):
            desk.tally.lines += 1
            value = None if isinstance(entry, Damage) else entry.value
            told = told or _Told(desk, _session(value) or desk.fallback_session(FORMAT))
            if isinstance(entry, Damage):
                event = desk.damage(entry.number, entry.reason, entry.raw)
                key = f"damage:{entry.number}"
                draft = told.scribe.draft(Place(key, entry.number), event)
                yield Item(told.scribe.session, key, [draft], entry.number, entry.raw)
            else:
                yield told.item(value, entry.number, entry.raw)


def _session(value: Any) -> str | None:
    match value:
        case [str(), {"id": str() as session, "type": "session"}]:
            return session
        case [str(), [str() as session, *_]]:
            return session
    return None


class _Told:
    """What the lines of one session say."""

    def __init__(self, desk: Desk, session: str) -> None:
        self.scribe = Scribe(desk, FORMAT, session, GRADE)
        self._tools = ToolCalls(self.scribe)
        self._context = desk.context()
        self._system: ContentRef | None = None
        self._changed: tuple[ArtifactInForce, ...] = ()
        self._model: str | None = None
        self._request: str | None = None
        self._answer: list[Any] = []
        self._asked: dict[str, tuple[str, str]] = {}

    def item(self, value: Any, line: int, raw: bytes) -> Item:
        """One line."""
        method, event = "", value
        match value:
            case [str() as method, event]:
                method = method.removeprefix(_METHOD)
        body: dict[str, Any] = event if isinstance(event, dict) else {"value": event}
        kind = text(body.get("type")) or method or "none"
        if method == "events.send":
            kind = "sent"  # what the service took of it comes back in the stream
        place = Place(text(body.get("id")) or f"line:{line}", line, utc_time(body.get("processed_at")))
        if kind in ("sent", "session"):
            place = Place(f"line:{line}", line, utc_time(body.get("created_at")))
        self.scribe.desk.tally.native[kind[:80]] += 1
        handler = _HANDLERS.get(kind)
        cause: list[str] = []
        drafts = list(handler(self, body, place, cause)) if handler is not None else []
        if not drafts:
            known = handler is not None or kind in _ONLY_KEPT or kind == "sent"
            if not known:
                self.scribe.desk.tally.unknown[kind[:80]] += 1
            kept = self.scribe.keep.json(event, kind)
            event_kept = SourceKept(native_type=kind[:80], recognized=known, body=kept)
            drafts.append(self.scribe.draft(place, event_kept))
        return Item(
            self.scribe.session, place.key, drafts, line, canonical_json(body), cause[0] if cause else None
        )

    def _created(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The session: which agent, with which prompt, tools and servers."""
        scribe, keep = self.scribe, self.scribe.keep
        agent = event.get("agent")
        agent = agent if isinstance(agent, dict) else {}
        model = agent.get("model")
        self._model = text(model.get("id")) if isinstance(model, dict) else text(model)
        scribe.agent = scribe.word(agent.get("name"), "agent")
        yield scribe.draft(
            place,
            SessionStarted(
                harness="anthropic-managed-agents",
                name=scribe.word(event.get("title"), "session name"),
                agent=scribe.agent,
                model=scribe.word(self._model, "model"),
                environment=keep.json(event, "session"),
            ),
        )
        if system := text(agent.get("system")):
            self._system = keep.text(system, "system prompt")
            self._changed = (ArtifactInForce(artifact="system_prompt", digest=self._system.digest),)
            prompt = ArtifactChanged(
                artifact="system_prompt", kind="prompt", content=self._system, cause="human"
            )
            yield scribe.draft(place, prompt)
        for tool in _dicts(agent.get("tools")):
            server = scribe.word(tool.get("mcp_server_name"), "server")
            name = scribe.word(tool.get("name"), "tool") or server or scribe.word(tool.get("type"), "tool")
            loaded = CapabilityLoaded(
                kind="mcp_server" if server else "tool",
                capability=name or "unnamed",
                when="always",
                definition=keep.json(tool, "tool"),
                server=server,
            )
            yield scribe.draft(place, loaded)

    def _message(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """A message of the client."""
        kept = self.scribe.keep.json({"role": "user", "content": event.get("content")}, "message")
        self._context.append(kept)
        yield self.scribe.draft(place, MessageReceived(origin="human", message=kept), "human")

    def _began(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The service asks the model."""
        self._request, self._answer = place.key, []
        changed, self._changed = self._changed, ()
        request = ModelCallRequested(
            call_id=f"model-{place.key}",
            protocol="anthropic.managed",
            model=self.scribe.word(self._model, "model"),
            provider="anthropic",
            context=self._context.head,
            context_length=len(self._context),
            context_added=self._context.take_added(),
            system=self._system,
            completeness="partial",
            not_seen=("messages: as the service puts them together", "tools", "parameters"),
            artifacts=changed,
        )
        yield self.scribe.draft(place, request)

    def _ended(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The model answered: what it said came in events of its own."""
        asked = text(event.get("model_request_start_id")) or self._request or place.key
        cause.append(asked)
        scribe = self.scribe
        answer, self._answer, self._request = self._answer, [], None
        if event.get("is_error") is True:
            failed = ModelCallFailed(
                call_id=f"model-{asked}", error="error", detail=scribe.keep.json(event, "model call")
            )
            yield scribe.draft(place, failed)
            return
        answered = ModelCallAnswered(
            call_id=f"model-{asked}",
            model=scribe.word(self._model, "model"),
            message=scribe.keep.json({"role": "assistant", "content": answer}, "answer"),
            usage=usage_of({"usage": event.get("model_usage")}),
        )
        self._context.append(answered.message)
        yield scribe.draft(place, answered, "agent")

    def _said(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """A text of the agent: part of the answer that is under way."""
        self._answer = [*self._answer, *_dicts(event.get("content"))][:_MOST_BLOCKS]
        yield from ()

    def _used(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The agent asks for a tool, and the service's rule says whether somebody is to be asked."""
        scribe = self.scribe
        name, server = text(event.get("name")) or "unnamed", text(event.get("mcp_server_name"))
        self._answer.append(
            {"type": "tool_use", "id": event.get("id"), "name": name, "input": event.get("input")}
        )
        runs = event.get("type") != "agent.custom_tool_use"
        use = ToolUse(text(event.get("id")), name, event.get("input"), server, runs)
        draft = self._tools.requested(use, place)
        yield draft
        call_id, digest = getattr(draft.event, "call_id", ""), getattr(draft.event, "arguments", None)
        permission = text(event.get("evaluated_permission"))
        if permission == "ask" and isinstance(digest, ContentRef):
            asked = ApprovalAsked(
                approval_id=f"approval-{call_id}",
                call_id=call_id,
                tool=scribe.word(name, "tool"),
                arguments_digest=digest.digest,
            )
            self._asked[call_id] = (asked.approval_id, "open")
            yield scribe.draft(place, asked)
        elif permission is not None:
            rule = PolicyEvaluated(
                rule="permission_policy", verdict=_VERDICTS.get(permission, "unknown"), call_id=call_id
            )
            yield scribe.draft(place, rule, "policy")

    def _confirmed(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The client answers whether a tool may run."""
        scribe = self.scribe
        native = text(event.get("tool_use_id"))
        call = self._tools.find(native) if native else None
        call_id = call.call_id if call is not None else native
        if call is not None:
            cause.append(call.key)
        result = event.get("result")
        outcome: Literal["approved", "denied", "unknown"] = "unknown"
        if isinstance(result, str):
            outcome = _OUTCOMES.get(result, "unknown")
        approval_id = f"approval-{call_id or place.key}"
        self._asked[call_id or ""] = (approval_id, outcome)
        decided = ApprovalDecided(
            approval_id=approval_id,
            call_id=call_id,
            outcome=outcome,
            decided_by="human",
            how=scribe.word(result, "result"),
            scope="once",
        )
        yield scribe.draft(place, decided, "human", rest={"deny_message": event.get("deny_message")})

    def _result(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """What a tool gave back, or the refusal in its place."""
        native = next((text(event.get(name)) for name in _IDS if event.get(name)), None)
        call = self._tools.find(native) if native else None
        approval = self._asked.pop(call.call_id, None) if call is not None else None
        if approval is not None and approval[1] == "approved" and call is not None:
            used = ApprovalUsed(approval_id=approval[0], call_id=call.call_id)
            yield self.scribe.draft(place, used)
        failed = event.get("is_error") is True
        refused = failed and approval is not None and approval[1] == "denied"
        draft, asked_in = self._tools.settled(
            ToolResult(native, None, event.get("content"), failed),
            place,
            outcome="denied" if refused else None,
        )
        if asked_in is not None:
            cause.append(asked_in)
        block = {"type": "tool_result", "tool_use_id": native, "content": event.get("content")}
        self._context.append(self.scribe.keep.json({"role": "user", "content": [block]}, "tool result"))
        yield draft

    def _terminated(self, event: dict[str, Any], place: Place, cause: list[str]) -> Iterator[Draft]:
        """The session cannot go on."""
        ended = SessionEnded(outcome="unknown", reason="session.status_terminated")
        yield self.scribe.draft(place, ended)


_Handler = Callable[[_Told, dict[str, Any], Place, list[str]], Iterator[Draft]]
_HANDLERS: dict[str, _Handler] = {
    "session": _Told._created,
    "user.message": _Told._message,
    "span.model_request_start": _Told._began,
    "span.model_request_end": _Told._ended,
    "agent.message": _Told._said,
    "agent.tool_use": _Told._used,
    "agent.mcp_tool_use": _Told._used,
    "agent.custom_tool_use": _Told._used,
    "user.tool_confirmation": _Told._confirmed,
    "agent.tool_result": _Told._result,
    "agent.mcp_tool_result": _Told._result,
    "user.custom_tool_result": _Told._result,
    "session.status_terminated": _Told._terminated,
}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
