"""One opencode session as its events arrive: messages and parts are written again and again until they are whole."""

from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import Usage
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionForked, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.effects import effect_class
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import moment, money, number, record, rest, words
from ledger.importers._opencode.tools import settled

_KEPT = frozenset(
    "session.deleted session.diff session.error session.status session.idle todo.updated session.compacted".split()
)
_KEPT_PARTS = frozenset(
    "text reasoning file agent subtask step-start step-finish snapshot patch retry compaction".split()
)


class SessionReader:
    """Turns the events of one session into items."""

    def __init__(self, desk: Desk, format_name: str, session: str) -> None:
        self.story = Story(desk, format_name, session, "opencode")
        self.story.unseen = ("system", "tools", "parameters")
        self._desk = desk
        self._messages: dict[str, dict[str, Any]] = {}
        self._parts: dict[str, dict[str, dict[str, Any]]] = {}
        self._answered: dict[str, int] = {}
        self._open: str | None = None
        self._told: set[str] = set()
        self._compacted_from: int | None = None
        self._begun = False
        self._last_key: str | None = None

    def damage(self, key: str, line: int, reason: str, data: Any) -> Item:
        """A row that could not be read."""
        self.story.missing = self.story.missing or "what damaged rows held"
        self.story.place = Place(f"damage:{key}", line)
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        event = self._desk.damage(line, reason, raw if isinstance(raw, bytes) else repr(data).encode())
        return self.story.item([self.story.draft(event)])

    def finish(self) -> Iterator[Item]:
        """The end of the session: an answer whose last step never ended says so."""
        for name, message in self._messages.items():
            if message.get("role") == "assistant" and name not in self._answered and self._parts.get(name):
                self.story.place = Place(f"open:{name}:{len(self._parts[name])}", None)
                yield self.story.item(self._answer(name, {}, "partial"))

    def event(self, key: str, line: int, kind: str, data: dict[str, Any], check: bytes) -> Iterator[Item]:
        """One event; `data` holds the whole new state of a session, message or part."""
        story = self.story
        noun = kind.rstrip("0123456789").rstrip(".")
        info = record(data.get("info"))
        part = record(data.get("part"))
        times = record(info.get("time"))
        time = moment(data.get("time")) or moment(times.get("updated")) or moment(times.get("completed"))
        story.place = Place(key, line, time or moment(times.get("created")), check)
        if noun == "session.created":
            drafts = self._session(info)
        elif noun == "session.updated":
            drafts = self._session_again(kind, info)
        elif noun == "message.updated" and info:
            drafts = self._message(kind, info, data)
        elif noun == "message.part.updated" and part:
            drafts = self._part(kind, part, data)
        elif noun in ("message.removed", "message.part.removed"):
            drafts = self._removed(kind, data)
        elif noun.startswith("permission."):
            drafts = self._permission(noun, kind, data)
        else:
            known = noun in _KEPT
            drafts = iter([story.kept(kind, data, recognized=known)])
        yield story.item(drafts, self._last_key)
        self._last_key = key

    def _session(self, info: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        self._begun = True
        parent = words(info.get("parentID"))
        if parent is not None:
            story.purpose, story.depth = "sub-agent", 1
        version = words(info.get("version"))
        started = SessionStarted(
            harness="opencode",
            harness_version=version,
            name=words(info.get("title")),
            agent=words(info.get("agent")),
            cwd=words(info.get("directory")),
            parent=self._desk.session_name(parent) if parent is not None else None,
            environment=self._desk.keep.json(info, "session"),
        )
        yield story.draft(started)
        origin = words(record(info.get("fork")).get("sessionID"))
        if origin is not None:
            yield story.draft(SessionForked(origin=self._desk.session_name(origin)))
        yield from self._rules(info)

    def _rules(self, info: dict[str, Any]) -> Iterator[Draft]:
        rules = info.get("permission")
        if rules:
            name = self._desk.keep.json(rules, "permission rules")
            yield from self.story.mode("permission", f"rules {name.digest[:16]}", rest={"rules": rules})

    def _session_again(self, kind: str, info: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        if not self._begun:
            yield from self._session(info)
        yield from self._rules(info)
        model = record(info.get("model"))
        yield from story.mode("model", words(model.get("id")))
        yield from story.mode("agent", words(info.get("agent")))
        revert = record(info.get("revert"))
        target = words(revert.get("messageID"))
        if target is not None and f"revert:{target}" not in self._told:
            self._told.add(f"revert:{target}")
            yield story.draft(RolledBack(checkpoint_id=target, reason="revert"), "human", rest=revert)
        yield story.kept(kind, info)

    def _message(self, kind: str, info: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        name = words(info.get("id")) or story.place.key
        before = self._messages.get(name)
        self._messages[name] = info
        model = record(info.get("model"))
        story.model = words(info.get("modelID")) or words(model.get("modelID")) or story.model
        story.provider = words(info.get("providerID")) or words(model.get("providerID")) or story.provider
        if before is None:
            self._parts.setdefault(name, {})
            yield from story.mode("model", story.model)
            yield from story.mode("agent", words(info.get("agent")))
            if info.get("role") == "user":
                story.turn = f"{story.session}:{name}"
        error = record(info.get("error"))
        if error and f"error:{name}" not in self._told and info.get("role") == "assistant":
            self._told.add(f"error:{name}")
            yield from self._failure(name, error)
        yield story.kept(kind, data)

    def _failure(self, name: str, error: dict[str, Any]) -> Iterator[Draft]:
        said = words(error.get("name")) or "error"
        if said == "MessageAbortedError" and self._parts.get(name):
            yield from self._answer(name, {}, "aborted")
            return
        yield from self._ask(name)
        call_id, self._open = self._open or "", None
        self._answered[name] = self._answered.get(name, 0) + 1
        status = number(record(error.get("data")).get("statusCode"))
        yield self.story.failed(call_id, said, error, status=status if status and status < 1000 else None)

    def _part(self, kind: str, part: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        message = words(part.get("messageID")) or "none"
        name = words(part.get("id")) or story.place.key
        parts = self._parts.setdefault(message, {})
        fresh = name not in parts
        parts[name] = part
        sort = words(part.get("type")) or "none"
        role = record(self._messages.get(message)).get("role")
        if sort == "tool":
            yield from self._tool(kind, part, data)
        elif sort == "step-finish" and fresh:
            yield from self._answer(message, part, "complete")
        elif sort == "compaction" and fresh:
            yield from self._compaction(message, part)
        elif role == "user" and sort in ("text", "file", "agent", "subtask") and fresh:
            yield from self._said(part, sort)
        elif sort == "step-start" and fresh:
            yield from self._ask(message)
            if (snapshot := words(part.get("snapshot"))) is not None:
                files = self._desk.keep.json(part, "snapshot")
                yield story.draft(CheckpointTaken(checkpoint_id=snapshot, files=files))
            yield story.kept(f"{kind}:{sort}", data)
        elif sort in ("snapshot", "patch") and fresh and words(part.get("snapshot")):
            taken = CheckpointTaken(
                checkpoint_id=str(words(part.get("snapshot"))), files=self._desk.keep.json(part)
            )
            yield story.draft(taken)
        else:
            known = sort in _KEPT_PARTS
            yield story.kept(f"{kind}:{sort}", data, recognized=known)

    def _said(self, part: dict[str, Any], sort: str) -> Iterator[Draft]:
        ref = self._desk.keep.json(part, "message part")
        if part.get("synthetic") is True:
            yield self.story.injected(f"synthetic {sort}", ref)
        else:
            yield self.story.received(ref)

    def _tool(self, kind: str, part: dict[str, Any], data: dict[str, Any]) -> Iterator[Draft]:
        """A tool call as it stands: pending, running, completed or error."""
        story = self.story
        call_id = words(part.get("callID")) or words(part.get("id")) or story.place.key
        state = record(part.get("state"))
        status, tool = words(state.get("status")) or "none", words(part.get("tool"))
        times = record(state.get("time"))
        told = False
        if status != "pending" and not story.knows(call_id):  # a pending call has no arguments yet
            told = True
            yield story.call(call_id, tool, state.get("input"), effect=effect_class(tool))
        if status in ("running", "completed", "error"):
            yield from story.started(call_id, time=moment(times.get("start")))
        if status in ("completed", "error") and not story.is_settled(call_id):
            told = True
            yield from settled(story, call_id, tool, status, state)
        if not told:
            yield story.kept(f"{kind}:tool:{status}", data)

    def _answer(self, message: str, finish: dict[str, Any], completeness: Any) -> Iterator[Draft]:
        """A step of an assistant message has ended: one model call, with what it wrote in this step."""
        story = self.story
        yield from self._ask(message)
        call_id, self._open = self._open or "", None
        self._answered[message] = self._answered.get(message, 0) + 1
        is_summary = record(self._messages.get(message)).get("summary") is True
        tokens = record(finish.get("tokens"))
        written_now = [_bare(part) for part in self._step(message)]
        yield story.answered(
            call_id,
            self._desk.keep.json(written_now, "model answer"),
            usage=_usage(tokens),
            cost=money(finish.get("cost")),
            stop=words(finish.get("reason")),
            completeness=completeness,
            rest=rest(finish, "type", "id", "sessionID", "messageID", "tokens", "cost", "reason"),
        )
        if is_summary:
            yield from self._compacted(message, call_id, written_now)

    def _ask(self, message: str) -> Iterator[Draft]:
        """The request that a step of an assistant message answers, said once."""
        if self._open is not None:
            return
        story = self.story
        step = self._answered.get(message, 0) + 1
        self._open = f"model-{message}" + (f".{step}" if step > 1 else "")
        info = record(self._messages.get(message))
        story.model = words(info.get("modelID")) or story.model
        story.provider = words(info.get("providerID")) or story.provider
        self._sync(message)
        is_summary = info.get("summary") is True
        yield story.asked(self._open, purpose="compaction" if is_summary else None, whole=not is_summary)

    def _step(self, message: str) -> list[dict[str, Any]]:
        """The parts of the last step of a message."""
        found: list[dict[str, Any]] = []
        for part in self._parts.get(message, {}).values():
            if part.get("type") == "step-start":
                found = []
            elif part.get("type") in ("text", "reasoning", "tool"):
                found.append(part)
        return found

    def _sync(self, until: str) -> None:
        """The context of a request: every message before the one that answers it, as far as they are known."""
        refs: list[ContentRef] = []
        for place, (name, info) in enumerate(self._messages.items()):
            if name == until:
                break
            if self._compacted_from is not None and place < self._compacted_from:
                continue
            parts = [
                _bare(part)
                for part in self._parts.get(name, {}).values()
                if part.get("type") in ("text", "reasoning", "tool", "file")
                and part.get("ignored") is not True
            ]
            if parts:
                refs.append(self._desk.keep.json({"role": info.get("role"), "parts": parts}, "message"))
        self.story.context.replace(refs)

    def _compaction(self, message: str, part: dict[str, Any]) -> Iterator[Draft]:
        """A compaction was asked for; the summary is the next assistant message."""
        yield self.story.kept("part:compaction", {"message": message, "part": part})

    def _compacted(self, message: str, call_id: str, summary: list[dict[str, Any]]) -> Iterator[Draft]:
        story = self.story
        before, length = story.context.head, len(story.context)
        self._compacted_from = list(self._messages).index(message) if message in self._messages else None
        story.context.replace([self._desk.keep.json({"role": "assistant", "parts": summary}, "message")])
        auto = any(
            part.get("type") == "compaction" and part.get("auto") is True
            for parts in self._parts.values()
            for part in parts.values()
        )
        done = CompactionDone(
            compaction_id=message,
            trigger="auto" if auto else "unknown",
            evidence="logged",
            context_before=before,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=length,
            messages_after=1,
            summary=self._desk.keep.json(summary, "summary"),
            model=story.model,
            call_id=call_id,
        )
        yield story.draft(done)

    def _removed(self, kind: str, data: dict[str, Any]) -> Iterator[Draft]:
        """A message or a part was taken out, as a revert does."""
        message, part = words(data.get("messageID")), words(data.get("partID"))
        if part is not None and message is not None:
            self._parts.get(message, {}).pop(part, None)
        elif message is not None:
            self._messages.pop(message, None)
            self._parts.pop(message, None)
            yield self.story.draft(RolledBack(checkpoint_id=message, reason=kind))
        yield self.story.kept(kind, data)

    def _permission(self, noun: str, kind: str, data: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        approval = words(data.get("id")) or words(data.get("requestID")) or words(data.get("permissionID"))
        call_id = words(record(data.get("tool")).get("callID")) or words(data.get("callID"))
        if approval is not None and noun in ("permission.asked", "permission.updated"):
            context = self._desk.keep.json(data, "permission request")
            asked = ApprovalAsked(
                approval_id=approval, call_id=call_id, tool=words(data.get("permission")), context=context
            )
            yield story.draft(asked)
        elif approval is not None and noun == "permission.replied":
            reply = words(data.get("reply")) or words(data.get("response")) or "none"
            decided = ApprovalDecided(
                approval_id=approval,
                call_id=call_id,
                outcome="denied"
                if reply == "reject"
                else "approved"
                if reply in ("once", "always")
                else "unknown",
                decided_by="unknown",
                how=reply,
                scope="once" if reply == "once" else "rule" if reply == "always" else "unknown",
            )
            yield story.draft(decided)
        else:
            yield story.kept(kind, data, recognized=False)


def _bare(part: dict[str, Any]) -> dict[str, Any]:
    """A part without ids and times, as far as a model may have seen it."""
    shown = ("type", "text", "tool", "callID", "mime", "url", "filename")
    kept: dict[str, Any] = {str(name): part[name] for name in shown if name in part}
    state = record(part.get("state"))
    if state:
        kept["state"] = {name: state[name] for name in ("input", "output", "error") if name in state}
    return kept


def _usage(tokens: dict[str, Any]) -> Usage | None:
    """Tokens of one step; opencode counts reasoning beside the output."""
    if not tokens:
        return None
    cache = record(tokens.get("cache"))
    output, reasoning = number(tokens.get("output")), number(tokens.get("reasoning"))
    return Usage(
        input_tokens=number(tokens.get("input")),
        output_tokens=None if output is None else output + (reasoning or 0),
        cache_read_tokens=number(cache.get("read")),
        cache_write_tokens=number(cache.get("write")),
        reasoning_tokens=reasoning,
    )
