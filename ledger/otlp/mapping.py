"""Traces into items: walks each tree, parents first, and says what every span was. Knows no encoding."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.session import SessionEnded, SessionStarted
from ledger.intake import Desk, Item
from ledger.otlp.beside import Beside
from ledger.otlp.calls import CallFacts, log_facts
from ledger.otlp.draft import Place, Scribe, duration_of
from ledger.otlp.grouping import Sessions, native_id
from ledger.otlp.kinds import agent_name, handed_to, native_type, transfer_target
from ledger.otlp.modelcalls import ModelCalls, call_claim
from ledger.otlp.records import ERROR, LogRecord, Record, Span
from ledger.otlp.state import States
from ledger.otlp.toolcalls import ToolCalls
from ledger.otlp.tools import call_id_of, interrupt_of
from ledger.otlp.trace import Trace, tells_of_call
from ledger.otlp.values import count, structured, text

_STARTED_KEPT = 200_000
_NAMED = 20
_WRITTEN_KEPT = 100_000

Walk = Generator[Item, None, Place]
"""The items of a span, and in the end the place of its children."""


class Mapper:
    """Maps traces, in the order in which they are given."""

    def __init__(self, desk: Desk, *, file: str | None, sender: str, beside: Beside) -> None:
        """`file` as the source names it, None for a live receiver; `sender` stands for one that gives no name."""
        self._desk = desk
        self._beside = beside
        self._scribe = Scribe(desk, file)
        self._states = States(desk)
        self._sessions = Sessions(desk, sender)
        self._model_calls = ModelCalls(self._scribe, self._states)
        self._tool_calls = ToolCalls(self._scribe, self._states)
        self._started: dict[str, None] = {}
        self._dropped: Counter[str] = Counter()
        self._left = 0
        self._written: OrderedDict[str, str] = OrderedDict()
        self._open: dict[str, Callable[[], Iterator[Item]]] = {}

    def items(self, traces: list[Trace]) -> Iterator[Item]:
        """The items of traces that came together: earlier ones first, since later ones may continue them."""
        for trace in traces:
            trace.prepare(self._beside.logs)
        for trace in sorted(traces, key=_beginning):
            self._sessions.assign(trace)
            self._foresee(trace)
            for item in self._trace(trace):
                if item.key.startswith("span:"):
                    self._mark(trace, item)
                if trace.claims and item.session == trace.session:
                    item.claim = trace.claims.pop(0)
                yield item

    def _foresee(self, trace: Trace) -> None:
        """Ask at once what `_owner` and the tool calls will ask span by span."""
        tops = [span for span in trace.children.get("", ()) if span.parent] if trace.is_continued else []
        tools = [call_id_of(span) for span in trace.spans if trace.kinds[span.span] == "tool"]
        keys = [f"span:{span.key}" for span in tops]
        keys.extend(f"ask:{call_id}" for call_id in tools if call_id is not None)
        owners = [key for span in tops for key in (span.key, f"{span.trace}/{span.parent}")]
        if keys:
            self._desk.foresee([(trace.session, key) for key in keys], map(call_claim, dict.fromkeys(owners)))

    def _mark(self, trace: Trace, item: Item) -> None:
        """Remember where a span was written; other files find one outside its trace's session by a claim."""
        span = item.key.removeprefix("span:")
        self._written[span] = item.session
        if len(self._written) > _WRITTEN_KEPT:
            self._written.popitem(last=False)
        if item.session != trace.session:
            item.claim = call_claim(span)

    def note(self) -> None:
        """Say in the report what a reader of it should know."""
        notes = self._desk.tally.notes
        if self._dropped:
            named = ", ".join(f"{span} {count}" for span, count in self._dropped.most_common(_NAMED))
            total = self._dropped.total()
            notes.append(f"SDKs dropped {total} attributes of {len(self._dropped)} spans; of these: {named}")
        if self._left:
            notes.append(
                f"{self._left} log records tell of model calls whose spans are in the file beside this one:"
                " these calls are recorded when that file is imported"
            )

    def _trace(self, trace: Trace) -> Iterator[Item]:
        root = Place(trace.session)
        for record in trace.records[:1]:
            yield from self._start(trace, record, root)
        attached: dict[str, list[LogRecord]] = {}
        for log in trace.logs:
            attached.setdefault(log.span, []).append(log)
        stack = [
            (span, self._owner(trace, span, root), False) for span in reversed(trace.children.get("", ()))
        ]
        while stack:
            span, place, is_done = stack.pop()
            if is_done:
                yield from self._open.pop(span.span)()
                continue
            inner = yield from self._placed(trace, span, place)
            for log in attached.pop(span.span, ()):
                yield self._log(log, inner, trace.facts.get(span.span) if tells_of_call(log) else None)
            children = trace.children.get(span.span, ())
            if span.span in self._open:
                stack.append((span, place, True))
            stack.extend((child, inner, False) for child in reversed(children))
        for span in trace.repeated:
            yield self._again(span, root)
        for logs in attached.values():
            yield from self._logs_alone(trace, logs, root)

    def _owner(self, trace: Trace, span: Span, root: Place) -> Place:
        """Where a span belongs whose parent did not come with it: perhaps to a session inside the trace's."""
        if not trace.is_continued or not span.parent:
            return root
        if self._desk.recorded(root.session, f"span:{span.key}"):
            return root  # so it was decided when less of the trace was there
        for key in (span.key, f"{span.trace}/{span.parent}"):
            session = self._written.get(key) or self._desk.claimed(call_claim(key))
            if session is not None and session != root.session:
                return Place(session, depth=1 + session.removeprefix(root.session).count(".", 1))
        return root

    def _again(self, span: Span, root: Place) -> Item:
        """A span that came before: the same bytes are a duplicate, others are kept beside it."""
        self._count(span, native_type(span), known=True)
        place = replace(root, session=self._written.get(span.key, root.session))
        drafts = self._scribe.kept(span, place, native_type(span), known=True)
        return self._scribe.main_item(place.session, f"span:{span.key}", drafts, span)

    def _placed(self, trace: Trace, span: Span, place: Place) -> Walk:
        """Record a span, once; gives the place of its children."""
        if span.key in self._written:
            yield self._again(span, place)
            return place
        return (yield from self._entered(trace, span, place))

    # -- sessions --------------------------------------------------------------------------------------------

    def _start(self, trace: Trace, record: Record, place: Place) -> Iterator[Item]:
        if place.session in self._started:
            return
        self._started[place.session] = None
        if len(self._started) > _STARTED_KEPT:
            del self._started[next(iter(self._started))]
        self._scribe.remember_origin(place.session, record.origin)
        agent = next((name for span in trace.broad() if (name := agent_name(span))), None)
        event = self._session_started(record, trace.name, agent)
        draft = self._scribe.draft(event, record, replace(place, agent=agent), _time(record))
        yield self._scribe.item(place.session, "start", [draft], record)

    def _session_started(
        self,
        record: Record,
        name: str | None,
        agent: str | None,
        parent: str | None = None,
        call: str | None = None,
    ) -> SessionStarted:
        about = record.origin.resource
        service = text(about.get("service.name"))
        if service is None or service.startswith("unknown_service"):
            service = record.origin.scope_name or "otlp"
        surroundings = {"resource": about, "scope": record.origin.scope}
        return SessionStarted(
            harness=service,
            harness_version=text(about.get("service.version")),
            name=name,
            agent=agent,
            parent=parent,
            parent_call=call,
            environment=self._desk.keep.json(surroundings, "resource"),
        )

    # -- spans -----------------------------------------------------------------------------------------------

    def _count(self, record: Record, native: str, *, known: bool) -> None:
        self._desk.tally.native[native] += 1
        if not known:
            self._desk.tally.unknown[native] += 1

    def _cause(self, trace: Trace, span: Span, place: Place) -> str | None:
        """The parent's item, if it is in the same session."""
        if not span.parent or (place.tool is None and place.depth):
            return None
        return f"span:{span.trace}/{span.parent}"

    def _entered(self, trace: Trace, span: Span, place: Place) -> Walk:
        """Record a span; gives the place of its children."""
        kind, native = trace.kinds[span.span], native_type(span)
        self._count(span, native, known=kind != "unknown")
        if span.dropped:
            self._dropped[span.key] = span.dropped
        cause = self._cause(trace, span, place)
        if kind == "agent" and place.tool is not None:
            return (yield from self._delegated(span, place))
        place = replace(place, agent=agent_name(span) or place.agent)
        if kind == "tool":
            is_leaf = not trace.children.get(span.span)
            items, inner, after = self._tool_calls.of_span(span, place, cause, is_leaf=is_leaf)
            yield from items
            if after is not None:
                self._open[span.span] = after
            return inner
        if kind == "model" and span.span not in trace.second:
            facts, root = trace.facts[span.span], Place(trace.session)
            yield from self._model_calls.of_span(span, facts, place, cause, root)
            return place
        if kind == "model":
            cause = f"span:{span.trace}/{trace.second[span.span]}"
        drafts = self._special(span, place) if kind in ("handoff", "compaction") else []
        if not drafts:
            drafts = self._scribe.kept(span, place, native, known=kind != "unknown")
        drafts.extend(self._interrupted(span, place))
        yield self._scribe.main_item(place.session, f"span:{span.key}", drafts, span, cause=cause)
        return place

    def _special(self, span: Span, place: Place) -> list[Draft]:
        """Handoff and compaction spans."""
        given, rest = span.attributes, self._scribe.rest(span, place.session)
        if "gen_ai.compaction.trigger" in given or given.get("gen_ai.operation.name") == "compact_events":
            trigger = given.get("gen_ai.compaction.trigger")
            event = CompactionDone(
                compaction_id=span.key,
                trigger="manual" if trigger == "manual" else "auto" if trigger else "unknown",
                evidence="logged",
                messages_before=count(given.get("gen_ai.compaction.event_count")),
                duration_ms=duration_of(span),
            )
            return [self._scribe.draft(event, span, place, span.end or span.start, rest=rest)]
        last = self._states.of(place.session).last_ask
        if last is not None and transfer_target(last.tool, None) is not None and not last.is_handed:
            last.is_handed = True
            return []  # the tool call that handed over is recorded already
        handed = DelegationStarted(delegation_id=span.key, to_agent=handed_to(span), how="handoff")
        return [self._scribe.draft(handed, span, place, span.start, rest=rest)]

    def _interrupted(self, span: Span, place: Place) -> list[Draft]:
        """A loop that stopped to ask. Tracers call it an exception, some an error; it is neither."""
        interrupt = interrupt_of(span)
        if interrupt is None:
            return []
        asked = self._states.of(place.session).open_call_of(interrupt.message)
        if asked is not None:
            asked.approval = interrupt.id
        event = ApprovalAsked(
            approval_id=interrupt.id,
            call_id=asked.call_id if asked else None,
            tool=asked.tool if asked else None,
            context=self._desk.keep.text(interrupt.message, "question"),
        )
        return [self._scribe.draft(event, span, place, span.end or span.start)]

    # -- delegations -----------------------------------------------------------------------------------------

    def _delegated(self, span: Span, place: Place) -> Walk:
        """An agent that runs inside a tool call is a session of its own."""
        scribe = self._scribe
        child = Place(f"{place.session}.{span.span}", place.depth + 1, agent_name(span))
        started = DelegationStarted(
            delegation_id=span.key,
            to_session=child.session,
            to_agent=child.agent,
            how="tool",
            call_id=place.tool_call,
        )
        drafts = [scribe.draft(started, span, place, span.start)]
        cause = f"span:{place.tool.key}" if place.tool else None
        yield scribe.item(place.session, f"delegated:{span.key}", drafts, span, cause=cause)
        if child.session not in self._started:
            self._started[child.session] = None
            scribe.remember_origin(child.session, span.origin)
            event = self._session_started(
                span, native_id(span.attributes), child.agent, place.session, place.tool_call
            )
            yield scribe.item(child.session, "start", [scribe.draft(event, span, child, span.start)], span)
        kept = scribe.kept(span, child, native_type(span), known=True)
        kept.extend(self._interrupted(span, child))
        yield scribe.main_item(child.session, f"span:{span.key}", kept, span)
        self._open[span.span] = lambda: self._returned(span, place, child)
        return child

    def _returned(self, span: Span, place: Place, child: Place) -> Iterator[Item]:
        failed = span.status == ERROR and interrupt_of(span) is None
        if not span.end:
            return
        ended = SessionEnded(outcome="failed" if failed else "completed", reason=span.status_message or None)
        drafts = [self._scribe.draft(ended, span, child, span.end)]
        yield self._scribe.item(child.session, f"ended:{span.key}", drafts, span)
        event = DelegationReturned(
            delegation_id=span.key,
            outcome="failed" if failed else "returned",
            from_session=child.session,
            returned="result",
        )
        drafts = [self._scribe.draft(event, span, place, span.end)]
        yield self._scribe.item(
            place.session, f"returned:{span.key}", drafts, span, cause=f"delegated:{span.key}"
        )

    # -- logs ------------------------------------------------------------------------------------------------

    def _log(self, log: LogRecord, place: Place, carried: CallFacts | None) -> Item:
        """A log record by itself, without what the model call beside it carries."""
        native = log.name or f"log of {log.origin.scope_name[:100] or 'no scope'}"
        known = bool(log.name)
        self._count(log, native[:160], known=known)
        drafts = self._scribe.kept(without(log, carried), place, native[:160], known=known)
        return self._scribe.main_item(place.session, f"log:{log.fingerprint().hex()}", drafts, log)

    def _logs_alone(self, trace: Trace, logs: list[LogRecord], place: Place) -> Iterator[Item]:
        """Log records whose span is not here: in the file beside, or late, or never recorded."""
        spans = self._beside.spans
        about = [log for log in logs if tells_of_call(log)]
        if about and (about[0].trace, about[0].span) in spans:
            self._left += len(about)
            about = []
        agent = next((name for log in logs if (name := text(log.attributes.get("gen_ai.agent.name")))), None)
        place = replace(place, agent=agent)
        facts = log_facts(about) if about else None
        if facts is not None:
            facts = yield from self._model_calls.of_logs(about, facts, place)
        for log in logs:
            yield self._log(log, place, facts if log in about else None)


_CARRIED = {
    "gen_ai.input.messages": "messages",
    "gen_ai.output.messages": "outputs",
    "gen_ai.system_instructions": "system",
    "gen_ai.tool.definitions": "tools",
}


def without(log: LogRecord, facts: CallFacts | None) -> LogRecord:
    """A log record without the attributes whose content the events of its model call hold already."""
    if facts is None:
        return log
    kept = {
        name: value
        for name, value in log.attributes.items()
        if name not in _CARRIED or structured(value) != getattr(facts, _CARRIED[name])
    }
    return log if len(kept) == len(log.attributes) else replace(log, attributes=kept)


def _time(record: Record) -> int:
    return record.start if isinstance(record, Span) else record.time


def _beginning(trace: Trace) -> int:
    """When a trace began: later ones may continue it. Those without a time keep their order."""
    times = [time for record in trace.records if (time := _time(record))]
    return min(times, default=0)
