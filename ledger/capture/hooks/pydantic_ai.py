"""Pydantic AI: a capability of an agent, or of one run. It sees model calls, tools, approvals, agents inside tools.

    with open_ledger() as ledger, LedgerCapability(ledger) as capability:
        agent = Agent("openai:gpt-5", tools=[...], capabilities=[capability])
        result = await agent.run("Buy pumps.", conversation_id="order-1")

Requests are the framework's messages and tool definitions, before a model class turns them into its own. Attempts
that an HTTP client makes by itself are one call here. It listens to no events, since that would make the framework
stream.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, Unpack

from ledger.capture.hooks._frameworks import acts_as, arguments_of, framework_class, version_of
from ledger.capture.hooks._run import HookOptions, HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.events.model_call import Usage
from ledger.protocols.plain import plain, type_name

_Capability = framework_class("pydantic_ai.capabilities", "AbstractCapability", "pydantic-ai-slim")
_Request = framework_class("pydantic_ai.messages", "ModelRequest", "pydantic-ai-slim")

PROTOCOL = "pydantic-ai"
"""Shape of the messages: those of the framework."""

_NOT_SEEN = ("the body as the model class sends it",)
_DEFERRED = frozenset({"ApprovalRequired", "CallDeferred"})
_REFUSED = frozenset({"ToolRetryError", "ToolFailedError", "ModelRetry", "ToolFailed"})


class _Within(NamedTuple):
    """The tool call that runs in this task: an agent that runs below it is a delegation."""

    session: HookSession
    call_id: str


_within: ContextVar[_Within | None] = ContextVar("loopledger_pydantic_ai_tool", default=None)


class LedgerCapability(_Capability):  # type: ignore[misc, valid-type]
    """Records every run of the agents that it is a capability of; give one to several agents."""

    def __init__(self, ledger: HasRecorder, **options: Unpack[HookOptions]) -> None:
        super().__init__()
        self._hook = HookRun(
            ledger, harness=PROTOCOL, harness_version=version_of("pydantic-ai-slim"), **options
        )
        self._asked: dict[str, Any] = {}
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._hook.close()

    # -- runs --------------------------------------------------------------------------------------------------------

    async def wrap_run(self, ctx: Any, *, handler: Callable[[], Awaitable[Any]]) -> Any:
        """A run, from its prompt to its output; one that ends with questions goes on with their answers."""
        key, agent, within = ctx.run_id, getattr(ctx.agent, "name", None), _within.get()
        if within is not None:
            session = self._hook.delegate(
                within.session,
                key,
                agent=agent,
                payload=plain(ctx.prompt),
                how="tool",
                call_id=within.call_id,
            )
        else:
            session = self._hook.session(
                key, conversation=ctx.conversation_id, agent=agent, how="agent.run", run_id=key
            )
            if ctx.prompt is not None:
                session.message({"role": "user", "content": plain(ctx.prompt)})
        token, before = _within.set(None), _total(ctx.usage)
        try:
            result = await handler()
        except BaseException as error:
            is_error = isinstance(error, Exception)
            self._hook.ended(key, "failed" if is_error else "cancelled", reason=type_name(error))
            raise
        finally:
            _within.reset(token)
        if within is None and (used := _total(ctx.usage) - before) > 0:
            session.report_usage(used)
        if any(self._waits(session, call) for call in _approvals(result.output)):
            self._hook.waits(key)
        else:
            self._hook.ended(key, result=None if within is None else plain(result.output))
        return result

    async def handle_deferred_tool_calls(self, ctx: Any, *, requests: Any) -> None:
        """Tools wait for an approval: asked here, answered by whoever comes next, or in the next run."""
        session = self._hook.find(ctx.run_id)
        for call in requests.approvals:
            if session is not None:
                self._ask(session, call)

    def _ask(self, session: HookSession, call: Any) -> None:
        name = _approval(session, call.tool_call_id)
        if name not in self._asked:
            self._asked[name] = call
            session.asked(
                name, tool=call.tool_name, arguments=arguments_of(call.args), call_id=call.tool_call_id
            )

    def _waits(self, session: HookSession, call: Any) -> bool:
        """Whether that call is still without an answer; it is asked about if no hook told of it."""
        self._ask(session, call)
        return _is_asked(session, _approval(session, call.tool_call_id))

    def _refusals(self, session: HookSession, messages: list[Any]) -> None:
        """Calls that were denied have a result in the history and did not run."""
        last = messages[-1] if messages else None
        if not isinstance(last, _Request):
            return
        for part in last.parts:
            if getattr(part, "outcome", None) != "denied":
                continue
            name = _approval(session, part.tool_call_id)
            call = self._asked.pop(name, None)
            if _is_asked(session, name) or call is None:
                session.decided(name, False, call_id=part.tool_call_id, decided_by="unknown")
            arguments = {} if call is None else arguments_of(call.args)
            session.tool_denied(
                part.tool_call_id, part.tool_name, arguments, reason="denied", shown=part.content
            )

    # -- model calls -------------------------------------------------------------------------------------------------

    async def wrap_model_request(
        self, ctx: Any, *, request_context: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """One model request, streamed or not; what streams is whole when it comes back."""
        session = self._hook.find(ctx.run_id)
        if session is None:
            return await handler(request_context)
        self._number += 1
        key = f"{ctx.run_id}:model:{self._number}"
        acts_as(session, getattr(ctx.agent, "name", None))
        self._refusals(session, request_context.messages)
        model = request_context.model
        session.model_begun(
            key,
            PROTOCOL,
            _body(request_context),
            provider=getattr(model, "system", None),
            not_seen=_NOT_SEEN,
        )
        try:
            response = await handler(request_context)
        except BaseException as error:
            self._hook.model_failed(key, error)
            raise
        self._hook.model_answered(
            key,
            plain(response),
            model=response.model_name,
            usage=_usage(response.usage),
            response_id=response.provider_response_id,
            stop_reason=_stop(response),
        )
        return response

    # -- tools -------------------------------------------------------------------------------------------------------

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """One execution of a tool."""
        session = self._hook.find(ctx.run_id)
        if session is None:
            return await handler(args)
        call_id = call.tool_call_id
        key = f"{ctx.run_id}:{call_id}:{ctx.retry}"
        acts_as(session, getattr(ctx.agent, "name", None))
        if ctx.tool_call_approved:
            name = _approval(session, call_id)
            self._asked.pop(name, None)
            session.decided(name, True, call_id=call_id, decided_by="unknown", arguments=plain(args))
        session.tool_begun(key, call.tool_name, plain(args), call_id=call_id)
        token = _within.set(_Within(session, call_id))
        try:
            result = await handler(args)
        except BaseException as error:
            self._failed(session, key, call, error)
            raise
        finally:
            _within.reset(token)
        self._hook.tool_returned(key, plain(result))
        return result

    def _failed(self, session: HookSession, key: str, call: Any, error: BaseException) -> None:
        name = type(error).__name__
        if name in _DEFERRED:
            return  # it stopped to be gone on with, in this run or the next
        if name in _REFUSED:
            shown = getattr(getattr(error, "tool_retry", None), "content", None) or str(error)
            self._hook.tool_failed(key, str(shown), kind=name, shown=shown)
        else:
            self._hook.tool_failed(key, error)


def _approvals(output: Any) -> list[Any]:
    """The calls that a run's output asks to approve."""
    found = getattr(output, "approvals", None)
    return found if isinstance(found, list) and type(output).__name__ == "DeferredToolRequests" else []


