"""OpenAI Agents SDK: a tracing processor, and run hooks that tell more. Changes nothing.

    with open_ledger() as ledger, LedgerTracing(ledger) as tracing:
        expert_tool = expert.as_tool("ask", "Ask.", hooks=tracing.hooks)
        result = await Runner.run(agent, "Buy pumps.", hooks=tracing.hooks, run_config=RunConfig(group_id="order-1"))

The processor alone sees every agent, also those inside tools, but each call only when it is over; with `hooks` calls
are recorded before they are made, with their ids. Tools, parameters and the parts of streams are not seen; attempts
that the HTTP client makes by itself are one call. Approvals are told by what a run waits for, and decisions by what
runs, or is answered in a tool's place, when it goes on. A handoff goes on in the same session.
"""

from itertools import count
from typing import Any, Self, Unpack

from ledger.capture.hooks._frameworks import acts_as, arguments_of, framework_class, handed_over, version_of
from ledger.capture.hooks._openai_spans import (
    Known,
    Place,
    answer_of,
    described,
    request_of,
    results_in,
    user_input,
)
from ledger.capture.hooks._run import HookOptions, HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.protocols.plain import plain

_Processor = framework_class("agents.tracing", "TracingProcessor", "openai-agents")
_RunHooks = framework_class("agents", "RunHooks", "openai-agents")
_add_processor = framework_class("agents.tracing", "add_trace_processor", "openai-agents")
_current_span = framework_class("agents.tracing", "get_current_span", "openai-agents")

_MODELS = frozenset({"response", "generation"})


