"""CrewAI: a listener on the event bus that records crews, flows, agents, model calls and tools.

    with open_ledger() as ledger, LedgerListener(ledger):
        crew.kickoff()

A kickoff is a session, in which its agents take turns; an agent that work is delegated to by a tool, and a crew inside
of a flow or a tool, has a session of its own. A flow is a session that goes on under its id, and feedback that it asks
a human for is a question. A tool that a hook blocks is a call that was denied.

The bus tells listeners in threads of its own, so hooks before model calls and tools wait until all that went before is
recorded, and stop the call when that failed. What the bus does not tell: retries inside the client, the text beside
tool calls in an answer that is not streamed, and `human_input` of a task, which is asked for on the terminal. Tool
calls carry no id: they are joined to the answer by name and arguments.
"""

import threading
from dataclasses import dataclass, field
from importlib import import_module
from types import UnionType
from typing import Any, NamedTuple, Self, Unpack, get_args

from ledger.capture.calls import ToolOptions
from ledger.capture.hooks import _crewai as shapes
from ledger.capture.hooks._frameworks import acts_as, version_of
from ledger.capture.hooks._run import HookOptions, HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.errors import InputError, LedgerError
from ledger.protocols.plain import plain
from ledger.protocols.tool_use import calls_in

_FLUSH_S = 30.0
_BUS_THREADS = ("CrewAISyncHandler", "CrewAIEventsLoop")
_ROOTS = frozenset({"crew_kickoff_started", "lite_agent_execution_started", "flow_started"})
_MORE = ("agent_events", "flow_events", "hook_events", "llm_events", "tool_usage_events")
_INNER_FLOW = "AgentExecutor"
_ENDS = {
    "crew_kickoff_completed": "crew_kickoff_started",
    "crew_kickoff_failed": "crew_kickoff_started",
    "lite_agent_execution_completed": "lite_agent_execution_started",
    "lite_agent_execution_error": "lite_agent_execution_started",
    "agent_execution_completed": "agent_execution_started",
    "agent_execution_error": "agent_execution_started",
    "flow_finished": "flow_started",
    "flow_failed": "flow_started",
    "llm_call_completed": "llm_call_started",
    "llm_call_failed": "llm_call_started",
}
"""Ends of runs, and what begins them."""

_NOT_SEEN = ("the body as the provider's class sends it",)


class _Bus(NamedTuple):
    """What is used of CrewAI."""

    bus: Any
    kinds: tuple[type, ...]
    scopes: Any
    hooks: Any


@dataclass
class _Scope:
    """What goes on between the beginning and the end of something."""

    session: HookSession
    run: "_Root"
    tool: str | None = None
    """The event with which the tool call began that it is, or runs in."""
    call_id: str | None = None
    """The model's id of that call."""


class _Announced(NamedTuple):
    """A tool call that was told of and has not begun: hooks may block it."""

    session: HookSession
    agent: str | None
    tool: str
    arguments: Any
    call_id: str | None


@dataclass
class _Root:
    """A run with a session: the scopes in it, and what its tools may run for."""

    key: str
    kind: str
    source: int
    """Identity of the object that told of it."""
    waiting: dict[str, tuple[str, Any]] = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)


