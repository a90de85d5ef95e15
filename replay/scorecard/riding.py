"""Does capability load on demand, or ride every turn? And what tools cost each request: schemas, calls and results.

Measured from the rebuilt contexts: each message is loaded once, and of a long session so many requests are measured,
evenly spread, that the work does not grow with its square.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ledger.errors import ContentMissingError
from ledger.events import Record
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.capability import CapabilityLoaded
from ledger.events.model_call import ModelCallAnswered, ModelCallRequested
from ledger.store import EventStore
from replay.conversation import decode_content, tool_names
from replay.scorecard.answer import Answer, Asker, Evidence, nothing

_MOST_MEASURED = 200
_MOST_KEPT = 50_000
_AT_ONCE = 200
_RESULTS = frozenset({"tool_result", "functionResponse", "function_response", "tool_call_response"})
_CALLS = frozenset({"tool_use", "functionCall", "function_call", "tool_call"})


class _Weight(NamedTuple):
    """Bytes of a message, or of several."""

    all: int = 0
    results: int = 0
    calls: int = 0

    def plus(self, other: "_Weight") -> "_Weight":
        return _Weight(self.all + other.all, self.results + other.results, self.calls + other.calls)


@dataclass
class Turn:
    """One request to a model, and what of it is tools."""

    seq: int
    """Its record."""

    event: ModelCallRequested
    """The request."""

    tokens: int | None = None
    """Tokens of the whole prompt, as the provider counted them."""

    bytes: int = 0
    """System prompt, tool schemas and messages."""

    schemas: int | None = None
    """Bytes of the tool schemas; None where the record does not hold them."""

    results: int = 0
    """Bytes of tool results in its messages."""

    calls: int = 0
    """Bytes of tool calls in its messages."""

    is_whole: bool = True
    """Whether all its messages are there, the system prompt, and the tool schemas."""

    def as_json(self) -> dict[str, Any]:
        """The documented form. Tokens are the provider's, split as the bytes are."""
        return {
            "seq": self.seq,
            "bytes": self.bytes,
            "schemas": self.schemas,
            "results": self.results,
            "calls": self.calls,
            "tokens": self.tokens,
            "schema_tokens": self._tokens(self.schemas),
            "result_tokens": self._tokens(self.results),
        }

    def _tokens(self, part: int | None) -> int | None:
        if self.tokens is None or part is None or not self.bytes or not self.is_whole:
            return None
        return round(self.tokens * part / self.bytes)


