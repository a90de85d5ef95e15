"""States that somebody just looked at, kept in memory: the next one is mostly near one of them, or the same again."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from ledger.home import Ledger
from ledger.views.snapshots import SnapshotFile
from replay.conversation import Messages, messages_of
from replay.snapshots import StateSnapshots
from replay.state import State
from replay.timeline import Snapshots, session_timeline

_REMEMBERED = 8
_NEAR = 500  # records that are folded as fast as a snapshot is read


class Standing(NamedTuple):
    """How a session stood after a record. Shared: whoever reads it changes nothing in it."""

    state: State
    """The state."""
    digest: str
    """Its digest."""
    messages: Messages
    """The messages of its conversation."""


class States:
    """The states of one ledger's sessions. Threads may share it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._changed = threading.Lock()
        self._known: OrderedDict[tuple[str, int], Standing] = OrderedDict()

    def at(self, session: str, seq: int) -> Standing:
        """The state after a record; 0 is before the first. Raises RecordNotFoundError."""
        with self._changed:
            known = self._known.get((session, seq))
            if known is not None:
                self._known.move_to_end((session, seq))
                return known
        store = self._ledger.store
        with SnapshotFile(self._ledger.home / "views" / "snapshots.sqlite", store.salt) as file:
            near = _Near(self, session, StateSnapshots(file, store, session))
            state = session_timeline(store, session, near).at(seq)
        standing = Standing(state, state.digest(), messages_of(store, state))
        with self._changed:
            self._known[session, seq] = standing
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return standing

    def near(self, session: str, seq: int) -> State | None:
        """A copy of a state that is known, not far before a record."""
        with self._changed:
            before = [place for name, place in self._known if name == session and seq - _NEAR < place <= seq]
            return self._known[session, max(before)].state.copy() if before else None


class _Near:
    """Snapshots of one session: those in memory, where one is near, else those in the file."""

    def __init__(self, states: States, session: str, kept: StateSnapshots) -> None:
        self._states = states
        self._session = session
        self._kept = kept
        self._is_from_memory = False

    def nearest(self, seq: int) -> State | None:
        """The latest known state at or before a record."""
        state = self._states.near(self._session, seq)
        self._is_from_memory = state is not None
        return state or self._kept.nearest(seq)

    def offer(self, state: State, record_hash: str) -> None:
        """Keep it in the file when it is time; on the short way from a state in memory it never is."""
        if not self._is_from_memory:
            self._kept.offer(state, record_hash)

    def of(self, session: str) -> Snapshots:
        """Those of another session."""
        return _Near(self._states, session, self._kept.of(session))
