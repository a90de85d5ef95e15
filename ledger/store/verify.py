"""Reads the whole ledger as bytes and names each kind of damage. Must not trust a record, an index or a class."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ledger.store.content_check import ContentCheck, Problem, ProblemKind
from ledger.store.event_store import EventStore
from ledger.store.mapper import GENESIS, record_hash
from ledger.store.rows import ScanRow

_CHUNK = 500
_PROBLEMS_LISTED = 10_000
_GAPS_LISTED = 100
_LOWEST_SEQ = -(2**63)
_NOTHING: Any = (None,) * 6


@dataclass
class Verification:
    """Result of `verify`."""

    records: int = 0
    """Records that were checked."""

    sessions: int = 0
    """Sessions that they belong to."""

    source_keys: int = 0
    """Source keys that were checked, of the whole ledger only."""

    problems: list[Problem] = field(default_factory=list)
    """What is wrong, the first ten thousand."""

    unlisted: int = 0
    """Problems beyond those."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    store: EventStore, session: str | None = None, *, progress: Callable[[int], None] = lambda records: None
) -> Verification:
    """Check records, links, blobs and context nodes: of one session, or of the ledger. Memory stays bounded.

    What a person with the database alone can do unseen: cut off the ledger's last records, append lawfully, change
    the order between sessions, or rewrite everything after a point. A seal kept elsewhere shows these.
    """
    return _Verifier(store, session, progress).run()


