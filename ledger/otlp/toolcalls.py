"""Tool spans as items: asked for, started, stopped for approval, settled."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.intake import Item
from ledger.otlp.draft import Place, Scribe, duration_of
from ledger.otlp.kinds import transfer_target
from ledger.otlp.records import Span
from ledger.otlp.state import Asked, States, is_asked_elsewhere
from ledger.otlp.tools import RESULTS, ToolFacts, arguments_key, exception_of, interrupt_of, tool_facts
from ledger.otlp.values import text

_ARGUMENTS = (".arguments", ".args", ".input", "input.value")


class ToolCalls:
    """Maps tool spans."""

    def __init__(self, scribe: Scribe, states: States) -> None:
        self._scribe = scribe
        self._states = states

    def of_span(
        self, span: Span, place: Place, cause: str | None, *, is_leaf: bool
    ) -> tuple[list[Item], Place, Callable[[], Iterator[Item]] | None]:
        """The items of a tool span, the place of what runs inside it, and what to do when that is done."""
        facts, state = tool_facts(span), self._states.of(place.session)
        arguments = arguments_key(facts.arguments)
        asked, items, used = state.match(facts, arguments), [], set(facts.used)
        if asked is None:
            asked = Asked(facts.call_id or span.key, facts.tool, arguments, "")
            asked.item = f"ask:{asked.call_id}"
            if not is_asked_elsewhere(self._scribe.desk, place.session, state, asked.call_id, span):
                items.append(self._asked(span, place, facts, asked, cause))
            state.put(asked)
        elif asked.arguments != arguments:
            used = {
                name for name in used if not name.endswith(_ARGUMENTS)
            }  # not what the model had asked for
        has_ended = _has_ended(span, facts, asked)
        if has_ended:
            used.difference_update(RESULTS)  # what no second end carries stays with the span
        state.rename(asked, facts.call_id)
        rest = self._scribe.rest(span, place.session, used)
        drafts = []
        if asked.approval is not None:
            drafts.append(self._scribe.draft(_decided(asked), span, place, span.start))
            asked.approval = None
        state.run(asked)
        started = ToolCallStarted(call_id=asked.call_id)
        drafts.append(self._scribe.draft(started, span, place, span.start, rest=rest))
        if is_leaf and not has_ended:
            drafts.extend(self._settled(span, place, facts, asked))
        key = f"span:{span.key}"
        items.append(self._scribe.main_item(place.session, key, drafts, span, cause=asked.item))
        after = None if is_leaf or has_ended else lambda: self._settled_later(span, place, facts, asked)
        return items, replace(place, tool=span, tool_call=asked.call_id), after

    def _asked(self, span: Span, place: Place, facts: ToolFacts, asked: Asked, cause: str | None) -> Item:
        """A call that no model answer at hand asks for."""
        if facts.arguments is None:
            arguments = self._scribe.message({}, "arguments")
        else:
            arguments = self._scribe.content(facts.arguments, "arguments")
        event = ToolCallRequested(call_id=asked.call_id, tool=facts.tool, arguments=arguments)
        drafts = [self._scribe.draft(event, span, place, span.start)]
        if (target := transfer_target(facts.tool, facts.arguments)) is not None:
            handed = DelegationStarted(
                delegation_id=asked.call_id, to_agent=target or None, how="handoff", call_id=asked.call_id
            )
            drafts.append(self._scribe.draft(handed, span, place, span.start))
        item = self._scribe.item(place.session, asked.item, drafts, span, cause=cause)
        item.check = span.key.encode()
        return item

    def _settled_later(self, span: Span, place: Place, facts: ToolFacts, asked: Asked) -> Iterator[Item]:
        if drafts := self._settled(span, place, facts, asked):
            key = f"settled:{span.key}"
            yield self._scribe.item(place.session, key, drafts, span, cause=f"span:{span.key}")

    def _settled(self, span: Span, place: Place, facts: ToolFacts, asked: Asked) -> list[Draft]:
        """How the call ended, or that it stopped to ask; nothing for a span that never ended."""
        at = span.end or span.start
        interrupt = interrupt_of(span)
        if interrupt is not None or facts.waits_for_approval:
            asked.approval = interrupt.id if interrupt else f"{asked.call_id}.{asked.runs}"
            shown = interrupt.message if interrupt else facts.result
            event = ApprovalAsked(
                approval_id=asked.approval,
                call_id=asked.call_id,
                tool=asked.tool,
                context=self._scribe.content(shown, "question"),
            )
            return [self._scribe.draft(event, span, place, at)]
        if not span.end and facts.result is None:
            return []
        asked.is_settled = True
        result, details = facts.result, facts.details
        if facts.is_failed and details is None:
            said = (exception_of(span) or {}).get("exception.message") or span.status_message
            details = text(said)
        settled = ToolCallSettled(
            call_id=asked.call_id,
            outcome="failed" if facts.is_failed else "returned",
            result=None if result is None else self._scribe.content(result, "tool result"),
            details=None if details is None else self._scribe.content(details, "tool result"),
            error=facts.error,
            duration_ms=duration_of(span),
        )
        return [self._scribe.draft(settled, span, place, at)]


def _has_ended(span: Span, facts: ToolFacts, asked: Asked) -> bool:
    """Whether a later request came first and showed the result: then the call does not end a second time."""
    is_question = interrupt_of(span) is not None or facts.waits_for_approval
    return asked.is_settled and not asked.runs and not facts.is_failed and not is_question


def _decided(asked: Asked) -> ApprovalDecided:
    """The call ran after the question: no convention says who answered, or what."""
    return ApprovalDecided(
        approval_id=asked.approval or "",
        call_id=asked.call_id,
        outcome="unknown",
        decided_by="unknown",
        how="the call ran afterwards",
        evidence="inferred",
    )
