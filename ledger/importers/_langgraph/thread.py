"""One thread of a database: its checkpoints as a tree of sessions, oldest first, parents before children."""

import hashlib
from collections import OrderedDict
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

from ledger.events.session import SessionEnded, SessionResumed
from ledger.importers import Desk, Item
from ledger.importers._langgraph import approvals
from ledger.importers._langgraph.branch import Branch, Told
from ledger.importers._langgraph.checkpoint import (
    checkpoint_items,
    damaged_writes,
    failure_items,
    left_over,
    stray_items,
    waiting_items,
)
from ledger.importers._langgraph.delegations import Delegations
from ledger.importers._langgraph.lanes import applied
from ledger.importers._langgraph.messages import Message, Messages
from ledger.importers._langgraph.opening import fork_items, start_item
from ledger.importers._langgraph.pending import Pending, read_pending, read_review
from ledger.importers._langgraph.review import Answer
from ledger.importers._langgraph.saver import Key, Saver
from ledger.importers._langgraph.scribe import Scribe, Step
from ledger.importers._langgraph.values import Decoder, as_text

_OPEN = 64
_PLACES_KEPT = 100_000
_DELTA_WALK = 10_000
_GRANT_WALK = 32

Place = tuple[str, str]
"""Namespace and checkpoint id."""


