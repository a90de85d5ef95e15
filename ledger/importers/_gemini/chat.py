"""One Gemini CLI chat: messages by id, put in, patched, dropped."""

from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.approval import ApprovalDecided
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import Usage
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionResumed, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.effects import effect_class, written
from ledger.importers._harness.story import Outcome, Place, Story
from ledger.importers._harness.values import blocks_text, items, moment, number, record, rest, words

_STATUSES: dict[str, Outcome] = {"success": "returned", "error": "failed", "cancelled": "unknown"}
_GUARDED = frozenset({"replace", "write_file", "run_shell_command"})
_TOLD = ("id", "timestamp", "type", "content", "thoughts", "tokens", "model", "toolCalls", "displayContent")


class ChatReader:
    """Turns the rows or messages of one chat into items."""

    def __init__(self, desk: Desk, format_name: str, session: str) -> None:
        self.story = Story(desk, format_name, session, "gemini")
        self.story.unseen = ("system", "tools", "parameters")
        self.story.provider = "google"
        self._desk = desk
        self._messages: dict[str, dict[str, Any]] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._asked_with: list[str] = []
        self._refs: dict[str, tuple[ContentRef, ...]] = {}
        self._results: dict[str, str] = {}
        self._revisions: dict[str, int] = {}
        self._begun = False

    def damaged(self) -> None:
        """A line was lost: what it held may be missing from every request."""
        self.story.missing = self.story.missing or "what damaged lines held"

    def header(self, native: dict[str, Any], key: str, line: int) -> Iterator[Item]:
        """The record that names the session; a second one means that it was resumed."""
        story = self.story
        self._desk.tally.native["session"] += 1
        story.place = Place(key, line, moment(native.get("startTime")))
        if self._begun:
            yield story.item([story.draft(SessionResumed(how="a second header"), rest=native)])
            return
        self._begun = True
        kind = words(native.get("kind"))
        if kind == "subagent":
            story.purpose = "sub-agent"
        started = SessionStarted(
            harness="gemini-cli",
            agent=kind if kind not in (None, "main") else None,
            environment=self._desk.keep.json(native, "header"),
        )
        yield story.item([story.draft(started)])

    def row(self, native: dict[str, Any], key: str, line: int, raw: bytes) -> Iterator[Item]:
        """One line of a patch log."""
        story, native_counts = self.story, self._desk.tally.native
        patch = native.get("$set")
        back = words(native.get("$rewindTo"))
        if "id" in native and "type" in native:
            native_counts[words(native.get("type")) or "none"] += 1
            story.place = Place(key, line, moment(native.get("timestamp")), raw)
            yield story.item(self._upsert(native))
        elif "$set" in native:
            native_counts["$set"] += 1
            story.place = Place(key, line, moment(record(patch).get("lastUpdated")), raw)
            drafts = [story.kept("$set", native)]
            messages = record(patch).get("messages")
            if isinstance(messages, list):
                drafts += self._replaced(messages)
            yield story.item(drafts)
        elif back is not None:
            native_counts["$rewindTo"] += 1
            story.place = Place(key, line, None, raw)
            yield story.item(self._rewound(back))
        elif "sessionId" in native:
            yield from self.header(native, key if self._begun else "header", line)
        else:
            kind = next((name for name in native if name.startswith("$")), "none")
            native_counts[kind] += 1
            story.place = Place(key, line, None, raw)
            yield story.item([story.kept(kind, native, recognized=False)])

    def saved(self, message: dict[str, Any], index: int, check: bytes) -> Iterator[Item]:
        """One message of a chat that was saved whole. Its tool calls are items of their own: they change later."""
        story = self.story
        self._desk.tally.native[words(message.get("type")) or "none"] += 1
        name = words(message.get("id")) or f"message-{index}"
        time = moment(message.get("timestamp"))
        calls = items(message.get("toolCalls"))
        bare = {**message, "id": name, "toolCalls": []} if calls else {**message, "id": name}
        story.place = Place(f"message:{name}", index + 1, time, b"" if calls else check)
        yield story.item(self._upsert(bare))
        for place, call in enumerate(calls):
            status = words(record(call).get("status")) or "none"
            story.place = Place(f"message:{name}:call:{place}:{status}", index + 1, time)
            yield story.item(self._call(name, place, record(call)), f"message:{name}")
        if calls:
            self._put(name, {**message, "id": name})

    def _put(self, name: str, message: dict[str, Any]) -> None:
        self._messages[name] = self._known[name] = message
        self._refs[name] = tuple(self._desk.keep.json(sent, "message") for sent in _sent(message))

    def _visible(self) -> list[ContentRef]:
        """The contents of the next request, as far as the chat holds them."""
        found: list[ContentRef] = []
        pending: tuple[ContentRef, ...] = ()
        for name, message in self._messages.items():
            if pending and not _answers(message):
                found += pending
            pending = ()
            refs = self._refs[name]
            if _answers(message) and found and found[-1:] == list(refs[:1]):
                continue  # a resumed session writes the results of a call twice, and sends them once
            if message.get("type") == "gemini" and len(refs) > 1:
                found.append(refs[0])
                pending = refs[1:]  # the results, unless the next message brings them
            else:
                found += refs
        return [*found, *pending]

    def _upsert(self, message: dict[str, Any]) -> Iterator[Draft]:
        """A message that is new, or that takes the place of one with the same id."""
        name = words(message.get("id")) or self.story.place.key
        before = self._known.get(name)
        if before is None:
            yield from self._new(name, message)
        else:
            yield from self._changed(name, before, message)

    def _new(self, name: str, message: dict[str, Any]) -> Iterator[Draft]:
        story = self.story
        kind = words(message.get("type")) or "none"
        more = rest(message, *_TOLD)
        if kind == "gemini":
            yield from self._shortened()
            story.context.replace(self._visible())
            self._asked_with = list(self._messages)
            story.model = words(message.get("model")) or story.model
            yield story.asked(f"model-{name}")
            self._put(name, message)
            yield self._answer(name, message, 0, more)
            for place, call in enumerate(items(message.get("toolCalls"))):
                yield from self._call(name, place, record(call))
            return
        self._put(name, message)
        if kind != "user":
            yield story.kept(kind, message, recognized=kind in ("info", "error", "warning"))
        elif _answers(message):
            yield story.kept("user:functionResponse", message)
        else:
            text = blocks_text(message.get("content"))
            ref = self._refs[name][0]
            if text.startswith("<session_context>"):
                yield story.injected("session-context", ref, rest=more)
            else:
                story.turn = f"{story.session}:{name}"
                yield story.received(ref, rest=more)

    def _changed(self, name: str, before: dict[str, Any], message: dict[str, Any]) -> Iterator[Draft]:
        self._put(name, message)
        told = False
        if message.get("type") == "gemini":
            if _differs(before, message):
                self._revisions[name] = self._revisions.get(name, 0) + 1
                yield self._answer(name, message, self._revisions[name], {})
                told = True
            old = items(before.get("toolCalls"))
            for place, call in enumerate(items(message.get("toolCalls"))):
                if place >= len(old) or old[place] != call:
                    yield from self._call(name, place, record(call))
                    told = True
        if not told:
            yield self.story.kept(f"again:{words(message.get('type')) or 'none'}", message)

    def _answer(self, name: str, message: dict[str, Any], revision: int, more: dict[str, Any]) -> Draft:
        body = {part: message[part] for part in ("type", "content", "thoughts", "model") if part in message}
        return self.story.answered(
            f"model-{name}",
            self._desk.keep.json(body, "model answer"),
            usage=_usage(message.get("tokens")),
            model=words(message.get("model")),
            revision=revision,
            rest=more,
        )

    def _call(self, name: str, place: int, call: dict[str, Any]) -> Iterator[Draft]:
        """A tool call as it stands in its message: it comes again when it has a result."""
        story = self.story
        call_id = words(call.get("id")) or f"{name}:{place}"
        tool = words(call.get("name"))
        time = moment(call.get("timestamp"))
        if not story.knows(call_id):
            yield story.call(call_id, tool, call.get("args"), effect=effect_class(tool))
        status = words(call.get("status")) or "none"
        outcome = _STATUSES.get(status)
        if outcome is None or self._results.get(call_id) == status:
            return
        self._results[call_id] = status
        if outcome == "unknown" or (outcome == "returned" and tool in _GUARDED):
            yield self._decision(call_id, status)
        result = call.get("result")
        shown = None if result is None else self._desk.keep.json(result, "result")
        used = ("id", "name", "args", "result", "status", "timestamp")
        settled = story.settled(
            call_id,
            outcome,
            shown,
            details=rest(call, *used),
            error=None if outcome == "returned" else status,
        )
        yield story.draft(settled.event, rest={"status": status}, time=time)
        effect = written(call_id, tool, call.get("args")) if outcome == "returned" else None
        if effect is not None:
            yield story.draft(effect, "agent", time=time)

    def _decision(self, call_id: str, status: str) -> Draft:
        cancelled = status == "cancelled"
        decided = ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome="unknown",
            decided_by="unknown",
            how="the call was cancelled: by a refusal or by an interruption"
            if cancelled
            else "the call ran: allowed by somebody, by a rule or by a mode",
            evidence="inferred",
        )
        return self.story.draft(decided)

    def _replaced(self, messages: list[Any]) -> Iterator[Draft]:
        """The list of messages was set anew, as a resumed session does with those it has told before."""
        named = [(words(record(one).get("id")), record(one)) for one in messages]
        wanted = {name: one for name, one in named if name is not None}
        for name, message in wanted.items():
            before = self._known.get(name)
            if before is None:
                yield from self._new(name, message)
            elif rest(before, "timestamp") != rest(message, "timestamp"):
                yield from self._changed(name, before, message)
        self._messages = {name: self._known[name] for name in wanted}

    def _shortened(self) -> Iterator[Draft]:
        """Messages of the last request that are not in this one: the context was shortened in between."""
        story = self.story
        gone = [name for name in self._asked_with if name not in self._messages]
        if not gone:
            return
        before, length = story.context.head, len(story.context)
        story.context.replace(self._visible())
        fresh = next((one for name, one in self._messages.items() if name not in self._asked_with), {})
        done = CompactionDone(
            compaction_id=story.place.key,
            trigger="unknown",
            evidence="inferred",
            evidence_detail=f"{len(gone)} messages of the last request are gone from the next one",
            context_before=before,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=length,
            messages_after=len(story.context),
            summary=self._desk.keep.json(fresh.get("content"), "summary") if fresh else None,
        )
        yield story.draft(done, rest={"gone": gone[:1000]})

    def _rewound(self, name: str) -> Iterator[Draft]:
        """Everything from this message on was taken back."""
        names = list(self._messages)
        if name in self._messages:
            for one in names[names.index(name) :]:
                del self._messages[one]
        self._asked_with = [one for one in self._asked_with if one in self._messages]
        yield self.story.draft(RolledBack(checkpoint_id=name, reason="$rewindTo"), "human")


