"""A message history told as events: requests bring what is new, responses are model calls."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.approval import ApprovalDecided
from ledger.events.capability import CapabilityLoaded
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import Usage
from ledger.events.session import SessionResumed, SessionStarted
from ledger.importers import Desk
from ledger.importers._frameworks.histories import step_digest
from ledger.importers._harness.story import Outcome, Place, Story
from ledger.importers._harness.values import items, moment, money, number, record, rest, words

FORMAT = "pydantic-ai"
"""The importer's name."""

_CALLS_KEPT = 50_000
_OUTCOMES: dict[str, Outcome] = {
    "success": "returned",
    "failed": "failed",
    "denied": "denied",
    "interrupted": "unknown",
    "retried": "failed",
}
_CALL_KINDS = frozenset({"tool-call", "builtin-tool-call"})
_RETURN_KINDS = frozenset({"tool-return", "builtin-tool-return"})
_SAID_KINDS = frozenset({"text", "thinking", "file", "speech"})
_SETTING_KINDS = frozenset(
    {
        "instruction",
        "instruction-delta",
        "instruction-baseline",
        "instruction-digest",
        "model-settings-delta",
    }
)
_RESPONSE = ("parts", "usage", "model_name", "timestamp", "kind", "provider_response_id", "finish_reason")


def message_digest(message: Any) -> str:
    """What tells a message from others: what is said in it, and its ids."""
    fields = record(message)
    told = [
        [
            record(part).get(name)
            for name in ("part_kind", "content", "args", "tool_name", "tool_call_id", "outcome")
        ]
        for part in items(fields.get("parts"))
    ]
    return step_digest(fields.get("kind"), fields.get("provider_response_id"), told)


def is_message(value: Any) -> bool:
    """Whether a value is a message of a history."""
    fields = record(value)
    parts = fields.get("parts")
    return (
        fields.get("kind") in ("request", "response")
        and isinstance(parts, list)
        and all(isinstance(part, dict) and "part_kind" in part for part in parts[:1])
    )


@dataclass(slots=True)
class _Asked:
    run: str | None
    tool: str | None