def _approval(session: HookSession, call_id: str) -> str:
    return f"{session.session}:{call_id}"


def _is_asked(session: HookSession, approval_id: str) -> bool:
    return any(question.approval_id == approval_id for question in session.questions)


def _body(context: Any) -> dict[str, Any]:
    """A request in the framework's own shape."""
    parameters, model = context.model_request_parameters, context.model
    body: dict[str, Any] = {
        "model": getattr(model, "model_name", None),
        "messages": [plain(message) for message in context.messages],
        "tools": [plain(tool) for tool in (*parameters.function_tools, *parameters.output_tools)],
    }
    if context.model_settings:
        body["settings"] = plain(context.model_settings)
    return body


def _usage(usage: Any) -> Usage | None:
    """Tokens, each counted once: the framework's input tokens include the cached ones."""
    if usage is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    return Usage(
        input_tokens=max(0, (usage.input_tokens or 0) - read - written),
        output_tokens=usage.output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=(usage.details or {}).get("reasoning_tokens"),
    )


def _total(usage: Any) -> int:
    """All tokens that a run has used so far, those of agents that share its counter included."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _stop(response: Any) -> str | None:
    details = response.provider_details or {}
    reason = details.get("finish_reason") or response.finish_reason
    return None if reason is None else str(reason)
