"""The states of one session, from its records: at any seq, or one by one. Snapshots only make it faster."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Protocol

from ledger.errors import RecordNotFoundError
from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.session import SessionForked
from ledger.store import EventStore
from replay.fold import EARLY, Charge, advance, charge_of, checkpoint_target, go_back_target, inherits
from replay.state import State

_CHECKPOINTS_KEPT = 32


class Read(Protocol):
    """Gives the records of the session after one seq and up to another; may leave out those of other names."""

    def __call__(self, after: int, upto: int, names: Collection[str] = ()) -> Iterator[Record]:
        """In the order of seq."""


Origin = Callable[[Record], State | None]
"""Gives the state that a session begins with which goes on from another one: that one's, at the fork."""


class Snapshots(Protocol):
    """Keeps states beside the ledger. May forget any of them; gives none that is not exactly right."""

    def nearest(self, seq: int) -> State | None:
        """The latest kept state at or before a seq."""

    def offer(self, state: State, record_hash: str) -> None:
        """Takes note of a state that was just folded, and may keep it."""

    def of(self, session: str) -> "Snapshots":
        """Those of another session."""


def session_timeline(store: EventStore, session: str, snapshots: Snapshots | None = None) -> "Timeline":
    """The timeline of a session in a store, as it is now."""
    return _timeline(store, session, store.head(session).seq, snapshots, Origins(store, snapshots).state)


def _timeline(
    store: EventStore, session: str, head: int, snapshots: Snapshots | None, origin: "Origin"
) -> "Timeline":
    def read(after: int, upto: int, names: Collection[str] = ()) -> Iterator[Record]:
        return store.read(session, after=after, upto=upto, names=names)

    return Timeline(session, head, read, snapshots, origin)


class Origins:
    """The states that forked sessions begin with.

    What a fork goes on from was recorded before it. So each step to an origin leads back in the ledger, which ends,
    whatever the sessions claim; and nothing that came later can change what a fork begins with.
    """

    def __init__(self, store: EventStore, snapshots: Snapshots | None = None) -> None:
        self._store = store
        self._snapshots = snapshots

    def state(self, fork: Record) -> State | None:
        """The origin's state at the fork, one fold for each session on the way; None where it is not on record."""
        way: list[tuple[str, int]] = []
        later: Record | None = fork
        while later is not None:
            event = later.event
            assert isinstance(event, SessionForked) and event.origin_seq is not None
            rows = self._store.read(event.origin, after=event.origin_seq - 1, upto=event.origin_seq)
            last = next(rows, None) if event.origin_seq > 0 else None
            if last is None or last.position >= later.position:
                break
            way.append((event.origin, event.origin_seq))
            later = self._fork_of(event.origin, event.origin_seq)
        state: State | None = None
        for session, seq in reversed(way):
            snapshots = None if self._snapshots is None else self._snapshots.of(session)
            state = _timeline(self._store, session, seq, snapshots, partial(_known, state)).at()
        return state

    def _fork_of(self, session: str, upto: int) -> Record | None:
        """The record by which a session goes on from another one, where it does so within its first records."""
        state = State(session)
        for record in self._store.read(session, upto=min(upto, EARLY)):
            if isinstance(record.event, SessionForked):
                state.seq = record.seq
                return record if inherits(state, record.event) else None
            try:
                advance(state, record)
            except ValueError:
                return None  # it goes back, or revises an answer: it has a past of its own
        return None


def _known(state: State | None, fork: Record) -> State | None:
    """The state that a session begins with, where it is known already."""
    return state


