"""Model calls of which request and answer were seen: several loops may share one log. Knows no file format."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ledger.events import ContentRef, Draft
from ledger.events.compaction import CompactionDone
from ledger.events.input import MessageReceived
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, Purpose
from ledger.events.record import Grade
from ledger.protocols.drafting import Drafter, Place
from ledger.protocols.requests import RequestTaker, follow
from ledger.protocols.responses import facts_of, take_apart
from ledger.protocols.spelling import RawTaker
from ledger.protocols.tool_calls import ToolCalls
from ledger.protocols.tool_use import ToolResult, calls_in, results_in, text
from ledger.recorder import ContextChain

_LANES_KEPT = 32
_WORDS = ("model", "response_id", "stop_reason")
_LISTED = {"openai.responses": "input", "gemini": "contents"}
"""Field with the messages, where it is not `messages`."""
_TELLING = 60
"""Bytes from which on a message that comes again is taken for the same one, and not for the same words."""


@dataclass(slots=True)
class _Lane:
    """A line of requests of which each continues the one before."""

    chain: ContextChain
    refs: list[ContentRef]
    raw: RawTaker


@dataclass(frozen=True, slots=True)
class Ask:
    """What is known of a model call beside its body."""

    call_id: str
    """Its id in the ledger."""
    protocol: str
    """Shape of the body."""
    purpose: Purpose = "main"
    """What it was for."""
    provider: str | None = None
    """Who was asked."""
    model: str | None = None
    """Model asked for, where the body does not say it."""
    completeness: Literal["body", "messages", "partial", "none"] | None = None
    """What can be rebuilt, where that is less than the body shows."""
    not_seen: tuple[str, ...] = ()
    """Parts that the source does not hold."""
    grade: Grade | None = None
    """What this call proves, where it is not what the session does."""
    attempt: int = 1
    """Number of the attempt."""
    origin: Literal["human", "unknown"] = "unknown"
    """Who is taken to write the messages of the role `user`."""


class Exchanges:
    """The model calls of one session, with the tool calls and results that they carry."""

    def __init__(self, scribe: Drafter) -> None:
        self.scribe = scribe
        """Makes the drafts of the session."""
        self._taker = RequestTaker(scribe.keep)
        self._lanes: list[_Lane] = []
        self._is_told = False
        self.tools = ToolCalls(scribe)
        """The tool calls of the session."""

    @property
    def context(self) -> ContextChain | None:
        """The context of the latest request."""
        return self._lanes[0].chain if self._lanes else None

    def shortened(self) -> None:
        """The source itself tells that the context was shortened: the next request need not show it."""
        self._is_told = True

    def requested(
        self,
        ask: Ask,
        body: dict[str, Any],
        place: Place,
        *,
        raw: bytes | None = None,
        rest: Any = None,
        **facts: Any,
    ) -> Iterator[Draft]:
        """A request: what came in with it, a truncation that it shows, and the request itself.

        `raw`: the body's bytes, where they were seen. `facts` are more fields of the event.
        """
        scribe = self.scribe
        parts = self._taker.take(ask.protocol, body)
        partial = ask.protocol == "openai.responses" and bool(
            body.get("previous_response_id") or body.get("conversation")
        )
        lane, known = self._lane(parts.messages)
        listed = _messages(ask.protocol, body, len(parts.messages))
        for message, ref in list(zip(listed, parts.messages, strict=False))[known:]:
            yield from self._came_in(message, ref, ask, place)
        compaction = self._truncation(lane, parts.messages, known, ask.call_id)
        if compaction is not None and not partial and not self._is_told:
            yield scribe.draft(place, compaction, grade=ask.grade)
        self._is_told = False
        not_seen = [*parts.not_seen, *ask.not_seen]
        if partial:
            not_seen.append("messages: those that the provider kept from earlier calls")
        completeness = ask.completeness or ("partial" if partial else parts.completeness)
        if raw is not None:
            kept = {ref.digest for ref in (*parts.messages, parts.system, parts.tools) if ref is not None}
            facts |= lane.raw.take(raw, _LISTED.get(ask.protocol, "messages"), kept)
        event = ModelCallRequested(
            call_id=ask.call_id,
            purpose=ask.purpose,
            protocol=ask.protocol,
            model=scribe.word(parts.model or ask.model, "model"),
            provider=scribe.word(ask.provider, "provider"),
            **follow(lane.chain, parts.messages),
            system=parts.system,
            tools=parts.tools,
            parameters=parts.parameters,
            layout=parts.layout,
            body_digest=parts.body_digest if completeness in ("body", "partial") else None,
            completeness=completeness,
            not_seen=tuple(not_seen),
            artifacts=parts.artifacts,
            attempt=ask.attempt,
            **facts,
        )
        lane.refs = parts.messages
        yield scribe.draft(place, event, "agent", rest=rest, grade=ask.grade)

    def answered(
        self, ask: Ask, body: Any, place: Place, *, rest: Any = None, **facts: Any
    ) -> Iterator[Draft]:
        """An answer, and the tools that it asks for. `facts` are fields of the event that the caller knows better."""
        scribe = self.scribe
        taken = take_apart(ask.protocol, body)
        told = facts_of(body) | {name: value for name, value in facts.items() if value is not None}
        for name in _WORDS:
            told[name] = scribe.word(told.get(name), name)
        event = ModelCallAnswered(
            call_id=ask.call_id,
            message=self.tools.content(taken.message, "answer"),
            envelope=None if taken.envelope is None else scribe.keep.json(taken.envelope, "answer"),
            **told,
        )
        yield scribe.draft(place, event, "agent", rest=rest, grade=ask.grade)
        for index, use in enumerate(calls_in(taken.message)):
            yield self.tools.requested(use, place, index)
            if use.result is not None:
                yield self.tools.settled(ToolResult(use.call_id, use.tool, use.result, None), place)[0]
        for result in results_in(taken.message):
            yield self.tools.settled(result, place)[0]

    def failed(
        self, ask: Ask, detail: Any, place: Place, *, error: str, status: int | None = None, **facts: Any
    ) -> Draft:
        """A call without an answer."""
        event = ModelCallFailed(
            call_id=ask.call_id,
            status=status,
            error=self.scribe.word(error, "error") or "error",
            detail=None if detail is None else self.tools.content(detail, "error"),
            **facts,
        )
        return self.scribe.draft(place, event, grade=ask.grade)

    def _came_in(self, message: Any, ref: ContentRef, ask: Ask, place: Place) -> Iterator[Draft]:
        results = results_in(message)
        for result in results:
            if self.tools.is_new(result):
                yield self.tools.settled(result, place)[0]
        if not isinstance(message, dict) or message.get("role") not in ("user", "human"):
            return
        listed = message.get("content") if "content" in message else message.get("parts")
        if not results or (isinstance(listed, list) and len(listed) > len(results)):
            origin: Literal["human", "unknown"] = "human" if message.get("source") == "input" else ask.origin
            event = MessageReceived(
                origin=origin, message=ref, sender=self.scribe.word(text(message.get("name")), "sender")
            )
            actor: Literal["human", "system"] = "human" if origin == "human" else "system"
            yield self.scribe.draft(place, event, actor, grade=ask.grade)

    def _lane(self, refs: list[ContentRef]) -> tuple[_Lane, int]:
        """The line of requests that this one continues, and how many of its messages that line holds already."""
        best: tuple[bool, int, int] = (False, 0, -1)
        for index, lane in enumerate(self._lanes):
            same = _common(lane.refs, refs)
            goes_on = bool(lane.refs) and same == len(lane.refs)
            if (goes_on, same) > best[:2] or best[2] < 0:
                best = (goes_on, same, index)
        goes_on, same, index = best
        if index < 0 or not (goes_on or _kept_later(self._lanes[index].refs, refs, same)):
            shortened = next((lane for lane in self._lanes if _kept_later(lane.refs, refs, 0)), None)
            if shortened is not None:
                return self._first(shortened), _common(shortened.refs, refs)
            keep = self.scribe.keep
            self._lanes.insert(0, _Lane(ContextChain(keep), [], RawTaker(keep)))
            del self._lanes[_LANES_KEPT:]
            return self._lanes[0], same
        return self._first(self._lanes[index]), same

    def _first(self, lane: _Lane) -> _Lane:
        self._lanes.remove(lane)
        self._lanes.insert(0, lane)
        return lane

    @staticmethod
    def _truncation(lane: _Lane, refs: list[ContentRef], same: int, call_id: str) -> CompactionDone | None:
        """What is gone between two requests of one line, where later messages stayed."""
        kept = _kept_later(lane.refs, refs, same)
        held = {ref.digest for ref in refs}
        gone = sum(ref.digest not in held for ref in lane.refs)
        if not kept or not gone:
            return None
        return CompactionDone(
            compaction_id=f"compaction-{call_id}",
            trigger="unknown",
            evidence="inferred",
            evidence_detail=(
                f"{gone} of {len(lane.refs)} messages of the request before are gone from this one, "
                f"{kept} that stood behind the first of them are still there"
            ),
            context_before=lane.chain.head,
            messages_before=len(lane.refs),
            messages_after=len(refs),
        )


def _messages(protocol: str, body: dict[str, Any], count: int) -> list[Any]:
    """The messages of a body as the taker listed them: without a system prompt at their head."""
    listed = body.get(_LISTED.get(protocol, "messages"))
    if isinstance(listed, list | tuple):
        return list(listed)[len(listed) - count :]
    return [{"role": "user", "content": listed} if isinstance(listed, str) else listed][:count]


def _common(old: list[ContentRef], new: list[ContentRef]) -> int:
    same = 0
    for one, other in zip(old, new, strict=False):
        if one.digest != other.digest:
            break
        same += 1
    return same


def _kept_later(old: list[ContentRef], new: list[ContentRef], same: int) -> int:
    """How many telling messages behind the first that is gone are in the new request too."""
    later = {ref.digest for ref in old[same:] if ref.size >= _TELLING}
    return sum(ref.digest in later for ref in new[same:])
