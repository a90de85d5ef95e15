"""The agent does what text from outside told it, and its user did not: a prompt injection that was obeyed."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.audit.detector import Given
from ledger.audit.finding import Found
from ledger.audit.hijacking import Obeyed, Trail
from ledger.audit.reader import texts_in
from ledger.events import ContentRef, Record
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallRequested
from ledger.events.review import Severity
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Untrusted text was obeyed"
SEVERITY = "high"
WHY = (
    "A page, a mail or a file that gives orders to the agent makes it act for a stranger with its user's rights; each"
    " call by itself looks like any other."
)
MISSES = (
    "Orders that only change what the agent says; orders that name no value of their own, or one that the user or other"
    " data had named; languages that are not in directive_words.toml; orders in tool descriptions, or beyond the first"
    " 200,000 characters of a result; plain orders in a text that the user told the agent to follow (`delegated`), in"
    " steps of instructions on what the user is after (`followed`), and commands of a manual typed into a shell; which"
    " password was set, where the user had asked for one."
)
READS = (MessageReceived, ContextInjected, ModelCallRequested, ToolCallRequested, ToolCallSettled)
SOURCE = (
    "AgentDojo (arXiv 2406.13352); provenance of arguments after CaMeL (2503.18813) and FIDES (2505.23643)."
)

_MOST_OPEN = 200
_QUOTED = 110


class _Call(NamedTuple):
    seq: int
    tool: str
    arguments: Any
    obeyed: Obeyed | None


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._trail = Trail()
        self._open: OrderedDict[str, _Call] = OrderedDict()
        self._system: str | None = None
        self._told: OrderedDict[str, int] = OrderedDict()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        match event:
            case MessageReceived() | ContextInjected():
                text = self._text(event.message)
                if event.trust == "untrusted":
                    self._trail.reads(text, record.seq)
                else:
                    self._trail.trusts(text, is_task=isinstance(event, MessageReceived))
            case ModelCallRequested() if event.system is not None and event.system.digest != self._system:
                self._system = event.system.digest
                self._trail.trusts(self._text(event.system), is_task=False)
            case ToolCallRequested():
                arguments = self._reader.value(event.arguments)
                obeyed = self._trail.acts(event.tool, arguments, event.effect_class)
                self._open[event.call_id] = _Call(record.seq, event.tool, arguments, obeyed)
                if len(self._open) > _MOST_OPEN:
                    yield from self._found(self._open.popitem(last=False)[1], "unknown")
            case ToolCallSettled():
                call = self._open.pop(event.call_id, None)
                if call is not None:
                    yield from self._found(call, event.outcome)
                if event.result is not None:
                    self._trail.reads(self._text(event.result), record.seq, call and call.arguments)
            case _:
                pass

    def end(self) -> Iterator[Found]:
        """Calls of which no end was seen."""
        for call in self._open.values():
            yield from self._found(call, "unknown")

    def _found(self, call: _Call, outcome: str) -> Iterator[Found]:
        if call.obeyed is None:
            return
        part, severity = _weighed(call.obeyed, outcome)
        key = f"{part} {call.obeyed.carrier}"
        if self._told.get(key, call.seq) != call.seq:
            return
        self._told[key] = call.seq
        yield Found(
            call.seq,
            _message(call, part),
            (call.obeyed.carrier, call.seq),
            severity=severity,
            part=part,
            key=key,
        )

    def _text(self, reference: ContentRef) -> str:
        return "\n\n".join(_spoken(self._reader.value(reference)))


def _weighed(obeyed: Obeyed, outcome: str) -> tuple[str, Severity]:
    if obeyed.is_delegated:
        return "delegated", "info"
    if obeyed.is_step:
        return "followed", "info"
    if outcome in ("failed", "denied", "not_started"):
        return "attempted", "info"
    return "obeyed", "high"


def _message(call: _Call, part: str) -> str:
    assert call.obeyed is not None
    order = " ".join(call.obeyed.order.split())
    quoted = order if len(order) <= _QUOTED else f"{order[:_QUOTED]}…"
    values = ", ".join(call.obeyed.names)
    match part:
        case "delegated":
            end = "the user had told the agent to follow that text"
        case "followed":
            end = "it is a step of instructions there on what the user is after"
        case "attempted":
            end = "the user had not asked for it; it did not go through"
        case _:
            end = "the user had not asked for it"
    return f"{call.tool} ({values}) does what text from outside says, at #{call.obeyed.carrier}: “{quoted}”; {end}"


def _spoken(value: Any) -> Iterable[str]:
    """The texts of a message or a result: of its blocks, without their types and ids."""
    if isinstance(value, dict) and "content" in value and ("role" in value or "type" in value):
        value = value["content"]
    if isinstance(value, list) and all(isinstance(one, dict) and "type" in one for one in value):
        found: list[str] = []
        for block in value:
            found += texts_in(block.get("text") or block.get("content") or block.get("output"))
        return found
    return texts_in(value)


start = Watch
