"""One DeepSeek Harness session as its events arrive. Model calls are in `model.py`, the rest by event here."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import spelled
from ledger.events.compaction import CompactionStarted
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectDone
from ledger.events.policy import PolicyEvaluated
from ledger.events.session import SessionForked, SessionResumed, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._deepseek.model import ModelCalls
from ledger.importers._deepseek.surface import Surface
from ledger.importers._deepseek.tools import Tools
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import blocks_text, items, moment, number, record, rest, words

_OLD_NAMES = {
    "compact/start": "compaction/start",
    "compact/summary": "compaction/summary",
    "compact/end": "compaction/end",
    "compact/prune": "compaction/prune",
    "steering/message": "user/message",
    "tool/code-dispatch-start": "tool/ptc-dispatch-start",
    "tool/code-dispatch": "tool/ptc-dispatch",
}
_KEPT = frozenset(
    "agent/inbox/spliced command/done command/run compaction/end deliverables/presented feedback/message-delete "
    "feedback/message-put feedback/record goal/change hook/invoked image/offload job/registered job/settled "
    "request/context schedule/change session/title step/end step/start subagent/descriptor "
    "subagent/model-selection-policy team/member team/message/delivered team/message/queued team/task todo/write "
    "tool-workflow/run-end tool-workflow/run-start turn/end turn/start workspace/changes "
    "working-directory/change llm/retry-started".split()
)
_MODES = {
    "permission/preset": ("permission", "preset"),
    "sandbox/mode": ("sandbox", "mode"),
    "approval/policy": ("approval", "policy"),
    "agent-preset/selected": ("agent-preset", "agentPreset"),
    "mode/set": ("mode", "mode"),
}
_OUTCOMES: dict[str, Literal["approved", "denied", "cancelled", "unknown"]] = {
    "allowed-once": "approved",
    "rejected": "denied",
    "cancelled": "cancelled",
    "unavailable": "denied",
}
_VERDICTS: dict[str, Literal["allow", "deny", "ask"]] = {
    "allow": "allow",
    "approve": "allow",
    "continue": "allow",
    "deny": "deny",
    "block": "deny",
    "ask": "ask",
}


class SessionReader:
    """Turns the events of one session into items."""

    def __init__(self, desk: Desk, format_name: str, session: str) -> None:
        self.story = Story(desk, format_name, session, "deepseek-harness")
        self.story.unseen = ("the body on the wire", "dsh_session_log: sent beside the messages")
        self._desk = desk
        self._surface = Surface(self.story)
        self._tools = Tools(self.story)
        self._calls = ModelCalls(self.story, self._surface, self._tools)
        self._next = 0
        self._copied_until: int | None = None
        self._copies_end_by_mark = False
        self._last_key: str | None = None
        self._open_call: str | None = None
        self._delivered = 0
        self._told: dict[str, Callable[[dict[str, Any], dict[str, Any]], Iterator[Draft]]] = {
            "user/message": self._message,
            "developer/message": self._message,
            "system/message": self._message,
            "request/header": self._header,
            "assistant/message": self._calls.answer,
            "assistant/attempt": self._calls.attempt,
            "assistant/chunk": self._calls.chunk,
            "text-chunks": self._calls.chunk,
            "reasoning-chunks": self._calls.chunk,
            "tool-call-chunks": self._calls.chunk,
            "llm/retry": self._calls.retry,
            "session/title-llm-request": self._calls.title,
            "tool/call": self._tool_call,
            "tool/result": self._tool_result,
            "tool/ptc-dispatch-start": self._nested_call,
            "tool/ptc-dispatch": self._nested_result,
            "approval/asked": self._asked,
            "approval/decided": self._decided,
            "compaction/start": self._compaction_start,
            "compaction/summary": self._calls.summary,
            "compaction/prune": self._surface.pruned,
            "hook/result": self._hook,
            "model/selection": self._selection,
            "plan/mode": self._plan,
            "subagent/catalog": self._delegated,
            "tool-workflow/agent-start": self._delegated,
            "tool-workflow/agent-end": self._came_back,
            "session/end-seed": self._end_seed,
            "session-log-deepseek/delivery-accepted": self._delivery,
        }

    def damaged(self) -> None:
        """A line was lost: what it held may be missing from every request until it is compacted away."""
        self.story.missing = self.story.missing or "what damaged lines held"

    def finish(self) -> Iterator[Item]:
        """The end of the file."""
        if self._delivered:
            self._desk.tally.notes.append(
                f"session {self.story.session}: the harness sent this session's log to the model's provider "
                f"{self._delivered} times (effects of operation `send`, target `deepseek:dsh_session_log`)"
            )
        yield from ()

    def header(self, native: dict[str, Any], line: int, raw: bytes) -> Iterator[Item]:
        """The first line: who the session is and where it comes from."""
        story = self.story
        story.place = Place("header", line, moment(native.get("createdAt")), raw)
        self._desk.tally.native["session"] += 1
        story.depth = min(number(native.get("delegationDepth")) or 0, 1000)
        parent, delegated = words(native.get("parentSession")), native.get("origin") == "subagent"
        story.agent = words(native.get("agentPreset"))
        if delegated or story.depth:
            story.purpose = "sub-agent"
        version = number(native.get("version"))
        event = SessionStarted(
            harness="deepseek-harness",
            harness_version=None if version is None else f"log format {version}",
            agent=story.agent,
            cwd=words(native.get("cwd")),
            parent=self._desk.session_name(parent) if parent is not None and delegated else None,
            environment=self._desk.keep.json(native, "header"),
        )
        drafts = [story.draft(event)]
        seed = number(native.get("seedLength"))
        if parent is not None and not delegated:
            fork = SessionForked(
                origin=self._desk.session_name(parent),
                origin_item=f"seq:{seed - 1}" if seed else None,
            )
            drafts.append(story.draft(fork))
        self._copied_until = seed
        self._copies_end_by_mark = native.get("isSeeded") is True
        self._last_key = "header"
        yield story.item(drafts)

    def notice(self, native: Any, index: int) -> Item:
        """A notification of the SDK that carries no event."""
        kind = words(record(native).get("method")) or "other"
        self._desk.tally.native[kind] += 1
        self.story.place = Place(f"notice:{index}", index)
        return self.story.item([self.story.kept(kind, native, recognized=kind == "session.status")])

    def event(self, native: dict[str, Any], line: int, check: bytes) -> Iterator[Item]:
        """One event of the log."""
        story, tally = self.story, self._desk.tally
        kind = words(native.get("type")) or "none"
        tally.native[kind] += 1
        packed = kind.endswith("-chunks")
        seq = number(native.get("seq0" if packed else "seq"))
        key = f"seq:{seq}" if seq is not None else f"line:{line}"
        time = moment(native.get("time0" if packed else "time"))
        if seq is not None and seq > self._next:
            reason = f"expected the event with seq {self._next}, found {seq}: events are missing"
            story.place = Place(f"gap:{self._next}:{seq}", line)
            yield story.item([story.draft(self._desk.damage(line, reason, None))])
            self.damaged()
        story.place = Place(key, line, time, check)
        data = record(native.get("data"))
        if seq is not None and seq < self._next:
            yield story.item([story.kept(f"repeated:{kind}", native)])
            return
        if seq is not None:
            members = items(data.get("args" if kind == "tool-call-chunks" else "texts")) if packed else ()
            self._next = seq + max(1, len(members))
        if self._is_copy(kind, seq):
            self._surface.take(native, data, seq)
            yield story.item([story.kept(f"inherited:{kind}", native)])
            return
        if (turn := number(data.get("turn"))) is not None:
            story.turn = f"{story.session}:turn-{turn}"
        sources = [one for one in items(native.get("sourceEventSeqs")) if isinstance(one, int)]
        cause = f"seq:{sources[0]}" if sources and 0 <= sources[0] < (seq or 0) else self._last_key
        yield story.item(self._drafts(_OLD_NAMES.get(kind, kind), kind, native, data), cause)
        self._last_key = key

    def _is_copy(self, kind: str, seq: int | None) -> bool:
        """Whether a forked session repeats an event of its origin."""
        if self._copies_end_by_mark:
            self._copies_end_by_mark = kind != "session/end-seed"
            return self._copies_end_by_mark
        return self._copied_until is not None and seq is not None and seq < self._copied_until

    def _drafts(
        self, kind: str, written: str, native: dict[str, Any], data: dict[str, Any]
    ) -> Iterator[Draft]:
        story = self.story
        if kind in _MODES:
            mode, field = _MODES[kind]
            source = words(data.get("source"))
            yield from story.mode(
                mode, words(data.get(field)), "agent" if source == "delegation" else "unknown"
            )
            yield story.kept(written, native)
        elif (tell := self._told.get(kind)) is not None:
            yield from tell(native, data)
        else:
            if kind in ("step/start", "llm/retry-started"):
                self._calls.begins(native)
            if kind == "session/title":
                yield from self._calls.titled(data)
            yield story.kept(written, native, recognized=kind in _KEPT)

    def _message(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        message = record(data.get("message")) or data
        source = record(message.get("source"))
        kind = words(source.get("kind")) or "unknown"
        before = story.context.head, len(story.context)
        ref = self._surface.take(event, data, number(event.get("seq")))
        if ref is None:
            yield story.kept(spelled(event.get("type")), event)
            return
        more = rest(event, "type", "seq", "time", "data")
        if event.get("type") == "system/message":
            story.system = None  # it is a message of the context
            yield from story.artifact("system_prompt", ref, "prompt")
            yield story.injected("system-prompt", ref, rest=more)
        elif kind == "user":
            yield story.received(ref, sender=words(record(source.get("principal")).get("id")), rest=more)
        elif kind in ("agent-message", "subagent-settled"):
            yield story.heard(ref, words(source.get("senderSessionId")), rest=more)
            if kind == "subagent-settled":
                yield from self._settled_child(source, message)
        else:
            yield story.injected(kind, ref, rest=more)
        yield from self._calls.compacted(event, source, before)

    def _settled_child(self, source: dict[str, Any], message: dict[str, Any]) -> Iterator[Draft]:
        child = words(source.get("senderSessionId"))
        if child is None:
            return
        session = self._desk.session_name(child)
        text = self._desk.keep.text(blocks_text(message.get("content")), "delegation result")
        event = DelegationReturned(
            delegation_id=session, outcome="unknown", from_session=session, result=text, returned="result"
        )
        yield self.story.draft(event, "agent")

    def _header(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """Settings and tools of the requests that follow."""
        story = self.story
        header = record(data.get("header"))
        config = record(header.get("config"))
        story.provider = words(config.get("provider")) or story.provider
        story.parameters = self._desk.keep.json(config, "parameters")
        model = words(config.get("model"))
        story.model = model or story.model
        yield from story.mode("model", model)
        yield from story.mode("effort", words(config.get("reasoningEffort")))
        yield from story.tools_offered(items(header.get("tools")))
        if header.get("system"):  # before format 1 the system prompt stood here
            story.system = self._desk.keep.json(header["system"], "system")
            yield from story.artifact("system_prompt", story.system, "prompt")
        body = {**event, "data": {**data, "header": rest(header, "tools", "system")}}
        yield story.kept("request/header", body)

    def _tool_call(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        call_id = words(data.get("callId")) or self.story.place.key
        self._open_call = call_id
        yield from self._tools.started(call_id, words(data.get("name")), data.get("arguments"))
        if more := rest(event, "type", "seq", "time", "data"):
            yield self.story.kept("tool/call", more)

    def _tool_result(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        ref = self._surface.take(event, data, number(event.get("seq")))
        yield from self._tools.settled(event, data, ref)

    def _nested_call(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        call_id = words(data.get("subCallId")) or self.story.place.key
        more = {"rootCallId": data.get("rootCallId"), "parentCallId": data.get("parentCallId")}
        yield from self._tools.started(call_id, words(data.get("name")), data.get("arguments"), rest=more)

    def _nested_result(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        call_id = words(data.get("subCallId")) or self.story.place.key
        if not self.story.knows(call_id):
            yield from self._nested_call(event, data)
        yield from self._tools.nested_settled(call_id, data)

    def _asked(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        context = self._desk.keep.json(data, "approval request")
        asked = ApprovalAsked(
            approval_id=words(data.get("id")) or self.story.place.key,
            call_id=words(data.get("callId")),
            tool=words(data.get("toolName")),
            context=context,
        )
        self._tools.asked(asked.approval_id, asked.call_id)
        yield self.story.draft(asked)

    def _decided(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        approval, said = words(data.get("id")) or self.story.place.key, words(data.get("outcome")) or "none"
        outcome = _OUTCOMES.get(said, "unknown")
        decided = ApprovalDecided(
            approval_id=approval,
            call_id=self._tools.decided(approval, outcome),
            outcome=outcome,
            decided_by="system" if said == "unavailable" else "unknown",
            how=said,
            scope="once" if outcome == "approved" else "unknown",
        )
        yield self.story.draft(decided, rest=rest(data, "id", "outcome"))

    def _compaction_start(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        started = CompactionStarted(
            compaction_id=words(data.get("compactionId")) or self.story.place.key,
            trigger="manual" if data.get("sourceCommandId") is not None else "auto",
        )
        yield self.story.draft(started, rest=rest(data, "compactionId"))

    def _hook(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        said = words(data.get("decision")) or "none"
        evaluated = PolicyEvaluated(
            rule=words(data.get("handlerId")) or "hook",
            verdict=_VERDICTS.get(said, "unknown"),
            call_id=words(data.get("callId")),
            detail=self._desk.keep.json(data, "hook result"),
        )
        yield self.story.draft(evaluated, "policy")

    def _selection(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        self.story.model = words(data.get("model")) or self.story.model
        yield from self.story.mode("model", words(data.get("model")), rest=data)
        yield self.story.kept("model/selection", event)

    def _plan(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        yield from self.story.mode("plan", "on" if data.get("active") is True else "off")
        yield self.story.kept("plan/mode", event)

    def _delegated(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        child = words(data.get("childId"))
        if child is not None:
            session = self._desk.session_name(child)
            started = DelegationStarted(
                delegation_id=_agent_run(data) or session,
                to_session=session,
                to_agent=words(data.get("label")),
                how="spawn",
                call_id=self._open_call,
            )
            yield self.story.draft(started, "agent")
        yield self.story.kept(spelled(event.get("type")), event)

    def _came_back(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        run = _agent_run(data)
        if run is not None:
            said = words(data.get("outcome")) or ""
            outcomes: dict[str, Literal["returned", "failed", "aborted"]] = {
                "completed": "returned",
                "failed": "failed",
                "cancelled": "aborted",
            }
            yield self.story.draft(
                DelegationReturned(delegation_id=run, outcome=outcomes.get(said, "unknown")), "agent"
            )
        yield self.story.kept("tool-workflow/agent-end", event)

    def _end_seed(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """The end of what was loaded: of a resumed session's own past, or of what a fork copied."""
        if data.get("inherited") is True:
            yield self.story.kept("session/end-seed", event)
        else:
            yield self.story.draft(SessionResumed(how="session/end-seed"), rest=data)

    def _delivery(self, event: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """The provider took the session's own log, which a model request carried."""
        self._delivered += 1
        effect = EffectDone(
            effect_id=f"session-log:{self.story.place.key}",
            target="deepseek:dsh_session_log",
            operation="send",
            effect_class="external",
            evidence="declared",
        )
        yield self.story.draft(effect, rest=data)


def _agent_run(data: dict[str, Any]) -> str | None:
    """Name of one agent's run in a workflow."""
    run = words(data.get("runId"))
    return None if run is None else f"{run}:{number(data.get('seq')) or 0}"
