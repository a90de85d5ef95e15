"""Edges that carry what they should not: a secret from one party to another, a tool nobody offered, too many agents."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from ledger.audit.detector import Given
from ledger.audit.edge_fold import READS as OF_EDGES
from ledger.audit.edge_fold import Crossing, EdgeFold
from ledger.audit.edges import Edge, Secret, secrets_in
from ledger.audit.finding import Found
from ledger.events import Record
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled

TITLE = "Edge that carries what it should not"
SEVERITY = "medium"
WHY = (
    "Each agent and each server may be sound, and what passes between them not: a secret of one handed to another, a"
    " tool that the model had not been given, agents that multiply."
)
MISSES = (
    "Secrets that redaction does not know as such; tools of requests whose schemas are not on record; agents that start"
    " others in sessions that are not on record; a burst that is meant: the limits are fixed, `edges --designed` has"
    " yours."
)
READS = OF_EDGES
SOURCE = "Evaluate the node, govern the edge; OWASP Agentic ASI03 privilege abuse, ASI08 cascading failures."

MOST_AT_ONCE = 8
"""More agents than these at work for one other at the same time are a burst."""

DEEPEST = 4
"""Work handed on more often than this is out of sight of whoever asked for it."""

_GUESSED = "entropy"
_MOST_SECRETS = 2000
_MOST_WAITING = 1000


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._reader = given.reader
        self._fold = EdgeFold(given.session, given.reader, classes=False)
        self._origins: OrderedDict[Secret, tuple[str, int]] = OrderedDict()
        self._waiting: OrderedDict[str, tuple[int, Edge]] = OrderedDict()
        self._told: set[str] = set()

    def end(self) -> Iterable[Found]:
        """Nothing shows only at the end."""
        return ()

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event, seq = record.event, record.seq
        back = None
        if isinstance(event, ToolCallSettled | DelegationReturned):
            back = self._fold.edge_of(event)
        crossing = self._fold.take(record)
        if crossing is not None:
            yield from self._went(crossing, seq)
        match event:
            case ToolCallRequested() if crossing is not None and not crossing.was_offered:
                self._waiting[event.call_id] = seq, crossing.edge
                if len(self._waiting) > _MOST_WAITING:
                    self._waiting.popitem(last=False)
            case DelegationStarted():
                self._waiting.pop(event.call_id or "", None)
                yield from self._spread(record)
            case ToolCallSettled():
                if event.call_id in self._waiting:
                    at, edge = self._waiting.pop(event.call_id)
                    yield from self._not_offered(edge, at, seq, ran=event.outcome == "returned")
                if back is not None:
                    self._came(back, self._reader.text(event.result), seq)
            case DelegationReturned() if back is not None:
                self._came(back, self._reader.text(event.result), seq)
            case _:
                pass

    def _came(self, edge: Edge, text: str, seq: int) -> None:
        """Secrets belong to whom they first came from."""
        for secret in secrets_in(text):
            self._origins.setdefault(secret, (_party(edge), seq))
            if len(self._origins) > _MOST_SECRETS:
                self._origins.popitem(last=False)

    def _went(self, crossing: Crossing, seq: int) -> Iterator[Found]:
        edge = crossing.edge
        if edge.name.kind == "tool":
            return
        for secret in crossing.secrets:
            party, at = self._origins.get(secret, (None, seq))
            if party is None or party == _party(edge):
                continue
            kind = secret.kind.replace("_", " ")
            yield from self._once(
                f"secret {secret.kind} {at} {edge.name}",
                Found(
                    seq,
                    f"a secret ({kind}) that came from {party} was handed on to {_party(edge)}",
                    (at,),
                    severity="low" if secret.kind == _GUESSED else "high",
                    part="secret",
                ),
            )

    def _spread(self, record: Record) -> Iterator[Found]:
        count = self._fold.open_to_agents()
        if count > MOST_AT_ONCE:
            message = f"more than {MOST_AT_ONCE} agents were at work for one other at the same time"
            yield from self._once("at once", Found(record.seq, message, part="fan_out", key="at once"))
        if record.depth >= DEEPEST:
            message = f"work was handed on for the {record.depth + 1}th time"
            yield from self._once("deep", Found(record.seq, message, part="fan_out", key="deep"))

    def _not_offered(self, edge: Edge, at: int, seq: int, *, ran: bool) -> Iterator[Found]:
        how = "and it ran" if ran else "and it did not run"
        yield from self._once(
            f"offer {edge.name} {ran}",
            Found(
                at,
                f"{edge.name.target} was called, which no request had offered to the model, {how}",
                (seq,),
                severity="medium" if ran else "info",
                part="not_offered",
                key=f"{edge.name} {how}",
            ),
        )

    def _once(self, key: str, found: Found) -> Iterator[Found]:
        if key not in self._told and len(self._told) < _MOST_SECRETS:
            self._told.add(key)
            yield found


def _party(edge: Edge) -> str:
    """Who is at the other end: the agent, the server of all its tools, or a tool of the loop's own."""
    if edge.name.kind == "mcp":
        return f"the server {edge.name.target.partition('/')[0]}"
    return edge.name.target if edge.is_to_agent else f"the tool {edge.name.target}"


start = Watch