class Timeline:
    """Folds one session. Also the fold's past: what a state does not remember, it reads again."""

    def __init__(
        self,
        session: str,
        head: int,
        read: Read,
        snapshots: Snapshots | None = None,
        origin: Origin = lambda fork: None,
    ) -> None:
        self.session = session
        self.head = head
        """Last seq of the session."""
        self._read = read
        self._snapshots = snapshots
        self._origin = origin
        self._begun: dict[int, State | None] = {}
        self._checkpoints: OrderedDict[int, State] = OrderedDict()
        self._wanted: dict[int, State] = {}
        self._charges: dict[str, list[tuple[int, Charge]]] = {}
        self._goal = 0
        self._searched = 0
        self._charged = 0

    def at(self, seq: int | None = None) -> State:
        """State after a record, by default the last; 0 is before the first. Raises RecordNotFoundError."""
        upto = self.head if seq is None else self.checked(seq)
        state = self.start(upto)
        for _ in self.walk(state, upto):
            pass
        return state

    def checked(self, seq: int) -> int:
        """The seq, if the session has it. Raises RecordNotFoundError."""
        if not 0 <= seq <= self.head:
            raise RecordNotFoundError(self.session, seq, self.head)
        return seq

    def walk(self, state: State, upto: int) -> Iterator[Record]:
        """Bring a state forward, record by record, in place; gives each record after folding it."""
        self._goal = max(self._goal, upto)
        for record in self._read(state.seq, upto):
            if (
                type(record.event) is CheckpointTaken
                and checkpoint_target(record.event, record.seq) == state.seq
            ):
                self._keep(state)
            advance(state, record, self)
            if state.trail is not None:
                state.trail.close(state)
            elif self._snapshots is not None:
                self._snapshots.offer(state, record.hash)
            yield record

    def state(self, seq: int, asked_at: int) -> State:
        """The state at an earlier seq, for a rollback recorded at `asked_at`."""
        known = self._wanted.get(seq) or self._checkpoints.get(seq)
        if known is None:
            self._find_targets(asked_at)
            known = self._wanted[seq]
        return known

    def charge(self, call_id: str, asked_at: int) -> Charge | None:
        """What the last answer of a call before `asked_at` counted for."""
        self._find_charges(asked_at)
        earlier = [charge for seq, charge in self._charges.get(call_id, ()) if seq < asked_at]
        return earlier[-1] if earlier else None

    def origin(self, fork: Record) -> State | None:
        """The state that the session begins with, where it goes on from another one."""
        if fork.seq not in self._begun:
            self._begun[fork.seq] = self._origin(fork)
        return self._begun[fork.seq]

    def start(self, upto: int) -> State:
        """The latest kept state at or before a seq, else the one before the first record: where a fold begins."""
        kept = self._snapshots.nearest(upto) if self._snapshots is not None else None
        return kept or State(self.session)

    def _keep(self, state: State) -> None:
        self._checkpoints[state.seq] = state.copy()
        if len(self._checkpoints) > _CHECKPOINTS_KEPT:
            self._checkpoints.popitem(last=False)

    def _find_targets(self, asked_at: int) -> None:
        """Find each seq that is gone back to, and the states there: once, as many rollbacks as there may be."""
        if asked_at <= self._searched:
            return
        self._searched = self._goal
        named: dict[str, int] = {}
        targets: set[int] = set()
        for record in self._read(0, self._goal, (CheckpointTaken.TYPE, RolledBack.TYPE)):
            event = record.event
            if type(event) is CheckpointTaken:
                named[event.checkpoint_id] = checkpoint_target(event, record.seq)
            elif type(event) is RolledBack:
                target = go_back_target(event, named.get)
                if target is not None and 0 <= target < record.seq:
                    targets.add(target)
        self._collect(sorted(targets))

    def _find_charges(self, asked_at: int) -> None:
        """Find what each answer that is revised counted for: two passes over the answers, once."""
        if asked_at <= self._charged:
            return
        self._charged = self._goal
        revised: dict[str, list[tuple[int, Charge]]] = {}
        for record in self._read(0, self._goal, (ModelCallAnswered.TYPE,)):
            event = record.event
            if type(event) is ModelCallAnswered and event.revision > 0:
                revised[event.call_id] = []
        for record in self._read(0, self._goal, (ModelCallAnswered.TYPE,)) if revised else ():
            event = record.event
            if type(event) is ModelCallAnswered and event.call_id in revised:
                revised[event.call_id].append((record.seq, charge_of(event)))
        self._charges = revised

    def _collect(self, targets: list[int]) -> None:
        """Keep the states gone back to, earliest first: a later one may need an earlier."""
        state = State(self.session)
        for target in targets:
            kept = self.start(target)
            if kept.seq > state.seq:
                state = kept
            for _ in self.walk(state, target):
                pass
            self._wanted[target] = state.copy()
