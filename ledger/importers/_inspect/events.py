"""Inspect's events, one by one: what each says of the loop. What says nothing of it is kept whole."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.canonical import canonical_json
from ledger.events.compaction import CompactionDone
from ledger.events.effect import EffectDone
from ledger.events.input import MessageReceived
from ledger.events.keeping import SourceKept
from ledger.events.model_call import Usage
from ledger.events.policy import BreakerTripped, PolicyEvaluated
from ledger.events.tool_call import ToolCallRequested, ToolCallStarted
from ledger.importers import Item
from ledger.importers._inspect.lanes import Lane, Lanes
from ledger.importers._inspect.pools import Pools
from ledger.importers._inspect.ran import Ran, rest_of
from ledger.importers._plain.scribe import milliseconds_between, utc_time
from ledger.protocols.drafting import Place
from ledger.protocols.exchanges import Ask
from ledger.protocols.recognition import protocol_of_body
from ledger.protocols.tool_use import ToolUse, text

_ONLY_KEPT = frozenset(
    """
    anchor branch error info interrupt logger review sample_init score score_edit sentinel span_begin span_end
    state step store subtask
    """.split()
)
"""Events of which no fact is made, or not here."""

_DECIDED: dict[str, Literal["approved", "denied", "cancelled"]] = {
    "approve": "approved",
    "modify": "approved",
    "reject": "denied",
    "terminate": "cancelled",
}
_DECIDERS: dict[str, Literal["human", "policy"]] = {"human": "human", "auto": "policy"}
_NOT_THE_BODY = frozenset({"extra_headers", "extra_query", "timeout"})
_MODEL_FIELDS = frozenset({"input", "tools", "config", "tool_choice", "output", "call", "error"})
_LARGEST_COUNT = 2**53
_END = object()

_Held = tuple[Iterator[Any], str, Lane | None, tuple[Lane, Place, Any] | None]
"""Events to be read, the prefix of their keys, their session, and what comes back when they end."""


class Events:
    """Turns the events of a sample into items."""

    def __init__(self, lanes: Lanes, pools: Pools) -> None:
        self._lanes = lanes
        self._pools = pools
        self._desk = lanes.root.scribe.desk
        self._running: list[Ran] = []

    def items(self, events: Any, prefix: str = "") -> Iterator[Item]:
        """The events in order, each before those that it holds."""
        stack: list[_Held] = [(iter(events), prefix, None, None)]
        numbers: list[int] = [0]
        while stack:
            source, prefix, inside, delegated = stack[-1]
            event = next(source, _END)
            if event is _END:
                stack.pop()
                numbers.pop()
                if delegated is not None:
                    yield self._lanes.come_back(*delegated)
                continue
            number = numbers[-1] = numbers[-1] + 1
            held = yield from self._event(event, f"{prefix}event:{number}", inside)
            if held is not None and len(stack) < 200:
                stack.append(held)
                numbers.append(0)
        for ran in self._running:
            yield ran.item()

    def _event(self, event: Any, key: str, inside: Lane | None) -> Generator[Item, None, _Held | None]:
        """One event; gives what it holds, if it holds events."""
        tally = self._desk.tally
        tally.lines += 1
        value = self._pools.resolve(event)
        value = value if isinstance(value, dict) else {"event": type(event).__name__, "value": event}
        kind = text(value.get("event")) or "none"
        kind = kind[:60]
        tally.native[f"event:{kind}"] += 1
        place = Place(text(value.get("uuid")) or key, tally.lines, utc_time(value.get("timestamp")))
        lane = self._lanes.of(value, inside)
        yield from self._settle(kind, value)
        if kind == "span_begin":
            yield from self._lanes.begin(value, place, lane)
        handler = _HANDLERS.get(kind)
        drafts = list(handler(self, lane, value, place)) if handler is not None else []
        if handler is None or not drafts:
            drafts.append(self._kept(lane, kind, value, place))
        yield Item(lane.scribe.session, place.key, drafts, place.line, canonical_json(value))
        if kind == "span_end":
            yield from self._lanes.end(value, place)
        nested = value.get("events")
        if not isinstance(nested, list) or not nested:
            return None
        agent = text(value.get("agent")) or (text(value.get("name")) if kind == "subtask" else None)
        if agent is None:
            return iter(nested), f"{key}.", lane, None
        call_id = text(value.get("id")) if kind == "tool" else None
        child = yield from self._lanes.delegate(lane, place.key, agent, place, call_id)
        return iter(nested), f"{key}.", child, (child, place, value.get("result"))

    def _settle(self, kind: str, event: dict[str, Any]) -> Iterator[Item]:
        """Results of tools that have ended: those that run in a span of their own end with it, others at once."""
        waiting: list[Ran] = []
        for ran in self._running:
            if ran.span is None and not ran.seen_next and ran.begins_with(kind, event):
                ran.span = text(event.get("id"))
                self._lanes.runs(ran.span or "", ran.call_id)
            ran.seen_next = True
            ends = kind == "span_end" and ran.span in (event.get("span_id"), event.get("id"))
            if ran.span is None or ends:
                yield ran.item()
            else:
                waiting.append(ran)
        self._running = waiting

    def _kept(self, lane: Lane, kind: str, event: dict[str, Any], place: Place) -> Draft:
        known = kind in _ONLY_KEPT or kind in _HANDLERS
        name = f"event:{kind}"
        if not known:
            self._desk.tally.unknown[name] += 1
        body = lane.scribe.keep.json(event, name)
        return lane.scribe.draft(place, SourceKept(native_type=name, recognized=known, body=body))

    def _model(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A model call: with the client's own request and response where the log has them."""
        exchanges = lane.exchanges
        call = event.get("call")
        call = call if isinstance(call, dict) else {}
        request = self._pools.request_of(call) if call else None
        protocol = protocol_of_body(request) if isinstance(request, dict) else None
        ended = utc_time(event.get("completed"))
        role = text(event.get("role"))
        output = event.get("output")
        output = output if isinstance(output, dict) else {}
        facts: dict[str, Any] = {
            "duration_ms": milliseconds_between(place.time, ended),
            "usage": _usage(output),
        }
        ask = Ask(
            call_id=f"model-{place.key}",
            protocol=protocol or "inspect",
            purpose="other" if role else "sub-agent" if lane.scribe.depth else "main",
            model=text(event.get("model")),
            completeness="messages",
            not_seen=("body: only the arguments of the client are logged",) if protocol else (),
            grade="near-wire" if protocol else None,
            origin="human" if lane is self._lanes.root and _typed(event, self._pools) else "unknown",
        )
        if protocol is not None and isinstance(request, dict):
            body = {
                name: part for name, part in request.items() if part is not None and name not in _NOT_THE_BODY
            }
            response = call.get("response")
        else:
            body = _own_body(event, self._pools)
            response = None
        used = _MODEL_FIELDS if protocol is None else _MODEL_FIELDS - {"config", "tool_choice"}
        yield from exchanges.requested(ask, body, place, rest=rest_of(event, used))
        place = place._replace(time=ended or place.time)
        if event.get("error"):
            yield exchanges.failed(ask, event["error"], place, error="error")
        elif isinstance(response, dict):
            yield from exchanges.answered(ask, self._pools.resolve(response), place, **facts)
        elif output and not event.get("pending"):
            yield from exchanges.answered(
                ask, _message(output), place, rest=_around(output), **facts, **_told(output)
            )

    def _tool(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A tool ran: asked for by a model that was seen, or else by the loop."""
        tools = lane.exchanges.tools
        name = text(event.get("function")) or "unnamed"
        use = ToolUse(text(event.get("id")), name, event.get("arguments"))
        known = tools.find(use.call_id) if use.call_id else None
        if known is None or known.settled:
            draft = tools.requested(use, place)
            yield draft
            assert isinstance(draft.event, ToolCallRequested)
            call_id = draft.event.call_id
        else:
            call_id = known.call_id
        ran = Ran(lane, place, event, call_id)
        span = self._lanes.take_tool_span(name, event.get("span_id"))
        if span is not None:
            ran.span, ran.seen_next = span, True
            self._lanes.runs(span, call_id)
        if ran.outcome != "denied":
            yield lane.scribe.draft(place, ToolCallStarted(call_id=call_id))
        if not event.get("pending"):
            self._running.append(ran)

    def _approval(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """An approver looked at a call."""
        scribe = lane.scribe
        call = event.get("call")
        call = call if isinstance(call, dict) else {}
        native = text(call.get("id"))
        call_id = scribe.keep.scalar(native, "call id") if native else None
        arguments = lane.exchanges.tools.content(call.get("arguments"), "arguments")
        approver, decision = text(event.get("approver")) or "unknown", text(event.get("decision")) or ""
        shown = {name: event[name] for name in ("message", "call", "view") if event.get(name) is not None}
        asked = ApprovalAsked(
            approval_id=f"approval-{place.key}",
            call_id=call_id,
            tool=scribe.word(call.get("function"), "tool"),
            arguments_digest=arguments.digest,
            context=scribe.keep.json(shown, "approval"),
        )
        yield scribe.draft(place, asked)
        who = _DECIDERS.get(approver)
        rest = {name: event[name] for name in ("explanation", "modified") if event.get(name) is not None}
        if decision == "escalate":
            passed_on = PolicyEvaluated(
                rule=scribe.word(approver, "approver") or "unknown", verdict="ask", call_id=call_id
            )
            yield scribe.draft(place, passed_on, rest=rest)
            return
        decided = ApprovalDecided(
            approval_id=asked.approval_id,
            call_id=call_id,
            outcome=_DECIDED.get(decision, "unknown"),
            decided_by=who or "unknown",
            decider=scribe.word(approver, "approver"),
            how=scribe.word(decision, "decision"),
            scope="once",
            arguments_digest=asked.arguments_digest,
        )
        yield scribe.draft(place, decided, who or "system", rest=rest)

    def _compaction(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """The context was shortened, as the log says."""
        context = lane.exchanges.context
        lane.exchanges.shortened()
        done = CompactionDone(
            compaction_id=f"compaction-{place.key}",
            trigger="auto",
            evidence="logged",
            context_before=None if context is None else context.head,
            messages_before=None if context is None else len(context),
            tokens_before=_count(event.get("tokens_before")),
            tokens_after=_count(event.get("tokens_after")),
        )
        rest = {name: event[name] for name in ("type", "source", "role", "metadata") if event.get(name)}
        yield lane.scribe.draft(place, done, rest=rest)

    def _input(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A person typed something."""
        kept = lane.scribe.keep.json(event, "input")
        yield lane.scribe.draft(place, MessageReceived(origin="human", message=kept), "human")

    def _limit(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A limit stopped the sample."""
        kind, limit = text(event.get("type")) or "unknown", event.get("limit")
        told = str(limit) if isinstance(limit, int | float) else "unknown"
        tripped = BreakerTripped(
            breaker=lane.scribe.word(f"{kind} limit", "limit") or "limit", limit=told, reached="the limit"
        )
        yield lane.scribe.draft(place, tripped, "policy", rest={"message": event.get("message")})

    def _sandbox(self, lane: Lane, event: dict[str, Any], place: Place) -> Iterator[Draft]:
        """A file was written in the sandbox."""
        if event.get("action") == "write_file" and (target := lane.scribe.word(event.get("file"), "file")):
            done = EffectDone(
                effect_id=f"effect-{place.key}",
                target=target,
                operation="write",
                effect_class="write",
                evidence="observed",
            )
            yield lane.scribe.draft(place, done)
        yield self._kept(lane, "sandbox", event, place)


_Handler = Callable[[Events, Lane, dict[str, Any], Place], Iterator[Draft]]
_HANDLERS: dict[str, _Handler] = {
    "approval": Events._approval,
    "compaction": Events._compaction,
    "input": Events._input,
    "model": Events._model,
    "sample_limit": Events._limit,
    "sandbox": Events._sandbox,
    "tool": Events._tool,
}


def _own_body(event: dict[str, Any], pools: Pools) -> dict[str, Any]:
    """A request in Inspect's own shape."""
    body: dict[str, Any] = {}
    if event.get("input") is not None or event.get("input_refs") is not None:
        body["messages"] = pools.input_of(event)
    if event.get("tools"):
        body["tools"] = event["tools"]
    config = event.get("config")
    if isinstance(config, dict) and (
        config := {name: part for name, part in config.items() if part is not None}
    ):
        body["config"] = config
    if event.get("tool_choice") is not None:
        body["tool_choice"] = event["tool_choice"]
    return body


def _typed(event: dict[str, Any], pools: Pools) -> bool:
    """Whether the sample's own input is among the messages: it stands for what a person asks."""
    messages = pools.input_of(event)[:20]
    return any(isinstance(message, dict) and message.get("source") == "input" for message in messages)


def _choice(output: dict[str, Any]) -> dict[str, Any]:
    match output.get("choices"):
        case [dict() as first, *_]:
            return first
    return {}


def _message(output: dict[str, Any]) -> Any:
    message = _choice(output).get("message")
    return message if message is not None else {"role": "assistant", "content": output.get("completion")}


def _around(output: dict[str, Any]) -> dict[str, Any]:
    return {
        name: part for name, part in output.items() if name not in ("choices", "usage", "completion", "model")
    }


def _told(output: dict[str, Any]) -> dict[str, Any]:
    return {"model": text(output.get("model")), "stop_reason": text(_choice(output).get("stop_reason"))}


def _usage(output: dict[str, Any]) -> Usage | None:
    """Tokens as Inspect counts them: cached ones apart from the others."""
    usage = output.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        cache_read_tokens=_count(usage.get("input_tokens_cache_read")),
        cache_write_tokens=_count(usage.get("input_tokens_cache_write")),
        reasoning_tokens=_count(usage.get("reasoning_tokens")),
    )


def _count(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return value
    return None
