"""One Muse Code session as its frames arrive."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from ledger.events import Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import Usage
from ledger.events.policy import PolicyEvaluated
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionEnded, SessionForked, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.lines import Entry
from ledger.importers._harness.story import Outcome, Place, Story
from ledger.importers._harness.values import moment, number, record, rest, words

_STATUSES: dict[str, Outcome] = {
    "completed": "returned",
    "failed": "failed",
    "rejected": "denied",
    "cancelled": "unknown",
    "timedOut": "failed",
}
_DECISIONS: dict[str, tuple[Any, Any]] = {
    "approved": ("approved", "once"),
    "approvedForSession": ("approved", "session"),
    "approvedPolicyAmendment": ("approved", "rule"),
    "denied": ("denied", "once"),
    "deniedPolicyAmendment": ("denied", "rule"),
    "timedOut": ("timed_out", "unknown"),
    "abort": ("cancelled", "unknown"),
}
_DECIDERS: dict[str, Literal["human", "policy", "judge", "unknown"]] = {
    "user": "human",
    "policy": "policy",
    "llmJudge": "judge",
}
_KNOWN = frozenset(
    "initialized approval/reviewing approval/updated item/delta item/started item/updated item/completed turn/started "
    "turn/completed turn/foregroundCompleted turn/unqueued session/contextUsage session/goalChanged "
    "session/todoListChanged session/statusChanged session/nameChanged session/listChanged session/branchChanged "
    "session/tokenUsage session/viewHealthChanged skill/changed plugin/changed usage/changed userInput/requested "
    "userInput/engaged userInput/settled recap/completed session/leaveCompleted session/modelRouteUnserved".split()
)
_MODEL_ITEMS = ("agentMessage", "reasoning", "toolCall", "webSearch")


class SessionReader:
    """Turns the frames of one session into items."""

    def __init__(self, desk: Desk, format_name: str, session: str) -> None:
        self.story = Story(desk, format_name, session, "muse-session-protocol")
        self.story.unseen = ("system", "tools", "parameters")
        self._desk = desk
        self._begun = False
        self._open: str | None = None
        self._written: list[Any] = []
        self._calls = 0
        self._told: set[str] = set()
        self._tell: dict[str, Callable[[dict[str, Any]], Iterator[Draft]]] = {
            "session/started": lambda params: self._session(record(params.get("session"))),
            "session/closed": self._closed,
            "session/approvalModeChanged": self._approval_mode,
            "session/modelChanged": self._model,
            "session/reasoningEffortChanged": self._effort,
            "session/tokenUsage": self._usage,
            "turn/completed": self._turn_done,
            "turn/retracted": self._retracted,
            "turn/retryScheduled": self._retry,
            "turn/modelRetryScheduled": self._retry,
            "approval/requested": self._asked,
            "approval/resolved": self._resolved,
            "item/started": lambda params: self._item(record(params.get("item")), ended=False),
            "item/updated": lambda params: self._item(record(params.get("item")), ended=False),
            "item/completed": lambda params: self._item(record(params.get("item")), ended=True),
            "view/gap": self._gap,
        }

    def damaged(self) -> None:
        """A line was lost: what it held may be missing from every request."""
        self.story.missing = self.story.missing or "what damaged lines held"

    def finish(self) -> Iterator[Item]:
        """The end of the file: an answer that was not reported as whole says so."""
        if self._open is not None:
            self.story.place = Place(f"open:{self._open}:{len(self._written)}")
            yield self.story.item(self._answer(None, "partial"))

    def frame(self, frame: dict[str, Any], direction: str, entry: Entry) -> Iterator[Item]:
        """One frame."""
        story = self.story
        method = words(frame.get("method"))
        name = f"{direction}:{method or ('error' if 'error' in frame else 'result')}"
        self._desk.tally.native[name] += 1
        params = record(frame.get("params"))
        time = moment(record(params.get("item")).get("recordedAt")) or moment(params.get("decidedAt"))
        story.place = Place(entry.key, entry.line, time, entry.raw)
        if (turn := words(params.get("turnId"))) is not None:
            story.turn = f"{story.session}:{turn}"
        drafts: list[Draft] = []
        result = record(record(frame.get("result")).get("session"))
        if direction == "server" and result:
            drafts += self._session(result)
        tell = self._tell.get(method or "") if direction == "server" else None
        if tell is not None:
            drafts += tell(params)
        known = direction == "client" or method is None or method in _KNOWN or method in self._tell
        drafts.append(story.kept(name, frame, recognized=known))
        yield story.item(drafts)

    def _session(self, session: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        if self._begun or not session:
            return
        self._begun = True
        story.model, story.provider = words(session.get("modelId")), words(session.get("providerId"))
        parent = words(session.get("parentSessionId"))
        if parent is not None:
            story.depth, story.purpose = 1, "sub-agent"
        started = SessionStarted(
            harness="muse-code",
            name=words(session.get("name")) or words(session.get("title")),
            model=story.model,
            cwd=words(session.get("workspaceRoot")),
            parent=self._desk.session_name(parent) if parent is not None else None,
            environment=self._desk.keep.json(session, "session"),
        )
        yield story.draft(started, time=moment(session.get("createdAt")))
        fork = record(session.get("forkedFrom"))
        origin = words(fork.get("sessionId"))
        if origin is not None:
            forked = SessionForked(
                origin=self._desk.session_name(origin), origin_item=words(fork.get("cutCursor"))
            )
            story.missing = "what the session was forked with"
            yield story.draft(forked)
        yield from story.mode("approval", words(record(session.get("approvalMode")).get("mode")), "startup")
        yield from story.mode("model", story.model, "startup")

    def _closed(self, params: dict[str, Any]) -> Iterator[Draft]:
        yield self.story.draft(SessionEnded(outcome="unknown", reason=words(params.get("reason"))))

    def _approval_mode(self, params: dict[str, Any]) -> Iterator[Draft]:
        source = words(params.get("source"))
        cause: Any = {"startup": "startup", "approvalReconfigure": "human"}.get(source or "", "unknown")
        mode = params.get("mode")
        named = words(mode) or words(record(mode).get("mode")) or words(record(mode).get("kind"))
        yield from self.story.mode("approval", named, cause, rest={"source": source, "mode": mode})

    def _model(self, params: dict[str, Any]) -> Iterator[Draft]:
        self.story.model = words(params.get("modelId")) or self.story.model
        self.story.provider = words(params.get("providerId")) or self.story.provider
        yield from self.story.mode(
            "model", words(params.get("modelId")), rest={"source": params.get("source")}
        )

    def _effort(self, params: dict[str, Any]) -> Iterator[Draft]:
        yield from self.story.mode("effort", words(params.get("reasoningEffort")))

    def _item(self, item: dict[str, Any], *, ended: bool) -> Iterator[Draft]:
        kind, name = words(item.get("kind")) or "none", words(item.get("itemId")) or self.story.place.key
        story = self.story
        if kind in _MODEL_ITEMS and self._open is None and f"item:{name}" not in self._told:
            self._calls += 1
            self._open = f"model-{self._calls}-{name}"
            yield story.asked(self._open)
        if kind == "toolCall":
            yield from self._tool(item, name)
        elif kind == "userShell":
            yield from self._tool(item, name, human=True)
        elif kind == "subagent":
            yield from self._subagent(item, name, ended=ended)
        elif f"item:{name}" in self._told:
            return
        elif kind == "userMessage":
            self._told.add(f"item:{name}")
            yield story.received(
                story.say({"role": "user", "content": item.get("text")}), rest={"item": item}
            )
        elif ended and kind in ("agentMessage", "reasoning", "webSearch"):
            self._told.add(f"item:{name}")
            self._written.append({"kind": kind, "text": item.get("text"), "summary": item.get("summary")})
        elif ended and kind == "compaction":
            self._told.add(f"item:{name}")
            yield from self._compaction(item, name)
        elif ended and kind == "hookRun":
            self._told.add(f"item:{name}")
            yield self._hook(item, name)
        elif kind == "damagedRange":
            self._told.add(f"item:{name}")
            yield self._damage(record(item.get("damagedRange")))

    def _tool(self, item: dict[str, Any], name: str, *, human: bool = False) -> Iterator[Draft]:
        story = self.story
        call_id = words(item.get("callId")) or name
        status = words(item.get("status")) or "none"
        if not story.knows(call_id):
            arguments = {"command": item.get("commandText")} if human else item.get("args")
            tool = "shell" if human else words(item.get("tool"))
            asked = story.call(call_id, tool, arguments)
            yield story.draft(asked.event, "human") if human else asked
            if not human:
                self._written.append(
                    {"kind": "toolCall", "callId": call_id, "tool": tool, "args": item.get("args")}
                )
        outcome = _STATUSES.get(status)
        if status == "inProgress":
            yield from story.started(call_id)
        elif outcome is not None and not story.is_settled(call_id):
            shown = self._desk.keep.json(item.get("visibleOutput", item.get("fallbackText")), "result")
            story.context.append(shown)
            reason = words(item.get("failureReason")) or words(item.get("reason"))
            details = {
                one: item[one] for one in ("exitCode", "patchSummary", "outputRef", "patchRef") if one in item
            }
            yield story.settled(
                call_id,
                outcome,
                shown,
                details=details,
                error=reason or (None if outcome == "returned" else status),
                duration_ms=number(item.get("durationMs")),
            )

    def _subagent(self, item: dict[str, Any], name: str, *, ended: bool) -> Iterator[Draft]:
        child = words(item.get("childSessionId"))
        session = self._desk.session_name(child) if child is not None else None
        if f"item:{name}" not in self._told:
            self._told.add(f"item:{name}")
            objective = words(item.get("objective"))
            handed = DelegationStarted(
                delegation_id=name,
                to_session=session,
                to_agent=words(item.get("role")),
                how="spawn",
                call_id=words(item.get("callId")),
                payload=self._desk.keep.text(objective, "delegation") if objective is not None else None,
            )
            yield self.story.draft(handed, "agent")
        if ended:
            outcomes: dict[str, Any] = {"completed": "returned", "failed": "failed", "cancelled": "aborted"}
            text = words(record(item.get("result")).get("text"))
            back = DelegationReturned(
                delegation_id=name,
                outcome=outcomes.get(words(item.get("status")) or "", "unknown"),
                from_session=session,
                result=self._desk.keep.text(text, "delegation result") if text is not None else None,
                returned="result" if text is not None else "unknown",
            )
            yield self.story.draft(back, "agent")

    def _compaction(self, item: dict[str, Any], name: str) -> Iterator[Draft]:
        if item.get("outcome") != "compacted":
            return
        story = self.story
        before, length = story.context.head, len(story.context)
        story.context.replace([])
        story.missing = "what a compaction left"
        trigger = words(item.get("trigger"))
        done = CompactionDone(
            compaction_id=name,
            trigger="manual" if trigger == "manual" else "auto" if trigger == "auto" else "unknown",
            evidence="logged",
            context_before=before,
            messages_before=length,
            tokens_before=number(item.get("tokensBefore")),
            tokens_after=number(item.get("tokensAfter")),
            duration_ms=number(item.get("durationMs")),
        )
        yield story.draft(done, rest=item)

    def _hook(self, item: dict[str, Any], name: str) -> Draft:
        said = words(item.get("runStatus")) or "none"
        verdicts: dict[str, Any] = {"blocked": "deny", "completed": "allow", "failed": "error"}
        evaluated = PolicyEvaluated(
            rule=words(item.get("hookKey")) or name,
            verdict=verdicts.get(said, "unknown"),
            call_id=words(item.get("callId")),
            detail=self._desk.keep.json(item, "hook"),
        )
        return self.story.draft(evaluated, "policy")

    def _damage(self, found: dict[str, Any]) -> Draft:
        """The host says itself that a part of its log cannot be read."""
        self.damaged()
        reason = (
            f"the host's log is damaged: {number(found.get('unreadableLines'))} unreadable lines, "
            f"{number(found.get('missingRecords'))} missing records"
        )
        return self.story.draft(self._desk.damage(self.story.place.line, reason, None), rest=found)

    def _gap(self, params: dict[str, Any]) -> Iterator[Draft]:
        self.damaged()
        reason = f"the view has a gap: after {words(params.get('after'))}, next {words(params.get('next'))}"
        yield self.story.draft(self._desk.damage(self.story.place.line, reason, None))

    def _usage(self, params: dict[str, Any]) -> Iterator[Draft]:
        """The tokens of one model call: what was written before belongs to it."""
        if self._open is None:
            self._calls += 1
            self._open = f"model-{self._calls}-{self.story.place.key}"
            yield self.story.asked(self._open)
        self.story.model = words(params.get("modelId")) or self.story.model
        yield from self._answer(
            record(params.get("usage")),
            "complete",
            words(params.get("finishReason")),
            number(params.get("durationMs")),
        )

    def _answer(
        self,
        usage: dict[str, Any] | None,
        completeness: Any,
        stop: str | None = None,
        duration: int | None = None,
    ) -> Iterator[Draft]:
        call_id, self._open = self._open or "", None
        written, self._written = self._written, []
        ref = self._desk.keep.json({"role": "assistant", "items": written}, "model answer")
        self.story.context.append(ref)
        yield self.story.answered(
            call_id, ref, usage=_tokens(usage), stop=stop, completeness=completeness, duration_ms=duration
        )

    def _turn_done(self, params: dict[str, Any]) -> Iterator[Draft]:
        if self._open is not None:
            terminal = words(params.get("terminal"))
            yield from self._answer(
                None, "complete" if terminal == "completed" else "aborted", words(params.get("reason"))
            )

    def _retracted(self, params: dict[str, Any]) -> Iterator[Draft]:
        self.story.missing = self.story.missing or "which messages a retracted turn took with it"
        yield self.story.draft(
            RolledBack(checkpoint_id=words(params.get("turnId")), reason="turn retracted"), "human"
        )

    def _retry(self, params: dict[str, Any]) -> Iterator[Draft]:
        if self._open is None:
            self._calls += 1
            self._open = f"model-{self._calls}-{self.story.place.key}"
            yield self.story.asked(self._open)
        call_id, self._open = self._open, None
        status = number(params.get("httpStatus"))
        error = words(params.get("errorKind")) or words(params.get("reason")) or "failed"
        yield self.story.failed(
            call_id, error, params, status=status if status and status < 1000 else None, retry=True
        )

    def _asked(self, params: dict[str, Any]) -> Iterator[Draft]:
        asked = ApprovalAsked(
            approval_id=words(params.get("approvalId")) or self.story.place.key,
            call_id=words(params.get("toolCallId")),
            tool=words(params.get("toolName")),
            context=self._desk.keep.json(params, "approval request"),
        )
        yield self.story.draft(asked)

    def _resolved(self, params: dict[str, Any]) -> Iterator[Draft]:
        said = words(params.get("decision")) or "none"
        outcome, scope = _DECISIONS.get(said, ("unknown", "unknown"))
        decider = _DECIDERS.get(words(params.get("resolvedBy")) or "", "unknown")
        amendment = params.get("amendment")
        decided = ApprovalDecided(
            approval_id=words(params.get("approvalId")) or self.story.place.key,
            outcome=outcome,
            decided_by=decider,
            how=said,
            scope=scope,
            rule=self._desk.keep.json(amendment, "rule preview") if amendment is not None else None,
        )
        used = ("approvalId", "decision", "resolvedBy", "amendment")
        actor: Any = decider if decider != "unknown" else "system"
        yield self.story.draft(decided, actor, rest=rest(params, *used))


def _tokens(usage: dict[str, Any] | None) -> Usage | None:
    if not usage:
        return None
    whole = number(usage.get("inputTokens"))
    read = number(usage.get("cacheReadTokens"))
    read = number(usage.get("cachedTokens")) if read is None else read
    write = number(usage.get("cacheWriteTokens"))
    return Usage(
        input_tokens=None if whole is None else max(0, whole - (read or 0) - (write or 0)),
        output_tokens=number(usage.get("outputTokens")),
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=number(usage.get("reasoningTokens")),
    )