class LedgerTracing(_Processor):  # type: ignore[misc, valid-type]
    """Records all traces of this process from when it is entered until it is closed."""

    def __init__(self, ledger: HasRecorder, **options: Unpack[HookOptions]) -> None:
        super().__init__()
        self.hooks = _Hooks(self)
        """To be given to `Runner.run(hooks=...)` and `agent.as_tool(hooks=...)`."""
        self.run = HookRun(
            ledger, harness="openai-agents", harness_version=version_of("openai-agents"), **options
        )
        self._places: dict[str, Place] = {}
        self._groups: dict[str, tuple[str | None, str | None]] = {}
        self._known: dict[str, Known] = {}
        self._numbers = count(1)
        self._is_closed = False

    def __enter__(self) -> Self:
        _add_processor(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_closed = True
        self.run.close()

    def shutdown(self) -> None:
        """The SDK shuts down."""

    def force_flush(self) -> None:
        """Everything is written already."""

    def on_trace_start(self, trace: Any) -> None:
        """A workflow begins: its group is the conversation."""
        self._groups[trace.trace_id] = (getattr(trace, "group_id", None), trace.name)

    def on_trace_end(self, trace: Any) -> None:
        """A workflow ended; after an approval it goes on under the same id."""

    # -- spans -------------------------------------------------------------------------------------------------------

    def on_span_start(self, span: Any) -> None:
        """Something begins."""
        if self._is_closed:
            return
        data, parent = span.span_data, self._places.get(span.parent_id or "")
        session = self._root(span) if parent is None else (parent.nested or parent.session)
        place = Place(session, data.type, parent, agent=None if parent is None else parent.agent)
        self._places[span.span_id] = place
        if data.type == "agent":
            place.agent = data.name
            caller = place.caller()
            if caller is not None:
                if caller.nested is None:
                    caller.nested = self.run.delegate(
                        caller.session,
                        f"nested:{span.parent_id}:{next(self._numbers)}",
                        agent=data.name,
                        payload=None if caller.arguments is None else caller.arguments,
                        how="tool",
                        call_id=caller.call_id,
                    )
                place.session = caller.nested
        elif data.type in _MODELS and parent is not None and parent.asked is not None:
            place.key, parent.begun = parent.begun or self.model_begun(parent), None

    def on_span_end(self, span: Any) -> None:
        """Something ended."""
        place = self._places.pop(span.span_id, None)
        if self._is_closed or place is None:
            return
        kind = span.span_data.type
        if kind in _MODELS:
            self._model_ended(span, place)
        elif kind == "function":
            self._tool_ended(span, place)
        elif kind == "handoff":
            self._handed_over(span, place)
        elif kind == "agent" and span.error is not None:
            place.top().error = str(span.error.get("message"))
        if place.parent is None:
            self._run_ended(span, place)

    def _root(self, span: Any) -> HookSession:
        group, name = self._groups.get(span.trace_id, (None, None))
        return self.run.session(
            span.span_id,
            conversation=group or span.trace_id,
            name=name,
            trace=span.trace_id,
            how="Runner.run",
        )

    def _run_ended(self, span: Any, place: Place) -> None:
        """A run is over, or stopped for an answer."""
        session, known = place.session, self.known(place.session)
        total = (getattr(span.span_data, "usage", None) or {}).get("total_tokens")
        if isinstance(total, int) and total:
            session.report_usage(total)
        for call_id in known.undecided:
            tool, arguments = known.calls.get(call_id, ("unknown", {}))
            session.asked(_approval(session, call_id), tool=tool, arguments=arguments, call_id=call_id)
        known.undecided.clear()
        if session.questions:
            self.run.waits(span.span_id)
        elif span.error is not None or place.error is not None:
            self.run.ended(span.span_id, "failed", reason=place.error or str(span.error.get("message")))
        else:
            self.run.ended(span.span_id)

    # -- model calls -------------------------------------------------------------------------------------------------

    def heard(self, session: HookSession, items: Any) -> None:
        """What a request shows of tools: a call without a run that has a result was refused, or gave nothing."""
        known = self.known(session)
        for call_id, output in results_in(items):
            tool, arguments = known.calls.get(call_id, ("unknown", {}))
            name = _approval(session, call_id)
            if any(one.approval_id == name for one in session.questions):
                session.decided(name, False, call_id=call_id, decided_by="unknown")
                session.tool_denied(call_id, tool, arguments, reason="not approved", shown=plain(output))
            elif call_id in known.undecided:
                key = f"tool:{next(self._numbers)}"
                session.tool_begun(key, tool, arguments, call_id=call_id)
                self.run.tool_returned(key, plain(output))
            known.undecided.discard(call_id)

    def model_begun(self, turn: Place) -> str:
        """A model is about to be asked what the run hook told; the first attempt is recorded where that can stop it."""
        key = f"model:{next(self._numbers)}:{id(self):x}"
        acts_as(turn.session, turn.agent)
        turn.session.model_begun(
            key,
            "openai.responses",
            {**(turn.asked or {}), **({"model": turn.model} if turn.model else {})},
            not_seen=("tools", "parameters"),
            attempt=len(turn.attempts) + 1,
            retry_of=turn.attempts[-1] if turn.attempts else None,
        )
        turn.attempts.append(key)
        return key

    def _model_ended(self, span: Any, place: Place) -> None:
        data, session = span.span_data, place.session
        parent = place.parent
        if place.key is None:
            protocol, request = request_of(data)
            self.heard(session, request.get("input") or request.get("messages") or [])
            acts_as(session, place.agent)
            place.key = f"model:{next(self._numbers)}:{id(self):x}"
            session.model_begun(place.key, protocol, request, not_seen=("tools", "parameters"))
            answer, told = answer_of(data)
        elif data.type == "generation" and span.error is None and parent is not None:
            parent.waiting = place.key  # the hook tells its id
            return
        else:
            answer, told = answer_of(data)
        if answer is None and span.error is not None:
            self.run.model_failed(place.key, described(span.error), kind=str(span.error.get("message")))
            return
        self.known(session).note(answer)
        self.run.model_answered(place.key, answer, **told)

    # -- tools -------------------------------------------------------------------------------------------------------

    def _tool_ended(self, span: Any, place: Place) -> None:
        data, known = span.span_data, self.known(place.session)
        if place.key is None:
            call_id = known.find(data.name, data.input)
            if data.output is None and span.error is None:
                if call_id is not None:
                    known.undecided.add(call_id)
                return
            self.tool_begun(place, data.name, arguments_of(data.input), call_id)
        if place.nested is not None:
            for key in list(place.nested.keys):
                self.run.ended(key, result=plain(data.output))
        if span.error is not None:
            shown = None if data.output is None else plain(data.output)
            self.run.tool_failed(place.key, described(span.error), kind="error", shown=shown)
        else:
            self.run.tool_returned(place.key, plain(data.output))

    def tool_begun(self, place: Place, tool: str, arguments: Any, call_id: str | None) -> None:
        """A tool runs, perhaps under an approval."""
        session = place.session
        if call_id is not None:
            name = _approval(session, call_id)
            if any(one.approval_id == name for one in session.questions):
                session.decided(name, True, call_id=call_id, decided_by="unknown", arguments=arguments)
            self.known(session).undecided.discard(call_id)
        acts_as(session, place.agent)
        place.key = f"tool:{next(self._numbers)}:{id(self):x}"
        place.call_id, place.arguments = call_id, arguments
        session.tool_begun(place.key, tool, arguments, call_id=call_id)

    def _handed_over(self, span: Any, place: Place) -> None:
        data, session = span.span_data, place.session
        call_id, tool, arguments = self.known(session).handoff(data.to_agent)
        acts_as(session, data.from_agent)
        if call_id is not None:
            self.tool_begun(place, tool, arguments, call_id)
            self.run.tool_returned(place.key, {"to_agent": data.to_agent})
        handed_over(session, data.to_agent, call_id=call_id)

    # -- what the run hooks tell -------------------------------------------------------------------------------------

    def place(self) -> Place | None:
        """The span that goes on in this task."""
        span = _current_span()
        return None if span is None or self._is_closed else self._places.get(span.span_id)

    def known(self, session: HookSession) -> Known:
        """The tool calls that the models of a session asked for."""
        return self._known.setdefault(session.session, Known())

    def hook_answered(self, place: Place, response: Any) -> None:
        """The answer of a chat model, whose span does not tell its id."""
        key = place.waiting or place.begun  # a model class without a span of its own is told here alone
        place.waiting = place.begun = None
        if key is None:
            return
        answer, told = answer_of(response)
        self.known(place.session).note(answer)
        self.run.model_answered(key, answer, **told)


class _Hooks(_RunHooks):  # type: ignore[misc, valid-type]
    """Tells the processor what spans do not say before a call is over."""

    def __init__(self, tracing: LedgerTracing) -> None:
        self._tracing = tracing

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        """A model is about to be asked."""
        place = self._tracing.place()
        if place is None:
            return
        items = [plain(item) for item in input_items]
        self._tracing.heard(place.session, items)
        if not place.top().is_heard and place.session.parent is None:
            place.top().is_heard = True
            for item in user_input(items):
                place.session.message(item)
        model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
        place.asked = {"input": items, **({"instructions": system_prompt} if system_prompt else {})}
        place.model = None if model is None else str(model)
        place.attempts.clear()
        place.begun = self._tracing.model_begun(place)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """A model answered."""
        place = self._tracing.place()
        if place is not None:
            place.asked = None
            self._tracing.hook_answered(place, response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to run: it needs no approval, or has one."""
        place = self._tracing.place()
        if place is not None and place.kind == "function" and place.key is None:
            arguments = arguments_of(getattr(context, "tool_arguments", None))
            self._tracing.tool_begun(place, tool.name, arguments, getattr(context, "tool_call_id", None))


def _approval(session: HookSession, call_id: str) -> str:
    return f"{session.session}:{call_id}"
