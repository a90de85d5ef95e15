"""Gives every tool call of a session an id of its own, and finds the call that a result belongs to."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.protocols.drafting import Drafter, Place
from ledger.protocols.tool_use import ToolResult, ToolUse

_CALLS_KEPT = 50_000


@dataclass(slots=True)
class OpenCall:
    """A call that was asked for."""

    call_id: str
    """Its id in the ledger."""
    native_id: str | None
    """Its id in the source."""
    tool: str
    """Its tool, in the source's words."""
    key: str
    """Key of the item that asked for it."""
    settled: bool = False
    """Whether a result was seen."""


class ToolCalls:
    """The tool calls of one session."""

    def __init__(self, scribe: Drafter) -> None:
        self._scribe = scribe
        self._calls: OrderedDict[str, OpenCall] = OrderedDict()
        self._latest: dict[str, str] = {}
        self._settled_unasked: OrderedDict[str, None] = OrderedDict()

    def seen_from(self, scribe: Drafter) -> "ToolCalls":
        """The same calls, for a session that branches off here: their results come with its first request."""
        other = ToolCalls(scribe)
        other._calls = OrderedDict((name, replace(call)) for name, call in self._calls.items())
        other._latest = dict(self._latest)
        other._settled_unasked = self._settled_unasked.copy()
        return other

    def requested(self, use: ToolUse, place: Place, index: int = 0, *, rest: Any = None) -> Draft:
        """A call that a model asked for; `index` counts the calls of the same record."""
        scribe = self._scribe
        native = None if use.call_id is None else scribe.keep.scalar(use.call_id, "call id")
        call_id = native or f"{place.key}.{index}"
        repeats = 2
        while call_id in self._calls:
            call_id = f"{native or place.key}~{repeats}"
            repeats += 1
        self._calls[call_id] = OpenCall(call_id, native, use.tool, place.key)
        if native is not None:
            self._latest[native] = call_id
        if len(self._calls) > _CALLS_KEPT:
            _, old = self._calls.popitem(last=False)
            if old.native_id is not None and self._latest.get(old.native_id) == old.call_id:
                del self._latest[old.native_id]
        event = ToolCallRequested(
            call_id=call_id,
            tool=scribe.word(use.tool, "tool") or "unnamed",
            arguments=self.content(use.arguments, "arguments"),
            server=scribe.word(use.server, "server"),
            provider_executed=use.provider_executed,
        )
        return scribe.draft(place, event, "agent", rest=rest)

    def find(self, native_id: str | None, tool: str | None = None) -> OpenCall | None:
        """The call that a result with this id belongs to; without an id, the oldest open one of the tool."""
        if native_id is not None:
            native = self._scribe.keep.scalar(native_id, "call id")
            return self._calls.get(self._latest.get(native, ""))
        for call in self._calls.values():
            if not call.settled and call.native_id is None and tool in (None, call.tool):
                return call
        for call in self._calls.values():
            if not call.settled and tool is not None and tool == call.tool:
                return call
        return None

    def is_new(self, result: ToolResult) -> bool:
        """Whether no result of this call was seen before. Of one without an id nobody can say: it is new."""
        if result.call_id is None:
            return True
        call = self.find(result.call_id)
        return not call.settled if call is not None else result.call_id not in self._settled_unasked

    def settled(
        self,
        result: ToolResult,
        place: Place,
        *,
        outcome: Literal["returned", "failed", "denied", "unknown"] | None = None,
        error: str | None = None,
        details: ContentRef | None = None,
        duration_ms: int | None = None,
        rest: Any = None,
    ) -> tuple[Draft, str | None]:
        """A result, and the key of the item that asked for it, if any did."""
        call = self.find(result.call_id, result.tool)
        if call is not None:
            call.settled = True
            call_id = call.call_id
        else:
            named = result.call_id
            call_id = self._scribe.keep.scalar(named, "call id") if named else f"{place.key}.result"
            self._settled_unasked[call_id] = None
            if len(self._settled_unasked) > _CALLS_KEPT:
                self._settled_unasked.popitem(last=False)
        event = ToolCallSettled(
            call_id=call_id,
            outcome=outcome or ("failed" if result.failed else "returned"),
            result=None if result.content is None else self.content(result.content, "tool result"),
            details=details,
            error=self._scribe.word(error, "error"),
            duration_ms=duration_ms,
            orphan=call is None,
        )
        return self._scribe.draft(place, event, rest=rest), None if call is None else call.key

    def content(self, value: Any, where: str) -> ContentRef:
        """Keep a text as text, and anything else as JSON."""
        keep = self._scribe.keep
        return keep.text(value, where) if isinstance(value, str) else keep.json(value, where)
