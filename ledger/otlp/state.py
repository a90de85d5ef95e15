"""What is remembered of a session while its records come in. Bounded; what is forgotten is looked up or left open."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ledger.events import ContentRef
from ledger.intake import Desk
from ledger.otlp.messages import Ask, role_of
from ledger.otlp.records import Record
from ledger.otlp.tools import ToolFacts
from ledger.recorder import ContextChain

_ASKS_KEPT = 2_000
_SAID_KEPT = 5_000
_LANES_KEPT = 50


@dataclass(slots=True)
class Asked:
    """A tool call that a model asked for."""

    call_id: str
    """Its id in the ledger."""
    tool: str
    """Tool."""
    arguments: bytes | None
    """Arguments, to compare."""
    item: str
    """Key of the item that requested it."""
    runs: int = 0
    """How often a span showed it run."""
    is_settled: bool = False
    """Whether its end was seen."""
    approval: str | None = None
    """Question that is open about it."""
    is_handed: bool = False
    """Whether a span of its own showed that it handed over to another agent."""


@dataclass(slots=True)
class Summary:
    """A model call that wrote a summary, until the next call shows whether it was used."""

    call_id: str
    """The call."""
    message: ContentRef
    """The summary."""
    model: str | None
    """Model that wrote it."""


@dataclass(slots=True)
class Lane:
    """The messages that the last call of one agent saw."""

    digests: list[str]
    """Messages by digest."""
    spoken: list[str]
    """Those that are no system prompt."""


@dataclass(slots=True)
class SessionState:
    """One session."""

    chain: ContextChain
    """Context of its model calls."""
    aside: ContextChain
    """Context of calls beside the conversation, such as those that write a summary."""
    asked: OrderedDict[str, Asked] = field(default_factory=OrderedDict)
    """Tool calls, the last asked last."""
    waiting: dict[str, dict[str, Asked]] = field(default_factory=dict)
    """Those that no span showed run, by tool."""
    said: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Messages of users that were received."""
    lanes: OrderedDict[str | None, Lane] = field(default_factory=OrderedDict)
    """Last input by agent."""
    summary: Summary | None = None
    """A summary that was just written."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """Digests of what was last in force."""
    last_ask: Asked | None = None
    """The last call asked for."""
    names: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Ids of calls by the other ids that tool spans give them."""

    def put(self, asked: Asked) -> None:
        """Remember a tool call."""
        if (before := self.asked.pop(asked.call_id, None)) is not None:
            self._no_longer_waits(before)
        self.asked[asked.call_id] = asked
        self.last_ask = asked
        if not asked.runs:
            self.waiting.setdefault(asked.tool, {})[asked.call_id] = asked
        if len(self.asked) > _ASKS_KEPT:
            self._no_longer_waits(self.asked.popitem(last=False)[1])

    def run(self, asked: Asked) -> None:
        """Remember that a span showed a call run."""
        asked.runs += 1
        self._no_longer_waits(asked)

    def _no_longer_waits(self, asked: Asked) -> None:
        waiting = self.waiting.get(asked.tool, {})
        if waiting.pop(asked.call_id, None) is not None and not waiting:
            del self.waiting[asked.tool]

    def match(self, facts: ToolFacts, arguments: bytes | None) -> Asked | None:
        """The call that a tool span ran: by id, by tool and arguments, or by tool alone where it tells no id."""
        if facts.call_id is not None:
            named = self.names.get(facts.call_id, facts.call_id)
            if named in self.asked:
                return self.asked[named]
        waiting = self.waiting.get(facts.tool, {}).values()
        if arguments is not None:
            for one in waiting:
                if one.arguments == arguments:
                    return one
        return next((one for one in waiting if not one.is_settled), None) if facts.call_id is None else None

    def rename(self, asked: Asked, name: str | None) -> None:
        """Remember that a tool span calls it otherwise."""
        if name is not None and name != asked.call_id:
            self.names[name] = asked.call_id
            if len(self.names) > _ASKS_KEPT:
                self.names.popitem(last=False)

    def open_call_of(self, text: str) -> Asked | None:
        """The unsettled call that a question names, by id or by tool; the last one where it names several."""
        waiting = [one for one in self.asked.values() if not one.is_settled and one.approval is None]
        by_id = [one for one in waiting if f"'{one.call_id}'" in text]
        by_tool = [one for one in waiting if f"'{one.tool}'" in text]
        return by_id[-1] if by_id else by_tool[-1] if by_tool else None

    def hear(self, digest: str) -> bool:
        """Whether a message is new."""
        if digest in self.said:
            return False
        self.said[digest] = None
        if len(self.said) > _SAID_KEPT:
            self.said.popitem(last=False)
        return True

    def changed(self, artifact: str, digest: str) -> bool:
        """Whether an artifact is another than at the last call."""
        if self.artifacts.get(artifact) == digest:
            return False
        self.artifacts[artifact] = digest
        return True

    def enter_lane(self, agent: str | None, digests: list[str], messages: list[Any]) -> Lane | None:
        """Set what an agent's call sees; gives what its last call saw."""
        before = self.lanes.pop(agent, None)
        spoken = [one for one, message in zip(digests, messages, strict=True) if role_of(message) != "system"]
        self.lanes[agent] = Lane(digests, spoken)
        if len(self.lanes) > _LANES_KEPT:
            self.lanes.popitem(last=False)
        return before


def was_shortened(before: Lane, after: Lane) -> bool:
    """Whether messages are gone from the front while later ones stayed: what a compaction does.

    Going back to an earlier message keeps the front, a new conversation keeps nothing, and a first message that is
    written anew for each call (it tells the time, say) is only one.
    """
    kept = set(after.spoken)
    gone = [digest for digest in before.spoken if digest not in kept]
    return len(gone) > 1 and before.spoken[0] not in kept and len(gone) < len(before.spoken)


def was_replaced(before: Lane, after: Lane) -> bool:
    """Whether the context is no continuation of the one before."""
    return after.digests[: len(before.digests)] != before.digests


def ask_key(ask: Ask, span: str, index: int) -> str:
    """Identity of a tool call in its session."""
    return ask.call_id or f"{span}.{index}"


def is_asked_elsewhere(desk: Desk, session: str, state: SessionState, call_id: str, record: Record) -> bool:
    """Whether another file of the run has recorded the request of this call."""
    if call_id in state.asked or not desk.recorded(session, f"ask:{call_id}"):
        return False
    known = desk.lookup(session, f"ask:{call_id}")
    return known is not None and known.line != record.number


class States:
    """The sessions at hand."""

    def __init__(self, desk: Desk, most: int = 300) -> None:
        self._desk = desk
        self._most = most
        self._held: OrderedDict[str, SessionState] = OrderedDict()

    def of(self, session: str) -> SessionState:
        """The state of a session."""
        state = self._held.get(session)
        if state is None:
            state = self._held[session] = SessionState(self._desk.context(), self._desk.context())
            if len(self._held) > self._most:
                self._held.popitem(last=False)
        self._held.move_to_end(session)
        return state