class ThreadReader:
    """Turns the rows of one thread into items."""

    def __init__(self, desk: Desk, saver: Saver, thread: Any, decoder: Decoder, messages: Messages) -> None:
        self._desk = desk
        self._saver = saver
        self._thread = thread
        self._decoder = decoder
        self._messages = messages
        self._told = Told()
        self._main: str | None = None
        self._heads: dict[Place, str] = {}
        self._bases: dict[str, str] = {}
        self._open: OrderedDict[str, tuple[Branch, Pending]] = OrderedDict()
        self._places: OrderedDict[Place, str] = OrderedDict()
        self._second: dict[Place, tuple[list[Answer], Any]] = {}
        self._delegations = Delegations()

    def items(self) -> Iterator[Item]:
        """Everything that the thread holds."""
        waiting: dict[Place, list[Key]] = {}
        for key in self._saver.keys(self._thread):
            ready = [key]
            while ready:
                one = ready.pop(0)
                parent = _parent(one)
                if parent is not None and parent not in waiting and not self._is_known(parent):
                    if self._saver.find(self._thread, one.namespace, one.parent) is not None:
                        waiting[parent] = [one]  # a clock ran backwards: the parent's id is the younger one
                        continue
                elif parent is not None and parent in waiting:
                    waiting[parent].append(one)
                    continue
                yield from self._checkpoint(one)
                ready.extend(waiting.pop((as_text(one.namespace), as_text(one.id)), ()))
        for left in waiting.values():  # a circle of parents
            for key in left:
                yield from self._checkpoint(key)
        yield from self._finish()

    def _is_known(self, place: Place) -> bool:
        return place in self._heads or self._session_of(place) is not None

    def _session_of(self, place: Place) -> str | None:
        """The session that holds a checkpoint already."""
        session = self._heads.get(place) or self._places.get(place)
        if session is None and len(self._places) >= _PLACES_KEPT:
            for candidate in dict.fromkeys((*self._bases.values(), *self._heads.values())):
                if self._desk.lookup(candidate, f"checkpoint:{place[1]}") is not None:
                    return candidate
        return session

    # -- one checkpoint --------------------------------------------------------------------------------------

    def _checkpoint(self, key: Key) -> Iterator[Item]:
        step = self._load(key)
        self._desk.tally.native["checkpoint"] += 1
        if self._main is None:
            self._main = self._main_session(step)
        parent = _parent(key)
        session = None if parent is None else self._heads.pop(parent, None)
        is_open = session in self._open
        # None too where the parent is known by its text and the row names it by bytes: damage, as if it were not there.
        found = (
            None if parent is None or is_open else self._saver.find(self._thread, key.namespace, key.parent)
        )
        if session is not None and is_open:  # the branch whose newest checkpoint is the parent
            branch, before = self._open[session]
        elif session is not None and found is not None:
            branch, before = self._restored(session, found)
        elif parent is not None and found is not None and (origin := self._session_of(parent)) is not None:
            branch, before = yield from self._forked(step, origin, found)
        else:
            branch, before = (yield from self._rooted(step, parent)), Pending()
        if step.source == "input" and branch.last is not None:
            yield self._resumed(branch, step, "new input")
        elif branch.failed:
            yield self._resumed(branch, step, "after an error")
        written = before.written()
        lists = branch.lists(step, written)
        yield from branch.step(step, lists, before.authors, removed=before.removed)
        if parent is not None:
            yield from self._delegations.returned(branch, step, parent, before)
        yield from checkpoint_items(branch, step, lists, self._claim(step))
        if session is not None:
            yield from left_over(branch, step, lists, before)
        yield from self._after(branch, step)

    def _load(self, key: Key) -> Step:
        self._desk.tally.lines += 1
        return Step(key, self._saver.load(self._thread, key, self._decoder), self._desk.tally.lines)

    def _after(self, branch: Branch, step: Step) -> Iterator[Item]:
        """The rows that were written after a checkpoint: questions, answers, failures; the rest waits."""
        scribe, place = branch.scribe, (as_text(step.key.namespace), step.id)
        pending = read_pending(self._saver, self._thread, step.key, self._decoder, self._messages)
        for write in pending.writes:
            self._desk.tally.lines += 1
            special = write.channel if write.channel.startswith("__") else ""
            self._desk.tally.native[f"write:{special}" if special else "write"] += 1
        review = read_review(self._saver, self._thread, pending, branch.waiting, self._decoder)
        yield from approvals.asked(scribe, step, review)
        yield from approvals.decided(scribe, step, [*review.taken, *review.pending])
        if review.second:
            oldest, newest = self._saver.children(self._thread, step.key)
            if oldest == newest:
                yield from approvals.decided(scribe, step, review.second)
            else:
                self._second[place] = (review.second, newest)
        approvals.grant(branch, scribe.session, step, review)
        yield from failure_items(branch, step, pending)
        yield from damaged_writes(branch, step, pending)
        branch.failed = bool(pending.failures())
        self._heads[place] = scribe.session
        self._places[place] = scribe.session
        if len(self._places) > _PLACES_KEPT:
            self._places.popitem(last=False)
        self._open[scribe.session] = (branch, pending)
        self._open.move_to_end(scribe.session)
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)

    def _resumed(self, branch: Branch, step: Step, how: str) -> Item:
        draft = branch.scribe.draft(SessionResumed(how=how), step.id, time=step.time)
        return branch.scribe.item(f"resumed:{step.id}", [draft], step.line)

    # -- which session ---------------------------------------------------------------------------------------

    def _forked(self, step: Step, origin: str, key: Key) -> Generator[Item, None, tuple[Branch, Pending]]:
        """A new session that leaves another one at the parent, where that one went on already."""
        session = self._named(f"{origin}.fork-{_short(step.id)}")
        branch, before = self._restored(session, key)
        last = branch.last
        assert last is not None
        review = read_review(self._saver, self._thread, before, branch.waiting, self._decoder)
        yield from fork_items(branch, step, last, origin, review)
        second, newest = self._second.get((as_text(key.namespace), last.id), ([], None))
        if second and newest == step.key.id:
            for answer in second:
                if self._desk.lookup(origin, approvals.answer_key(last, answer)) is None:
                    yield from approvals.decided(branch.scribe, last, [answer], origin)
        return branch, before

    def _restored(self, session: str, key: Key) -> tuple[Branch, Pending]:
        """A branch with the state of a checkpoint that was read before."""
        step = Step(key, self._saver.load(self._thread, key, self._decoder), self._desk.tally.lines)
        branch = self._branch(session, step)
        branch.seed(step, self._state(branch, step))
        pending = read_pending(self._saver, self._thread, key, self._decoder, self._messages)
        self._restore_grants(branch, step)
        branch.failed = bool(pending.failures())
        return branch, pending

    def _restore_grants(self, branch: Branch, step: Step) -> None:
        """Answers of this checkpoint and of those before it whose calls still wait."""
        calls, at = branch.waiting(), step.key
        for _ in range(_GRANT_WALK):
            if not calls:
                return
            session = self._session_of((as_text(at.namespace), as_text(at.id)))
            pending = read_pending(self._saver, self._thread, at, self._decoder, self._messages)
            review = read_review(self._saver, self._thread, pending, partial(list, calls), self._decoder)
            if session is not None and review.taken:
                here = Step(at, step.saved, step.line)
                approvals.grant(branch, session, here, review)
                calls = [call for call in calls if call.call_id not in branch.granted]
            before = (
                self._saver.find(self._thread, at.namespace, at.parent) if at.parent is not None else None
            )
            if before is None:
                return
            at = before

    def _state(self, branch: Branch, step: Step) -> dict[str, list[Message]]:
        """The message lists of a checkpoint; those that it does not hold are made again from what was written."""
        found = branch.lists(step, {})
        for channel in step.delta_channels():
            found[channel] = self._delta_state(step, channel)
        return found

    def _delta_state(self, step: Step, channel: str) -> list[Message]:
        written: list[list[Any]] = []
        at = step
        for _ in range(_DELTA_WALK):
            if channel in at.values or at.key.parent is None:
                break
            key = self._saver.find(self._thread, at.key.namespace, at.key.parent)
            if key is None:
                break
            pending = read_pending(self._saver, self._thread, key, self._decoder, self._messages)
            written.append(pending.written().get(channel, []))
            at = Step(key, self._saver.load(self._thread, key, self._decoder), step.line)
        messages = self._messages.of_list(at.values.get(channel)) or []
        for values in reversed(written):
            messages = applied(messages, values, self._messages)
        return messages

    def _rooted(self, step: Step, parent: Place | None) -> Generator[Item, None, Branch]:
        """The first checkpoint of a graph or sub-graph, or one whose parent is not in the database."""
        namespace = as_text(step.key.namespace)
        main = self._main or ""
        base = self._bases.get(namespace)
        name = f"{main}{_below(namespace)}" if base is None else f"{base}.from-{_short(step.id)}"
        session = self._named(name)
        self._bases.setdefault(namespace, session)
        if parent is not None:
            self._desk.dangle(step.line, parent[1])
        branch = self._branch(session, step)
        found = None
        if namespace:
            found = self._delegations.find(step, self._saver, self._thread, self._decoder, self._messages)
            owner = None if found is None else self._session_of((found.namespace, found.checkpoint))
            if found is not None and owner is not None:
                found = found._replace(owner=owner)
                yield self._delegations.started(
                    branch, step, found, self._scribe(owner, step, found.namespace)
                )
        yield start_item(branch, step, found)
        return branch

    def _branch(self, session: str, step: Step) -> Branch:
        namespace = as_text(step.key.namespace)
        scribe = self._scribe(session, step, namespace)
        return Branch(scribe, self._messages, self._told, is_child=bool(namespace))

    def _scribe(self, session: str, step: Step, namespace: str) -> Scribe:
        depth = namespace.count("|") + 1 if namespace else 0
        return Scribe(self._desk, session, as_text(self._thread)[:200], step.agent, depth)

    def _named(self, name: str) -> str:
        return self._desk.session_name(name)

    def _main_session(self, first: Step) -> str:
        """The thread's own name is not enough: every application has a thread "1".

        The id of its first checkpoint is random enough, and goes with every copy of the database. One that was
        pruned begins elsewhere: then an earlier import may know its oldest checkpoint.
        """
        namespace = as_text(first.key.namespace)
        is_pruned = first.key.parent is not None or first.metadata.get("step") not in (None, -1)
        known = self._desk.claimed(self._claim(first)) if is_pruned else None
        if known is not None and known.endswith(_below(namespace)):
            return known[: len(known) - len(_below(namespace))]
        return self._named(f"{as_text(self._thread)}-{_short(first.id)}")

    def _claim(self, step: Step) -> str:
        return f"{as_text(self._thread)}\0{as_text(step.key.namespace)}\0{step.id}"

    # -- the end ---------------------------------------------------------------------------------------------

    def _finish(self) -> Iterator[Item]:
        """The newest checkpoint of each session: what waits there, and whether the run ended."""
        for (namespace, checkpoint), session in list(self._heads.items()):
            if session in self._open:
                branch, pending = self._open[session]
            else:
                key = self._saver.find(self._thread, namespace, checkpoint)
                if key is None:
                    continue
                branch, pending = self._restored(session, key)
            last = branch.last
            if last is None or last.id != checkpoint:
                continue
            yield from waiting_items(branch, last, pending)
            failures = pending.failures()
            if failures:
                ended = SessionEnded(outcome="failed", reason=failures[0][1][:500])
            elif last.is_finished and not pending.writes:
                ended = SessionEnded(outcome="completed")
            else:
                continue
            yield branch.scribe.item(
                f"ended:{last.id}", [branch.scribe.draft(ended, last.id, time=last.time)], last.line
            )
        for namespace, checkpoint, write in self._saver.strays(self._thread):
            self._desk.tally.lines += 1
            self._desk.tally.native["write without checkpoint"] += 1
            session = self._main or self._named(f"{as_text(self._thread)}-{_short(as_text(checkpoint))}")
            self._desk.dangle(self._desk.tally.lines, as_text(checkpoint))
            scribe = Scribe(self._desk, session, as_text(self._thread)[:200], None, 0)
            yield from stray_items(scribe, as_text(namespace), as_text(checkpoint), write, self._decoder)


def _parent(key: Key) -> Place | None:
    return None if key.parent is None else (as_text(key.namespace), as_text(key.parent))


def _below(namespace: str) -> str:
    """What the name of a sub-graph's session adds to that of its thread."""
    return f".{namespace.replace('|', '.')}" if namespace else ""


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
