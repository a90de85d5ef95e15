"""Folds the records of one session into its edges. Reads contents only where it is given a reader."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.audit.edges import MOST_PLACES, Edge, Name, Secret, offered_names, secrets_in, tool_edge
from ledger.audit.reader import Reader
from ledger.effects.classes import classify
from ledger.events import ContentRef, Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.credential import CredentialUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.effect import EffectDone
from ledger.events.model_call import ModelCallRequested
from ledger.events.session import SessionStarted
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted

READS: tuple[type[Event], ...] = (
    SessionStarted,
    ModelCallRequested,
    ToolCallRequested,
    ToolCallStarted,
    ToolCallSettled,
    ApprovalAsked,
    ApprovalDecided,
    CredentialUsed,
    DelegationStarted,
    DelegationReturned,
    EffectDone,
)
"""The events that edges are made of."""

OTHERS = "(others)"
"""Target of the edge that takes in what is over the limit."""

_MOST_EDGES = 2000
_MOST_CALLS = 10_000
_MOST_TOLD = 1000


@dataclass
class _Use:
    """One use of an edge, while more may be told of it."""

    edge: Edge
    place: str
    reached: EffectClass | None
    size: int
    kind: str | None
    actor: str | None
    secrets: list[Secret]
    is_open: bool = True
    result: ContentRef | None = None
    outcome: str | None = None
    ms: int | None = None
    told: list[str] = field(default_factory=list)


class Crossing(NamedTuple):
    """A use that just began."""

    edge: Edge
    """Its edge, this use counted."""

    reached: EffectClass | None
    """What it does outside; None for one to an agent, and where nobody can tell."""

    secrets: list[Secret]
    """What crossed there that ought to be secret."""

    was_offered: bool = True
    """Whether a request had offered the tool, as far as the record shows."""


class EdgeFold:
    """One session. `agent` is what the session that handed over calls this one's agent.

    Without `classes` it is not looked at what calls do outside, where nobody declared it.
    """

    def __init__(
        self, session: str, reader: Reader | None, agent: str | None = None, *, classes: bool = True
    ) -> None:
        self.session = session
        self.edges: dict[Name, Edge] = {}
        """Edges by name, in the order of their first use."""
        self.agent = agent or "main"
        """Agent that acts now."""
        self.acted: set[str] = set()
        """Agents that asked a model or called a tool."""
        self.offered: set[str] | None = set()
        """Tools that requests offered; None once a request does not show them, or nothing was asked."""
        self.by_child: dict[str, Edge] = {}
        """The edge to each session that work was handed to."""
        self.by_call: OrderedDict[str, Edge] = OrderedDict()
        """The edge to an agent by the call that handed over."""
        self._reader = reader
        self._classes = classes
        self._own = agent
        self._told_name: str | None = None
        self._asked_model = False
        self._calls: OrderedDict[str, _Use] = OrderedDict()
        self._handed: OrderedDict[str, _Use] = OrderedDict()
        self._handing: OrderedDict[str, _Use] = OrderedDict()
        self._open: Counter[Name] = Counter()
        self._burst: Counter[Name] = Counter()
        self._toolset: str | None = None

    def used(self) -> Iterator[Edge]:
        """The edges, without those whose uses turned out to be another's."""
        known = self.offered is not None and self._asked_model
        for edge in self.edges.values():
            if edge.uses:
                edge.is_offer_known = known and not edge.is_to_agent
                yield edge

    def forget_uses(self) -> None:
        """Give back what only further records would need."""
        for kept in (self._calls, self._handed, self._handing):
            kept.clear()

    @property
    def tools(self) -> set[str] | None:
        """Tools that were offered to the agent; None where the record does not show it."""
        return self.offered if self._asked_model else None

    def take(self, record: Record) -> Crossing | None:
        """One more record; the use that began with it, if one did."""
        event = record.event
        self._acts(record)
        match event:
            case ModelCallRequested():
                self._asked_for_model(event)
            case ToolCallRequested():
                return self._called(record, event)
            case ToolCallSettled():
                self._settled(event)
            case (
                ToolCallStarted() | ApprovalAsked() | ApprovalDecided() | CredentialUsed() | EffectDone()
            ) if event.call_id is not None:
                if use := self._calls.get(event.call_id) or self._handing.get(event.call_id):
                    _tell(use, event)
            case DelegationStarted():
                return self._handed_over(record, event)
            case DelegationReturned():
                self._came_back(event)
            case _:
                pass
        return None

    def _acts(self, record: Record) -> None:
        event = record.event
        if isinstance(event, SessionStarted):
            self._told_name = event.agent
            if self._own is None:
                self.agent = event.agent or self.agent
        elif record.agent is not None:
            is_same = self._own is not None and record.agent == self._told_name
            self.agent = self._own if is_same and self._own is not None else record.agent
        if isinstance(event, ModelCallRequested | ToolCallRequested) and len(self.acted) < _MOST_EDGES:
            self.acted.add(self.agent)

    def _asked_for_model(self, event: ModelCallRequested) -> None:
        self._burst.clear()
        if event.purpose not in ("main", "sub-agent", "unknown"):
            return
        self._asked_model = True
        if any(part.startswith("tools") for part in event.not_seen):
            self.offered = None
        elif event.tools is None:
            if event.completeness != "body":
                self.offered = None
        elif event.tools.digest != self._toolset and self.offered is not None:
            self._toolset = event.tools.digest
            names = None if self._reader is None else offered_names(self._reader.value(event.tools))
            self.offered = None if names is None else self.offered | names

    def _edge(self, name: Name) -> Edge:
        if name not in self.edges and len(self.edges) >= _MOST_EDGES:
            name = Name(name.source, name.kind, OTHERS)
        return self.edges.setdefault(name, Edge(name))

    def _begin(
        self,
        record: Record,
        name: Name,
        content: ContentRef | None,
        was_offered: bool,
        actor: str | None = None,
    ) -> _Use:
        edge = self._edge(name)
        edge.uses += 1
        edge.depth = max(edge.depth, record.depth)
        if len(edge.places) < MOST_PLACES:
            edge.places.append(record.place)
        actor = actor or (None if record.actor is None else record.actor.kind)
        if actor is not None:
            edge.actors[actor] += 1
        if not was_offered and len(edge.not_offered) < MOST_PLACES:
            edge.not_offered.append(record.place)
        secrets = self._crossed(edge, content, edge.secrets_out)
        if content is not None:
            edge.arguments += 1
            edge.bytes_out += content.size
        self._open[edge.name] += 1
        self._burst[edge.name] += 1
        edge.at_once = max(edge.at_once, self._open[edge.name])
        edge.burst = max(edge.burst, self._burst[edge.name])
        size, kind = (0, None) if content is None else (content.size, content.kind)
        return _Use(edge, record.place, None, size, kind, actor, secrets)

    def _crossed(self, edge: Edge, content: ContentRef | None, secrets: Counter[Secret]) -> list[Secret]:
        if content is None:
            return []
        edge.contents[content.kind] += 1
        edge.largest = max(edge.largest, content.size)
        found = [] if self._reader is None else secrets_in(self._reader.text(content))
        secrets.update(found)
        return found

    def _called(self, record: Record, event: ToolCallRequested) -> Crossing:
        kind, target = tool_edge(event.tool, event.server)
        names = {event.tool, f"mcp__{event.server}__{event.tool}"}
        was_offered = (
            event.provider_executed
            or not self._asked_model
            or self.offered is None
            or not names.isdisjoint(self.offered)
        )
        use = self._begin(record, Name(self.agent, kind, target), event.arguments, was_offered)
        use.reached = event.effect_class
        if self._reader is not None and self._classes:
            arguments: Any = self._reader.value(event.arguments)
            effect = classify(event.tool, arguments, declared=event.effect_class)
            use.reached = effect.effect_class
            use.edge.note(use.edge.targets, effect.target)
        if use.reached is not None:
            use.edge.reached[use.reached] += 1
        self._calls[event.call_id] = use
        if len(self._calls) > _MOST_CALLS:
            self._calls.popitem(last=False)
        return Crossing(use.edge, use.reached, use.secrets, was_offered)

    def _settled(self, event: ToolCallSettled) -> None:
        use = self._calls.get(event.call_id)
        if use is None:
            if (handing := self._handing.get(event.call_id)) is not None:
                self._result(handing, event.result)
            return
        edge = use.edge
        self._close(use)
        edge.outcomes[event.outcome] += 1
        if use.outcome is not None:  # told again, after a question say: the last word counts
            edge.outcomes[use.outcome] -= 1
        use.outcome = event.outcome
        if event.duration_ms is not None:
            edge.ms += event.duration_ms
            edge.timed += use.ms is None
            use.ms = (use.ms or 0) + event.duration_ms
        self._result(use, event.result)

    def _result(self, use: _Use, content: ContentRef | None) -> None:
        """What came back: told by the call, by the return of what was handed over, or by both."""
        if content is not None and use.result is None:
            use.result = content
            use.edge.results += 1
            use.edge.bytes_back += content.size
            self._crossed(use.edge, content, use.edge.secrets_back)

    def _close(self, use: _Use) -> None:
        if use.is_open:
            use.is_open = False
            self._open[use.edge.name] -= 1

    def _handed_over(self, record: Record, event: DelegationStarted) -> Crossing:
        """The tool call that hands over is no edge of its own: what it carried crosses to the agent."""
        kind: Any = "handoff" if event.how == "handoff" else "delegation"
        if event.how == "message" and event.to_session is None:
            is_foreign = record.source is None or record.source.format == "a2a-messages"
            kind = "a2a" if is_foreign else "delegation"
        call = None if event.call_id is None else self._calls.pop(event.call_id, None)
        source = self.agent if call is None else call.edge.name.source
        name = Name(source, kind, event.to_agent or "?")
        if call is not None:
            self._take_back(call)
        use = self._begin(record, name, event.payload, True, None if call is None else call.actor)
        edge = use.edge
        if call is not None:
            self._take_over(use, call, has_payload=event.payload is not None)
        if event.call_id is not None:
            self.by_call[event.call_id] = edge
            self._handing[event.call_id] = use
        if event.to_session is not None:
            self.by_child[event.to_session] = edge
        if event.budget_usd is not None:
            edge.budget_usd = min(edge.budget_usd or event.budget_usd, event.budget_usd)
        self._handed[event.delegation_id] = use
        for kept in (self._handed, self._handing, self.by_call):
            if len(kept) > _MOST_CALLS:
                kept.popitem(last=False)
        if kind == "handoff" and event.to_agent is not None:
            self.agent = event.to_agent
            self._close(use)
        return Crossing(edge, None, use.secrets)

    def edge_of(self, event: ToolCallSettled | DelegationReturned) -> Edge | None:
        """The edge over which something came back."""
        if isinstance(event, DelegationReturned):
            use = self._handed.get(event.delegation_id)
        else:
            use = self._calls.get(event.call_id) or self._handing.get(event.call_id)
        return None if use is None else use.edge

    def open_to_agents(self) -> int:
        """Uses of edges to agents that are open now."""
        return sum(count for name, count in self._open.items() if name.kind in ("delegation", "a2a"))

    def _take_over(self, use: _Use, call: _Use, *, has_payload: bool) -> None:
        """What the call that handed over carried, and what was told of it, goes to the edge to the agent."""
        edge = use.edge
        if not has_payload and call.kind is not None:
            edge.arguments += 1
            edge.bytes_out += call.size
            edge.largest = max(edge.largest, call.size)
            edge.contents[call.kind] += 1
            edge.secrets_out.update(call.secrets)
            use.secrets = call.secrets
        edge.tell(call.told)
        self._result(use, call.result)

    def _take_back(self, use: _Use) -> None:
        """A use of a tool was the handing over to an agent."""
        edge = use.edge
        self._close(use)
        edge.uses -= 1
        edge.bytes_out -= use.size
        edge.arguments -= use.kind is not None
        if use.place in edge.places:
            edge.places.remove(use.place)
        if use.place in edge.not_offered:
            edge.not_offered.remove(use.place)
        if use.kind is not None:
            edge.contents[use.kind] -= 1
        if use.actor is not None:
            edge.actors[use.actor] -= 1
        if use.reached is not None:
            edge.reached[use.reached] -= 1
        edge.secrets_out.subtract(use.secrets)
        edge.tell(use.told, -1)
        if use.outcome is not None:
            edge.outcomes[use.outcome] -= 1
        if use.ms is not None:
            edge.ms -= use.ms
            edge.timed -= 1
        if use.result is not None:
            edge.results -= 1
            edge.bytes_back -= use.result.size
            edge.contents[use.result.kind] -= 1
            if self._reader is not None:
                edge.secrets_back.subtract(secrets_in(self._reader.text(use.result)))

    def _came_back(self, event: DelegationReturned) -> None:
        use = self._handed.get(event.delegation_id)
        if use is None:
            return
        self._close(use)
        edge = use.edge
        edge.outcomes[event.outcome] += 1
        if event.from_session is not None:
            self.by_child[event.from_session] = edge
        self._result(use, event.result)


def _tell(use: _Use, event: Event) -> None:
    """Something more about a use."""
    match event:
        case ToolCallStarted():
            told = "started"
        case ApprovalAsked():
            told = "asked"
        case ApprovalDecided():
            told = f"{event.outcome} by {event.decided_by}"
        case CredentialUsed():
            use.edge.note(use.edge.handles, event.handle)
            return
        case EffectDone():
            use.edge.note(use.edge.targets, event.target)
            return
        case _:
            return
    if len(use.told) < _MOST_TOLD:
        use.told.append(told)
        use.edge.tell([told])