class Teller:
    """One session."""

    def __init__(self, desk: Desk, session: str) -> None:
        self._desk = desk
        self.story = Story(desk, FORMAT, session, FORMAT + ".messages")
        self.story.unseen = ("tools", "parameters")
        self._run: str | None = None
        self._calls: OrderedDict[str, _Asked] = OrderedDict()

    def message(self, message: Any, count: int, check: bytes, *, is_first: bool) -> list[Draft]:
        """One message; `is_first` when its session begins with it."""
        fields, story = record(message), self.story
        kind = words(fields.get("kind")) or type(message).__name__
        self._desk.tally.native[kind[:60]] += 1
        story.place = Place(f"message:{count}", count, moment(fields.get("timestamp")), check)
        run = words(fields.get("run_id"))
        story.turn = run
        drafts = [self._begin(fields)] if is_first else []
        if self._run is not None and run is not None and run != self._run and not is_first:
            drafts.append(story.draft(SessionResumed(how="another run with this history")))
        self._run = run or self._run
        parts = [record(part) for part in items(fields.get("parts"))]
        for part in parts:
            self._desk.tally.native[f"part:{(words(part.get('part_kind')) or 'none')[:60]}"] += 1
        if kind == "request":
            drafts += self._request(fields, parts)
        elif kind == "response":
            drafts += self._response(fields, parts, count)
        else:
            drafts.append(story.kept(f"message:{kind[:60]}", message, recognized=False))
        return drafts or [story.kept(kind, message)]

    def _begin(self, fields: dict[str, Any]) -> Draft:
        about = {name: fields.get(name) for name in ("run_id", "conversation_id") if fields.get(name)}
        environment = self._desk.keep.json(about, "ids") if about else None
        return self.story.draft(SessionStarted(harness=FORMAT, environment=environment))

    def _request(self, fields: dict[str, Any], parts: list[dict[str, Any]]) -> Iterator[Draft]:
        story, instructions = self.story, words(fields.get("instructions"))
        if instructions is not None:
            story.system = story.keep.text(instructions, "instructions")
            yield from story.artifact("system_prompt", story.system, "prompt")
        for part in parts:
            yield from self._part(part, story.keep.json(part, "part"))
        native = rest(fields, "parts", "timestamp", "instructions", "kind", "run_id", "conversation_id")
        if any(value not in (None, "complete") for value in native.values()):
            yield story.kept("request", native)
        story.say({"kind": "request", "parts": parts})

    def _part(self, part: dict[str, Any], ref: ContentRef) -> Iterator[Draft]:
        """A part of a request."""
        story, kind, call_id = (
            self.story,
            words(part.get("part_kind")) or "none",
            words(part.get("tool_call_id")),
        )
        if kind == "user-prompt":
            yield story.received(ref)
        elif kind == "system-prompt":
            yield story.injected("system", ref)
        elif kind in _RETURN_KINDS and call_id is not None:
            yield from self._returned(part, call_id)
        elif kind == "retry-prompt" and call_id is not None and part.get("tool_name") is not None:
            yield from self._settled(part, call_id, "failed", "retry")
        elif kind in ("retry-prompt", "retry-feedback"):
            yield story.injected("retry", ref)
        elif kind == "compaction":
            yield self._compacted(part)
        elif kind == "capability-load-delta":
            for name in items(part.get("loaded")):
                loaded = CapabilityLoaded(kind="other", capability=words(name) or "unnamed", when="on_demand")
                yield story.draft(loaded)
        elif kind == "tool-availability-delta":
            for name in items(part.get("tools_added")) or items(part.get("added")):
                loaded = CapabilityLoaded(kind="tool", capability=words(name) or "unnamed", when="on_demand")
                yield story.draft(loaded)
        elif kind in _SETTING_KINDS:
            yield story.injected(kind, ref)
        else:
            yield story.kept(f"part:{kind[:60]}", part, recognized=kind in _RETURN_KINDS)

    def _returned(self, part: dict[str, Any], call_id: str) -> Iterator[Draft]:
        native = words(part.get("outcome")) or "success"
        outcome = _OUTCOMES.get(native, "unknown")
        asked = self._calls.get(call_id)
        later = (
            asked is not None and asked.run is not None and self._run is not None and asked.run != self._run
        )
        if later or native == "denied":
            yield self._decided(call_id, outcome, later)
        retry = words(record(part.get("retry")).get("cause"))
        error = retry or (native if outcome != "returned" else None)
        yield from self._settled(part, call_id, outcome, error)

    def _settled(
        self, part: dict[str, Any], call_id: str, outcome: Outcome, error: str | None
    ) -> Iterator[Draft]:
        story, content = self.story, part.get("content")
        if outcome != "denied":
            yield from story.started(call_id)
        kept = story.keep.text(content, "result") if isinstance(content, str) else story.keep.json(content)
        native = rest(part, "content", "tool_call_id", "tool_name", "part_kind", "outcome", "timestamp")
        native = {name: value for name, value in native.items() if value is not None}
        draft = story.settled(call_id, outcome, kept, error=error, rest=native)
        yield replace(draft, occurred_at=moment(part.get("timestamp")) or draft.occurred_at)

    def _decided(self, call_id: str, outcome: Outcome, later: bool) -> Draft:
        """Answers leave no record: only what became of the call."""
        how = (
            "the call came back as denied"
            if outcome == "denied"
            else "the result came in a later run: the call was approved, or its result was given from outside"
        )
        event = ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome="denied" if outcome == "denied" else "unknown",
            decided_by="unknown",
            how=how,
            scope="once" if later else "unknown",
            evidence="inferred",
        )
        return self.story.draft(event)

    def _response(self, fields: dict[str, Any], parts: list[dict[str, Any]], count: int) -> Iterator[Draft]:
        story, native_id = self.story, words(fields.get("provider_response_id"))
        call_id = f"message:{count}"
        attempts = items(fields.get("failed_attempts"))
        for place, attempt in enumerate(attempts, 1):
            yield from self._failed(record(attempt), f"{call_id}.{place}", place)
        story.model, story.provider = words(fields.get("model_name")), words(fields.get("provider_name"))
        yield story.asked(call_id, attempt=len(attempts) + 1)
        message = {"kind": "response", "parts": parts}
        ref = story.say(message)
        usage, cost = _usage(fields.get("usage"))
        state = words(fields.get("state"))
        completeness: Literal["complete", "partial", "aborted"] = "complete"
        if state in ("incomplete", "suspended"):
            completeness = "partial"
        elif state == "interrupted":
            completeness = "aborted"
        answered = story.answered(
            call_id,
            ref,
            usage=usage,
            cost=cost,
            stop=words(fields.get("finish_reason")),
            response_id=native_id,
            completeness=completeness,
            rest={name: one for name, one in rest(fields, *_RESPONSE).items() if one is not None},
        )
        yield answered
        for place, part in enumerate(parts):
            yield from self._answer_part(part, f"{call_id}.{place}")

    def _answer_part(self, part: dict[str, Any], name: str) -> Iterator[Draft]:
        """A part of a response."""
        story, kind = self.story, words(part.get("part_kind")) or "none"
        if kind in _CALL_KINDS:
            call_id = words(part.get("tool_call_id")) or name
            draft = story.call(call_id, words(part.get("tool_name")), part.get("args"))
            if kind == "builtin-tool-call":
                draft = replace(draft, event=draft.event.model_copy(update={"provider_executed": True}))
            self._calls[call_id] = _Asked(self._run, words(part.get("tool_name")))
            if len(self._calls) > _CALLS_KEPT:
                self._calls.popitem(last=False)
            yield draft
        elif kind in _RETURN_KINDS:
            yield from self._settled(part, words(part.get("tool_call_id")) or name, "returned", None)
        elif kind == "compaction":
            yield self._compacted(part)
        elif kind not in _SAID_KINDS:
            yield story.kept(f"part:{kind[:60]}", part, recognized=False)

    def _failed(self, attempt: dict[str, Any], call_id: str, place: int) -> Iterator[Draft]:
        story = self.story
        story.model = words(attempt.get("model_name"))
        story.provider = words(attempt.get("provider_name"))
        yield story.asked(call_id, attempt=place)
        yield story.failed(call_id, words(attempt.get("outcome")) or "error", attempt, retry=True)

    def _compacted(self, part: dict[str, Any]) -> Draft:
        story = self.story
        event = CompactionDone(
            compaction_id=words(part.get("id")) or story.place.key,
            trigger="unknown",
            evidence="logged",
            context_before=story.context.head,
            messages_before=len(story.context),
            summary=story.keep.json(part, "compaction"),
        )
        story.missing = "what a compaction left out"
        return story.draft(event)


def _usage(value: Any) -> tuple[Usage | None, Any]:
    """Usage with each token counted once: input includes what a cache gave or took. And the cost."""
    fields = record(value)
    given, written = number(fields.get("input_tokens")), number(fields.get("output_tokens"))
    if given is None:
        given = number(fields.get("request_tokens"))  # the names of the first versions
        written = number(fields.get("response_tokens")) if written is None else written
    if given is None and written is None:
        return None, None
    read, wrote = number(fields.get("cache_read_tokens")), number(fields.get("cache_write_tokens"))
    reasoning = number(fields.get("output_reasoning_tokens"))
    if reasoning is None:
        reasoning = number(record(fields.get("details")).get("reasoning_tokens"))
    usage = Usage(
        input_tokens=None if given is None else max(0, given - (read or 0) - (wrote or 0)),
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=wrote,
        reasoning_tokens=reasoning,
    )
    return usage, money(fields.get("cost"))
