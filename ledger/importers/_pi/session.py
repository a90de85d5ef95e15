"""One pi session as its entries arrive."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ledger.events import ContentRef, Draft
from ledger.events.compaction import CompactionDone
from ledger.events.model_call import Usage
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionForked, SessionStarted
from ledger.importers import Desk, Item
from ledger.importers._harness.effects import effect_class, written
from ledger.importers._harness.story import Place, Story
from ledger.importers._harness.values import items, moment, money, number, record, rest, words
from ledger.importers._pi.tree import Node, Tree

_NAME = re.compile(r"_(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_BASE = ("type", "id", "parentId", "timestamp", "message")
_CALLS_KEPT = 10_000
_CLAIMING = ("message", "compaction")


def session_of_file(name: str) -> str | None:
    """The session that a file of this name holds."""
    named = _NAME.search(name)
    return named.group("id") if named else None


class SessionReader:
    """Turns the entries of one session into items."""

    def __init__(self, desk: Desk, format_name: str, session: str) -> None:
        self.story = Story(desk, format_name, session, "pi")
        self.story.unseen = ("system", "tools", "parameters")
        self._desk = desk
        self._tree = Tree(self.story)
        self._forked_at: str | None = None
        self._calls: OrderedDict[str, tuple[str | None, Any]] = OrderedDict()

    def damaged(self) -> None:
        """A line was lost: what it held may be missing from every request."""
        self.story.missing = self.story.missing or "what damaged lines held"

    def header(self, native: dict[str, Any], line: int, raw: bytes) -> Iterator[Item]:
        """The first line: who the session is and where it comes from."""
        story = self.story
        self._desk.tally.native["session"] += 1
        story.place = Place("header", line, moment(native.get("timestamp")), raw)
        version = number(native.get("version")) or 1
        story.model, story.provider = words(native.get("modelId")), words(native.get("provider"))
        event = SessionStarted(
            harness="pi",
            harness_version=f"session format {version}",
            model=story.model,
            cwd=words(native.get("cwd")),
            environment=self._desk.keep.json(native, "header"),
        )
        drafts = [story.draft(event)]
        drafts += story.mode("model", story.model, "startup")
        drafts += story.mode("effort", words(native.get("thinkingLevel")), "startup")
        parent = words(native.get("parentSession")) or words(native.get("branchedFrom"))
        if parent is not None:
            origin = session_of_file(parent.replace("\\", "/").rsplit("/", 1)[-1]) or parent
            self._forked_at = moment(native.get("timestamp")) or ""
            drafts.append(story.draft(SessionForked(origin=self._desk.session_name(origin))))
        self._tree.add("header", Node(None, None, None, False))  # entries of format 1 are counted from it
        self._tree.leaf = None
        yield story.item(drafts)

    def entry(self, native: dict[str, Any], place: str, line: int, raw: bytes) -> Iterator[Item]:
        """One entry of the tree."""
        story, tree = self.story, self._tree
        kind = words(native.get("type")) or "none"
        self._desk.tally.native[kind] += 1
        name = words(native.get("id"))
        key = f"entry:{name}" if name is not None else place
        story.place = Place(key, line, moment(native.get("timestamp")), raw)
        parent = words(native.get("parentId"))
        parent = f"entry:{parent}" if parent is not None else None
        drafts: list[Draft] = []
        if "parentId" not in native:
            parent = tree.leaf  # format 1 is a list
        elif parent != tree.leaf:
            drafts += self._moved(parent)
        if key in tree:
            yield story.item([story.kept(f"repeated:{kind}", native)])
            return
        claim = self._claim(native, kind, raw)
        if self._is_copy(claim):
            self._copied(native, kind, key, parent)
            yield story.item([story.kept(f"inherited:{kind}", native)], parent)
            return
        drafts += self._drafts(native, kind, key, parent)
        item = story.item(drafts, parent)
        item.claim = claim
        yield item

    def _moved(self, parent: str | None) -> Iterator[Draft]:
        """This entry does not continue the one before it: somebody went elsewhere in the tree."""
        story, tree = self.story, self._tree
        left = tree.leaf
        known = parent is None or parent in tree
        tree.go_to(parent if known else None)
        if not known:
            story.missing = story.missing or "what an entry that was never written led to"
        if left is None or not known:
            return
        following = (
            tree.follower(parent if parent is not None else "header") if parent or "header" in tree else None
        )
        after = self._desk.lookup(story.session, following) if following is not None else None
        back = RolledBack(
            to_seq=after.seq - 1 if after is not None and after.seq > 1 else None,
            checkpoint_id=parent,
            reason=f"an entry continues {parent or 'the root'}, not {left}",
            evidence="inferred",
        )
        yield story.draft(back)

    def _claim(self, native: dict[str, Any], kind: str, raw: bytes) -> str | None:
        if kind not in _CLAIMING:
            return None
        name, time = words(native.get("id")), words(native.get("timestamp"))
        return f"{name}@{time}" if name and time else hashlib.sha256(raw).hexdigest()

    def _is_copy(self, claim: str | None) -> bool:
        """Whether a forked session repeats an entry that another session has told."""
        time = self.story.place.time
        if self._forked_at is None or claim is None or time is None or time > self._forked_at:
            return False
        owner = self._desk.claimed(claim)
        return owner is not None and owner != self._desk.session_name(self.story.session)

    def _copied(self, native: dict[str, Any], kind: str, key: str, parent: str | None) -> None:
        """Let an inherited entry have its effect on the context, and no other."""
        if kind == "compaction":
            self._tree.add(key, Node(parent, self._summary(native), self._kept_from(native), True))
        else:
            message = record(native.get("message"))
            visible = _is_sent(message)
            ref = self._desk.keep.json(message, "message") if visible else None
            self._tree.add(key, Node(parent, ref, None, False))

    def _drafts(self, native: dict[str, Any], kind: str, key: str, parent: str | None) -> Iterator[Draft]:
        story, tree = self.story, self._tree
        if kind == "message":
            yield from self._message(native, record(native.get("message")), key, parent)
            return
        if kind == "compaction":
            yield from self._compaction(native, key, parent)
            return
        sent: ContentRef | None = None
        if kind == "branch_summary":
            said = {"role": "branchSummary", "summary": native.get("summary"), "fromId": native.get("fromId")}
            sent = self._desk.keep.json(said, "branch summary")
            yield story.injected("branch-summary", sent, rest=rest(native, *_BASE, "summary"))
        elif kind == "custom_message":
            said = {
                "role": "custom",
                "customType": native.get("customType"),
                "content": native.get("content"),
            }
            sent = self._desk.keep.json(said, "message")
            yield story.injected(
                words(native.get("customType")) or "custom", sent, rest=rest(native, *_BASE, "content")
            )
        elif kind == "model_change":
            story.model = words(native.get("modelId")) or story.model
            story.provider = words(native.get("provider")) or story.provider
            yield from story.mode("model", words(native.get("modelId")))
            yield story.kept(kind, native)
        elif kind == "thinking_level_change":
            yield from story.mode("effort", words(native.get("thinkingLevel")))
            yield story.kept(kind, native)
        elif kind == "label" and words(native.get("label")) is not None:
            yield self._label(native)
        else:
            yield story.kept(kind, native, recognized=kind in ("custom", "label", "session_info"))
        tree.add(key, Node(parent, sent, None, False))

    def _label(self, native: dict[str, Any]) -> Draft:
        target = f"entry:{words(native.get('targetId'))}"
        following = self._tree.follower(target) if target in self._tree else None
        after = self._desk.lookup(self.story.session, following) if following is not None else None
        taken = CheckpointTaken(
            checkpoint_id=target,
            seq=after.seq - 1 if after is not None and after.seq > 1 else None,
            taken_by="human",
            label=words(native.get("label")),
        )
        return self.story.draft(taken, "human")

    def _message(
        self, native: dict[str, Any], message: dict[str, Any], key: str, parent: str | None
    ) -> Iterator[Draft]:
        story = self.story
        role = words(message.get("role")) or "none"
        more = rest(native, *_BASE)
        if role == "assistant":
            yield from self._answer(message, key, parent, more)
            return
        ref = self._desk.keep.json(message, "message")
        self._tree.add(key, Node(parent, ref if _is_sent(message) else None, None, False))
        if role == "user":
            story.turn = f"{story.session}:{key}"
            yield story.received(ref, rest=more)
        elif role == "toolResult":
            yield from self._result(message, ref, more)
        elif role == "bashExecution":
            yield from self._typed_command(message, ref, key)
        elif role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
            yield story.injected(words(message.get("customType")) or role, ref, rest=more)
        else:
            yield story.kept(f"message:{role}", native, recognized=False)

    def _answer(
        self, message: dict[str, Any], key: str, parent: str | None, more: dict[str, Any]
    ) -> Iterator[Draft]:
        """A model's answer, the request before it, and the calls that it asks for."""
        story = self.story
        call_id = f"model-{key}"
        story.model = words(message.get("model")) or story.model
        story.provider = words(message.get("provider")) or story.provider
        yield story.asked(call_id)
        ref = self._desk.keep.json(message, "message")
        stop = words(message.get("stopReason"))
        self._tree.add(key, Node(parent, ref if _is_sent(message) else None, None, False))
        usage = record(message.get("usage"))
        cost = record(usage.get("cost"))
        if stop == "error" and not items(message.get("content")):
            yield story.failed(call_id, words(message.get("errorMessage")) or "error", message)
            return
        yield story.answered(
            call_id,
            ref,
            usage=Usage(
                input_tokens=number(usage.get("input")),
                output_tokens=number(usage.get("output")),
                cache_read_tokens=number(usage.get("cacheRead")),
                cache_write_tokens=number(usage.get("cacheWrite")),
            )
            if usage
            else None,
            cost=money(cost.get("total")),
            stop=stop,
            response_id=words(message.get("responseId")),
            completeness="aborted" if stop == "aborted" else "partial" if stop == "error" else "complete",
            rest=more,
        )
        for index, block in enumerate(items(message.get("content"))):
            if isinstance(block, dict) and block.get("type") == "toolCall":
                call = words(block.get("id")) or f"{key}:{index}"
                tool = words(block.get("name"))
                self._calls[call] = (tool, block.get("arguments"))
                if len(self._calls) > _CALLS_KEPT:
                    self._calls.popitem(last=False)
                yield story.call(call, tool, block.get("arguments"), effect=effect_class(tool))

    def _result(self, message: dict[str, Any], ref: ContentRef, more: dict[str, Any]) -> Iterator[Draft]:
        call_id = words(message.get("toolCallId")) or self.story.place.key
        failed = message.get("isError") is True
        yield self.story.settled(
            call_id, "failed" if failed else "returned", ref, details=message.get("details"), rest=more
        )
        tool, arguments = self._calls.pop(call_id, (None, None))
        effect = None if failed else written(call_id, tool, arguments)
        if effect is not None:
            yield self.story.draft(effect, "agent")

    def _typed_command(self, message: dict[str, Any], ref: ContentRef, key: str) -> Iterator[Draft]:
        """A command that the user ran from the prompt: no model asked for it."""
        story = self.story
        asked = story.call(key, "bash", {"command": message.get("command")})
        yield story.draft(asked.event, "human")
        code = message.get("exitCode")
        failed = message.get("cancelled") is True or (isinstance(code, int) and code != 0)
        yield story.settled(
            key,
            "failed" if failed else "returned",
            ref,
            details={"exit_code": code} if isinstance(code, int) else None,
            error="cancelled" if message.get("cancelled") is True else None,
        )

    def _summary(self, native: dict[str, Any]) -> ContentRef:
        said = {
            "role": "compactionSummary",
            "summary": native.get("summary"),
            "tokensBefore": native.get("tokensBefore"),
        }
        return self._desk.keep.json(said, "summary")

    def _kept_from(self, native: dict[str, Any]) -> str | None:
        first = words(native.get("firstKeptEntryId"))
        if first is not None:
            return f"entry:{first}"
        index = number(native.get("firstKeptEntryIndex"))
        return None if index is None else self._tree.nth(index)

    def _compaction(self, native: dict[str, Any], key: str, parent: str | None) -> Iterator[Draft]:
        story, tree = self.story, self._tree
        before, length = story.context.head, len(story.context)
        kept_from = self._kept_from(native)
        named = "firstKeptEntryId" in native or "firstKeptEntryIndex" in native
        tree.add(key, Node(parent, self._summary(native), kept_from, True))
        if named and (kept_from is None or kept_from not in tree):
            story.missing = story.missing or "what a compaction kept beside its summary"
        done = CompactionDone(
            compaction_id=key,
            trigger="unknown",
            evidence="logged",
            context_before=before,
            context_after=story.context.head,
            context_added=story.context.take_added(),
            messages_before=length,
            messages_after=len(story.context),
            summary=self._desk.keep.json(native.get("summary"), "summary"),
            tokens_before=number(native.get("tokensBefore")),
        )
        yield story.draft(done, rest=rest(native, *_BASE, "summary", "tokensBefore"))


def _is_sent(message: dict[str, Any]) -> bool:
    """Whether a message goes to the model: broken answers and commands marked private do not."""
    if message.get("role") == "assistant":
        return message.get("stopReason") not in ("error", "aborted")
    return message.get("excludeFromContext") is not True
