"""A tool that ran: Inspect logs it where it began, with the result that it had in the end."""

from typing import Any, Literal

from ledger.events.canonical import canonical_json
from ledger.importers import Item
from ledger.importers._inspect.lanes import Lane
from ledger.importers._plain.scribe import milliseconds_between, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.tool_use import ToolResult, text

_FIELDS = frozenset({"arguments", "id", "function", "result", "error", "events"})


def rest_of(event: dict[str, Any], used: frozenset[str]) -> dict[str, Any]:
    """The fields of an event that no field of ours carries and that say something."""
    told = used | {"event", "timestamp", "completed", "uuid"}
    return {
        name: value for name, value in event.items() if name not in told and value not in (None, [], {}, "")
    }


class Ran:
    """One tool event, until its result has its place in the session."""

    def __init__(self, lane: Lane, place: Place, event: dict[str, Any], call_id: str) -> None:
        self._lane = lane
        self._place = place
        self._event = event
        error = event.get("error")
        self._error: dict[str, Any] = error if isinstance(error, dict) else {}
        self.call_id = call_id
        """Its id in the ledger."""
        self.span: str | None = None
        """The span in which it runs."""
        self.seen_next = False
        """Whether the event after it was looked at."""

    @property
    def outcome(self) -> Literal["returned", "failed", "denied", "unknown"]:
        """How it ended."""
        if self._error or self._event.get("failed") is True:
            return "denied" if self._error.get("type") == "approval" else "failed"
        if "result" not in self._event and self._event.get("completed") is None:
            return "unknown"
        return "returned"

    def begins_with(self, kind: str, event: dict[str, Any]) -> bool:
        """Whether an event is the beginning of the span in which it runs."""
        return (
            kind == "span_begin"
            and event.get("type") == "tool"
            and event.get("name") == self._event.get("function")
        )

    def item(self) -> Item:
        """Its result."""
        event, tools = self._event, self._lane.exchanges.tools
        ended = utc_time(event.get("completed"))
        place = self._place._replace(key=f"{self._place.key}.end", time=ended or self._place.time)
        result = event.get("result")
        if result in (None, "") and (message := text(self._error.get("message"))):
            result = message
        draft, asked_in = tools.settled(
            ToolResult(text(event.get("id")) or self.call_id, text(event.get("function")), result, None),
            place,
            outcome=self.outcome,
            error=text(self._error.get("type")),
            details=self._lane.scribe.keep.json(self._error, "tool error") if self._error else None,
            duration_ms=milliseconds_between(self._place.time, ended),
            rest=rest_of(event, _FIELDS),
        )
        session = self._lane.scribe.session
        return Item(session, place.key, [draft], place.line, canonical_json(event), cause=asked_in)
