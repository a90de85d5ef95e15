"""States kept beside the ledger, so that a far one need not be folded from the beginning."""

from typing import Any

from ledger.errors import LedgerError
from ledger.events.canonical import canonical_json, decode_json
from ledger.store import EventStore
from ledger.views.snapshots import Snapshot, SnapshotFile
from replay.state import FOLD_VERSION, PLACES, Link, State

INTERVAL = 1000
"""Records between two snapshots of a small state."""

_BYTES_PER_RECORD = 100
_DIGEST_LENGTH = 64
_ROLES = {"user": "u", "assistant": "a", "tool": "t"}
_KINDS = {"json": "j", "text": "t", "bytes": "b"}


class StateSnapshots:
    """The snapshots of one session, bound to its records: one of another history is not used."""

    def __init__(self, file: SnapshotFile, store: EventStore, session: str, interval: int = INTERVAL) -> None:
        self._file = file
        self._store = store
        self._session = session
        self._interval = interval
        self._next = interval

    def of(self, session: str) -> "StateSnapshots":
        """Those of another session, in the same file."""
        return StateSnapshots(self._file, self._store, session, self._interval)

    def nearest(self, seq: int) -> State | None:
        """The latest kept state at or before a seq whose record is still the one that it was made after."""
        found = self._file.nearest(self._session, FOLD_VERSION, seq)
        while found is not None:
            state = self._state(found)
            if state is not None:
                self._plan(state.seq, len(found.body))
                return state
            found = self._file.nearest(self._session, FOLD_VERSION, found.seq - 1)
        self._next = self._interval
        return None

    def offer(self, state: State, record_hash: str) -> None:
        """Keep the state when enough records came since the last one."""
        if state.seq < self._next:
            return
        body = encode_state(state)
        self._file.put(self._session, FOLD_VERSION, Snapshot(state.seq, record_hash, body))
        self._plan(state.seq, len(body))

    def _plan(self, seq: int, size_bytes: int) -> None:
        # A large state is kept less often, so that all snapshots together stay in proportion to the session.
        self._next = seq + max(self._interval, size_bytes // _BYTES_PER_RECORD)

    def _state(self, found: Snapshot) -> State | None:
        try:
            if self._store.record(self._session, found.seq).hash != found.record_hash:
                return None
            return decode_state(self._session, found.body)
        except (LedgerError, ValueError, TypeError, KeyError):
            return None


def encode_state(state: State) -> bytes:
    """A state as bytes. Sections are lists of pairs: their order is part of what the fold remembers."""
    links = []
    link = state.tail
    while link is not None:
        links.append(link)
        link = link.before
    links.reverse()
    tail = {
        "roles": "".join(_ROLES[link.role] for link in links),
        "kinds": "".join(_KINDS[link.kind] for link in links),
        "digests": "".join(link.digest for link in links),
        "call_ids": [[index, link.call_id] for index, link in enumerate(links) if link.call_id is not None],
    }
    sections = {name: list(map(list, entries.items())) for name, entries in state.sections.items()}
    return canonical_json({"seq": state.seq, "node": state.node, "tail": tail, "sections": sections})


def decode_state(session: str, body: bytes) -> State:
    """The state that was encoded. Raises ValueError, TypeError or KeyError for bytes that are none."""
    form: dict[str, Any] = decode_json(body)
    state = State(session)
    state.seq, state.node = form["seq"], form["node"]
    tail = form["tail"]
    call_ids = dict(tail["call_ids"])
    roles = {letter: role for role, letter in _ROLES.items()}
    kinds = {letter: kind for kind, letter in _KINDS.items()}
    for index, (role, kind) in enumerate(zip(tail["roles"], tail["kinds"], strict=True)):
        digest = tail["digests"][index * _DIGEST_LENGTH : (index + 1) * _DIGEST_LENGTH]
        state.tail = Link(state.tail, roles[role], digest, kinds[kind], call_ids.get(index))
    state.sections = {name: dict(form["sections"][name]) for name in PLACES}
    return state
