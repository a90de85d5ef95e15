"""A conversation in items of the Responses API, told as events through a story."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import Usage
from ledger.events.record import Grade
from ledger.importers import Desk
from ledger.importers._harness.story import Story
from ledger.importers._harness.values import words
from ledger.importers._openai_agents.items import FORMAT, is_output, is_result, outcome_of
from ledger.protocols.tool_use import ToolUse, calls_in, results_in

_HANDOFF = "transfer_to_"


class Talk:
    """One session."""

    def __init__(self, desk: Desk, session: str, grade: Grade = "semantic") -> None:
        self.story = Story(desk, FORMAT, session, "openai.responses", grade)
        self.keep = desk.keep
        self.story.unseen = ("system", "tools", "parameters")
        self.handed: set[str] = set()
        """Calls that hand the conversation over."""

    def answer(
        self,
        call_id: str,
        output: Sequence[Any],
        *,
        usage: Usage | None = None,
        response_id: str | None = None,
        request_id: str | None = None,
        not_seen: Sequence[str] = (),
        whole: bool = True,
        asked_at: str | None = None,
        rest: Any = None,
    ) -> Iterator[Draft]:
        """A model call with its answer, which is a list of items, and the tool calls in it."""
        story = self.story
        yield story.asked(call_id, whole=whole, not_seen=not_seen, time=asked_at)
        message = self.keep.json(list(output), "answer")
        draft = story.answered(call_id, message, usage=usage, response_id=response_id, rest=rest)
        if request_id is not None:
            draft = replace(draft, event=draft.event.model_copy(update={"request_id": request_id}))
        yield draft
        for item in output:
            story.say(item)
        yield from self.calls(output)

    def calls(self, output: Sequence[Any]) -> Iterator[Draft]:
        """The tool calls among a model's items."""
        for use in calls_in(list(output)):
            yield from self.call(use)

    def call(self, use: ToolUse) -> Iterator[Draft]:
        """One tool call."""
        story = self.story
        call_id = words(use.call_id) or f"{story.place.key}.call"
        draft = story.call(call_id, words(use.tool), use.arguments, server=words(use.server))
        if use.provider_executed:
            draft = replace(draft, event=draft.event.model_copy(update={"provider_executed": True}))
        yield draft
        if use.result is not None:
            yield story.settled(call_id, "returned", self.content(use.result))

    def message(self, item: dict[str, Any]) -> Iterator[Draft]:
        """An item that goes into the context and is no answer of a model."""
        story = self.story
        if is_result(item):
            yield from self.result(item)
            return
        ref = story.say(item)
        role = item.get("role")
        if role == "user":
            yield story.received(ref)
        elif role in ("system", "developer"):
            yield story.injected(str(role), ref)
        else:
            name = words(item.get("type")) or words(role) or "item"
            yield story.kept(f"input:{name[:60]}", item, recognized=is_output(item))

    def result(self, item: dict[str, Any]) -> Iterator[Draft]:
        """What a tool gave, once."""
        story = self.story
        story.say(item)
        found = results_in(item)
        call_id = words(item.get("call_id"))
        output = found[0].content if found else item.get("output")
        if call_id is None:
            yield story.kept(f"result:{words(item.get('type'))}", item)
            return
        if not story.is_settled(call_id):
            yield from self.settle(call_id, output)

    def settle(
        self,
        call_id: str,
        output: Any,
        *,
        outcome: Literal["returned", "failed", "denied", "unknown"] | None = None,
        error: str | None = None,
        details: Any = None,
        duration_ms: int | None = None,
        rest: Any = None,
    ) -> Iterator[Draft]:
        """How a call ended. A rejected one never ran."""
        how = outcome or outcome_of(output)
        content = None if output is None else self.content(output)
        if how != "denied":
            yield from self.story.started(call_id)
        yield self.story.settled(
            call_id,
            how,  # type: ignore[arg-type]  # one of the outcomes, by `outcome_of`
            content,
            error=error or ("not approved" if how == "denied" else None),
            details=details,
            duration_ms=duration_ms,
            rest=rest,
        )

    def handoff(self, call_id: str | None, to_agent: str | None, payload: Any) -> Iterator[Draft]:
        """The conversation went to another agent: it stays one session."""
        story = self.story
        name = f"handoff:{call_id or story.place.key}"
        if name in self.handed:
            return
        self.handed.add(name)
        kept = self.keep.json(payload, "handoff") if payload is not None else None
        event = DelegationStarted(
            delegation_id=name, to_agent=to_agent, how="handoff", call_id=call_id, payload=kept
        )
        yield story.draft(event, "agent")

    def returned(self, delegation: str, session: str | None, output: Any, failed: bool) -> Draft:
        """A delegated run came back."""
        event = DelegationReturned(
            delegation_id=delegation,
            outcome="failed" if failed else "returned",
            from_session=session,
            result=None if output is None else self.content(output),
            returned="result",
        )
        return self.story.draft(event, "agent")

    def content(self, value: Any) -> ContentRef:
        """Keep a text as text, and anything else as JSON."""
        return self.keep.text(value, "result") if isinstance(value, str) else self.keep.json(value, "result")
