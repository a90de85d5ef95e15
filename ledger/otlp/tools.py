"""The facts of a tool call, out of a span in any dialect."""

import re
from dataclasses import dataclass
from typing import Any

from ledger.events.canonical import canonical_json, spelled
from ledger.otlp.records import ERROR, Span
from ledger.otlp.values import first, structured, text

_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.call.id", "ai.toolCall.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "ai.toolCall.args", "traceloop.entity.input")
RESULTS = ("gen_ai.tool.call.result", "output.value", "ai.toolCall.result", "traceloop.entity.output")
"""Attributes that hold a result, the most telling first."""

_CONFIRMATION = "requires confirmation, please approve or reject"
_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")
_INTERRUPT_ID = re.compile(r"\bid='([0-9a-f]{16,64})'")
_LONGEST = 20_000


@dataclass(slots=True)
class ToolFacts:
    """What a span tells of its tool call."""

    tool: str
    """Name of the tool."""

    call_id: str | None
    """Id of the call, where it is given."""

    arguments: Any
    """Arguments; None when they were not captured."""

    result: Any
    """Result as the model was shown it; None when it was not captured."""

    details: Any
    """The result in the source's wrapping, when it has one."""

    is_failed: bool
    """Whether it failed."""

    error: str | None
    """Kind of failure."""

    used: set[str]
    """Attributes that are carried by these facts."""

    @property
    def waits_for_approval(self) -> bool:
        """Whether the result only says that somebody must confirm first."""
        return isinstance(self.result, dict) and _CONFIRMATION in str(self.result.get("error", ""))[:500]


def tool_facts(span: Span) -> ToolFacts:
    """What a tool span tells."""
    given = span.attributes
    value = structured(first(given, RESULTS))
    shown, call_id, is_error = _unwrapped(value)
    failure = exception_of(span)
    is_failed = (span.status == ERROR or is_error) and interrupt_of(span) is None
    error = text(given.get("error.type")) or (failure or {}).get("exception.type")
    return ToolFacts(
        tool=text(first(given, _NAMES)) or span.name or "unknown",
        call_id=call_id_of(span) or call_id,
        arguments=structured(first(given, _ARGUMENTS)),
        result=shown,
        details=None if shown is value else value,
        is_failed=is_failed,
        error=(text(error) or "error") if is_failed else None,
        used=_carried(given, _ARGUMENTS) | _carried(given, RESULTS),
    )


def call_id_of(span: Span) -> str | None:
    """The id that a tool span gives its call."""
    return text(first(span.attributes, _IDS))


def _carried(given: dict[str, Any], names: tuple[str, ...]) -> set[str]:
    """The one that was read, and those that say the same."""
    value = first(given, names)
    return {name for name in names if name in given and given[name] == value}


def _unwrapped(value: Any) -> tuple[Any, str | None, bool]:
    """Result, call id and whether it is an error, out of the message that LangChain makes of a result."""
    inner = value
    if isinstance(inner, dict) and isinstance(inner.get("output"), dict):
        inner = inner["output"]
    if not isinstance(inner, dict):
        return value, None, False
    held = (
        inner.get("data") if inner.get("type") == "tool" else inner.get("kwargs") if "lc" in inner else None
    )
    if not isinstance(held, dict) or "tool_call_id" not in held:
        return value, None, False
    return held.get("content"), text(held.get("tool_call_id")), held.get("status") == "error"


def arguments_key(arguments: Any) -> bytes | None:
    """Equal for equal arguments; None when there are none to compare."""
    return None if arguments is None else canonical_json(structured(arguments))


def exception_of(span: Span) -> dict[str, Any] | None:
    """Attributes of the last exception that a span recorded."""
    for event in reversed(span.events):
        if event["name"] == "exception":
            return dict(event["attributes"])
    return None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A loop that stopped to ask, which tracers record as an exception."""

    id: str
    """Its id in the source, or the span that recorded it."""

    message: str
    """What it says, with the question in it."""


def interrupt_of(span: Span) -> Interrupt | None:
    """The question that a span stopped at; None when it ended otherwise."""
    for event in span.events:
        kind = event["attributes"].get("exception.type")
        if event["name"] == "exception" and isinstance(kind, str) and kind.endswith(_INTERRUPTS):
            message = spelled(event["attributes"].get("exception.message") or "")
            found = _INTERRUPT_ID.search(message[-_LONGEST:])
            return Interrupt(found[1] if found else span.key, message)
    if span.status == ERROR and span.attributes.get("error.type") in _INTERRUPTS:
        found = _INTERRUPT_ID.search(span.status_message[-_LONGEST:])
        return Interrupt(found[1] if found else span.key, span.status_message)
    return None
