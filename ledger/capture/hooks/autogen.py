"""AutoGen: a log handler that records what teams and agents write into the structured event log.

    with open_ledger() as ledger, LedgerHandler(ledger):
        await team.run(task="Buy pumps.")

The handler attaches itself to the channel `autogen_core.events`. A team is a session, its agents take turns in it.
AutoGen logs a model call and a tool call when they have ended: so both are recorded after the fact, and a store that
cannot write is warned of instead of stopping the loop. A handoff is work delegated in the same session; input that a
`UserProxyAgent` asks for is a question; an agent that raises ends the session as failed. A model call that fails
without an answer is in no log; of a streamed answer neither response id nor cached tokens are. The proxy sees these.
"""

import logging
from collections.abc import Mapping
from typing import Any, Self

from ledger.capture.hooks._frameworks import acts_as, handed_over, version_of
from ledger.capture.hooks._run import HookRun
from ledger.capture.hooks._session import HookSession
from ledger.capture.loop import HasRecorder
from ledger.errors import LedgerError
from ledger.events.canonical import decode_json
from ledger.events.tool_call import EffectClass
from ledger.protocols.tool_use import calls_in

CHANNEL = "autogen_core.events"
"""Name of the logger."""

_PROTOCOL = "openai.chat"
_REASON_KEPT = 500