class LedgerListener:
    """Records while it is open: as a context manager, or until `close()`."""

    def __init__(self, ledger: HasRecorder, **options: Unpack[HookOptions]) -> None:
        self._crewai = _crewai()
        self.run = HookRun(ledger, harness="crewai", harness_version=version_of("crewai"), **options)
        """What it records with; `run.counts` says how much."""
        self._scopes: dict[str, _Scope] = {}
        self._roots: dict[tuple[int, str], _Root] = {}
        self._announced: dict[str, _Announced] = {}
        self._blocked: dict[str, str] = {}
        self._failure: LedgerError | None = None
        self._is_open = True
        for kind in self._crewai.kinds:
            self._crewai.bus.on(kind)(self._take)
        self._crewai.hooks.register_before_llm_call_hook(self._wait)
        self._crewai.hooks.register_before_tool_call_hook(self._tool_runs)

    def close(self) -> None:
        """Take the listener off the bus and end the sessions."""
        if not self._is_open:
            return
        self._is_open = False
        self._crewai.bus.flush(_FLUSH_S)
        for kind in self._crewai.kinds:
            self._crewai.bus.off(kind, self._take)
        self._crewai.hooks.unregister_before_llm_call_hook(self._wait)
        self._crewai.hooks.unregister_before_tool_call_hook(self._tool_runs)
        self.run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _tool_runs(self, context: Any) -> None:
        """Before a tool, and after all hooks that were registered before the listener."""
        self._wait(context)
        try:
            self._begin(self._crewai.scopes.get_current_parent_id(), plain(context.tool_input))
        except LedgerError as error:
            self._failure = self._failure or error
            raise self._crewai.hooks.HookAborted(reason=str(error), source="loopledger") from error

    def _wait(self, context: Any) -> None:
        """Before a model call or a tool: nothing runs that could not be recorded."""
        if not self._is_open or threading.current_thread().name.startswith(_BUS_THREADS):
            return
        self._crewai.bus.flush(_FLUSH_S)
        if self._failure is not None:
            raise self._crewai.hooks.HookAborted(reason=str(self._failure), source="loopledger")

    async def _take(self, source: Any, event: Any) -> None:
        """One event. The bus runs handlers like this one in one thread, in the order of the events."""
        try:
            self._tell(source, event)
        except LedgerError as error:
            self._failure = self._failure or error

    def _tell(self, source: Any, event: Any) -> None:
        kind: str = event.type
        scope = self._scopes.get(str(event.parent_event_id)) or self._of_crew(event)
        if kind in _ROOTS and not (kind == "flow_started" and event.flow_name == _INNER_FLOW and scope):
            scope = self._begins(source, event, scope)
        elif kind == "agent_execution_started" and scope is not None and scope.tool is not None:
            scope = self._delegated(source, event, scope)
        elif kind == "llm_call_started" and scope is None:
            scope = self._alone(source, event)
        if scope is not None:
            acts_as(scope.session, event.agent_role)
            if kind in self._crewai.scopes.SCOPE_STARTING_EVENTS and event.event_id not in self._scopes:
                self._enter(event.event_id, scope)
            self._inside(event, kind, scope)
        self._models(event, kind)
        self._ends(source, event, kind)

    def _of_crew(self, event: Any) -> _Scope | None:
        """The crew of a task whose beginning the bus takes for that of another: it has lost count after a failure."""
        agent = getattr(getattr(event, "task", None), "agent", None)
        root = self._roots.get((id(getattr(agent, "crew", None)), "crew_kickoff_started"))
        session = None if root is None or event.type != "task_started" else self.run.find(root.key)
        return None if root is None or session is None else _Scope(session, root)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _enter(self, key: str, scope: _Scope) -> None:
        self._scopes[key] = _Scope(scope.session, scope.run, scope.tool, scope.call_id)
        scope.run.scopes.append(key)

    def _begins(self, source: Any, event: Any, above: _Scope | None) -> _Scope:
        """A crew, a flow or a lone agent: a root, or work that was handed down."""
        name = getattr(event, "crew_name", None) or getattr(event, "flow_name", None)
        about = getattr(event, "agent_info", None) or {}
        inputs = plain(getattr(event, "inputs", None))
        agent = about.get("role")
        if above is not None:
            self._begin(above.tool)
            session = self.run.delegate(
                above.session,
                event.event_id,
                agent=agent or name,
                payload=inputs or plain(getattr(event, "messages", None)),
                how="spawn" if above.tool is None else "tool",
                call_id=above.call_id,
                name=name,
            )
        else:
            flow = getattr(source, "flow_id", None) if event.type == "flow_started" else None
            session = self.run.session(
                event.event_id,
                conversation=None if flow is None else str(flow),
                agent=agent,
                name=name,
                how="kickoff",
                inputs=inputs,
            )
            if about:
                session.message(_last_message(event.messages))
        return _Scope(session, self._root(source, event))

    def _delegated(self, source: Any, event: Any, above: _Scope) -> _Scope:
        """A tool hands work to another agent."""
        self._begin(above.tool)
        session = self.run.delegate(
            above.session,
            event.event_id,
            agent=event.agent.role,
            payload=event.task_prompt,
            how="tool",
            call_id=above.call_id,
        )
        return _Scope(session, self._root(source, event))

    def _alone(self, source: Any, event: Any) -> _Scope:
        """A model that is asked outside of everything is a session of its own."""
        return _Scope(self.run.session(event.event_id, agent=event.agent_role), self._root(source, event))

    def _ends(self, source: Any, event: Any, kind: str) -> None:
        """Something ended. Where the bus lost count and names another beginning, the object that told of it helps."""
        began = self._scopes.pop(str(event.started_event_id), None)
        if kind not in _ENDS:
            return
        name = (id(source), _ENDS[kind])
        root = began.run if began is not None and event.started_event_id == began.run.key else None
        if root is None or root.kind != _ENDS[kind]:
            root = self._roots.get(name)
        if root is None:
            return
        self._roots.pop((root.source, root.kind), None)
        error = getattr(event, "error", None)
        result = plain(getattr(event, "output", None) or getattr(event, "result", None))
        failed = kind.endswith(("failed", "error"))
        reason = None if error is None else str(error)
        self.run.ended(root.key, "failed" if failed else "completed", reason=reason, result=result)
        for key in root.scopes:
            self._scopes.pop(key, None)

    def _root(self, source: Any, event: Any) -> _Root:
        root = _Root(event.event_id, event.type, id(source))
        if event.type != "llm_call_started":  # one model may be asked twice at once
            self._roots[(root.source, root.kind)] = root
        return root

    # -- what happens in them ----------------------------------------------------------------------------------------

    def _inside(self, event: Any, kind: str, scope: _Scope) -> None:
        session = scope.session
        match kind:
            case "task_started":
                if (said := getattr(event.task, "description", None)) is not None:
                    session.message(said, origin="unknown")
            case "llm_call_started":
                request = shapes.request_of(event)
                session.model_begun(event.call_id, shapes.PROTOCOL, request, not_seen=_NOT_SEEN)
            case "tool_usage_started":
                self._tool(event, scope)
            case "hook_dispatched" if (event.interception_point, event.outcome) == (
                "pre_tool_call",
                "aborted",
            ):
                self._blocked[str(event.parent_event_id)] = event.abort_reason or "a hook blocked it"
            case "human_feedback_requested":
                session.asked(
                    _question(event), context={"shown": plain(event.output), "asked": event.message}
                )
            case "human_feedback_received":
                session.message(event.feedback)
                session.decided(_question(event), shapes.outcome_of(event.outcome or event.feedback))
            case "flow_input_received" if event.response is not None:
                session.message(event.response)
            case "flow_paused":
                self.run.waits(scope.run.key)
            case _:
                pass

    def _models(self, event: Any, kind: str) -> None:
        match kind:
            case "llm_stream_chunk":
                self.run.model_chunk(event.call_id, shapes.chunk_of(event))
            case "llm_call_completed":
                message = shapes.answer_of(event)
                began = self._scopes.get(str(event.started_event_id))
                if began is not None:
                    asked = {
                        use.call_id: (use.tool, use.arguments) for use in calls_in(message) if use.call_id
                    }
                    began.run.waiting.update(asked)
                self.run.model_answered(
                    event.call_id,
                    message,
                    usage=shapes.usage_of(event),
                    response_id=event.response_id,
                    stop_reason=event.finish_reason,
                )
            case "llm_call_failed":
                self.run.model_failed(event.call_id, event.error, kind="unknown")
            case "tool_usage_finished":
                self._tool_ends(event)
            case "tool_usage_error":
                key = str(event.started_event_id)
                error = event.error
                shown = f"Error executing tool: {error}"
                self.run.tool_failed(key, error if isinstance(error, Exception) else str(error), shown=shown)
            case _:
                pass

    def _tool(self, event: Any, scope: _Scope) -> None:
        """The event names no call: it is the oldest of that name and these arguments that has not begun."""
        wanted = (event.tool_name, shapes.arguments_of(event.tool_args))
        waiting = scope.run.waiting
        call_id = next((name for name, call in waiting.items() if call == wanted), None)
        if call_id is not None:
            del waiting[call_id]
        self._announced[event.event_id] = _Announced(scope.session, event.agent_role, *wanted, call_id)
        self._scopes[event.event_id] = _Scope(scope.session, scope.run, event.event_id, call_id)

    def _begin(self, key: str | None, arguments: Any = None) -> None:
        """A tool call that was told of runs now."""
        call = self._announced.pop(str(key), None)
        if call is None:
            return
        options: ToolOptions = {} if call.call_id is None else {"call_id": call.call_id}
        acts_as(call.session, call.agent)
        call.session.tool_begun(key, call.tool, arguments or call.arguments, **options)

    def _tool_ends(self, event: Any) -> None:
        key = str(event.started_event_id)
        failure = getattr(event, "failure", None)
        shown = plain(event.output)
        if (reason := self._blocked.pop(key, None)) is not None:
            if (call := self._announced.pop(key, None)) is not None:
                call_id = call.call_id or key
                call.session.tool_denied(call_id, call.tool, call.arguments, reason=reason, shown=shown)
            else:
                self.run.tool_refused(key, reason, shown)
            return
        self._begin(key)
        if failure is not None:
            self.run.tool_failed(
                key, failure.message, kind=str(failure.code or "error"), shown=plain(event.output)
            )
        else:
            self.run.tool_returned(key, plain(event.output))


def _crewai() -> _Bus:
    try:
        events = import_module("crewai.events.event_types").EventTypes
        kinds: tuple[Any, ...] = get_args(events) if isinstance(events, UnionType) else ()
        context, hooks = import_module("crewai.events.event_context"), import_module("crewai.hooks")
        more = [import_module(f"crewai.events.types.{name}") for name in _MORE]
        base = import_module("crewai.events.base_events").BaseEvent
        bus = import_module("crewai.events.event_bus").crewai_event_bus
    except ImportError as missing:
        raise InputError(f"this hook needs crewai, which cannot be imported here: {missing}") from None
    beside = [one for module in more for one in vars(module).values() if isinstance(one, type)]
    return _Bus(bus, tuple({*kinds, *(one for one in beside if issubclass(one, base))}), context, hooks)


def _question(event: Any) -> str:
    return str(event.request_id or f"{event.flow_name}.{event.method_name}:{event.parent_event_id}")


def _last_message(messages: Any) -> Any:
    return messages if isinstance(messages, str) or not messages else plain(messages[-1])
