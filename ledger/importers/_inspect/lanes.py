"""Which session an event belongs to: the sample's, or that of an agent or a branch inside it."""

from collections.abc import Generator, Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.canonical import spelled
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.session import SessionForked, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._plain.scribe import Scribe
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Exchanges
from ledger.protocols.tool_use import text

_DEEPEST = 64


class Lane:
    """One session of a sample."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self.exchanges = Exchanges(scribe)
        self.delegation: str | None = None
        """Delegation that it works for."""
        self.parent: Lane | None = None
        """The session that it came out of."""


class Lanes:
    """The sessions of a sample, by span."""

    def __init__(self, desk: Desk, root: Scribe) -> None:
        self._desk = desk
        self.root = Lane(root)
        self._of_span: dict[str, Lane] = {}
        self._agents: set[str] = set()
        self._before: dict[str, str | None] = {}
        self._works: dict[str, Lane] = {}
        self._call_of_span: dict[str, str] = {}
        self._free_tool_spans: dict[str, tuple[str, Any]] = {}

    def of(self, event: dict[str, Any], inside: Lane | None) -> Lane:
        """The session of an event; `inside`: that of the event that holds it."""
        span = event.get("parent_id") if event.get("event") == "span_begin" else event.get("span_id")
        if isinstance(span, str) and span in self._of_span:
            return self._of_span[span]
        return inside or self.root

    def begin(self, event: dict[str, Any], place: Place, lane: Lane) -> Iterator[Item]:
        """A span begins: one of an agent inside an agent, or of a branch, is a session of its own."""
        span = text(event.get("id"))
        if span is None:
            return
        kind, parent = event.get("type"), event.get("parent_id")
        under_agent = isinstance(parent, str) and parent in self._agents
        self._of_span[span] = lane
        if kind == "agent" or under_agent:
            self._agents.add(span)
        if kind == "tool" and (named := text(event.get("name"))):
            self._free_tool_spans[span] = (named, parent)
        if kind == "branch":
            child = self._child(lane, span)
            child.scribe.depth, child.scribe.agent = lane.scribe.depth, lane.scribe.agent
            child.exchanges.tools = lane.exchanges.tools.seen_from(child.scribe)
            self._of_span[span] = child
            forked = SessionForked(origin=lane.scribe.session)
            yield self._first(child, place, text(event.get("name")), None, [forked])
        elif kind == "agent" and under_agent:
            call_id = self._call_of_span.get(spelled(parent))
            child = yield from self.delegate(lane, span, text(event.get("name")), place, call_id)
            self._of_span[span] = self._works[span] = child
        elif kind == "agent":
            self._before[span] = lane.scribe.agent
            lane.scribe.agent = lane.scribe.word(event.get("name"), "agent")

    def take_tool_span(self, tool: str, parent: Any) -> str | None:
        """The span that was opened last for a call of this tool, and that no call runs in yet."""
        for span, told in reversed(self._free_tool_spans.items()):
            if told == (tool, parent) or (tool, span) == (told[0], parent):
                del self._free_tool_spans[span]
                return span
        return None

    def runs(self, span: str, call_id: str) -> None:
        """A tool call runs in this span: an agent that begins in it works for the call."""
        self._call_of_span[span] = call_id

    def delegate(
        self, lane: Lane, name: str, agent: str | None, place: Place, call_id: str | None
    ) -> Generator[Item, None, Lane]:
        """Work is handed to another agent, which gets a session of its own; gives its lane."""
        child = self._child(lane, name)
        child.delegation = f"delegation-{place.key}"
        child.scribe.agent = child.scribe.word(agent, "agent")
        event = DelegationStarted(
            delegation_id=child.delegation,
            to_session=child.scribe.session,
            to_agent=child.scribe.agent,
            how="tool" if call_id else "spawn",
            call_id=call_id,
        )
        draft = lane.scribe.draft(place, event, "agent")
        yield Item(lane.scribe.session, f"{place.key}.to", [draft], place.line)
        yield self._first(child, place, agent, call_id, [])
        return child

    def end(self, event: dict[str, Any], place: Place) -> Iterator[Item]:
        """A span ends: the agent that worked in it comes back."""
        span = text(event.get("span_id")) or text(event.get("id"))
        self._free_tool_spans.pop(span or "", None)
        if span in self._before:
            self._of_span[span].scribe.agent = self._before.pop(span)
        lane = self._works.pop(span or "", None)
        if lane is not None:
            yield self.come_back(lane, place, None)

    def come_back(self, lane: Lane, place: Place, result: Any) -> Item:
        """Delegated work comes back to the session that handed it on."""
        assert lane.parent is not None and lane.delegation is not None
        parent = lane.parent
        event = DelegationReturned(
            delegation_id=lane.delegation,
            outcome="returned",
            from_session=lane.scribe.session,
            result=None if result is None else parent.exchanges.tools.content(result, "result"),
            returned="unknown" if result is None else "result",
        )
        lane.delegation = None
        draft = parent.scribe.draft(place, event)
        return Item(parent.scribe.session, f"{place.key}.from", [draft], place.line)

    def _child(self, lane: Lane, name: str) -> Lane:
        parent = lane.scribe
        scribe = Scribe(self._desk, parent.format, f"{self.root.scribe.session}.{name}", parent.grade)
        scribe.depth = min(parent.depth + 1, _DEEPEST)
        scribe.correlation = parent.correlation
        child = Lane(scribe)
        child.parent = lane
        return child

    def _first(
        self, child: Lane, place: Place, name: str | None, call_id: str | None, more: list[Any]
    ) -> Item:
        assert child.parent is not None
        scribe = child.scribe
        parent = child.parent.scribe.session
        started = SessionStarted(
            harness="inspect_ai",
            name=scribe.word(name, "session name"),
            agent=scribe.agent,
            parent=parent,
            parent_call=call_id,
        )
        drafts: list[Draft] = [scribe.draft(place, event) for event in (started, *more)]
        return Item(scribe.session, f"{place.key}.start", drafts, place.line)
