"""Microsoft Agent Framework: middleware of an agent, for its runs, its model calls and its tools. Changes nothing.

    with open_ledger() as ledger, LedgerMiddleware(ledger) as recording:
        expert = Agent(client=client, name="expert", middleware=[*recording])
        agent = Agent(client=client, tools=[expert.as_tool()], middleware=[*recording])
        response = await agent.run("Buy pumps.", session=agent.create_session(session_id="order-1"))

Give it to every agent: one without it is not seen. Requests are the framework's messages and options, before a client
turns them into its own; where the provider keeps the history (`conversation_id`), only what is added to it. Attempts
that an HTTP client makes by itself are one call here. In a workflow each agent has a session of its own, and a handoff
names the agent that goes on, without a link to its session.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any, NamedTuple, Self, Unpack

from ledger.capture.hooks._frameworks import arguments_of, framework_class, handed_over, version_of
from ledger.capture.hooks._run import HookOptions, HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.events.model_call import Usage
from ledger.protocols.plain import plain, type_name

_AgentMiddleware = framework_class("agent_framework", "AgentMiddleware", "agent-framework-core")
_ChatMiddleware = framework_class("agent_framework", "ChatMiddleware", "agent-framework-core")
_FunctionMiddleware = framework_class("agent_framework", "FunctionMiddleware", "agent-framework-core")

PROTOCOL = "agent-framework"
"""Shape of the messages: those of the framework."""

_HANDOFF = "handoff_to_"
_NOT_SEEN = ("the body as the client sends it",)
_KEPT_ELSEWHERE = "messages: those that the provider kept from earlier calls"
_ENDS = "MiddlewareTermination"

Next = Callable[[], Awaitable[None]]


class _Place(NamedTuple):
    """What runs in this task."""

    session: HookSession
    call_id: str | None = None


_running: ContextVar[_Place | None] = ContextVar("loopledger_agent_framework_run", default=None)
_within: ContextVar[_Place | None] = ContextVar("loopledger_agent_framework_tool", default=None)


class LedgerMiddleware:
    """The three middlewares of one recording: `middleware=[*recording]`. Close it, or use it in a `with` statement."""

    def __init__(self, ledger: HasRecorder, **options: Unpack[HookOptions]) -> None:
        self._members = (_Agents(self), _Chats(self), _Functions(self))
        self.hook = HookRun(
            ledger, harness=PROTOCOL, harness_version=version_of("agent-framework-core"), **options
        )
        self._numbers = count(1)
        self._runs: dict[str, HookSession] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.hook.close()

    def key(self, kind: str) -> str:
        """A name for what begins now."""
        return f"{kind}-{next(self._numbers)}-{id(self):x}"

    def began(self, context: Any, key: str) -> HookSession:
        """The session of a run of an agent; that of an agent as a tool is a session under the one that called it."""
        name = getattr(context.agent, "name", None) or getattr(context.agent, "id", None)
        conversation, within = _conversation(context), _within.get()
        if within is not None:
            payload = [_dict(message) for message in context.messages]
            session = self.hook.delegate(
                within.session, key, agent=name, payload=payload, how="tool", call_id=within.call_id
            )
        else:
            session = self.hook.session(key, conversation=conversation, agent=name, how="agent.run")
        if conversation is not None:
            self._runs[conversation] = session
        return session

    def of(self, context: Any) -> HookSession | None:
        """The session that a model or tool call belongs to. A stream may be read in another task than it began in."""
        conversation = _conversation(context)
        known = None if conversation is None else self._runs.get(conversation)
        place = _running.get()
        return known or (None if place is None else place.session)

    def over(self, context: Any) -> None:
        """A run is over."""
        if (conversation := _conversation(context)) is not None:
            self._runs.pop(conversation, None)


class _Agents(_AgentMiddleware):  # type: ignore[misc, valid-type]
    """Runs of agents."""

    def __init__(self, recording: LedgerMiddleware) -> None:
        super().__init__()
        self._recording = recording

    async def process(self, context: Any, call_next: Next) -> None:
        """A run, to its answer, to its questions, or to the end of its stream."""
        recording, key = self._recording, self._recording.key("run")
        session = recording.began(context, key)
        for message in context.messages:
            _heard(session, message)
        running, within = _running.set(_Place(session)), _within.set(None)
        try:
            await call_next()
        except BaseException as error:
            self._failed(context, key, error)
            raise
        finally:
            _running.reset(running)
            _within.reset(within)
        if context.stream and hasattr(context.result, "get_final_response"):
            context.result.with_pull_context_manager(lambda: _inside(session))
            context.stream_result_hooks.append(lambda response: self._ended(context, session, key, response))
            context.stream_cleanup_hooks.append(lambda: self._closed(context, key))
        else:
            self._ended(context, session, key, context.result)

    def _ended(self, context: Any, session: HookSession, key: str, response: Any) -> None:
        asked = [one for one in getattr(response, "user_input_requests", None) or [] if _is_asked(one)]
        for request in asked:
            call = request.function_call
            session.asked(
                str(request.id), tool=call.name, arguments=arguments_of(call.arguments), call_id=call.call_id
            )
        self._recording.over(context)
        if session.questions:
            self._recording.hook.waits(key)
        else:
            result = None if session.parent is None else getattr(response, "text", None)
            self._recording.hook.ended(key, result=result)

    def _closed(self, context: Any, key: str) -> None:
        """A stream was closed: with an error, or before its end."""
        if self._recording.hook.find(key) is not None and (error := _stream_error(context)) is not None:
            self._failed(context, key, error)

    def _failed(self, context: Any, key: str, error: BaseException) -> None:
        self._recording.over(context)
        outcome = "failed" if isinstance(error, Exception) else "cancelled"
        self._recording.hook.ended(key, outcome, reason=type_name(error))  # type: ignore[arg-type]


class _Chats(_ChatMiddleware):  # type: ignore[misc, valid-type]
    """Model calls."""

    def __init__(self, recording: LedgerMiddleware) -> None:
        super().__init__()
        self._recording = recording

    async def process(self, context: Any, call_next: Next) -> None:
        """A model call, to its answer or to the end of its stream."""
        hook, key = self._recording.hook, self._recording.key("model")
        session = self._recording.of(context)
        alone = None if session is not None else self._recording.key("call")
        if session is None:
            session = hook.session(alone, conversation=_conversation(context), how="client.get_response")
        body, not_seen = _body(context)
        session.model_begun(key, PROTOCOL, body, not_seen=not_seen)

        def closed() -> None:
            """Closed with an error; one that is closed early is settled with its session."""
            if (error := _stream_error(context)) is not None and hook.is_open(key):
                hook.model_failed(key, error)
            if alone is not None:
                hook.ended(alone, "unknown", reason="the stream was closed")

        if context.stream:
            context.stream_transform_hooks.append(lambda update: hook.model_chunk(key, _dict(update)))
            context.stream_result_hooks.append(lambda response: self._answered(key, response, alone))
            context.stream_cleanup_hooks.append(closed)
        try:
            await call_next()
        except BaseException as error:
            hook.model_failed(key, error)
            if alone is not None:
                hook.ended(alone, "failed", reason=type_name(error))
            raise
        if not context.stream:
            self._answered(key, context.result, alone)

    def _answered(self, key: str, response: Any, alone: str | None) -> None:
        hook = self._recording.hook
        messages = [_dict(message) for message in response.messages]
        reason = response.finish_reason
        hook.model_answered(
            key,
            messages[0] if len(messages) == 1 else messages,
            model=response.model,
            usage=_usage(response.usage_details),
            response_id=response.response_id,
            stop_reason=None if reason is None else str(plain(reason)),
        )
        if alone is not None:
            hook.ended(alone)


class _Functions(_FunctionMiddleware):  # type: ignore[misc, valid-type]
    """Executions of tools."""

    def __init__(self, recording: LedgerMiddleware) -> None:
        super().__init__()
        self._recording = recording

    async def process(self, context: Any, call_next: Next) -> None:
        """One execution."""
        session = self._recording.of(context)
        if session is None:
            await call_next()
            return
        hook, key, name = self._recording.hook, self._recording.key("tool"), context.function.name
        call_id = context.metadata.get("call_id")
        session.tool_begun(key, name, plain(context.arguments), call_id=call_id)
        within = _within.set(_Place(session, call_id))
        try:
            await call_next()
        except BaseException as error:
            if type(error).__name__ == _ENDS:  # a result in the tool's place; a handoff is told so
                hook.tool_returned(key, _result(getattr(error, "result", None) or context.result))
                if name.startswith(_HANDOFF):
                    handed_over(session, name.removeprefix(_HANDOFF), call_id=call_id)
            else:
                hook.tool_failed(key, error)
            raise
        finally:
            _within.reset(within)
        hook.tool_returned(key, _result(context.result))


@contextmanager
def _inside(session: HookSession) -> Iterator[None]:
    """Around the reading of a stream: what it calls belongs to that session."""
    running = _running.set(_Place(session))
    try:
        yield
    finally:
        _running.reset(running)


def _heard(session: HookSession, message: Any) -> None:
    """What comes into a run: words, or answers to questions."""
    others = []
    for content in message.contents:
        if content.type != "function_approval_response":
            others.append(content)
            continue
        call = content.function_call
        arguments = arguments_of(call.arguments)
        session.decided(str(content.id), bool(content.approved), call_id=call.call_id, decided_by="unknown")
        if not content.approved:
            session.tool_denied(call.call_id, call.name, arguments, reason="not approved")
    if others and session.parent is None:
        role = str(plain(message.role))
        session.message(_dict(message), origin="human" if role == "user" else "unknown")


def _is_asked(content: Any) -> bool:
    return content.type == "function_approval_request" and content.function_call is not None


def _conversation(context: Any) -> str | None:
    found = getattr(context.session, "session_id", None)
    return None if found is None else str(found)


def _stream_error(context: Any) -> BaseException | None:
    found = getattr(context.result, "_stream_error", None)
    return found if isinstance(found, BaseException) else None


def _result(result: Any) -> Any:
    """A tool's result: its text, where it is nothing else."""
    contents = result if isinstance(result, list) else [result]
    texts = [one.text for one in contents if getattr(one, "type", None) == "text"]
    if len(texts) == len(contents) == 1:
        return texts[0]
    return [_dict(one) for one in result] if isinstance(result, list) else _dict(result)