class LedgerHandler(logging.Handler):
    """Records while it is open: as a context manager, or until `close()`."""

    def __init__(
        self,
        ledger: HasRecorder,
        *,
        effects: Mapping[str, EffectClass] | None = None,
        run_id: str | None = None,
    ) -> None:
        super().__init__(logging.INFO)
        self.run = HookRun(
            ledger,
            harness="autogen",
            harness_version=version_of("autogen-core"),
            fail_open=True,
            effects=effects,
            run_id=run_id,
        )
        """What it records with; `run.counts` says how much."""
        self._waiting: dict[str, dict[str, tuple[str, Any]]] = {}
        self._streams: dict[str, list[Any]] = {}
        self._last_calls: dict[str, str | None] = {}
        self._asked: dict[str, str] = {}
        self._failed: set[str] = set()
        self._number = 0
        self._logger = logging.getLogger(CHANNEL)
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self)

    def close(self) -> None:
        """Take the handler off the channel and end the sessions."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        for key in list(self._waiting):
            self.run.ended(key)
        self._waiting.clear()
        self.run.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def emit(self, record: logging.LogRecord) -> None:
        """Record one entry; logging must not raise into the framework."""
        told = getattr(record.msg, "kwargs", None)
        if not isinstance(told, Mapping):
            return
        try:
            match told.get("type"):
                case "LLMCall":
                    self._model(told, told.get("messages"), is_streamed=False)
                case "LLMStreamStart":
                    self._streams[str(told.get("agent_id"))] = list(told.get("messages") or ())
                case "LLMStreamEnd":
                    messages = self._streams.pop(str(told.get("agent_id")), None)
                    self._model(told, messages, is_streamed=True)
                case "ToolCall":
                    self._tool(told)
                case "Message":
                    self._message(told)
                case "MessageHandlerException":
                    self._raised(told)
        except LedgerError:
            self.handleError(record)

    def _session(self, agent_id: Any) -> tuple[str, HookSession]:
        """An agent's id is `NAME_TEAM/TEAM`; agents outside of a team share one session."""
        name, _, team = str(agent_id or "").partition("/")
        key = team or "no team"
        self._failed.discard(key)
        session = self.run.session(key, conversation=team or None)
        acts_as(session, name.removesuffix(f"_{team}") or None)
        self._waiting.setdefault(key, {})
        return key, session

    def _model(self, told: Mapping[str, Any], messages: Any, *, is_streamed: bool) -> None:
        key, session = self._session(told.get("agent_id"))
        response = told.get("response")
        response = response if isinstance(response, Mapping) else {}
        self._number += 1
        call = f"{key}-model-{self._number}"
        request: dict[str, Any] = {"model": response.get("model"), "stream": is_streamed or None}
        request |= {"messages": messages, "tools": told.get("tools") or None}
        seen = {name: value for name, value in request.items() if value is not None}
        session.model_begun(call, _PROTOCOL, seen, not_seen=["parameters"], grade="near-wire")
        self.run.model_answered(call, dict(response))
        content = response.get("content")
        for use in (
            content if isinstance(content, list) else ()
        ):  # a streamed answer is in AutoGen's own shape
            if isinstance(use, Mapping) and isinstance(use.get("id"), str):
                self._waiting[key][use["id"]] = (str(use.get("name")), _arguments(use.get("arguments")))
        for choice in response.get("choices") or ():
            for use in calls_in(choice.get("message")):
                if use.call_id is not None:
                    self._waiting[key][use.call_id] = (use.tool, use.arguments)

    def _tool(self, told: Mapping[str, Any]) -> None:
        """The entry names no call: it is the oldest of that name and these arguments that has no result."""
        key, session = self._session(told.get("agent_id"))
        wanted = (told.get("tool_name"), told.get("arguments"))
        call_id = next((name for name, call in self._waiting[key].items() if call == wanted), None)
        if call_id is not None:
            del self._waiting[key][call_id]
        self._last_calls[key] = call_id
        self._settle(session, call_id, str(wanted[0]), wanted[1], told.get("result"), is_error=False)

    def _raised(self, told: Mapping[str, Any]) -> None:
        """An agent raised; the runtime tells of it for every agent that the error goes through."""
        if str(told.get("handling_agent")).partition("/")[2] in self._failed:
            return
        key, _ = self._session(told.get("handling_agent"))
        self._failed.add(key)
        self.run.ended(key, "failed", reason=str(told.get("exception"))[:_REASON_KEPT])

    def _message(self, told: Mapping[str, Any]) -> None:
        """What agents send on: results of tools, handoffs, and input that is asked for."""
        if not str(told.get("delivery_stage")).endswith("SEND"):
            return
        try:
            payload = decode_json(str(told.get("payload")))
        except ValueError:
            return
        message = payload.get("message") if isinstance(payload, dict) else None
        if not isinstance(message, dict):
            return
        source = str(message.get("source"))
        match message.get("type"):
            case "ToolCallExecutionEvent":
                self._results(*self._session(told.get("sender")), message)
            case "HandoffMessage":
                key, session = self._session(told.get("sender"))
                payload = message.get("content")
                call_id = self._last_calls.get(key)
                handed_over(session, str(message.get("target")), call_id=call_id, payload=payload)
            case "UserInputRequestedEvent":
                key, session = self._session(told.get("sender"))
                self._asked[f"{key}:{source}"] = str(message.get("request_id"))
                session.asked(str(message.get("request_id")), decider=source, how="UserProxyAgent")
            case "TextMessage":
                key, session = self._session(told.get("sender"))
                request = self._asked.pop(f"{key}:{source}", None)
                if request is not None:
                    session.message(message.get("content"), sender=source)
                    session.decided(request, "unknown", decider=source)
            case _:
                pass

    def _results(self, key: str, session: HookSession, message: Mapping[str, Any]) -> None:
        """A tool that failed is seen here only."""
        for result in message.get("content") or ():
            call = self._waiting[key].pop(str(result.get("call_id")), None)
            if call is not None:
                is_error = bool(result.get("is_error"))
                self._settle(session, result["call_id"], *call, result.get("content"), is_error=is_error)

    def _settle(
        self,
        session: HookSession,
        call_id: str | None,
        tool: str,
        arguments: Any,
        result: Any,
        *,
        is_error: bool,
    ) -> None:
        self._number += 1
        key = f"{session.session}-tool-{self._number}"
        if call_id is None:
            session.tool_begun(key, tool, arguments)
        else:
            session.tool_begun(key, tool, arguments, call_id=call_id)
        if is_error:
            self.run.tool_failed(key, str(result), kind="ToolError", shown=result)
        else:
            self.run.tool_returned(key, result)


def _arguments(text: Any) -> Any:
    try:
        return decode_json(text) if isinstance(text, str) else text
    except ValueError:
        return text
