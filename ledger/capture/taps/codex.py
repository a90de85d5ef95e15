"""The Codex app-server between a client and itself: turns, calls, and every approval asked for and given."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from ledger.capture.taps._session import TappedSession
from ledger.events import Draft, Event
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.canonical import decode_json
from ledger.events.compaction import CompactionDone, CompactionStarted
from ledger.events.governance import ModeChanged
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.recovery import DamageFound
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.protocols.drafting import Place
from ledger.protocols.json_rpc import id_of, word
from ledger.protocols.tool_use import text
from ledger.recorder import Recorder

FORMAT = "codex-tap"
"""Name of this source in the records."""

SUFFIX = ".tap"
"""What the id of a session has behind that of the thread."""

_IGNORED = ("account/", "remoteControl/", "thread/status/", "thread/readState/")
_DELTAS = ("delta", "Delta", "/progress")
_CALLS = {
    "commandExecution": ("command", "cwd"),
    "fileChange": ("changes",),
    "mcpToolCall": ("server", "tool", "arguments"),
    "dynamicToolCall": ("namespace", "tool", "arguments"),
    "collabAgentToolCall": ("tool", "prompt", "receiverThreadIds"),
    "webSearch": ("query", "action"),
    "imageView": ("path",),
}
"""Items that are tool calls, and their fields that say what is to be done."""

_MODES = {"approvalPolicy": "approval", "sandboxPolicy": "sandbox", "model": "model", "effort": "effort"}
_OPEN_KEPT = 10_000
_THREADS_KEPT = 1000
_DAMAGE_KEPT = 1 << 20
_Outcome = Literal["approved", "denied", "timed_out", "cancelled", "unknown"]
_Scope = Literal["once", "session", "rule", "unknown"]


class _Question(NamedTuple):
    """What the server asked the client."""

    thread: str
    """Thread that asks."""
    approval_id: str
    """The question."""
    call_id: str | None
    """Call that it is about."""
    arguments: str | None
    """Digest of what was shown."""


class _Thread:
    """One thread: a session of its own."""

    def __init__(self, session: TappedSession) -> None:
        self.session = session
        self.modes: dict[str, str] = {}
        self.asked: set[str] = set()
        """Calls that the client was told of and that did not end."""
        self.granted: dict[str, _Question] = {}
        """Approved calls that did not end yet."""


class CodexTap:
    """One connection to an app-server. For one thread of the program at a time."""

    def __init__(self, recorder: Recorder, *, run: str | None = None) -> None:
        self._recorder = recorder
        self._run = run
        self._client: str | None = None
        self._version: str | None = None
        self._requests: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()
        self._questions: OrderedDict[str, _Question] = OrderedDict()
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._number = 0
        self.recorded = 0
        """Messages recorded so far."""

    def take(self, line: bytes, *, to_server: bool) -> None:
        """Record a line before it goes on."""
        if not line.strip():
            return
        self._number += 1
        try:
            message = decode_json(line)
        except ValueError as error:
            self._damage(f"expected a JSON-RPC message, found: {error}", line)
            return
        if isinstance(message, dict):
            self._message(message, to_server)

    def too_long(self, start: bytes, *, to_server: bool) -> None:
        """Record that a line is longer than is held."""
        self._number += 1
        self._damage(f"a message longer than {len(start)} bytes went on unread", start)

    def end(self, status: int | None) -> None:
        """The app-server ended: what became of open calls nobody can say."""
        place = Place("end", self._number)
        for thread in self._threads.values():
            open_calls = [
                thread.session.draft(
                    place, ToolCallSettled(call_id=call, outcome="unknown", error="the app-server ended")
                )
                for call in sorted(thread.asked)
            ]
            thread.session.end(place, status, open_calls)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, message: dict[str, Any], to_server: bool) -> None:
        method, params = text(message.get("method")), _dict(message.get("params"))
        if method is None:
            self._answer(message, to_server)
            return
        if to_server and "id" in message:
            self._requests[id_of(message)] = (method, params)
            if len(self._requests) > _OPEN_KEPT:
                self._requests.popitem(last=False)
        if method == "initialize":
            client = _dict(params.get("clientInfo"))
            self._client, self._version = text(client.get("name")), text(client.get("version"))
        if method == "thread/started":
            self._begin(_dict(params.get("thread")), params)
        thread = self._threads.get(text(params.get("threadId")) or "")
        if thread is None or method.startswith(_IGNORED) or method.endswith(_DELTAS):
            return
        tell = _TOLD.get(method)
        if method.endswith("requestApproval") and not to_server:
            drafts = list(self._asked(thread, message, params))
        else:
            drafts = list(tell(self, thread, params)) if tell else []
        if not drafts and method not in _SILENT:
            drafts = [self._kept(thread, method, message)]
        self._append(thread, drafts)

    def _answer(self, message: dict[str, Any], to_server: bool) -> None:
        if to_server:
            question = self._questions.pop(id_of(message), None)
            if question is not None and (thread := self._threads.get(question.thread)) is not None:
                self._append(thread, list(self._decided(thread, question, message)))
            return
        method, params = self._requests.pop(id_of(message), ("", {}))
        result = _dict(message.get("result"))
        if method.startswith("thread/") and isinstance(result.get("thread"), dict):
            thread = self._begin(result["thread"], params)
            if thread is not None:
                self._append(thread, list(self._modes(thread, result)))
        thread = self._threads.get(text(params.get("threadId")) or "")
        if message.get("error") is not None and thread is not None:
            self._append(thread, [self._kept(thread, f"error:{method}", message)])

    def _begin(self, told: dict[str, Any], params: dict[str, Any]) -> _Thread | None:
        name = text(told.get("id"))
        if name is None or not name.isprintable() or "#" in name or " " in name or len(name) > 200:
            return None
        if name in self._threads:
            return self._threads[name]
        session = TappedSession(self._recorder, f"{name}{SUFFIX}", FORMAT, "semantic", self._run)
        parent = text(told.get("parentThreadId"))
        session.agent = session.word(told.get("agentNickname"), "agent")
        session.depth = 1 if parent else 0
        environment = {"client": self._client, "client_version": self._version, "asked": params}
        started = SessionStarted(
            harness="codex",
            harness_version=session.word(told.get("cliVersion"), "version"),
            agent=session.agent,
            model=session.word(told.get("model"), "model"),
            cwd=session.word(told.get("cwd"), "cwd"),
            parent=f"{parent}{SUFFIX}" if parent else None,
            environment=session.keep.json(environment, "environment"),
        )
        session.begin(self._place("thread"), started, "app-server")
        self.recorded += 1
        thread = self._threads[name] = _Thread(session)
        if len(self._threads) > _THREADS_KEPT:
            self._threads.popitem(last=False)
        return thread

    # -- approvals ---------------------------------------------------------------------------------------------------

    def _asked(self, thread: _Thread, message: dict[str, Any], params: dict[str, Any]) -> Iterator[Draft]:
        keep = thread.session.keep
        call_id = text(params.get("itemId"))
        shown = {name: params[name] for name in ("command", "cwd", "changes") if name in params}
        context = keep.json(params, "approval")
        arguments = keep.json(shown, "arguments").digest if shown else None
        # Request ids start anew with each app-server; the call's id does not.
        name = f"approval-{call_id or self._recorder.ids()}-{word(message.get('id'))}"
        question = _Question(text(params.get("threadId")) or "", name, call_id, arguments)
        self._questions[id_of(message)] = question
        if len(self._questions) > _OPEN_KEPT:
            self._questions.popitem(last=False)
        asked = ApprovalAsked(
            approval_id=name,
            call_id=call_id,
            tool=str(message["method"]).split("/")[1],
            arguments_digest=arguments,
            context=context,
        )
        yield self._draft(thread, "approval", asked)

    def _decided(self, thread: _Thread, question: _Question, message: dict[str, Any]) -> Iterator[Draft]:
        decision = _dict(message.get("result")).get("decision")
        outcome, scope, how = _meaning(decision)
        if message.get("error") is not None:
            outcome, how = "cancelled", "error"
        rule = thread.session.keep.json(decision, "rule") if isinstance(decision, dict) else None
        decided = ApprovalDecided(
            approval_id=question.approval_id,
            call_id=question.call_id,
            outcome=outcome,
            decided_by="unknown",
            decider=thread.session.word(self._client, "client"),
            how=thread.session.word(how, "decision"),
            scope=scope,
            rule=rule,
            arguments_digest=question.arguments,
        )
        yield self._draft(thread, "approval", decided)
        if outcome == "approved" and question.call_id is not None:
            thread.granted[question.call_id] = question

    def _resolved(self, thread: _Thread, params: dict[str, Any]) -> Iterator[Draft]:
        """The server closes a question; one that the client did not answer has an unknown answer."""
        question = self._questions.pop(word(params.get("requestId")), None)
        if question is not None:
            decided = ApprovalDecided(
                approval_id=question.approval_id,
                call_id=question.call_id,
                outcome="unknown",
                decided_by="unknown",
                how="resolved without an answer of this client",
            )
            yield self._draft(thread, "approval", decided)

    # -- items and turns ---------------------------------------------------------------------------------------------

    def _item_started(self, thread: _Thread, params: dict[str, Any]) -> Iterator[Draft]:
        item = _dict(params.get("item"))
        kind, name = text(item.get("type")) or "", text(item.get("id")) or ""
        if kind in _CALLS and name:
            yield from self._requested(thread, kind, name, item)
        elif kind == "contextCompaction":
            yield self._draft(thread, kind, CompactionStarted(compaction_id=name, trigger="unknown"))

    def _requested(self, thread: _Thread, kind: str, name: str, item: dict[str, Any]) -> Iterator[Draft]:
        if len(thread.asked) < _OPEN_KEPT:
            thread.asked.add(name)
        arguments = {field: item[field] for field in _CALLS[kind] if field in item}
        requested = ToolCallRequested(
            call_id=name,
            tool=thread.session.word(item.get("tool"), "tool") or kind,
            arguments=thread.session.keep.json(arguments, "arguments"),
            server=thread.session.word(item.get("server"), "server"),
        )
        yield self._draft(thread, kind, requested, "agent")
        yield self._draft(thread, kind, ToolCallStarted(call_id=name))

    def _item_completed(self, thread: _Thread, params: dict[str, Any]) -> Iterator[Draft]:
        item = _dict(params.get("item"))
        kind, name = text(item.get("type")) or "", text(item.get("id")) or ""
        if kind in _CALLS and name:
            if name not in thread.asked:
                yield from self._requested(thread, kind, name, item)
            yield from self._settled(thread, kind, name, item)
        elif kind == "contextCompaction":
            done = CompactionDone(compaction_id=name, trigger="unknown", evidence="logged")
            yield self._draft(thread, kind, done)
        elif kind == "userMessage":
            body = {"role": "user", "content": item.get("content")}
            message = thread.session.keep.json(body, "message")
            yield self._draft(thread, kind, MessageReceived(origin="human", message=message), "human")

    def _settled(self, thread: _Thread, kind: str, name: str, item: dict[str, Any]) -> Iterator[Draft]:
        thread.asked.discard(name)
        if (question := thread.granted.pop(name, None)) is not None:
            used = ApprovalUsed(
                approval_id=question.approval_id, call_id=name, arguments_digest=question.arguments
            )
            yield self._draft(thread, kind, used)
        status, output, code = text(item.get("status")), item.get("aggregatedOutput"), item.get("exitCode")
        outcome: Literal["returned", "failed", "denied", "unknown"]
        if status == "declined":
            outcome = "denied"
        elif status == "failed" or code not in (0, None) or item.get("error") is not None:
            outcome = "failed"
        else:
            outcome = "returned" if status in ("completed", None) else "unknown"
        duration = item.get("durationMs")
        settled = ToolCallSettled(
            call_id=name,
            outcome=outcome,
            result=thread.session.keep.text(output, "result") if isinstance(output, str) else None,
            details=thread.session.keep.json(item, "result"),
            error=None if outcome == "returned" else status,
            duration_ms=duration if isinstance(duration, int) else None,
        )
        yield self._draft(thread, kind, settled)

    def _settings(self, thread: _Thread, params: dict[str, Any]) -> Iterator[Draft]:
        yield from self._modes(thread, _dict(params.get("threadSettings")))

    def _modes(self, thread: _Thread, settings: dict[str, Any]) -> Iterator[Draft]:
        """Standing permissions as they are now; only what changed is told."""
        for field, mode in _MODES.items():
            value = settings.get(field, settings.get("sandbox") if mode == "sandbox" else None)
            new = text(value) or text(_dict(value).get("type"))
            old = thread.modes.get(mode)
            if new is None or new == old:
                continue
            thread.modes[mode] = new
            keep = thread.session.keep
            changed = ModeChanged(
                mode=mode,
                old=old,
                new=thread.session.word(new, mode) or new,
                cause="startup" if old is None else "human",
                detail=keep.json(value, mode) if isinstance(value, dict) else None,
            )
            yield self._draft(thread, "settings", changed)

    # -- writing -----------------------------------------------------------------------------------------------------

    def _draft(
        self, thread: _Thread, what: str, event: Event, actor: Literal["system", "agent", "human"] = "system"
    ) -> Draft:
        return thread.session.draft(self._place(what), event, actor)

    def _place(self, what: str) -> Place:
        return Place(f"{what}:{self._number}", self._number)

    def _kept(self, thread: _Thread, name: str, message: dict[str, Any]) -> Draft:
        body = thread.session.keep.json(message, name)
        return self._draft(thread, name, SourceKept(native_type=name[:80], recognized=True, body=body))

    def _append(self, thread: _Thread, drafts: list[Draft]) -> None:
        thread.session.append(drafts)
        self.recorded += bool(drafts)

    def _damage(self, reason: str, raw: bytes) -> None:
        """What is no message goes to the latest thread; before the first there is nothing that it could belong to."""
        if self._threads:
            thread = next(reversed(self._threads.values()))
            content = thread.session.keep.raw(raw[:_DAMAGE_KEPT], "damage")
            self._append(
                thread, [self._draft(thread, "damage", DamageFound(reason=reason[:500], content=content))]
            )


_Told = Callable[[CodexTap, _Thread, dict[str, Any]], Iterator[Draft]]
_TOLD: dict[str, _Told] = {
    "item/started": CodexTap._item_started,
    "item/completed": CodexTap._item_completed,
    "serverRequest/resolved": CodexTap._resolved,
    "thread/settings/updated": CodexTap._settings,
}
_SILENT = frozenset({"serverRequest/resolved", "item/started", "thread/settings/updated"})
"""What tells nothing new where no event was made of it: an item comes whole when it is completed."""


def _meaning(decision: Any) -> tuple[_Outcome, _Scope, str | None]:
    """What a decision means: outcome, how far it reaches, and its own word."""
    name = next(iter(decision), None) if isinstance(decision, dict) else decision
    known: dict[Any, tuple[_Outcome, _Scope]] = {
        "accept": ("approved", "once"),
        "acceptForSession": ("approved", "session"),
        "acceptWithExecpolicyAmendment": ("approved", "rule"),
        "decline": ("denied", "once"),
        "cancel": ("denied", "once"),
    }
    outcome, scope = (
        known.get(name, ("unknown", "unknown")) if isinstance(name, str) else ("unknown", "unknown")
    )
    return outcome, scope, name if isinstance(name, str) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
