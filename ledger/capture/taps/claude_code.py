"""Claude Code hooks: one process for each event, each appending to the session. Prints nothing, decides nothing."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ledger.capture.taps._recent import Recent
from ledger.errors import ConflictError, InputError
from ledger.events import Actor, Draft, Event, Source
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.canonical import canonical_json
from ledger.events.compaction import CompactionDone, CompactionStarted
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.record import ActorKind
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.recorder import Recorder
from ledger.store import KeysTakenError, SourceKey

FORMAT = "claude-code-hooks"
"""Name of this source in the records."""

SUFFIX = ".hooks"
"""What the id of a session has behind that of the harness."""

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
"""Events of version 2.1.332 that the hook is installed for."""

BEFORE_AN_ACT = frozenset({"UserPromptSubmit", "PreToolUse", "PermissionRequest"})
"""Events at which Claude Code waits for the hook before it does what they tell."""

_ALWAYS = frozenset({"session_id", "hook_event_name", "agent_id", "agent_type", "cwd"})
_WORD = 200


def record_hook(recorder: Recorder, payload: Any, *, run: str | None = None) -> int:
    """Record one event of a hook; gives the number of records. Raises InputError for what is no such event."""
    if not isinstance(payload, dict):
        raise InputError(f"expected the JSON object of a Claude Code hook, found {type(payload).__name__}")
    for name in ("session_id", "hook_event_name"):
        value = payload.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= _WORD or not value.isprintable():
            raise InputError(f"expected {name} of a Claude Code hook to be a short text, found {value!r:.80}")
    return _Hook(recorder, payload, run).record()


class _Hook:
    """One event."""

    def __init__(self, recorder: Recorder, payload: dict[str, Any], run: str | None) -> None:
        self._recorder = recorder
        self._keep = recorder.keeper()
        self._payload = payload
        self._run = run
        self._name: str = payload["hook_event_name"]
        self._root = "".join(sign if sign not in "# " else "_" for sign in payload["session_id"])
        self._main = f"{self._root}{SUFFIX}"
        self._agent_id = _word(payload.get("agent_id"))
        self._agent = _word(payload.get("agent_type"))
        self._session = self._main
        if self._agent_id is not None:
            self._session = f"{self._root}.agent-{self._agent_id}{SUFFIX}"
        self._used: set[str] = set(_ALWAYS)
        self._rest: str | None = None
        self._recent_seen: Recent | None = None

    def record(self) -> int:
        """Append what the event tells."""
        tell = _TOLD.get(self._name)
        events = tell(self) if tell else []
        if events is None:
            return 0
        # What no field of an event carries is kept beside the first of them.
        left = {name: value for name, value in self._payload.items() if name not in self._used}
        if not events:
            recognized = self._name in EVENTS
            body = self._keep.json(self._payload, self._name)
            events = [(SourceKept(native_type=self._name[:80], recognized=recognized, body=body), "system")]
        elif left:
            self._rest = self._keep.json(left, self._name).digest
        drafts = [self._draft(event, actor, first=index == 0) for index, (event, actor) in enumerate(events)]
        return self._append({self._session: drafts})

    # -- what the events tell ----------------------------------------------------------------------------------------

    def _started(self) -> "_Events | None":
        source = _word(self._payload.get("source"))
        self._used |= {"source", "model"}
        if self._begin(source, self._session) and source != "compact":
            return None
        if source == "compact":
            return []  # the same loop goes on behind its summary
        return [(SessionResumed(how=source), "system")]

    def _prompted(self) -> "_Events":
        self._used.add("prompt")
        message = self._keep.json({"role": "user", "content": self._payload.get("prompt")}, "prompt")
        return [(MessageReceived(origin="human", message=message), "human")]

    def _tool_asked_for(self) -> "_Events":
        """Before a call: from here on it may run, with or without a question in between."""
        call_id, tool = self._call_id(), self._tool()
        self._used |= {"tool_use_id", "tool_name", "tool_input"}
        requested = ToolCallRequested(
            call_id=call_id,
            tool=tool,
            arguments=self._keep.json(self._payload.get("tool_input"), "arguments"),
            server=tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else None,
        )
        return [(requested, "agent"), (ToolCallStarted(call_id=call_id), "system")]

    def _permission_asked(self) -> "_Events":
        """The event names no call: it is the oldest open one with this tool and these arguments."""
        tool = self._tool()
        arguments = self._keep.json(self._payload.get("tool_input"), "arguments")
        self._used |= {"tool_name", "tool_input"}
        recent = self._recent()
        asked_about = set(recent.questions.values())
        call_id = next(
            (
                call
                for call, (name, digest, _) in recent.calls.items()
                if (name, digest) == (tool, arguments.digest) and call not in asked_about
            ),
            None,
        )
        context = self._keep.json(self._shown(), "approval")
        self._used.add("permission_suggestions")
        asked = ApprovalAsked(
            approval_id=f"permission-{call_id or self._recorder.ids()}",
            call_id=call_id,
            tool=tool,
            arguments_digest=arguments.digest,
            context=context,
        )
        return [(asked, "system")]

    def _shown(self) -> dict[str, Any]:
        names = ("tool_name", "tool_input", "permission_suggestions", "permission_mode")
        return {name: self._payload[name] for name in names if name in self._payload}

    def _tool_returned(self) -> "_Events":
        self._used.add("tool_response")
        details = self._keep.json(self._payload.get("tool_response"), "tool result")
        return self._settled("returned", details=details)

    def _tool_failed(self) -> "_Events":
        self._used.add("error")
        interrupted = self._payload.get("is_interrupt") is True
        text = str(self._payload.get("error") or "")
        return self._settled(
            "unknown" if interrupted else "failed",
            result=self._keep.text(text, "tool result") if text else None,
            error="interrupted" if interrupted else "error",
        )

    def _settled(self, outcome: Literal["returned", "failed", "unknown"], **facts: Any) -> "_Events":
        """A call that ran: whoever was asked about it has agreed, to these arguments."""
        call_id, recent = self._call_id(), self._recent()
        self._used |= {"tool_use_id", "tool_name", "tool_input", "duration_ms"}
        arguments = self._keep.json(self._payload.get("tool_input"), "arguments").digest
        events: _Events = []
        if (question := recent.question_of(call_id)) is not None:
            decided = ApprovalDecided(
                approval_id=question,
                call_id=call_id,
                outcome="approved",
                decided_by="unknown",
                how="permission prompt",
                arguments_digest=arguments,
                evidence="inferred",
            )
            used = ApprovalUsed(approval_id=question, call_id=call_id, arguments_digest=arguments)
            events += [(decided, "system"), (used, "system")]
        duration = self._payload.get("duration_ms")
        settled = ToolCallSettled(
            call_id=call_id,
            outcome=outcome,
            duration_ms=duration if isinstance(duration, int) else None,
            orphan=call_id not in recent.calls,
            **facts,
        )
        return [*events, (settled, "system")]

    def _batch_done(self) -> "_Events":
        """All calls of an answer are through: one that was never told to have ended was refused."""
        recent = self._recent()
        listed = self._payload.get("tool_calls")
        events: _Events = []
        for call in listed if isinstance(listed, list) else ():
            call_id = _word(call.get("tool_use_id")) if isinstance(call, dict) else None
            if call_id is None or call_id not in recent.calls:
                continue
            if (question := recent.question_of(call_id)) is not None:
                decided = ApprovalDecided(
                    approval_id=question,
                    call_id=call_id,
                    outcome="denied",
                    decided_by="unknown",
                    how="permission prompt",
                    evidence="inferred",
                )
                events.append((decided, "system"))
            shown = call.get("tool_response")
            result = (
                self._keep.text(shown, "result")
                if isinstance(shown, str)
                else self._keep.json(shown, "result")
            )
            denied = ToolCallSettled(
                call_id=call_id, outcome="denied", result=result, error="refused before it ran"
            )
            events.append((denied, "system"))
        # It is also the only event that holds the results as the model is shown them.
        body = self._keep.json(self._payload, self._name)
        kept = SourceKept(native_type=self._name, recognized=True, body=body)
        self._used |= self._payload.keys()
        return [*events, (kept, "system")]

    def _compacting(self) -> "_Events":
        self._used.add("trigger")
        started = CompactionStarted(compaction_id=self._recorder.ids(), trigger=self._trigger())
        return [(started, "system")]

    def _compacted(self) -> "_Events":
        self._used |= {"trigger", "compact_summary"}
        summary = self._payload.get("compact_summary")
        done = CompactionDone(
            compaction_id=self._recent().compaction or self._recorder.ids(),
            trigger=self._trigger(),
            evidence="logged",
            summary=self._keep.text(summary, "summary") if isinstance(summary, str) else None,
        )
        return [(done, "system")]

    def _trigger(self) -> Literal["auto", "manual", "unknown"]:
        trigger = self._payload.get("trigger")
        return trigger if trigger in ("auto", "manual") else "unknown"

    def _delegated(self) -> "_Events | None":
        """A sub-agent began: its own session, and the fact in the one that it works for."""
        if self._agent_id is None:
            return []
        self._begin(None, self._session)
        started = DelegationStarted(
            delegation_id=self._agent_id, to_session=self._session, to_agent=self._agent, how="tool"
        )
        self._append({self._main: [self._draft(started, "agent", root=True)]})
        return None

    def _delegate_done(self) -> "_Events | None":
        """A sub-agent ended; one that was never told to begin is a side call of the harness."""
        if self._agent_id is None or not self._recorder.store.head(self._session).seq:
            self._session = self._main
            return []
        told = self._payload.get("last_assistant_message")
        returned = DelegationReturned(
            delegation_id=self._agent_id,
            outcome="returned",
            from_session=self._session,
            result=self._keep.text(told, "result") if isinstance(told, str) else None,
            returned="result" if isinstance(told, str) else "unknown",
        )
        left = {name: value for name, value in self._payload.items() if name not in _ALWAYS}
        self._rest = self._keep.json(left, self._name).digest
        ended = self._draft(SessionEnded(outcome="completed"), "system")
        self._append({self._session: [ended], self._main: [self._draft(returned, "agent", root=True)]})
        return None

    def _ended(self) -> "_Events":
        self._used.add("reason")
        ended = SessionEnded(outcome="completed", reason=_word(self._payload.get("reason")))
        return [(ended, "system")]

    # -- writing -----------------------------------------------------------------------------------------------------

    def _begin(self, source: str | None, session: str) -> bool:
        """Start a session if it has no record yet; false when it has."""
        if self._recorder.store.head(session).seq:
            return False
        payload, is_agent = self._payload, session != self._main
        names = ("transcript_path", "permission_mode", "effort")
        environment = {name: payload[name] for name in names if name in payload}
        environment |= {"source": source, "run": self._run}
        started = SessionStarted(
            harness="claude-code",
            agent=self._agent if is_agent else None,
            model=_word(payload.get("model")),
            cwd=str(payload["cwd"])[:4096] if payload.get("cwd") else None,
            parent=self._main if is_agent else None,
            environment=self._keep.json(environment, "environment"),
        )
        try:
            draft = self._draft(started, "system", root=not is_agent)
            self._recorder.append(session, [draft], self._keep, expect=0)
        except ConflictError:
            return False  # another hook of the same session was first
        return True

    def _append(self, drafts: Mapping[str, list[Draft]]) -> int:
        for session in drafts if self._name != "SessionStart" else ():
            self._begin(None, session)
        keys = []
        if (call_id := _word(self._payload.get("tool_use_id"))) is not None:
            # An event that is sent twice, as by a hook that two settings files install, counts once.
            identity = f"{FORMAT}\0{self._session}\0{self._name}\0{call_id}"
            key = hashlib.sha256(identity.encode()).digest()[:16]
            check = hashlib.sha256(canonical_json(self._payload)).digest()[:7]
            keys = [SourceKey(self._session, 0, key, 0, int.from_bytes(check))]
        try:
            return len(self._recorder.append_many(drafts, self._keep, keys=keys))
        except KeysTakenError:
            return 0

    def _draft(self, event: Event, actor: ActorKind, *, first: bool = True, root: bool = False) -> Draft:
        is_agent = self._session != self._main and not root
        native = _word(self._payload.get("tool_use_id")) or _word(self._payload.get("prompt_id"))
        return Draft(
            event,
            occurred_at=self._recorder.clock(),
            actor=Actor(actor, self._agent if actor == "agent" and is_agent else None),
            correlation=self._run or self._root,
            agent=self._agent if is_agent else None,
            depth=1 if is_agent else 0,
            source=Source(FORMAT, None, native, None, self._rest if first else None),
            grade="semantic",
        )

    def _recent(self) -> Recent:
        if self._recent_seen is None:
            self._recent_seen = Recent.of(self._recorder.store, self._session)
        return self._recent_seen

    def _call_id(self) -> str:
        return _word(self._payload.get("tool_use_id")) or self._recorder.ids()

    def _tool(self) -> str:
        return _word(self._payload.get("tool_name")) or "unnamed"


_Events = list[tuple[Event, ActorKind]]
_TOLD: Mapping[str, Callable[[_Hook], _Events | None]] = {
    "SessionStart": _Hook._started,
    "UserPromptSubmit": _Hook._prompted,
    "PreToolUse": _Hook._tool_asked_for,
    "PermissionRequest": _Hook._permission_asked,
    "PostToolUse": _Hook._tool_returned,
    "PostToolUseFailure": _Hook._tool_failed,
    "PostToolBatch": _Hook._batch_done,
    "PreCompact": _Hook._compacting,
    "PostCompact": _Hook._compacted,
    "SubagentStart": _Hook._delegated,
    "SubagentStop": _Hook._delegate_done,
    "SessionEnd": _Hook._ended,
}


def _word(value: Any) -> str | None:
    """A short text of the payload, if it is one."""
    if not isinstance(value, str) or not value:
        return None
    return value if len(value) <= _WORD else f"{value[: _WORD - 1]}…"