class Riding(Asker):
    """One session."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._seen = Evidence()
        self._turns: list[Turn] = []
        self._every = 1
        self._requests = 0
        self._with_tools = 0
        self._toolsets: Counter[str] = Counter()
        self._on_demand = 0
        self._always = 0
        self._weights: OrderedDict[str, _Weight] = OrderedDict()
        self._up_to: dict[str, _Weight | None] = {}

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        match event:
            case ModelCallRequested() if event.purpose in ("main", "sub-agent", "unknown"):
                self._asked(record, event)
            case ModelCallAnswered() if event.usage is not None:
                turn = next(
                    (one for one in reversed(self._turns) if one.event.call_id == event.call_id), None
                )
                usage = event.usage
                parts = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
                known = [part for part in parts if part is not None]
                if turn is not None and known:
                    turn.tokens = sum(known)
            case CapabilityLoaded():
                self._on_demand += event.when == "on_demand"
                self._always += event.when == "always"
                if event.when != "unknown":
                    self._seen.add(record, f"{event.kind} loaded {event.when.replace('_', ' ')}")
            case _:
                pass

    def _asked(self, record: Record, event: ModelCallRequested) -> None:
        self._requests += 1
        if event.tools is not None and _is_seen(event, "tools"):
            self._with_tools += 1
            if event.tools.digest in self._toolsets or len(self._toolsets) < 1000:
                self._toolsets[event.tools.digest] += 1
                if self._toolsets[event.tools.digest] == 1:
                    self._seen.add(record, "request with other tool schemas than before")
        if (self._requests - 1) % self._every == 0:
            self._turns.append(Turn(record.seq, event))
            if len(self._turns) > _MOST_MEASURED:
                self._turns = self._turns[::2]
                self._every *= 2

    # -- what tools weigh ------------------------------------------------------------------------------------------

    def _measure(self, turn: Turn) -> None:
        event = turn.event
        total = self._total(event.context)
        is_known = event.completeness in ("body", "messages") and _is_seen(event, "system")
        turn.is_whole = total is not None and is_known and _is_seen(event, "tools")
        system = 0 if event.system is None else event.system.size
        turn.schemas = event.tools.size if event.tools is not None and _is_seen(event, "tools") else None
        if event.tools is None and event.completeness == "body":
            turn.schemas = 0
        found = total or _Weight()
        turn.bytes = found.all + system + (turn.schemas or 0)
        turn.results, turn.calls = found.results, found.calls

    def _total(self, node: str | None) -> _Weight | None:
        """What the messages up to a node of a context weigh; None where one of them is gone.

        Asked for the last request first: an earlier context is nearly always the beginning of a later one.
        """
        if node is None:
            return _Weight()
        if node not in self._up_to:
            self._up_to.clear()
            try:
                rows = self._store.context_nodes(node)
            except ContentMissingError:
                return None
            messages = [row.message.hex() for row in rows]
            self._load([digest for digest in dict.fromkeys(messages) if digest not in self._weights])
            total: _Weight | None = _Weight()
            for row, digest in zip(rows, messages, strict=True):
                weight = self._weights.get(digest)
                total = None if total is None or weight is None else total.plus(weight)
                self._up_to[row.node.hex()] = total
        return self._up_to[node]

    def _load(self, digests: list[str]) -> None:
        for start in range(0, len(digests), _AT_ONCE):
            for digest, content in self._store.contents(digests[start : start + _AT_ONCE]).items():
                self._weights[digest] = _weigh(content)
        while len(self._weights) > max(_MOST_KEPT, len(digests)):
            self._weights.popitem(last=False)

    def _names(self) -> dict[str, int]:
        """How many tools the toolsets offer: the least and the most."""
        counts = []
        for digest in list(self._toolsets)[:20]:
            found = self._store.contents([digest]).get(digest)
            if found is not None:
                counts.append(len(tool_names(decode_content(found))))
        return {"least": min(counts), "most": max(counts)} if counts else {}

    def answer(self) -> Answer:
        """The answer."""
        for turn in reversed(self._turns):
            self._measure(turn)
        schemas = [turn.schemas for turn in self._turns if turn.schemas is not None]
        facts = {
            "requests": self._requests,
            "measured": len(self._turns),
            "with_schemas": self._with_tools,
            "toolsets": len(self._toolsets),
            "tools_offered": self._names(),
            "loaded_on_demand": self._on_demand,
            "loaded_always": self._always,
            "bytes_a_turn": _mean([turn.bytes for turn in self._turns]),
            "schema_bytes_a_turn": _mean(schemas),
            "result_bytes_a_turn": _mean([turn.results for turn in self._turns]),
            "call_bytes_a_turn": _mean([turn.calls for turn in self._turns]),
            "schema_tokens_a_turn": _mean([one["schema_tokens"] for one in self._json()]),
            "result_tokens_a_turn": _mean([one["result_tokens"] for one in self._json()]),
            "turns": self._json(),
        }
        rides = self._with_tools > 1 and len(self._toolsets) < self._with_tools
        told = self._told(facts)
        witnesses = tuple(self._seen.witnesses)
        if rides and self._on_demand:
            return Answer("capability", "both", told, witnesses, facts)
        if self._on_demand:
            return Answer("capability", "on demand", told, witnesses, facts)
        if rides or self._always:
            return Answer("capability", "every turn", told, witnesses, facts)
        if self._with_tools:
            told = f"tool schemas are on record for {self._with_tools} of {self._requests} requests: too few to tell"
            return nothing("capability", told, **facts)
        return nothing(
            "capability", "no request on record holds tool schemas, and no loading is told", **facts
        )

    def _told(self, facts: dict[str, Any]) -> str:
        loaded = f"{self._on_demand} loaded on demand; " if self._on_demand else ""
        if not self._with_tools:
            return f"{loaded}{self._always} ride along always; the schemas in the requests are not on record"
        return (
            f"{loaded}{len(self._toolsets)} sets of schemas over {self._with_tools} requests; a turn carries"
            f" {facts['schema_bytes_a_turn']} bytes of schemas and {facts['result_bytes_a_turn']} of tool results of"
            f" {facts['bytes_a_turn']}"
        )

    def _json(self) -> list[dict[str, Any]]:
        return [turn.as_json() for turn in self._turns]


def _is_seen(event: ModelCallRequested, part: str) -> bool:
    """Whether the record holds a part of the request as it was sent; less than one block of it does not count."""
    return not any(one == part or one.startswith(f"{part}:") for one in event.not_seen)


def _mean(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known else None


def _weigh(content: bytes) -> _Weight:
    """The bytes of a message, and those in it that are results and calls of tools, in any protocol's shape."""
    try:
        message = decode_json(content)
    except (ValueError, RecursionError):
        return _Weight(len(content))
    if not isinstance(message, dict):
        return _Weight(len(content))
    kind = str(message.get("type", ""))
    if message.get("role") == "tool" or kind in ("tool", *_RESULTS) or kind.endswith("_output"):
        return _Weight(len(content), len(content))
    if kind in _CALLS or kind.endswith("_call"):
        return _Weight(len(content), 0, len(content))
    results = calls = 0
    for name in ("content", "parts"):
        blocks = message.get(name)
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict):
                names = {str(block.get("type", "")), *block.keys()}
                size = len(canonical_json(block)) if names & (_RESULTS | _CALLS) else 0
                results += size if names & _RESULTS else 0
                calls += size if names & _CALLS and not names & _RESULTS else 0
    if message.get("tool_calls"):
        calls += len(canonical_json(message["tool_calls"]))
    return _Weight(len(content), min(results, len(content)), min(calls, len(content)))
