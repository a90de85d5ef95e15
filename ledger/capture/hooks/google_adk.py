"""Google ADK: a plugin of an App or a Runner. It sees sub-agents and agents that are tools. Changes nothing.

    with open_ledger() as ledger, LedgerPlugin(ledger) as plugin:
        runner = Runner(app=App(name="shop", root_agent=agent, plugins=[plugin]), session_service=...)
        async for event in runner.run_async(user_id=..., session_id=..., new_message=...): ...

Requests are those of the framework (`LlmRequest`), which each model class turns into its own. Gemini's response id
reaches no callback: what a proxy records is joined by call ids and by run id. A transfer goes on in the same session.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple, Self, Unpack

from ledger.capture.hooks._frameworks import acts_as, framework_class, handed_over, version_of
from ledger.capture.hooks._run import HookOptions, HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.protocols.plain import plain, type_name

_BasePlugin = framework_class("google.adk.plugins.base_plugin", "BasePlugin", "google-adk")

_CONFIRMATION = "adk_request_confirmation"
_TRANSFER = "transfer_to_agent"
_PROTOCOL = "gemini"
_NOT_SEEN = ("the body as the model class sends it",)


class _Within(NamedTuple):
    """The tool call that runs in this task: what runs an agent below it is a delegation."""

    conversation: str
    session: HookSession
    call_id: str | None


_within: ContextVar[_Within | None] = ContextVar("loopledger_adk_tool", default=None)


class LedgerPlugin(_BasePlugin):  # type: ignore[misc, valid-type]
    """Records every run of the App that it is a plugin of."""

    def __init__(self, ledger: HasRecorder, **options: Unpack[HookOptions]) -> None:
        super().__init__(name="loopledger")
        self.run = HookRun(ledger, harness="google-adk", harness_version=version_of("google-adk"), **options)
        self._calls: dict[str, str] = {}
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.run.close()

    # -- runs --------------------------------------------------------------------------------------------------------

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> None:
        """A run begins with what the user says, or with what the user decides."""
        session, _ = self._begin(invocation_context, user_message)
        told = []
        for part in getattr(user_message, "parts", None) or []:
            answer = getattr(part, "function_response", None)
            if answer is None or answer.name != _CONFIRMATION:
                told.append(part)
                continue
            confirmed = answer.response.get("confirmed") if isinstance(answer.response, dict) else None
            outcome: bool | str = confirmed if isinstance(confirmed, bool) else "unknown"
            session.decided(str(answer.id), outcome, decider=invocation_context.user_id)
        if told and session.parent is None:
            session.message({"role": "user", "parts": _json(told)})

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """A run without a message begins here."""
        self._begin(invocation_context, None)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """A run ended, or stopped for an answer."""
        key = _run_key(invocation_context)
        cut = [place for place in self._calls if place.startswith(f"{key}:")]
        for place in cut:
            del self._calls[place]
        session = self.run.find(key)
        if session is not None and session.questions:
            self.run.waits(key)
        elif cut:
            self.run.ended(key, "aborted", reason="nobody read the run to its end")
        else:
            self.run.ended(key)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """A run ended with an error."""
        self.run.ended(_run_key(invocation_context), "failed", reason=type_name(error))

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """Questions for a confirmation, transfers, and changes of the state stand in events."""
        session, _ = self._begin(invocation_context, None)
        for call in event.get_function_calls():
            if call.name == _CONFIRMATION and not event.partial:
                asked = (call.args or {}).get("originalFunctionCall") or {}
                session.asked(
                    str(call.id),
                    tool=str(asked.get("name")),
                    arguments=asked.get("args") or {},
                    call_id=str(asked.get("id")),
                    context=(call.args or {}).get("toolConfirmation"),
                )
        actions = event.actions
        if actions is not None and not event.partial:
            if actions.transfer_to_agent:
                calls = [one.id for one in event.get_function_responses() if one.name == _TRANSFER]
                handed_over(session, actions.transfer_to_agent, call_id=calls[0] if calls else None)
            for name, value in (actions.state_delta or {}).items():
                session.artifact(f"state:{name}", plain(value), "memory", cause="agent")

    def _begin(self, context: Any, payload: Any) -> tuple[HookSession, str]:
        """The session of an invocation; that of an agent as a tool is a session under the one that called it."""
        key, conversation, within = _run_key(context), context.session.id, _within.get()
        agent = getattr(context.agent, "name", None)
        known = self.run.find(key)
        if known is not None:
            return known, conversation
        if within is not None and within.conversation != conversation:
            child = self.run.delegate(
                within.session, key, agent=agent, payload=_json(payload), how="tool", call_id=within.call_id
            )
            return child, conversation
        session = self.run.session(
            key,
            conversation=conversation,
            agent=agent,
            name=context.app_name,
            how="runner.run_async",
            user=context.user_id,
            invocation=context.invocation_id,
        )
        return session, conversation

    # -- model calls -------------------------------------------------------------------------------------------------

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """A model is about to be asked."""
        context = callback_context._invocation_context
        session, _ = self._begin(context, None)
        place = _place(context)
        if (open_call := self._calls.pop(place, None)) is not None:
            self.run.model_failed(open_call, "another call began before its end was told", kind="unknown")
        self._number += 1
        key = f"{place}:{self._number}"
        acts_as(session, callback_context.agent_name)
        session.model_begun(key, _PROTOCOL, _request(llm_request), not_seen=_NOT_SEEN)
        self._calls[place] = key

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """The model answered, or a part of its answer arrived."""
        context = callback_context._invocation_context
        place = _place(context)
        key = self._calls.get(place)
        if key is None:
            return
        body = _response(llm_response)
        if llm_response.partial:
            self.run.model_chunk(key, body)
            return
        del self._calls[place]
        acts_as(self._begin(context, None)[0], callback_context.agent_name)
        if llm_response.error_code and llm_response.content is None:
            said = llm_response.error_message or str(llm_response.error_code)
            self.run.model_failed(key, said, kind=str(llm_response.error_code))
        else:
            self.run.model_answered(key, body)

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: Any, error: Exception
    ) -> None:
        """The model call raised."""
        key = self._calls.pop(_place(callback_context._invocation_context), None)
        if key is not None:
            self.run.model_failed(key, error)

    # -- tools -------------------------------------------------------------------------------------------------------

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> None:
        """A tool is about to run, unless it must be confirmed first or was refused."""
        session, conversation = self._begin(tool_context._invocation_context, None)
        call_id, confirmation = tool_context.function_call_id, tool_context.tool_confirmation
        acts_as(session, tool_context.agent_name)
        must_ask = getattr(tool, "_require_confirmation", False)
        if must_ask and confirmation is None and must_ask is True:
            return
        if must_ask and confirmation is not None and not confirmation.confirmed:
            return  # the result says so
        session.tool_begun(_tool_key(tool_context), tool.name, tool_args, call_id=call_id)
        _within.set(_Within(conversation, session, call_id))

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """A tool returned, asked for a confirmation, or was refused."""
        _within.set(None)
        key, call_id = _tool_key(tool_context), tool_context.function_call_id
        session, _ = self._begin(tool_context._invocation_context, None)
        acts_as(session, tool_context.agent_name)
        confirmation = tool_context.tool_confirmation
        if call_id in (tool_context.actions.requested_tool_confirmations or {}):
            return
        if self.run.is_open(key):
            self.run.tool_returned(key, _json(result))
        elif confirmation is not None and not confirmation.confirmed:
            session.tool_denied(call_id, tool.name, tool_args, reason="not confirmed", shown=_json(result))

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> None:
        """A tool raised."""
        _within.set(None)
        self.run.tool_failed(_tool_key(tool_context), error)


def _run_key(context: Any) -> str:
    return f"{context.session.id}:{context.invocation_id}"


def _place(context: Any) -> str:
    """Where one model call at a time is made."""
    return f"{_run_key(context)}:{context.branch or ''}:{context.agent.name}"


def _tool_key(context: Any) -> str:
    return f"{_run_key(context._invocation_context)}:{context.function_call_id}"


def _json(value: Any) -> Any:
    """As the API of Gemini spells it: what was not set is left out."""
    if isinstance(value, list):
        return [_json(one) for one in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return plain(dump(mode="json", by_alias=True, exclude_none=True))
    return plain(value)


def _request(request: Any) -> dict[str, Any]:
    """A request in Gemini's shape, whatever model class will send it."""
    config = request.config
    body: dict[str, Any] = {"contents": _json(list(request.contents)), "model": request.model}
    if config is None:
        return body
    if config.system_instruction is not None:
        body["systemInstruction"] = _json(config.system_instruction)
    tools = [
        _json(one) if hasattr(one, "model_dump") else {"name": type_name(one)} for one in config.tools or []
    ]
    if tools:
        body["tools"] = tools
    left_out = {"system_instruction", "tools", "http_options", "response_schema"}
    rest = plain(config.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=left_out))
    if rest:
        body["generationConfig"] = rest
    if config.response_schema is not None:
        body["responseSchema"] = plain(config.response_schema)
    return body


def _response(response: Any) -> dict[str, Any]:
    """A response in Gemini's shape."""
    candidate: dict[str, Any] = {"content": _json(response.content) if response.content else {"parts": []}}
    if response.finish_reason is not None:
        candidate["finishReason"] = plain(response.finish_reason)
    body: dict[str, Any] = {"candidates": [candidate]}
    if response.usage_metadata is not None:
        body["usageMetadata"] = _json(response.usage_metadata)
    if response.model_version is not None:
        body["modelVersion"] = response.model_version
    return body