def _dict(value: Any) -> Any:
    """As the framework saves it."""
    return plain(value.to_dict() if callable(getattr(value, "to_dict", None)) else value)


def _body(context: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request in the framework's own shape, and what is not in it."""
    options = dict(context.options or {})
    tools = options.pop("tools", None) or []
    body: dict[str, Any] = {
        "messages": [_dict(message) for message in context.messages],
        "tools": [_tool(one) for one in (tools if isinstance(tools, list | tuple) else [tools])],
        **{name: plain(value) for name, value in options.items() if value is not None},
    }
    return body, (*_NOT_SEEN, _KEPT_ELSEWHERE) if options.get("conversation_id") else _NOT_SEEN


def _tool(tool: Any) -> Any:
    describe = getattr(tool, "to_json_schema_spec", None)
    return plain(describe() if callable(describe) else tool)


def _usage(details: Any) -> Usage | None:
    """Tokens, each counted once: the framework's input tokens include the cached ones."""
    if not details:
        return None
    read = details.get("cache_read_input_token_count") or 0
    written = details.get("cache_creation_input_token_count") or 0
    given = details.get("input_token_count")
    return Usage(
        input_tokens=None if given is None else max(0, given - read - written),
        output_tokens=details.get("output_token_count"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=details.get("reasoning_output_token_count"),
    )
