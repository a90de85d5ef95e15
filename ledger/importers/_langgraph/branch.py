"""One session of a graph: what each checkpoint added to the one before it, as items in causal order."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ledger.events import Draft
from ledger.events.governance import ArtifactChanged
from ledger.events.input import ContextInjected, MessageReceived
from ledger.events.keeping import SourceKept
from ledger.importers import Item
from ledger.importers._langgraph.answers import answer_items, call_key
from ledger.importers._langgraph.lanes import Lane, applied, compare
from ledger.importers._langgraph.messages import Message, Messages, ToolRequest, text_or_none
from ledger.importers._langgraph.results import Grant, result_drafts
from ledger.importers._langgraph.scribe import Scribe, Step
from ledger.importers._langgraph.shrinking import rewritten, shrunk, stands_in
from ledger.recorder import ContextChain

_CALLS_KEPT = 20_000


class Author(NamedTuple):
    """Who wrote a message."""

    task: str
    """Task."""
    path: str
    """Its path."""


class Told:
    """Messages of a thread that one of its sessions told: sub-graphs hand them up, forks repeat them."""

    _KEPT = 200_000

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def first_time(self, message: Message) -> bool:
        """Whether nobody told it yet; from now on somebody did."""
        if message.id is None:
            return True
        if message.id in self._known:
            return False
        self._known[message.id] = None
        if len(self._known) > self._KEPT:
            self._known.popitem(last=False)
        return True


class Branch:
    """One session: a run of a graph, of a sub-graph, or of a fork of either."""

    def __init__(self, scribe: Scribe, messages: Messages, told: Told, *, is_child: bool) -> None:
        self.scribe = scribe
        """Makes its items."""
        self.lanes: dict[str, Lane] = {}
        """Its message lists by channel."""
        self.granted: dict[str, Grant] = {}
        """Answers that wait for their call to run, by call id."""
        self.kept: dict[str, bytes] = {}
        """What was kept of each other channel last."""
        self.last: Step | None = None
        """Its newest checkpoint."""
        self.failed = False
        """Whether a task of the newest checkpoint failed."""
        self._messages = messages
        self._told = told
        self._is_child = is_child
        self._calls: OrderedDict[str, str | None] = OrderedDict()
        self._system: str | None = None

    def seed(self, step: Step, lists: Mapping[str, list[Message]]) -> None:
        """Begin with the state of a checkpoint that another session told."""
        for channel, messages in lists.items():
            lane = self._lane(channel)
            lane.messages = messages
            lane.chain.replace([message.ref for message in messages])
            for message in messages:
                for call in message.calls() if message.kind == "ai" else ():
                    self._know(call.call_id, None)
        self.last = step

    def waiting(self) -> list[ToolRequest]:
        """Calls in the messages that have no result there."""
        requested: dict[str, ToolRequest] = {}
        for lane in self.lanes.values():
            for message in lane.messages:
                if message.kind == "ai":
                    requested.update((call.call_id, call) for call in message.calls())
                elif message.call_id is not None:
                    requested.pop(message.call_id, None)
        return list(requested.values())

    def lists(self, step: Step, written: Mapping[str, list[Any]]) -> dict[str, list[Message]]:
        """The message lists of a checkpoint. `written` holds what was written to each channel since the last."""
        found: dict[str, list[Message]] = {}
        for channel, value in step.values.items():
            messages = self._messages.of_list(value)
            if messages or (messages is not None and channel in self.lanes):
                found[channel] = messages
        for channel in step.delta_channels():
            lane = self.lanes.get(channel)
            before = lane.messages if lane is not None else []
            after = applied(before, written.get(channel, ()), self._messages)
            if after or lane is not None:
                found[channel] = after
        return found

    def step(
        self, step: Step, lists: Mapping[str, list[Message]], authors: Mapping[str, Author], *, removed: bool
    ) -> Iterator[Item]:
        """What a checkpoint changed. `authors` tells which task wrote a message, `removed` that one was told to go."""
        for channel in sorted(lists, key=lambda name: (name != "messages", name)):
            lane = self._lane(channel)
            change = compare(lane.messages, lists[channel])
            if change.removed:
                yield shrunk(self.scribe, step, lane, channel, change, lists[channel], told=removed)
                added = [message for message in change.added if not stands_in(step, message)]
                for message in change.added:
                    if stands_in(step, message):
                        self._told.first_time(message)
            else:
                added = change.added
                if change.changed:
                    yield from rewritten(self.scribe, step, lane, channel, change, lists[channel])
            for message in change.changed:
                yield self._changed(step, message)
            for message in added:
                yield from self._added(step, lane, message, authors)
            lane.messages = lists[channel]
            lane.chain.replace([message.ref for message in lists[channel]])
        self.last = step

    def ahead(
        self,
        last: Step,
        messages: Mapping[tuple[str, int], list[Message]],
        authors: Mapping[str, Author],
    ) -> Iterator[Item]:
        """Answers and results that tasks wrote and that no checkpoint has taken up yet."""
        lane = self.lanes.get("messages") or next(iter(self.lanes.values()), None)
        for message in (message for group in messages.values() for message in group):
            key = f"message:{message.id}"
            if lane is None or message.id is None or not self._told.first_time(message):
                continue
            if message.kind == "tool":
                yield self._result(last, message, key, authors.get(message.call_id or ""))
            elif message.kind == "ai":
                yield from self._answer(last, lane, message, key)

    # -- one message -----------------------------------------------------------------------------------------

    def _added(
        self, step: Step, lane: Lane, message: Message, authors: Mapping[str, Author]
    ) -> Iterator[Item]:
        author = authors.get(message.call_id or message.identity) or authors.get(message.identity)
        from_outside = step.source in ("input", "update") or self._was_input(author)
        if self._told.first_time(message):
            key = f"message:{message.id or f'{step.id}:{len(lane.chain)}'}"
            if message.kind == "ai" and not from_outside:
                yield from self._answer(step, lane, message, key)
            elif message.kind == "tool" and (not from_outside or self.knows(message.call_id)):
                yield self._result(step, message, key, author)
            else:
                yield self._arrived(step, message, key, from_outside)
        elif message.kind == "ai":
            for call in message.calls():
                self._know(call.call_id, None)
        lane.chain.append(message.ref)

    def _answer(self, step: Step, lane: Lane, message: Message, key: str) -> Iterator[Item]:
        yield from answer_items(self.scribe, step, lane, message, key)
        for index, call in enumerate(message.calls()):
            self._know(call.call_id, call_key(key, index))

    def _result(self, step: Step, message: Message, key: str, author: Author | None) -> Item:
        call_id = message.call_id or key
        drafts = result_drafts(
            self.scribe,
            step,
            message,
            call_id,
            grant=self.granted.pop(call_id, None),
            author=None if author is None else author.task,
            orphan=not self.knows(call_id),
        )
        return self.scribe.item(key, drafts, step.line, cause=self._calls.get(call_id))

    def _arrived(self, step: Step, message: Message, key: str, from_outside: bool) -> Item:
        """A message that no model and no tool of this session made."""
        draft = self.scribe.draft
        if message.kind in ("human", "other"):
            origin: Any = "agent" if self._is_child else "human" if from_outside else "unknown"
            if step.source == "update":
                origin = "unknown"
            sender = text_or_none(message.data.get("name"))
            event = MessageReceived(origin=origin, message=message.ref, sender=sender)
            actor: Any = "human" if origin == "human" else None
            return self.scribe.item(key, [draft(event, step.id, time=step.time, actor=actor)], step.line)
        drafts: list[Draft] = []
        if message.kind == "system":
            drafts.extend(self._instructions(step, message))
        provenance = (
            "system" if message.kind == "system" else "update" if step.source == "update" else "history"
        )
        injected = ContextInjected(
            provenance=provenance,
            message=message.ref,
            artifact="system_prompt" if message.kind == "system" else None,
        )
        drafts.append(draft(injected, step.id, time=step.time))
        for call in message.calls() if message.kind == "ai" else ():
            self._know(call.call_id, None)
        return self.scribe.item(key, drafts, step.line)

    def _instructions(self, step: Step, message: Message) -> Iterator[Draft]:
        content, keep = message.data.get("content"), self.scribe.desk.keep
        ref = keep.text(content, "system") if isinstance(content, str) else keep.json(content, "system")
        if ref.digest != self._system:
            event = ArtifactChanged(
                artifact="system_prompt", kind="prompt", old=self._system, content=ref, cause="unknown"
            )
            yield self.scribe.draft(event, step.id, time=step.time)
            self._system = ref.digest

    def _changed(self, step: Step, message: Message) -> Item:
        event = SourceKept(native_type="message:changed", recognized=True, body=message.ref)
        draft = self.scribe.draft(event, step.id, time=step.time)
        return self.scribe.item(f"changed:{step.id}:{message.identity}", [draft], step.line)

    def _was_input(self, author: Author | None) -> bool:
        """Whether the last step did nothing but take the graph's input into its state."""
        if author is not None:
            return "__start__" in author.path
        return self.last is not None and self.last.source == "input" and "__start__" in self.last.values

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def call_item(self, call_id: str) -> str | None:
        """Item of this session that holds a call."""
        return self._calls.get(call_id)

    def knows(self, call_id: str | None) -> bool:
        """Whether a call was asked for here or before."""
        return call_id is not None and call_id in self._calls

    def _know(self, call_id: str, key: str | None) -> None:
        self._calls[call_id] = key
        if len(self._calls) > _CALLS_KEPT:
            self._calls.popitem(last=False)

    def _lane(self, channel: str) -> Lane:
        if channel not in self.lanes:
            self.lanes[channel] = Lane(ContextChain(self.scribe.desk.keep))
        return self.lanes[channel]
