"""What was done on one side of a comparison, as numbers to align, and what it came to. Reads no content."""

import hashlib
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.record import ContentRef
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.store import EventStore
from ledger.views.session_row import Charge, SessionRow, apply
from replay.comparing.paths import Stretch

_OPEN_KEPT = 10_000
_CHARGES_KEPT = 100_000


class Act(NamedTuple):
    """What a record says was done: what it is, and all by which it can differ."""

    kind: str
    """Sort of act."""

    what: tuple[str | None, ...]
    """What makes it the same act on the other side."""

    detail: tuple[str | None, ...] = ()
    """What may differ all the same: a request holds dates, a result times."""


def act_of(record: Record, tool: str | None = None) -> Act | None:
    """What a record tells was done; `tool` is that of the call which it ends. None where it tells of nothing done."""
    match record.event:
        case MessageReceived() as event:
            return Act("message", (event.origin, event.message.digest))
        case ContextInjected() as event:
            return Act("context", (event.provenance,), (event.message.digest,))
        case ModelCallRequested() as event:
            return Act("request", (event.purpose,), request_parts(event))
        case ModelCallAnswered() as event if event.revision == 0:
            return Act("answer", (event.message.digest,))
        case ModelCallFailed() as event:
            return Act("failure", (event.error,))
        case ToolCallRequested() as event:
            return Act("tool", (event.tool, event.arguments.digest))
        case ToolCallSettled() as event:
            return Act("result", (tool, event.outcome), (_digest(event.result),))
        case ApprovalAsked() as event:
            return Act("question", (event.tool, event.arguments_digest))
        case ApprovalDecided() as event:
            return Act("decision", (event.tool, event.outcome), (event.decided_by, event.scope))
        case DelegationStarted() as event:
            return Act("delegation", (event.to_agent, event.how), (_digest(event.payload),))
        case DelegationReturned() as event:
            return Act("return", (event.outcome,), (_digest(event.result),))
        case CompactionDone() as event:
            return Act("compaction", (event.trigger,), (_digest(event.summary),))
        case ModeChanged() as event:
            return Act("mode", (event.mode, event.new))
        case ArtifactChanged() as event:
            return Act("artifact", (event.artifact, _digest(event.content)))
        case SessionEnded() as event:
            return Act("end", (event.outcome,))
    return None


def request_parts(event: ModelCallRequested) -> tuple[str | None, ...]:
    """By what a request can differ, in the order of REQUEST_PARTS."""
    return (
        event.model,
        event.context,
        _digest(event.system),
        _digest(event.tools),
        _digest(event.parameters),
    )


REQUEST_PARTS = ("model", "messages", "system prompt", "tools", "parameters")
"""Names of what a request can differ by."""


@dataclass
class Tally:
    """What some records come to."""

    records: int = 0
    """How many they are."""

    row: SessionRow = field(default_factory=lambda: SessionRow(""))
    """Tokens, cost, calls, times, outcome; of answers given from a record, no tokens."""

    tools: Counter[str] = field(default_factory=Counter)
    """Tool -> calls."""

    failed: Counter[str] = field(default_factory=Counter)
    """Tool -> calls that were not told to have returned."""


class Side:
    """One side: its acts as numbers, and its tally."""

    def __init__(self, numbers: dict[bytes, int]) -> None:
        self._numbers = numbers
        self._places: list[str] = []
        self.acts = array("q")
        """What was done: the same number on both sides for the same act."""
        self.exact = array("q")
        """The same, with all that it can differ by."""
        self.seqs = array("q")
        """Seqs of the records."""
        self.sessions = array("l")
        """Which of the sessions each stands in."""
        self.tally = Tally()
        self._charges: OrderedDict[tuple[str, str], Charge] = OrderedDict()
        self._open: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self.acts)

    def place(self, index: int) -> tuple[str, int]:
        """Session and seq of an act."""
        return self._places[self.sessions[index]], self.seqs[index]

    def read(self, store: EventStore, stretches: Iterable[Stretch]) -> "Side":
        """Take in the records of some stretches."""
        for session, after, upto in stretches:
            self._places.append(session)
            self.tally.row.id = session
            for record in store.read(session, after=after, upto=upto):
                self._take(record)
        return self

    def _take(self, record: Record) -> None:
        tally, event = self.tally, record.event
        tally.records += 1
        apply(tally.row, record, lambda *key: self._charges.get(key), self._remember)
        tool = None
        if isinstance(event, ToolCallRequested):
            tally.tools[event.tool] += 1
            self._open[event.call_id] = event.tool
            if len(self._open) > _OPEN_KEPT:
                self._open.popitem(last=False)
        elif isinstance(event, ToolCallSettled):
            tool = self._open.pop(event.call_id, None)
            if tool is not None and event.outcome != "returned":
                tally.failed[tool] += 1
        act = act_of(record, tool)
        if act is None:
            return
        self.acts.append(self._number([act.kind, *act.what]))
        self.exact.append(self._number([act.kind, *act.what, *act.detail]) if act.detail else self.acts[-1])
        self.seqs.append(record.seq)
        self.sessions.append(len(self._places) - 1)

    def _remember(self, session: str, call_id: str, charge: Charge) -> None:
        self._charges[session, call_id] = charge
        if len(self._charges) > _CHARGES_KEPT:
            self._charges.popitem(last=False)

    def _number(self, parts: list[Any]) -> int:
        key = hashlib.blake2b(canonical_json(parts), digest_size=16).digest()
        return self._numbers.setdefault(key, len(self._numbers))


def _digest(reference: ContentRef | None) -> str | None:
    return None if reference is None else reference.digest