def _differs(before: dict[str, Any], message: dict[str, Any]) -> bool:
    """Whether a message that comes again says another answer: a resumed session writes the same one as parts."""
    if any(name in message and before.get(name) != message[name] for name in ("thoughts", "tokens", "model")):
        return True
    return blocks_text(before.get("content")) != blocks_text(message.get("content"))


def _answers(message: dict[str, Any]) -> bool:
    """Whether a user message only brings results of tools."""
    parts = items(message.get("content"))
    return bool(parts) and all(isinstance(one, dict) and "functionResponse" in one for one in parts)


def _sent(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The contents that a message stands for; results of its calls come as a content of their own."""
    kind, content = message.get("type"), message.get("content")
    parts = [{"text": content}] if isinstance(content, str) else items(content)
    if kind == "user":
        return [{"role": "user", "parts": parts}]
    if kind != "gemini":
        return []
    parts = [one for one in parts if one != {"text": ""}]
    results: list[Any] = []
    for call in items(message.get("toolCalls")):
        native = record(call)
        parts.append({"functionCall": {"name": native.get("name"), "args": native.get("args")}})
        results += items(native.get("result"))
    said = [{"role": "model", "parts": parts}]
    return [*said, {"role": "user", "parts": results}] if results else said


def _usage(native: Any) -> Usage | None:
    """Tokens of one call. Gemini's input includes what came from a cache, and its output no thoughts."""
    counts = record(native)
    if not counts:
        return None
    whole, cached = number(counts.get("input")), number(counts.get("cached"))
    output, thoughts = number(counts.get("output")), number(counts.get("thoughts"))
    tools = number(counts.get("tool")) or 0
    return Usage(
        input_tokens=None if whole is None else max(0, whole - (cached or 0)) + tools,
        output_tokens=None if output is None else output + (thoughts or 0),
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
    )
