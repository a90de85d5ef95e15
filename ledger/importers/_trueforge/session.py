"""One thread of a TrueForge session as its events arrive."""

from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone, CompactionStarted
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import Usage
from ledger.events.session import SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import items, moment, number, record, rest, words

_KEPT = frozenset(
    "turn.done turn.update mcp.auth_required mcp.initialize mcp.initialized sandbox.created "
    "tool.response_required user.mcp_auth_continue user.tool_approval_policy".split()
)
_BASE = ("id", "type", "created_at", "thread_id")


class SessionReader:
    """Turns the events of one thread into items."""

    def __init__(self, desk: Desk, format_name: str, session: str, root: str) -> None:
        self.story = Story(desk, format_name, session, "openai.chat")
        self.story.unseen = ("system", "tools", "parameters")
        self._desk = desk
        self._root = root
        self._refused: set[str] = set()
        self._tokens: int | None = None
        self._begun = False
        self.counts_tokens = True
        """Whether fewer input tokens are the only sign of a compaction that there is."""
        if session != root:
            self.story.depth, self.story.purpose = 1, "sub-agent"

    def damaged(self) -> None:
        """A record was lost: what it held may be missing from every request."""
        self.story.missing = self.story.missing or "what damaged records held"

    def damage(self, line: int, reason: str, content: Any) -> Item:
        """A row that could not be read."""
        self.damaged()
        self.story.place = Place(f"damage:{line}", line)
        raw = content if isinstance(content, bytes) else repr(content).encode("utf-8", "replace")
        return self.story.item([self.story.draft(self._desk.damage(line, reason, raw))])

    def begin(self, event: dict[str, Any], line: int) -> Iterator[Item]:
        """The start of a sub-agent's thread."""
        info = record(event.get("agent_info"))
        self.story.model = words(info.get("model"))
        self.story.place = Place("begin", line, moment(event.get("created_at")))
        if not self._begun:
            self._begun = True
            yield self.story.item([self._started(words(info.get("name")), words(event.get("title")))])

    def _started(self, agent: str | None, title: str | None) -> Draft:
        story = self.story
        parent = self._root if story.session != self._root else None
        return story.draft(
            SessionStarted(harness="trueforge", agent=agent, name=title, model=story.model, parent=parent)
        )

    def child(
        self, event: dict[str, Any], turn: str | None, line: int, check: bytes, session: str
    ) -> Iterator[Item]:
        """A sub-agent's thread was opened or is done."""
        self._at(event, turn, line, check)
        name = self._desk.session_name(session)
        if event.get("type") == "thread.created":
            text = words(record(event.get("agent_info")).get("input"))
            handed = DelegationStarted(
                delegation_id=name,
                to_session=name,
                to_agent=words(record(event.get("agent_info")).get("name")),
                how="tool",
                call_id=words(record(event.get("parent")).get("tool_call_id")),
                payload=self._desk.keep.text(text, "delegation") if text is not None else None,
            )
            draft = self.story.draft(handed, "agent", rest=rest(event, *_BASE))
        else:
            status = words(record(event.get("state")).get("status"))
            outcome: Any = {"done": "returned", "error": "failed"}.get(status or "", "unknown")
            back = DelegationReturned(delegation_id=name, outcome=outcome, from_session=name)
            draft = self.story.draft(back, "agent", rest=rest(event, *_BASE))
        yield self.story.item([draft])

    def _at(self, event: dict[str, Any], turn: str | None, line: int, check: bytes) -> None:
        self._desk.tally.native[words(event.get("type")) or "none"] += 1
        name = words(event.get("id"))
        self.story.turn = turn or self.story.turn
        key = f"event:{name}" if name is not None else f"line:{line}"
        self.story.place = Place(key, line, moment(event.get("created_at")), check)

    def event(self, event: dict[str, Any], turn: str | None, line: int, check: bytes) -> Iterator[Item]:
        """One event of this thread."""
        self._at(event, turn, line, check)
        drafts: list[Draft] = []
        if not self._begun:
            self._begun = True
            drafts.append(self._started(None, None))
        yield self.story.item([*drafts, *self._drafts(event, words(event.get("type")) or "none")])

    def _drafts(self, event: dict[str, Any], kind: str) -> Iterator[Draft]:
        story = self.story
        if kind == "turn.created":
            yield story.kept(kind, rest(event, "input"))
            for one in items(event.get("input")):
                yield from self._input(record(one))
        elif kind == "model.message":
            yield from self._answer(event)
        elif kind in ("tool.response", "user.tool_response"):
            yield self._result(event)
        elif kind == "tool.approval_required":
            for one in items(event.get("tool_calls")):
                yield self._asked(record(one))
        elif kind in ("user.tool_approval", "user.message"):
            yield from self._input(event)
        elif kind == "thread.context_compaction_started":
            yield story.draft(CompactionStarted(compaction_id=story.place.key, trigger=_trigger(event)))
        elif kind == "thread.context_compaction_finished":
            yield self._compacted(
                "logged", None, duration_ms=number(event.get("duration_ms")), trigger=_trigger(event)
            )
        else:
            yield story.kept(kind, event, recognized=kind in _KEPT)

    def _input(self, given: dict[str, Any]) -> Iterator[Draft]:
        story, kind = self.story, words(given.get("type"))
        if kind == "user.message":
            yield story.received(story.say({"role": "user", "content": given.get("content")}))
        elif kind == "user.tool_approval":
            decision = record(given.get("approval"))
            status = words(decision.get("status")) or "none"
            call_id = words(given.get("tool_call_id")) or story.place.key
            if status == "deny":
                self._refused.add(call_id)
            outcome: Any = {"allow": "approved", "deny": "denied"}.get(status, "unknown")
            decided = ApprovalDecided(
                approval_id=call_id,
                call_id=call_id,
                outcome=outcome,
                decided_by="human",
                how=words(decision.get("reason")) or status,
            )
            yield story.draft(decided, "human")
        elif kind == "user.tool_response":
            yield self._result(given)
        else:
            yield story.kept(f"input:{kind or 'none'}", given, recognized=False)

    def _answer(self, event: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        story.model = words(record(event.get("model")).get("name")) or story.model
        usage = record(event.get("usage"))
        yield from self._shrunk(usage)
        call_id = f"model-{story.place.key}"
        yield story.asked(call_id)
        calls = [record(one) for one in items(event.get("tool_calls"))]
        message = {
            "role": "assistant",
            **{
                name: event[name]
                for name in ("content", "reasoning_content", "refusal", "name")
                if event.get(name) is not None
            },
            **({"tool_calls": [rest(one, "tool_info") for one in calls]} if calls else {}),
        }
        ref = story.say(message)
        yield story.answered(
            call_id,
            ref,
            usage=_usage(usage),
            stop=words(event.get("finish_reason")),
            rest={
                name: event[name] for name in ("usage", "model", "tool_calls") if event.get(name) is not None
            },
        )
        for index, one in enumerate(calls):
            function, info = record(one.get("function")), record(one.get("tool_info"))
            name = words(one.get("id")) or f"{story.place.key}:{index}"
            server = words(info.get("mcp_server_name")) or words(info.get("server_name"))
            yield story.call(name, words(function.get("name")), function.get("arguments"), server=server)

    def _shrunk(self, usage: dict[str, Any]) -> Iterator[Draft]:
        """Fewer tokens of messages than before, though messages were only added: the context was shortened."""
        breakdown = record(usage.get("input_tokens_breakdown"))
        now = number(breakdown.get("messages"))
        before, self._tokens = self._tokens, now if now is not None else self._tokens
        if now is None or before is None or now >= before or not self.counts_tokens:
            return
        detail = (
            f"messages of the next request have {now} tokens, {before} before, though none were taken back"
        )
        yield self._compacted("inferred", detail, tokens_before=before, tokens_after=now)

    def _compacted(self, evidence: Any, detail: str | None, *, trigger: Any = "auto", **more: Any) -> Draft:
        story = self.story
        before, length = story.context.head, len(story.context)
        story.context.replace([])
        story.missing = "what a compaction left"
        self._tokens = None if evidence == "logged" else self._tokens
        done = CompactionDone(
            compaction_id=story.place.key,
            trigger=trigger,
            evidence=evidence,
            evidence_detail=detail,
            context_before=before,
            messages_before=length,
            **more,
        )
        return story.draft(done)

    def lost(
        self, before: str | None, turn: str | None, gone: list[Any], had: int, has: int, summary: Any
    ) -> Item:
        """Context rows of one turn that the next turn has no more."""
        self.story.place = Place(f"context:{before}:{turn}")
        story = self.story
        ids = f"append ids {gone[0]} to {gone[-1]}"
        detail = f"{len(gone)} context rows of turn {before} ({ids}) are gone in turn {turn}"
        head = story.context.head
        story.context.replace([])
        story.missing = "what a compaction left"
        done = CompactionDone(
            compaction_id=f"context:{turn}",
            trigger="auto",
            evidence="inferred",
            evidence_detail=detail,
            context_before=head,
            messages_before=had,
            messages_after=has,
            summary=None if summary is None else self._desk.keep.json(summary, "summary"),
        )
        return self.story.item([self.story.draft(done)])

    def _asked(self, call: dict[str, Any]) -> Draft:
        call_id = words(call.get("id")) or self.story.place.key
        context = self._desk.keep.json(call, "approval request")
        return self.story.draft(ApprovalAsked(approval_id=call_id, call_id=call_id, context=context))

    def _result(self, event: dict[str, Any]) -> Draft:
        story = self.story
        call_id = words(event.get("tool_call_id")) or story.place.key
        ref = story.say({"role": "tool", "tool_call_id": call_id, "content": event.get("content")})
        denied = call_id in self._refused
        return story.settled(
            call_id, "denied" if denied else "returned", ref, error="denied" if denied else None,
            rest=rest(event, *_BASE, "tool_call_id", "content"),
        )  # fmt: skip


def _trigger(event: dict[str, Any]) -> Any:
    said = words(event.get("trigger"))
    return said if said in ("auto", "manual") else "unknown"


def _usage(native: dict[str, Any]) -> Usage | None:
    """Tokens of one call; whether the input counts cached tokens is not said: it is read as if it did."""
    if not native:
        return None
    whole, read = number(native.get("input_tokens")), number(native.get("cache_read_tokens"))
    write = number(native.get("cache_write_tokens"))
    return Usage(
        input_tokens=None if whole is None else max(0, whole - (read or 0) - (write or 0)),
        output_tokens=number(native.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=write,
    )
