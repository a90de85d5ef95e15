"""Model calls as items: request, answer, the tool calls it makes, the results that it was shown."""

from collections import OrderedDict
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, Literal

from ledger.events import ContentRef, Draft, Sibling
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.session import ArtifactInForce
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.intake import Item
from ledger.otlp.calls import EXCEPTION, CallFacts, is_failure
from ledger.otlp.cuts import completeness_of
from ledger.otlp.draft import Place, Scribe, duration_of
from ledger.otlp.kinds import transfer_target
from ledger.otlp.messages import asks, joined, last_said, results, role_of
from ledger.otlp.records import LogRecord, Record, Span
from ledger.otlp.state import (
    Asked,
    Lane,
    SessionState,
    States,
    Summary,
    ask_key,
    is_asked_elsewhere,
    was_replaced,
    was_shortened,
)
from ledger.otlp.tools import arguments_key, exception_of
from ledger.otlp.values import count, text

_CALLS_KEPT = 20_000
_EMPTY = {"role": "assistant", "parts": []}


def call_claim(call_id: str) -> str:
    """The claim by which other files find the session of a span that is not in the session of its trace."""
    return f"call:{call_id}"


class ModelCalls:
    """Maps model calls."""

    def __init__(self, scribe: Scribe, states: States) -> None:
        self._scribe = scribe
        self._states = states
        self._here: OrderedDict[str, None] = OrderedDict()

    def of_span(
        self, span: Span, facts: CallFacts, place: Place, cause: str | None, root: Place
    ) -> Iterator[Item]:
        """A model call that a span reports."""
        key, earlier = f"span:{span.key}", f"logs:{span.key}"
        if place.depth and self._scribe.desk.recorded(root.session, earlier):
            place, cause = root, None  # log records do not tell that it was of another agent
        rest = self._scribe.rest(span, place.session, facts.used)
        if self._came_before(place, earlier, key):
            yield self._late_span(span, facts, place, rest)
            return
        if before := self._before(span, facts, place, span.start):
            yield self._scribe.item(place.session, f"before:{span.key}", before, span, cause=cause)
        request = self._requested(span, facts, place)
        drafts = [self._scribe.draft(request, span, place, span.start, rest=rest)]
        answered = self._ended(span, facts, place)
        if answered is not None:
            answer = self._scribe.draft(answered, span, place, span.end or span.start)
            drafts.append(_caused(answer, 0))
        item = self._scribe.main_item(place.session, key, drafts, span, cause=cause)
        yield item
        if not isinstance(answered, ModelCallFailed):
            yield from self._asks(span, facts, place, key, span.end or span.start)
        self._note_summary(span.key, facts, answered, place)

    def _came_before(self, place: Place, other: str, mine: str) -> bool:
        """Whether the other half of a call was recorded before this one, by this import or an earlier one."""
        desk = self._scribe.desk
        self._here[mine] = None
        if len(self._here) > _CALLS_KEPT:
            self._here.popitem(last=False)
        if not desk.recorded(place.session, other):
            return other in self._here
        if not desk.recorded(place.session, mine):
            return True
        theirs, ours = desk.lookup(place.session, other), desk.lookup(place.session, mine)
        return theirs is not None and ours is not None and theirs.seq < ours.seq

    def _late_span(self, span: Span, facts: CallFacts, place: Place, rest: str) -> Item:
        """A span that comes after the log records of its call were recorded: it adds what they did not tell."""
        told = self._told(place, f"logs:{span.key}")
        event = None
        if facts.outputs:
            if told is not None:
                facts.take_from(told)
            event = self._answered(span, facts, revision=1)
        elif told is not None:
            event = told.model_copy(update=facts.figures(told))
            event = None if event == told else event.model_copy(update={"revision": 1})
        if event is not None:
            drafts = [self._scribe.draft(event, span, place, span.end, rest=rest)]
        else:
            drafts = self._scribe.kept(span, place, "chat", known=True)
        return self._scribe.main_item(place.session, f"span:{span.key}", drafts, span)

    def _told(self, place: Place, key: str) -> ModelCallAnswered | None:
        """The answer that the other half of a call told of."""
        told = self._scribe.desk.recall(place.session, key, 1)
        return told if isinstance(told, ModelCallAnswered) else None

    def of_logs(
        self, logs: list[LogRecord], facts: CallFacts, place: Place
    ) -> Generator[Item, None, CallFacts | None]:
        """A model call of which only log records are at hand: its span may be in the ledger, or come, or not.

        A second reading of an answer takes the place of the first, so one that tells less is not made. Gives the
        facts that the events carry in the end.
        """
        first, last = logs[0], logs[-1]
        owner = self._scribe.desk.claimed(call_claim(first.key))
        if owner is not None:
            place = replace(place, session=owner, depth=max(place.depth, 1))
        key = f"logs:{first.key}"
        was_seen = self._came_before(place, f"span:{first.key}", key)
        told = self._told(place, f"span:{first.key}") if was_seen and facts.outputs is not None else None
        if told is not None:
            facts.take_from(told)
        tells_more = not was_seen or told is not None or None not in (facts.usage, facts.outputs)
        if (not was_seen or not tells_more) and (before := self._before(first, facts, place, first.time)):
            yield self._scribe.item(place.session, f"before:{first.key}", before, first)
        drafts = []
        if tells_more:
            request = self._requested(first, facts, place)
            drafts.append(self._scribe.draft(request, first, place, first.time))
        if tells_more and (facts.outputs is not None or facts.stop_reason is not None):
            answer = self._answered(last, facts, revision=int(was_seen))
            drafts.append(_caused(self._scribe.draft(answer, last, place, last.time), 0))
        elif tells_more and (failed := self._failed_log(logs, first.key)) is not None:
            drafts.append(_caused(self._scribe.draft(failed, last, place, last.time), 0))
        cause = f"span:{first.key}"
        if drafts:
            yield self._scribe.item(place.session, key, drafts, first)
            cause = key
        yield from self._asks(last, facts, place, cause, last.time)
        return facts if tells_more else None

    def _failed_log(self, logs: list[LogRecord], call_id: str) -> ModelCallFailed | None:
        """The failure that log records tell of."""
        for log in reversed(logs):
            said = log.attributes.get("exception.message")
            kind = text(log.attributes.get("exception.type")) or text(log.attributes.get("error.type"))
            if kind is not None or log.name == EXCEPTION:
                detail = None if said is None else self._scribe.content(said, "error")
                return ModelCallFailed(call_id=call_id, error=kind or "error", detail=detail)
        return None

    # -- the request -----------------------------------------------------------------------------------------

    def _before(self, record: Record, facts: CallFacts, place: Place, at: int) -> list[Draft]:
        """What the messages of a request show to have happened before it."""
        state = self._states.of(place.session)
        messages = facts.messages or []
        drafts: list[Draft] = []
        for shown in (shown for message in messages for shown in results(message)):
            asked = state.asked.get(shown.call_id)
            if asked is not None and not asked.is_settled and not asked.runs:
                asked.is_settled = True
                result = None if shown.result is None else self._scribe.content(shown.result, "tool result")
                settled = ToolCallSettled(call_id=asked.call_id, outcome="returned", result=result)
                drafts.append(self._scribe.draft(settled, record, place, at))
        for message in last_said(messages) if facts.purpose is None else ():
            ref = self._scribe.message(message, "message")
            if state.hear(ref.digest):
                received = MessageReceived(origin="agent" if place.depth else "unknown", message=ref)
                drafts.append(self._scribe.draft(received, record, place, at))
        if facts.messages is not None and facts.purpose is None:
            drafts.extend(self._compacted(record, facts, self._refs(facts), place, state))
        return drafts

    def _refs(self, facts: CallFacts) -> list[ContentRef]:
        return [self._scribe.message(message, "message") for message in facts.messages or ()]

    def _compacted(
        self, record: Record, facts: CallFacts, refs: list[ContentRef], place: Place, state: SessionState
    ) -> Iterator[Draft]:
        """A compaction, where the messages show one: conventions have no word for it."""
        digests = [ref.digest for ref in refs]
        before = state.enter_lane(place.agent, digests, facts.messages or [])
        after = state.lanes[place.agent]
        summary, state.summary = state.summary, None
        if before is None or facts.previous is not None or not _shows_compaction(before, after, summary):
            state.summary = None if before is not None else summary
            return
        head = state.chain.head
        state.chain.replace(refs)
        detail = (
            "a call wrote a summary, and" if summary else "earlier messages are gone while later ones stayed:"
        )
        event = CompactionDone(
            compaction_id=record.key,
            trigger="unknown",
            evidence="inferred",
            evidence_detail=f"{detail} the next request no longer holds the messages before it",
            context_before=head,
            context_after=state.chain.head,
            context_added=state.chain.take_added(),
            messages_before=len(before.digests),
            messages_after=len(digests),
            summary=summary.message if summary else None,
            model=summary.model if summary else None,
            call_id=summary.call_id if summary else None,
        )
        yield self._scribe.draft(event, record, place, 0)

    def _requested(self, record: Record, facts: CallFacts, place: Place) -> ModelCallRequested:
        state, keep = self._states.of(place.session), self._scribe
        refs = self._refs(facts)
        system = None if facts.system is None else keep.content(facts.system, "system prompt")
        tools = None if facts.tools is None else keep.message(facts.tools, "tools")
        parameters = None if facts.parameters is None else keep.message(facts.parameters, "parameters")
        not_seen = list(dict.fromkeys(facts.missing))
        if facts.previous is not None:
            not_seen.append(f"messages up to {facts.previous}, which the provider holds")
        completeness: Literal["messages", "partial", "none"]
        completeness = "none" if facts.messages is None else "partial" if not_seen else "messages"
        not_seen.extend(
            name
            for name, part in (("messages", facts.messages), ("tools", tools), ("parameters", parameters))
            if part is None
        )
        added, head = 0, None
        if facts.messages is not None:
            chain = state.chain if facts.purpose is None else state.aside
            chain.replace(refs)
            added, head = chain.take_added(), chain.head
        return ModelCallRequested(
            call_id=record.key,
            purpose=facts.purpose or ("sub-agent" if place.depth or place.tool else "main"),
            protocol=facts.protocol or "genai",
            model=facts.asked or facts.answered_by,
            provider=facts.provider,
            context=head,
            context_length=len(refs),
            context_added=added,
            system=system,
            tools=tools,
            parameters=parameters,
            completeness=completeness,
            not_seen=tuple(not_seen),
            artifacts=tuple(self._artifacts(state, facts, refs, system, tools)),
        )

    def _artifacts(
        self,
        state: SessionState,
        facts: CallFacts,
        refs: list[ContentRef],
        system: ContentRef | None,
        tools: ContentRef | None,
    ) -> Iterator[ArtifactInForce]:
        """System prompt and tool schemas, where they are others than at the last call."""
        if facts.purpose is not None:
            return
        if system is None and facts.messages and role_of(facts.messages[0]) == "system":
            system = refs[0]
        for name, ref in (("system_prompt", system), ("tool_schemas", tools)):
            if ref is not None and state.changed(name, ref.digest):
                yield ArtifactInForce(artifact=name, digest=ref.digest)

    # -- the answer ------------------------------------------------------------------------------------------

    def _ended(
        self, span: Span, facts: CallFacts, place: Place
    ) -> ModelCallAnswered | ModelCallFailed | None:
        """How the call ended; None when the span never ended."""
        if is_failure(span, facts):
            failure = exception_of(span) or {}
            said = text(failure.get("exception.message")) or span.status_message or None
            kind = text(span.attributes.get("error.type")) or text(failure.get("exception.type"))
            return ModelCallFailed(
                call_id=span.key,
                status=count(span.attributes.get("http.response.status_code")),
                error=kind or "error",
                detail=None if said is None else self._scribe.content(said, "error"),
                duration_ms=duration_of(span),
            )
        if not span.end and not facts.outputs:
            return None
        return self._answered(span, facts)

    def _answered(self, record: Record, facts: CallFacts, *, revision: int = 0) -> ModelCallAnswered:
        outputs = facts.outputs or []
        message = joined(outputs) if outputs else _EMPTY
        envelope = facts.envelope if facts.envelope is not None else outputs if len(outputs) > 1 else None
        return ModelCallAnswered(
            call_id=record.key,
            model=facts.answered_by,
            message=self._scribe.message(message, "answer"),
            envelope=None if envelope is None else self._scribe.content(envelope, "answer"),
            stop_reason=facts.stop_reason,
            usage=facts.usage,
            cost_usd=facts.cost,
            response_id=facts.response_id,
            first_byte_ms=_first_byte(record),
            duration_ms=duration_of(record) if isinstance(record, Span) else None,
            completeness=completeness_of(record, facts),
            revision=revision,
        )

    def _asks(self, record: Record, facts: CallFacts, place: Place, cause: str, at: int) -> Iterator[Item]:
        """The tool calls of an answer, each an item of its own: another file may show how it ended."""
        state, scribe = self._states.of(place.session), self._scribe
        index = 0
        for message in facts.outputs or ():
            for ask in asks(message):
                call_id = ask_key(ask, record.key, index)
                index += 1
                given = {} if ask.arguments is None else ask.arguments
                drafts = [
                    scribe.draft(
                        ToolCallRequested(
                            call_id=call_id, tool=ask.tool, arguments=scribe.content(given, "arguments")
                        ),
                        record,
                        place,
                        at,
                    )
                ]
                if (target := transfer_target(ask.tool, ask.arguments)) is not None:
                    started = DelegationStarted(
                        delegation_id=call_id, to_agent=target or None, how="handoff", call_id=call_id
                    )
                    drafts.append(_caused(scribe.draft(started, record, place, at), 0))
                item = scribe.item(place.session, f"ask:{call_id}", drafts, record, cause=cause)
                item.check = record.key.encode()
                is_known = is_asked_elsewhere(scribe.desk, place.session, state, call_id, record)
                state.put(Asked(call_id, ask.tool, arguments_key(ask.arguments), item.key, int(is_known)))
                if not is_known:
                    yield item

    def _note_summary(
        self,
        call_id: str,
        facts: CallFacts,
        answered: ModelCallAnswered | ModelCallFailed | None,
        place: Place,
    ) -> None:
        if facts.purpose == "compaction" and isinstance(answered, ModelCallAnswered):
            state = self._states.of(place.session)
            state.summary = Summary(call_id, answered.message, answered.model)


def _shows_compaction(before: Lane, after: Lane, summary: Summary | None) -> bool:
    if summary is not None:
        return was_replaced(before, after)
    return was_shortened(before, after)


def _first_byte(record: Record) -> int | None:
    seconds: Any = record.attributes.get("gen_ai.response.time_to_first_chunk")
    if seconds is None:
        seconds = record.attributes.get("gen_ai.client.operation.time_to_first_chunk")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 10**6:
        return round(seconds * 1000)
    return None


def _caused(draft: Draft, place: int) -> Draft:
    """A draft with another of its item as cause."""
    return Draft(
        draft.event,
        draft.occurred_at,
        draft.actor,
        Sibling(place),
        draft.correlation,
        draft.agent,
        draft.depth,
        draft.source,
        draft.grade,
    )