class _Verifier:
    def __init__(self, store: EventStore, session: str | None, progress: Callable[[int], None]) -> None:
        self._recorder = store.recorder
        self._session = session
        self._progress = progress
        self._result = Verification()
        self._content = ContentCheck(store.recorder, store.salt, self._report)
        self._count = self._highest = self._reached = 0

    def run(self) -> Verification:
        result = self._result
        self._count_positions()
        chain: _Chain | None = None
        for row, detail in self._rows():
            if chain is None or row.key_session != chain.session:
                chain = _Chain(row.key_session)
                result.sessions += 1
            self._row(chain, row, detail)
            result.records += 1
            if result.records % _CHUNK == 0:
                self._progress(result.records)
        self._content.flush()
        if self._session is None:
            if self._reached != self._count:
                detail = f"{self._count} records are stored, {self._reached} can be reached"
                self._report("storage_damaged", None, None, detail)
            self._content.check_the_rest()
            self._check_keys()
            for complaint in self._recorder.check_storage():
                self._report("storage_damaged", None, None, complaint)
        return result

    def _report(self, kind: ProblemKind, session: Any, seq: Any, detail: str) -> None:
        """Note a problem. In a damaged database, even a session or a seq may be of any type."""
        if len(self._result.problems) >= _PROBLEMS_LISTED:
            self._result.unlisted += 1
            return
        named = session if session is None or isinstance(session, str) else repr(session)
        self._result.problems.append(Problem(kind, named, seq if isinstance(seq, int) else None, detail))

    def _check_keys(self) -> None:
        """What tells a second import what is there already. A key does not say its session: its seq must be of one."""
        try:
            self._result.source_keys, strange = self._recorder.check_keys(_GAPS_LISTED)
        except Exception as error:  # noqa: BLE001
            self._report("storage_damaged", None, None, f"the source keys cannot be read: {error}")
            return
        for key, seq in strange:
            named = key.hex() if isinstance(key, bytes) else repr(key)
            detail = f"source key {named} names seq {seq!r}, which no session has"
            self._report("source_key_wrong", None, None, detail)

    # -- rows -----------------------------------------------------------------------------------------------

    def _rows(self) -> Iterator[tuple[ScanRow, str]]:
        """Rows in the order of session and seq; with its own words those that the database cannot read."""
        session: Any = self._session or ""
        seq: Any = _LOWEST_SEQ
        size = _CHUNK
        while True:
            try:
                rows = self._recorder.scan(session, seq, size)
            except Exception as error:  # noqa: BLE001 - whatever the driver raises on damaged files
                if size > 1:
                    size = 1  # go on row by row to find the damaged one
                    continue
                key = self._next_key(session, seq)
                if key is None:
                    return
                detail = f"the database cannot read it: {error}"
                rows = [ScanRow(*key, *_NOTHING)]
                size = _CHUNK
            else:
                detail = "a column is gone or has another type than it was written with"
            if not rows:
                return
            for row in rows:
                if self._session is not None and row.key_session != self._session:
                    return
                if not _follows((row.key_session, row.key_seq), (session, seq)):
                    detail = (
                        "the index of the records is not in order: what comes after cannot be found by it"
                    )
                    self._report("storage_damaged", row.key_session, row.key_seq, detail)
                    return
                session, seq = row.key_session, row.key_seq
                yield row, detail

    def _next_key(self, session: Any, seq: Any) -> tuple[Any, Any] | None:
        """Where the row after this place stands in the index; None when there is no way on."""
        try:
            return self._recorder.next_key(session, seq)
        except Exception as error:  # noqa: BLE001
            self._report("storage_damaged", None, None, f"the index of the records cannot be read: {error}")
            return None

    def _row(self, chain: "_Chain", row: ScanRow, detail: str) -> None:
        session, seq = row.key_session, row.key_seq
        may_be_any_type: Any = seq
        types = (row.key_session, row.key_seq, row.position, row.name, row.state, row.hash)
        if not all(isinstance(*pair) for pair in zip(types, (str, int, int, str, bytes, bytes), strict=True)):
            chain.accepted = ()
            chain.seq = may_be_any_type if isinstance(may_be_any_type, int) else chain.seq
            self._reached += 1
            self._report("record_unreadable", session, seq, detail)
            return
        if (row.session, row.seq) != (session, seq):
            detail = f"the index has it here, its own row says {row.session!r}#{row.seq!r}"
            self._report("record_changed", session, seq, detail)
        if seq == chain.seq or seq < 1:
            detail = "it stands here a second time" if seq == chain.seq else "the first seq is 1"
            self._report("seq_changed", session, seq, detail)
        elif seq != chain.seq + 1:
            gap = f"#{chain.seq + 1}" if seq == chain.seq + 2 else f"#{chain.seq + 1} to #{seq - 1}"
            self._report("seq_missing", session, chain.seq + 1, f"{session}{gap} not there")
            chain.accepted = ()
        chain.seq = max(seq, 0)
        self._position(chain, row)
        self._record(chain, row)

    def _record(self, chain: "_Chain", row: ScanRow) -> None:
        """Check one record and its link; from then on the chain accepts what may follow it."""
        session, seq, accepted = row.key_session, row.key_seq, chain.accepted
        actual = record_hash(session, seq, row.name, row.state)
        chain.accepted = (row.hash, actual)
        if actual != row.hash:
            detail = f"its bytes hash to {actual.hex()}, not to {row.hash.hex()}"
            self._report("record_changed", session, seq, detail)
        try:
            fields = json.loads(row.state)
            named = bytes.fromhex(fields["prev"])
            if accepted and named not in accepted:
                detail = f"it follows {named.hex()}, the record before is {accepted[0].hex()}"
                self._report("chain_broken", session, seq, detail)
            if actual == row.hash:
                self._content.check_references(session, seq, fields)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._report("record_unreadable", session, seq, f"its bytes are not a record: {error!r}")

    # -- positions ------------------------------------------------------------------------------------------

    def _count_positions(self) -> None:
        """Positions run from 1 without holes, up to what was there when the verification began."""
        try:
            self._count, lowest, self._highest = self._recorder.count_positions()
        except Exception as error:  # noqa: BLE001
            self._report("storage_damaged", None, None, f"the records cannot be counted: {error}")
            return
        if self._count == 0 or (lowest == 1 and self._highest == self._count):
            return
        gaps = self._recorder.find_gaps(_GAPS_LISTED)
        for first, last in gaps:
            places = f"position {first} is" if first == last else f"positions {first} to {last} are"
            self._report("position_missing", None, None, f"{places} gone")
        if not gaps or len(gaps) == _GAPS_LISTED:
            detail = f"{self._count} records have positions from {lowest} to {self._highest}"
            self._report("position_missing", None, None, detail)

    def _position(self, chain: "_Chain", row: ScanRow) -> None:
        position = row.position
        if position <= self._highest:
            self._reached += 1
        if position <= chain.position:
            detail = f"its position is {position}, that of the record before it {chain.position}"
            self._report("position_changed", row.key_session, row.key_seq, detail)
        chain.position = position


@dataclass
class _Chain:
    """What is known of a session up to here."""

    session: Any
    seq: int = 0
    position: int = 0
    accepted: tuple[bytes, ...] = (GENESIS,)
    """Hashes that the next record may name; empty when the record before is gone, which has been said."""


def _follows(key: tuple[Any, Any], before: tuple[Any, Any]) -> bool:
    """Whether the walk goes on: a damaged index could lead it in a circle."""
    session, seq = key
    session_before, seq_before = before
    if type(session) is not type(session_before):
        return not isinstance(session, str)  # databases sort other types behind texts
    if session != session_before:
        encoded = [each.encode() if isinstance(each, str) else each for each in (session, session_before)]
        return bool(encoded[0] > encoded[1])
    if type(seq) is not type(seq_before):
        return isinstance(seq_before, int | float)
    return bool(seq >= seq_before)  # equal: a record that stands there twice


__all__ = ["Problem", "ProblemKind", "Verification", "verify"]
