"""What spans of the OpenAI Agents SDK say: requests, answers, the tool calls in them. Records nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ledger.capture.calls import AnswerFacts
from ledger.capture.hooks._frameworks import arguments_of
from ledger.capture.hooks._session import HookSession
from ledger.events.model_call import Usage
from ledger.protocols.plain import plain

_FAKE = "__fake_id__"
_HANDOFF = "transfer_to_"
_CALLS_KEPT = 1000


@dataclass
class Place:
    """A span that goes on."""

    session: HookSession
    """Whose it is."""

    kind: str
    """Its type."""

    parent: "Place | None" = None
    """The span around it."""

    agent: str | None = None
    """The agent that acts in it."""

    key: str | None = None
    """Of the model or tool call that was recorded for it."""

    call_id: str | None = None
    """The model's id of the tool call."""

    arguments: Any = None
    """Of the tool call."""

    nested: HookSession | None = None
    """The session of the agent that runs inside the tool."""

    asked: dict[str, Any] | None = None
    """What the next model call in it is asked."""

    model: str | None = None
    """The model that is asked."""

    attempts: list[str] = field(default_factory=list)
    """Model calls that were made to answer that."""

    begun: str | None = None
    """The model call that was recorded before its span began."""

    waiting: str | None = None
    """The model call whose answer the hook will tell."""

    error: str | None = None
    """What went wrong in a run."""

    is_heard: bool = False
    """Whether the input of a run was recorded."""

    def top(self) -> "Place":
        """The span of the whole run."""
        place = self
        while place.parent is not None:
            place = place.parent
        return place

    def caller(self) -> "Place | None":
        """The tool call inside which it goes on, below the next agent above."""
        place = self.parent
        while place is not None and place.kind not in ("function", "agent"):
            place = place.parent
        return place if place is not None and place.kind == "function" else None


class Known:
    """Tool calls that the models of one session asked for."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, Any]] = {}
        """Name and arguments by id."""
        self.undecided: set[str] = set()
        """Calls that did not run and gave no result so far."""
        self._raw: dict[str, Any] = {}
        self._taken: set[str] = set()

    def note(self, answer: Any) -> None:
        """Remember the calls of an answer."""
        for call_id, name, arguments in _calls_in(answer):
            self.calls[call_id] = (name, arguments_of(arguments))
            self._raw[call_id] = arguments
            while len(self.calls) > _CALLS_KEPT:
                oldest = next(iter(self.calls))
                del self.calls[oldest], self._raw[oldest]
                self._taken.discard(oldest)

    def find(self, name: str, given: Any) -> str | None:
        """The call that a span without an id belongs to: by name and arguments, each once unless it waits."""
        for call_id, (tool, _) in self.calls.items():
            is_free = call_id not in self._taken or call_id in self.undecided
            if tool == name and is_free and (given is None or self._raw[call_id] == given):
                self._taken.add(call_id)
                return call_id
        return next(
            (one for one, (tool, _) in self.calls.items() if tool == name and one in self._taken), None
        )

    def handoff(self, to_agent: str | None) -> tuple[str | None, str, Any]:
        """The call that hands over."""
        for call_id, (tool, arguments) in self.calls.items():
            if tool.startswith(_HANDOFF) and call_id not in self._taken:
                self._taken.add(call_id)
                return call_id, tool, arguments
        return None, f"{_HANDOFF}{to_agent}", {}


def request_of(data: Any) -> tuple[str, dict[str, Any]]:
    """The request that a span tells of when it is over."""
    model = getattr(data, "model", None)
    if data.type == "generation":
        listed = [plain(one) for one in data.input] if data.input is not None else None
        return "openai.chat", {"messages": listed, **({"model": str(model)} if model else {})}
    response, given = data.response, data.input
    request: dict[str, Any] = {"input": given if isinstance(given, str) else plain(given)}
    if isinstance(model := getattr(response, "model", None), str):
        request["model"] = model
    if isinstance(instructions := getattr(response, "instructions", None), str):
        request["instructions"] = instructions
    return "openai.responses", request


def answer_of(told: Any) -> tuple[Any, AnswerFacts]:
    """The answer that a span or the SDK's `ModelResponse` holds, and what it says of it; None when there is none."""
    response = getattr(told, "response", None)
    if response is not None:
        return plain(response), {"request_id": getattr(response, "_request_id", None)}
    output = getattr(told, "output", None)
    facts: AnswerFacts = {"usage": usage_of(getattr(told, "usage", None))}
    if output is None:
        return None, facts
    items = [plain(item) for item in output]
    if getattr(told, "type", None) == "generation":  # a chat message, or a response put together of chunks
        facts["model"] = told.model
        return items[0] if len(items) == 1 else items, facts
    facts["request_id"] = told.request_id
    named = [one.get("provider_data") or {} for one in items if isinstance(one, dict)]
    ids = [one["response_id"] for one in named if isinstance(one.get("response_id"), str)]
    facts["response_id"] = next(iter(ids), None if told.response_id == _FAKE else told.response_id)
    models = [one["model"] for one in named if isinstance(one.get("model"), str)]
    facts["model"] = next(iter(models), None)
    return {"output": items}, facts


def usage_of(usage: Any) -> Usage | None:
    """Tokens, each counted once; None where a stream was not asked to tell them."""
    fields = plain(usage) if usage is not None else {}
    given, written = fields.get("input_tokens"), fields.get("output_tokens")
    if not given and not written:
        return None
    details, spent = fields.get("input_tokens_details") or {}, fields.get("output_tokens_details") or {}
    read, stored = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    return Usage(
        input_tokens=max(0, (given or 0) - read - stored),
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=stored,
        reasoning_tokens=spent.get("reasoning_tokens"),
    )


def results_in(items: Any) -> Iterator[tuple[str, Any]]:
    """Results of tools in a request, in both shapes."""
    for item in items if isinstance(items, list) else []:
        match item:
            case {"type": "function_call_output", "call_id": str(call_id), "output": output}:
                yield call_id, output
            case {"role": "tool", "tool_call_id": str(call_id), "content": output}:
                yield call_id, output


def user_input(items: list[Any]) -> list[Any]:
    """The messages of the user at the end of a request: what is new in a run."""
    found: list[Any] = []
    for item in reversed(items):
        if not isinstance(item, dict) or item.get("role") != "user":
            break
        found.insert(0, item)
    return found


def described(error: Any) -> str:
    """A span's error in words."""
    detail = (error.get("data") or {}).get("error")
    return str(detail or error.get("message"))


def _calls_in(answer: Any) -> Iterator[tuple[str, str, Any]]:
    fields = answer if isinstance(answer, dict) else {}
    for item in fields.get("output") or []:
        match item:
            case {"type": "function_call", "call_id": str(call_id), "name": str(name)}:
                yield call_id, name, item.get("arguments")
    for call in fields.get("tool_calls") or []:
        match call:
            case {"id": str(call_id), "function": {"name": str(name), **rest}}:
                yield call_id, name, rest.get("arguments")
