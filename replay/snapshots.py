"""States kept beside the ledger, so that a far one need not be folded from the beginning."""

import zlib
from typing import Any
from weakref import WeakValueDictionary

from ledger.errors import LedgerError
from ledger.events.canonical import canonical_json, decode_json
from ledger.store import EventStore
from ledger.views.snapshots import Snapshot, SnapshotFile
from replay.said import Item, Link, Pack, Tail, pack_name, packed, packs_of, split, texts_of
from replay.state import FOLD_VERSION, PLACES, State

INTERVAL = 500
"""Records between two snapshots of a small state."""

_BYTES_PER_RECORD = 100
_WHOLE = b"{"  # what a state begins with that is kept as it is
_PACKED = 256  # messages that are better packed than read one by one
_packs: "WeakValueDictionary[bytes, Pack]" = WeakValueDictionary()
"""Those in use, by name: states of one session share most of theirs."""


class StateSnapshots:
    """The snapshots of one session, bound to its records: one of another history is not used."""

    def __init__(
        self,
        file: SnapshotFile,
        store: EventStore,
        session: str,
        interval: int = INTERVAL,
        least: int = _PACKED,
    ) -> None:
        self._file = file
        self._store = store
        self._session = session
        self._interval = interval
        self._least = least
        self._next = interval
        self._last_kept: Pack | None = None

    def of(self, session: str) -> "StateSnapshots":
        """Those of another session, in the same file."""
        return StateSnapshots(self._file, self._store, session, self._interval, self._least)

    def nearest(self, seq: int) -> State | None:
        """The latest kept state at or before a seq whose record is still the one that it was made after."""
        found = self._file.nearest(self._session, FOLD_VERSION, seq)
        while found is not None:
            state = self._state(found)
            if state is not None:
                self._last_kept = next(packs_of(state.tail), None)
                self._plan(state.seq, len(found.body))
                return state
            found = self._file.nearest(self._session, FOLD_VERSION, found.seq - 1)
        self._next = self._interval
        return None

    def offer(self, state: State, record_hash: str) -> None:
        """Keep the state when enough records came since the last one."""
        if state.seq < self._next:
            return
        if len(split(state.tail)[1]) >= self._least:
            state.tail = packed(state.tail)
        body = self._kept(state)
        self._file.put(self._session, FOLD_VERSION, Snapshot(state.seq, record_hash, body))
        self._plan(state.seq, len(body))

    def _plan(self, seq: int, size_bytes: int) -> None:
        # A large state is kept less often, so that all snapshots together stay in proportion to the session.
        self._next = seq + max(self._interval, size_bytes // _BYTES_PER_RECORD)

    def _kept(self, state: State) -> bytes:
        """A state as it is kept: small, for what was said long ago is in packs that all later snapshots share."""
        pack, items = split(state.tail)
        for one in packs_of(pack):
            if one is self._last_kept:
                break
            _packs[one.name] = one
            self._file.put_piece(one.name, one.before.name if one.before is not None else b"", one.body)
        self._last_kept = pack
        tail = {
            "pack": pack.name.hex() if pack is not None else None,
            "items": [list(item) for item in items],
        }
        return zlib.compress(_encoded(state, tail), 1)

    def _state(self, found: Snapshot) -> State | None:
        try:
            if self._store.record(self._session, found.seq).hash != found.record_hash:
                return None
            if found.body.startswith(_WHOLE):
                return decode_state(self._session, found.body)
            form: dict[str, Any] = decode_json(zlib.decompress(found.body))
            name = form["tail"]["pack"]
            tail: Tail = None if name is None else self._pack(bytes.fromhex(name))
            for item in form["tail"]["items"]:
                tail = Link(tail, *Item(*item))
            return _decoded(self._session, form, tail)
        except (LedgerError, ValueError, TypeError, KeyError, zlib.error):
            return None

    def _pack(self, name: bytes) -> Pack:
        """A pack and all before it. Raises KeyError where one of them is not whole."""
        bodies: list[bytes] = []
        known: Pack | None = None
        while name:
            known = _packs.get(name)
            if known is not None:
                break
            piece = self._file.piece(name)
            if piece is None or pack_name(*piece) != name:
                raise KeyError(name)
            bodies.append(piece.body)
            name = piece.before
        for body in reversed(bodies):
            known = Pack(known, body)
            _packs[known.name] = known
        assert known is not None
        return known


def encode_state(state: State) -> bytes:
    """A state as bytes, whole. Sections are lists of pairs: their order is part of what the fold remembers."""
    return _encoded(state, decode_json(b"[" + b",".join(texts_of(state.tail)) + b"]"))


def decode_state(session: str, body: bytes) -> State:
    """The state that was encoded. Raises ValueError, TypeError or KeyError for bytes that are none."""
    form: dict[str, Any] = decode_json(body)
    items = [Item(*item) for item in form["tail"]]
    return _decoded(session, form, Pack.of(None, items) if items else None)


def _encoded(state: State, tail: Any) -> bytes:
    sections = {name: list(map(list, entries.items())) for name, entries in state.sections.items()}
    return canonical_json({"seq": state.seq, "node": state.node, "tail": tail, "sections": sections})


def _decoded(session: str, form: dict[str, Any], tail: Tail) -> State:
    state = State(session)
    state.seq, state.node, state.tail = form["seq"], form["node"], tail
    state.sections = {name: dict(form["sections"][name]) for name in PLACES}
    return state
