"""Tool calls of a Codex session: asked for, started, settled, refused, and what they changed."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import decode_json
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectDone
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.importers._codex.outputs import (
    Patched,
    Verdict,
    changed_files,
    patch_of,
    patched_files,
    verdict_of,
)
from ledger.importers._codex.row import Row, Scribe, count_or_none, text_or_none

_CALLS_KEPT = 50_000
_CLASSES: dict[str, EffectClass] = {
    "apply_patch": "write",
    "update_plan": "read",
    "view_image": "read",
    "list_dir": "read",
    "read_file": "read",
    "grep_files": "read",
    "tool_search": "read",
    "wait_agent": "read",
    "wait": "read",
    "web_search": "external",
    "image_generation": "external",
}
_RETURNS: dict[str, Literal["returned", "failed", "aborted"]] = {
    "completed": "returned",
    "errored": "failed",
    "failed": "failed",
    "interrupted": "aborted",
    "shutdown": "aborted",
}
_BY_PROVIDER = frozenset(
    {"web_search_call", "image_generation_call", "file_search_call", "code_interpreter_call"}
)


@dataclass(slots=True)
class _Call:
    """What is remembered of a call until its output comes."""

    key: str
    """Key of the row that asked for it."""

    tool: str
    arguments: Any
    escalated: bool
    started: bool = False
    settled: bool = False
    files_seen: bool = False
    delegated: bool = False
    details: ContentRef | None = None
    duration_ms: int | None = None


class Calls:
    """The calls of one session."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._keep = scribe.keep
        self._calls: OrderedDict[str, _Call] = OrderedDict()

    def key_of(self, call_id: Any) -> str | None:
        """Key of the row that asked for a call."""
        call = self._calls.get(call_id) if isinstance(call_id, str) else None
        return call.key if call is not None else None

    def requested(self, row: Row) -> Iterator[Draft]:
        """A call that the model asks for."""
        payload = row.payload
        call_id = text_or_none(payload.get("call_id")) or text_or_none(payload.get("id")) or row.key
        tool = text_or_none(payload.get("name")) or row.sub.removesuffix("_call")
        arguments, kept = self._arguments(row)
        yield self.request(
            row,
            call_id,
            tool,
            arguments,
            kept,
            server=_server(payload, tool),
            by_provider=row.sub in _BY_PROVIDER,
        )
        if row.sub in _BY_PROVIDER:
            self._calls[call_id].settled = True
            failed = payload.get("status") in ("failed", "incomplete")
            yield self._scribe.draft(
                row, ToolCallSettled(call_id=call_id, outcome="failed" if failed else "returned")
            )

    def request(
        self,
        row: Row,
        call_id: str,
        tool: str,
        arguments: Any,
        kept: ContentRef,
        *,
        server: str | None = None,
        by_provider: bool = False,
    ) -> Draft:
        """The event, and what is remembered of it."""
        escalated = isinstance(arguments, dict) and (
            arguments.get("sandbox_permissions") == "require_escalated"
            or arguments.get("with_escalated_permissions") is True
        )
        self._calls[call_id] = _Call(row.key, tool, arguments, escalated)
        if len(self._calls) > _CALLS_KEPT:
            self._calls.popitem(last=False)
        effect_class = _CLASSES.get(tool)
        event = ToolCallRequested(
            call_id=call_id,
            tool=tool,
            arguments=kept,
            effect_class=effect_class,
            effect_declared="inferred" if effect_class is not None else None,
            server=server,
            provider_executed=by_provider,
        )
        used = ("type", "call_id", "name", "arguments", "input", "action", "item", "msg")
        return self._scribe.draft(row, event, "agent", rest=row.rest(used))

    def _arguments(self, row: Row) -> tuple[Any, ContentRef]:
        payload = row.payload
        if row.sub == "custom_tool_call":
            text = payload.get("input")
            return text, self._keep.text(text, "arguments") if isinstance(text, str) else self._keep.json(
                text
            )
        if row.sub in ("local_shell_call", "web_search_call"):
            return payload.get("action"), self._keep.json(payload.get("action"), "arguments")
        given = payload.get("arguments")
        if not isinstance(given, str):
            return given, self._keep.json(given, "arguments")
        try:
            value = decode_json(given)
        except ValueError:
            return given, self._keep.text(given, "arguments")
        return value, self._keep.json(value, "arguments")

    def knows(self, call_id: Any) -> bool:
        """Whether the call was asked for here."""
        return isinstance(call_id, str) and call_id in self._calls

    def started(
        self, row: Row, call_id: str, time: str | None = None, *, rest: Any = None
    ) -> Iterator[Draft]:
        """A call that began to run; said once."""
        call = self._calls.get(call_id)
        if call is not None and not call.started and not call.settled:
            call.started = True
            yield self._scribe.draft(row, ToolCallStarted(call_id=call_id), rest=rest, time=time)

    def details(self, call_id: str, native: ContentRef, duration_ms: int | None) -> None:
        """More about a result than the model is shown, for the output that follows."""
        call = self._calls.get(call_id)
        if call is not None:
            call.details = native
            call.duration_ms = duration_ms

    def settled(self, row: Row, shown: ContentRef | None) -> Iterator[Draft]:
        """The output of a call, as the model is shown it."""
        call_id = text_or_none(row.payload.get("call_id")) or row.key
        used = ("type", "call_id", "output")
        yield from self.settle(
            row, call_id, verdict_of(row.payload.get("output")), shown, rest=row.rest(used)
        )

    def settle(
        self, row: Row, call_id: str, verdict: Verdict, shown: ContentRef | None, *, rest: Any = None
    ) -> Iterator[Draft]:
        """How a call ended, by whose decision, and what it changed."""
        call = self._calls.get(call_id)
        details = call.details if call is not None else None
        if details is None and verdict.exit_code is not None:
            details = self._keep.json({"exit_code": verdict.exit_code})
        if verdict.outcome == "denied":
            yield self._decision(row, call_id, "denied", verdict)
        elif call is not None and call.escalated:
            yield self._decision(row, call_id, "unknown", verdict)
        event = ToolCallSettled(
            call_id=call_id,
            outcome=verdict.outcome,
            result=shown,
            details=details,
            error=verdict.error,
            duration_ms=call.duration_ms
            if call is not None and call.duration_ms is not None
            else verdict.duration_ms,
            orphan=call is None,
        )
        yield self._scribe.draft(row, event, rest=rest)
        if call is None or call.settled:
            return
        call.settled = True
        if verdict.outcome == "returned" and not call.files_seen:
            patch = patch_of(call.tool, call.arguments)
            if patch is not None:
                yield from self.effects(row, call_id, patched_files(patch), observed=False)
        if call.tool == "spawn_agent" and not call.delegated:
            yield from self._spawned(row, call_id, call)
        call.arguments = call.details = None  # a long session must not hold every patch it applied

    def _decision(self, row: Row, call_id: str, outcome: Any, verdict: Verdict) -> Draft:
        denied = outcome == "denied"
        event = ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome=outcome,
            decided_by=(verdict.denied_by or "unknown") if denied else "unknown",
            how=verdict.error if denied else "escalated permissions were requested and the call ran",
            evidence="inferred",
        )
        actor = verdict.denied_by if denied and verdict.denied_by in ("human", "policy") else None
        return self._scribe.draft(row, event, actor or "system")

    def asked(self, row: Row) -> Iterator[Draft]:
        """A logged question whether a command or patch may run."""
        payload = row.payload
        call_id = text_or_none(payload.get("call_id"))
        approval = text_or_none(payload.get("approval_id")) or call_id or row.key
        tool = self._calls[call_id].tool if call_id is not None and call_id in self._calls else None
        context = self._keep.json(row.rest(("type",)), "approval request")
        event = ApprovalAsked(approval_id=approval, call_id=call_id, tool=tool, context=context)
        yield self._scribe.draft(row, event)

    def changes(self, row: Row, call_id: str, changes: Any) -> Iterator[Draft]:
        """Files that the harness says it changed."""
        if (call := self._calls.get(call_id)) is not None:
            call.files_seen = True
        yield from self.effects(row, call_id, changed_files(changes), observed=True)

    def effects(self, row: Row, call_id: str, files: list[Patched], *, observed: bool) -> Iterator[Draft]:
        """One effect for each file."""
        for index, file in enumerate(files):
            event = EffectDone(
                effect_id=f"{call_id}:{index}",
                call_id=call_id,
                target=file.path,
                operation=file.operation,
                effect_class="write",
                evidence="observed" if observed else "inferred",
            )
            yield self._scribe.draft(row, event, "agent")

    def spawned(
        self, row: Row, call_id: str | None, thread: str, agent: str | None, prompt: Any
    ) -> Iterator[Draft]:
        """Work handed to a sub-agent."""
        call = self._calls.get(call_id) if call_id is not None else None
        if call is not None:
            call.delegated = True
        payload = self._keep.text(prompt, "delegation") if isinstance(prompt, str) else None
        event = DelegationStarted(
            delegation_id=thread,
            to_session=thread,
            to_agent=agent,
            how="spawn",
            call_id=call_id,
            payload=payload,
        )
        yield self._scribe.draft(row, event, "agent")

    def _spawned(self, row: Row, call_id: str, call: _Call) -> Iterator[Draft]:
        """The same, from the output of the spawning tool, where no event tells it."""
        output = row.payload.get("output")
        try:
            value = decode_json(output) if isinstance(output, str) else output
        except ValueError:
            return
        if isinstance(value, dict) and isinstance(thread := value.get("agent_id"), str):
            asked = call.arguments.get("message") if isinstance(call.arguments, dict) else None
            yield from self.spawned(row, call_id, thread, text_or_none(value.get("nickname")), asked)

    def came_back(self, row: Row, thread: str, state: Any) -> Iterator[Draft]:
        """Work that came back from a sub-agent."""
        outcome = next(iter(state), "unknown") if isinstance(state, dict) else state
        said = state.get(outcome) if isinstance(state, dict) else None
        if not isinstance(outcome, str) or outcome not in _RETURNS:
            return
        event = DelegationReturned(
            delegation_id=thread,
            outcome=_RETURNS[outcome],
            from_session=thread,
            result=self._keep.text(said, "delegation result") if isinstance(said, str) else None,
            returned="result" if isinstance(said, str) else "unknown",
        )
        yield self._scribe.draft(row, event, "agent")


def _server(payload: dict[str, Any], tool: str) -> str | None:
    """MCP server of a tool, from its namespace or from its long name."""
    namespace = payload.get("namespace")
    for name in (namespace, tool):
        if isinstance(name, str) and name.startswith("mcp__"):
            return name.removeprefix("mcp__").partition("__")[0] or None
    return None


def milliseconds(native: dict[str, Any]) -> int | None:
    """Duration of an item in any of its native forms."""
    started, ended = count_or_none(native.get("started_at_ms")), count_or_none(native.get("completed_at_ms"))
    if started is not None and ended is not None and ended >= started:
        return ended - started
    duration = native.get("duration")
    if isinstance(duration, dict):
        seconds, nanos = count_or_none(duration.get("secs")), count_or_none(duration.get("nanos"))
        if seconds is not None and nanos is not None:
            return seconds * 1000 + nanos // 1_000_000
    return count_or_none(native.get("duration_ms"))
