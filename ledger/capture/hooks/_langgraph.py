"""What LangChain's objects say, as the fields of our events: messages, requests, questions. Records nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ledger.capture.calls import AnswerFacts
from ledger.protocols.interrupts import actions_in, matching
from ledger.protocols.langchain import usage_of
from ledger.protocols.plain import plain, type_name

PROTOCOL = "langchain"
"""Shape of the messages: LangChain's own."""

_NOT_SENT = frozenset({"_type", "model", "model_name", "tools", "messages", "functions"})
_OWN_IDS = ("lc_", "run-", "run--")
_RUNTIME = "ToolRuntime"


class ToolRequest(NamedTuple):
    """A tool call that an answer asks for."""

    call_id: str | None
    """Its id."""

    tool: str
    """Name of the tool."""

    arguments: Any
    """Its arguments."""


class Asked(NamedTuple):
    """One action that an interrupt asks about."""

    approval_id: str
    """The interrupt's id; with a number where it asks about several actions."""

    tool: str | None
    """Tool that it is about."""

    call_id: str | None
    """Call that it is about."""

    arguments: Any
    """Arguments shown."""

    shown: Any
    """The whole question."""


def message_of(message: Any) -> Any:
    """A message as JSON."""
    return plain(message)


def request_of(
    messages: Sequence[Any], parameters: Mapping[str, Any], metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """The request as far as callbacks see it; what clients add to the body on the way is not in it."""
    listed = [message_of(message) for message in messages]
    request: dict[str, Any] = {"messages": listed}
    if listed and isinstance(listed[0], dict) and listed[0].get("type") == "system":
        request |= {"system": listed[0], "messages": listed[1:]}
    model = parameters.get("model") or parameters.get("model_name") or metadata.get("ls_model_name")
    if isinstance(model, str):
        request["model"] = model
    tools = parameters.get("tools") or parameters.get("functions")
    if tools:
        request["tools"] = tools
    rest = {name: value for name, value in parameters.items() if name not in _NOT_SENT and value is not None}
    return request | rest


def answer_of(result: Any) -> tuple[Any, AnswerFacts]:
    """The answer in an `LLMResult`, and what is told of it."""
    generations = getattr(result, "generations", None) or [[]]
    first = generations[0][0] if generations[0] else None
    message = getattr(first, "message", None)
    if message is None:
        return getattr(first, "text", ""), {}
    shape = plain(message)
    about = plain(getattr(message, "response_metadata", None)) or {}
    told: AnswerFacts = {
        "usage": usage_of(plain(getattr(message, "usage_metadata", None))),
        "response_id": _provider_id(about.get("id")) or _provider_id(getattr(message, "id", None)),
        "model": _text(about.get("model_name")) or _text(about.get("model")),
        "stop_reason": _text(about.get("finish_reason"))
        or _text(about.get("stop_reason"))
        or _text(about.get("status")),
    }
    return shape, told


def chunk_of(token: Any, chunk: Any) -> Any:
    """What a chunk adds: its text, or its content with pieces of tool calls; None when it adds nothing."""
    message = getattr(chunk, "message", None)
    calls = getattr(message, "tool_call_chunks", None)
    content = token if message is None else message.content
    if calls:
        return {"content": plain(content), "tool_call_chunks": plain(calls)}
    return plain(content) or None


def arguments_of(inputs: Any, text: str) -> Any:
    """The arguments of a tool as the model gave them, without what the graph puts in beside them."""
    if not isinstance(inputs, Mapping):
        return text
    return {name: value for name, value in inputs.items() if type(value).__name__ != _RUNTIME}


def result_of(output: Any) -> tuple[Any, bool]:
    """What the model is shown of a tool's result, and whether it tells of an error."""
    if type(output).__name__ == "ToolMessage":
        return plain(output.content), output.status == "error"
    return plain(output), False


def failure_of(error: BaseException) -> str:
    """Kind of an error."""
    return type_name(error)


def requested_in(state: Any) -> list[ToolRequest]:
    """The tool calls in the last answer of a node's input."""
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    for message in reversed(messages if isinstance(messages, list | tuple) else []):
        if calls := getattr(message, "tool_calls", None):
            return [ToolRequest(call.get("id"), call["name"], call.get("args")) for call in calls]
    return []


def asked_by(interrupt: Any, calls: Sequence[ToolRequest], running: ToolRequest | None) -> list[Asked]:
    """The questions of one interrupt; `running` is the tool that it was raised in."""
    shown = plain(getattr(interrupt, "value", None))
    name = str(getattr(interrupt, "id", "") or getattr(interrupt, "interrupt_id", ""))
    if running is not None:
        return [Asked(name, running.tool, running.call_id, running.arguments, shown)]
    actions = actions_in(shown)
    if not actions:
        return [Asked(name, None, None, None, shown)]
    left, found = list(calls), []
    for place, (tool, call_id, arguments) in enumerate(actions):
        call = matching(tool, call_id, arguments, left)
        if call is not None:
            left.remove(call)
            tool, call_id = tool or call.tool, call.call_id
        single = f"{name}.{place}" if len(actions) > 1 else name
        found.append(Asked(single, tool, call_id, arguments, shown))
    return found


def tool_messages(outputs: Any) -> list[tuple[str, Any]]:
    """The results of tools in what a node gave: the call's id, and what the model is shown."""
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
    return [
        (str(message.tool_call_id), plain(message.content))
        for message in (messages if isinstance(messages, list | tuple) else [])
        if type(message).__name__ == "ToolMessage"
    ]


def said_in(state: Any) -> list[Any]:
    """What humans say in the input of a graph."""
    messages = state.get("messages") if isinstance(state, Mapping) else None
    found: list[Any] = []
    for message in messages if isinstance(messages, list | tuple) else [messages]:
        match message:
            case str():
                found.append({"type": "human", "content": message})
            case ("user" | "human", text):
                found.append({"type": "human", "content": plain(text)})
            case {"role": "user" | "human"}:
                found.append(plain(message))
            case _ if getattr(message, "type", None) == "human":
                found.append(plain(message))
    return found


def last_message(outputs: Any) -> Any:
    """What a graph gives back: its last message, or all of it where it has none."""
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
    return plain(messages[-1]) if isinstance(messages, list | tuple) and messages else plain(outputs)


def _provider_id(value: Any) -> str | None:
    """An id that the provider gave, not LangChain."""
    return value if isinstance(value, str) and value and not value.startswith(_OWN_IDS) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
