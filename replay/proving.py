"""The levels `state` and `request`: proved from the ledger alone, nothing runs. Memory stays bounded."""

from collections import OrderedDict
from collections.abc import Callable

from ledger.errors import ContentMissingError, LedgerError, RecordDamagedError, UnknownEventError
from ledger.events import Record
from ledger.events.model_call import ModelCallRequested
from ledger.store import EventStore
from ledger.store.content import NodeRow, content_digest
from replay.context import rebuild_request
from replay.divergence import Divergence, Side, differences
from replay.fold import advance
from replay.raw import raw_matches, raw_request
from replay.report import Report, RequestMatch, Unchecked
from replay.said import Link, Tail, texts_of
from replay.snapshots import decode_state, encode_state
from replay.state import State, Trail
from replay.timeline import Timeline, session_timeline

INTERVALS = (97, 1000)
"""Records between two snapshots of each of the folds that go by snapshots."""

_BYTES_PER_RECORD = 100
_VERIFIED_KEPT = 100_000

Tell = Callable[[int], None]


class _Touched(Trail):
    """Only which entries a record touched."""

    def __init__(self) -> None:
        super().__init__()
        self.touched: set[tuple[str, str]] = set()

    def note(self, state: State, section: str, key: str) -> None:
        """An entry is about to be changed."""
        self.touched.add((section, key))

    def close(self, state: State) -> None:
        """A record was folded."""
        self.said.clear()
        self.bases.clear()


class _BySnapshots:
    """A fold that forgets itself at each interval and goes on from its own snapshot."""

    def __init__(self, session: str, interval: int, past: Timeline) -> None:
        self.state = State(session)
        self.taken = 0
        self._interval = interval
        self._next = interval
        self._past = past

    def move(self, record: Record) -> None:
        advance(self.state, record, self._past)
        if record.seq >= self._next:
            body = encode_state(self.state)
            self.state = decode_state(record.session, body)
            self.taken += 1
            # As a ledger's own snapshots: a large state is taken less often.
            self._next = record.seq + max(self._interval, len(body) // _BYTES_PER_RECORD)


def prove_states(store: EventStore, session: str, tell: Tell = lambda seq: None) -> Report:
    """Fold twice from zero and by snapshots, in step: after every record all must be in the same state.

    Entries that no record touches cannot differ if they did not before, so a step compares what it touched, and the
    whole, by digest, wherever a snapshot was taken and at the end.
    """
    report = Report(session, "state")
    first, second = (session_timeline(store, session) for _ in range(2))
    one, two = State(session), State(session)
    one.trail, two.trail = _Touched(), _Touched()
    others = [_BySnapshots(session, interval, second) for interval in INTERVALS]
    taken = [0 for _ in others]
    tails: tuple[Tail, Tail] = (None, None)
    try:
        for record, _ in zip(first.walk(one, first.head), second.walk(two, second.head), strict=True):
            touched = one.trail.touched | two.trail.touched
            same = all(one.sections[name].get(key) == two.sections[name].get(key) for name, key in touched)
            if not same or one.node != two.node or not _same_tail(one.tail, two.tail, tails):
                report.divergence = _other_state(session, record.seq, one, two, "a second fold from zero")
                break
            tails = (one.tail, two.tail)
            one.trail.touched.clear()
            two.trail.touched.clear()
            for index, other in enumerate(others):
                other.move(record)
                if other.taken > taken[index]:
                    taken[index] = other.taken
                    whole = other.state.digest() == one.digest()
                else:
                    whole = all(
                        one.sections[name].get(key) == other.state.sections[name].get(key)
                        for name, key in touched
                    )
                if not whole:
                    how = f"a fold by snapshots every {INTERVALS[index]} records"
                    report.divergence = _other_state(session, record.seq, one, other.state, how)
                    break
            if report.divergence is not None:
                break
            tell(record.seq)
    except (RecordDamagedError, UnknownEventError) as error:
        seq = min(one.seq, two.seq) + 1
        report.divergence = Divergence(
            "damaged_range",
            session,
            seq,
            None,
            Side(session, seq),
            cause=f"{error}; `loopledger verify` names all",
        )
    if report.divergence is None:
        for index, other in enumerate(others):
            if other.state.digest() != one.digest():
                how = f"a fold by snapshots every {INTERVALS[index]} records"
                report.divergence = _other_state(session, one.seq, one, other.state, how)
    report.facts = {
        "states": one.seq,
        "snapshots": sum(taken),
        "digest": one.digest() if report.divergence is None else None,
    }
    return report


def _same_tail(left: Tail, right: Tail, known: tuple[Tail, Tail]) -> bool:
    """Whether two conversations are equal, knowing a pair that is."""
    while isinstance(left, Link) and isinstance(right, Link):
        if left is known[0] and right is known[1]:
            return True
        if left[1:] != right[1:]:
            return False
        left, right = left.before, right.before
    return b",".join(texts_of(left)) == b",".join(texts_of(right))


def _other_state(session: str, seq: int, one: State, other: State, how: str) -> Divergence:
    found = differences(one.as_json(), other.as_json())
    first = found[0] if found else None
    return Divergence(
        "projector",
        session,
        seq,
        first.pointer if first else None,
        Side(session, seq, one.digest(), first.recorded if first else None),
        Side(session, seq, other.digest(), first.replayed if first else None),
        f"{how} gives another state for the same records",
        tuple(found),
    )


def prove_requests(store: EventStore, session: str, tell: Tell = lambda seq: None) -> Report:
    """Rebuild every model request and compare it with what was recorded: bytes, body, or messages."""
    report = Report(session, "request")
    checker = _Requests(store)
    try:
        for record in store.read(session):
            tell(record.seq)
            if isinstance(record.event, ModelCallRequested):
                checker.check(record, record.event, report)
                if report.divergence is not None:
                    break
    except (RecordDamagedError, UnknownEventError) as error:
        report.divergence = Divergence("damaged_range", session, None, cause=str(error))
    reasons: dict[str, int] = {}
    for one in report.unchecked:
        reasons[one.reason] = reasons.get(one.reason, 0) + 1
    report.facts = {
        "bodies_equal": checker.bodies,
        "messages_equal": checker.messages,
        "raw_bytes_equal": checker.raw,
        "not_checked": reasons,
    }
    return report


class _Requests:
    """Checks one request after another."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._verified: OrderedDict[str, None] = OrderedDict()
        self._proven: OrderedDict[bytes, int] = OrderedDict()
        self.bodies = self.messages = self.raw = 0

    def check(self, record: Record, event: ModelCallRequested, report: Report) -> None:
        """Compare a request with its record."""
        try:
            if event.body_digest is not None:
                self._body(record, event, report)
            elif event.completeness == "none" or (event.context is None and event.context_length == 0):
                report.unchecked.append(Unchecked(record.seq, "its source did not show it"))
            else:
                self._messages(record, event, report)
            self._bytes(record, event, report)
        except ContentMissingError as error:
            report.unchecked.append(
                Unchecked(record.seq, f"erased or lost: {error.what.partition(' of ')[0]}")
            )
        except (RecordDamagedError, UnknownEventError):
            raise
        except LedgerError as error:
            where = Side(record.session, record.seq, event.body_digest)
            report.divergence = Divergence(
                "damaged_range", record.session, record.seq, None, where, cause=str(error)
            )

    def _body(self, record: Record, event: ModelCallRequested, report: Report) -> None:
        rebuilt = rebuild_request(self._store, record.session, record.seq)
        if rebuilt.body_matches:
            self.bodies += 1
            report.add(RequestMatch(record.seq, "raw", (), "recorded", event.purpose))
            return
        report.add(RequestMatch(record.seq, "miss", (), "recorded", event.purpose))
        report.divergence = Divergence(
            "request",
            record.session,
            record.seq,
            "",
            Side(record.session, record.seq, event.body_digest),
            Side(record.session, record.seq),
            "the rebuilt body does not have the digest that was recorded; `loopledger verify` names changed content",
        )

    def _messages(self, record: Record, event: ModelCallRequested, report: Report) -> None:
        """Each message is the one that was recorded, and there are as many: all that such a source can prove."""
        digests: list[str] = []
        wrong = None
        if event.context is None or self._depth(event.context) != event.context_length:
            digests = self._store.context(event.context) if event.context is not None else []
            wrong = next((index for index, digest in enumerate(digests) if not self._is_kept(digest)), None)
            if wrong is None and len(digests) != event.context_length:
                wrong = min(len(digests), event.context_length)
        if wrong is None:
            self.messages += 1
            rules = tuple(f"not-seen: {part}" for part in event.not_seen) or ("messages-only",)
            report.add(RequestMatch(record.seq, "canonical", rules, "recorded", event.purpose))
            return
        report.add(RequestMatch(record.seq, "miss", (), "recorded", event.purpose))
        where = Side(record.session, record.seq, digests[wrong] if wrong < len(digests) else None)
        cause = f"message {wrong} is not as recorded: {event.context_length} messages were, {len(digests)} are there"
        report.divergence = Divergence(
            "request", record.session, record.seq, f"/messages/{wrong}", where, cause=cause
        )

    def _bytes(self, record: Record, event: ModelCallRequested, report: Report) -> None:
        if event.raw is None or report.divergence is not None:
            return
        if raw_matches(self._store, event, raw_request(self._store, event)):
            self.raw += 1
        elif event.raw_digest is not None:
            where = Side(record.session, record.seq, event.raw_digest)
            cause = "the rebuilt bytes do not have the digest of those that were sent"
            report.divergence = Divergence("request", record.session, record.seq, "", where, cause=cause)

    def _depth(self, context: str) -> int | None:
        """Messages of a context that are all as recorded, from the last back to one proven before; None where not.

        A conversation that grows by a message a call is so proven in its length, not in its square.
        """
        steps: list[NodeRow] = []
        node: bytes | None = bytes.fromhex(context)
        while node is not None and node not in self._proven:
            row = self._store.recorder.get_node(node)
            if row is None or not self._is_kept(row.message.hex()):
                return None
            steps.append(row)
            node = row.parent
        depth = 0 if node is None else self._proven[node]
        for row in reversed(steps):
            depth += 1
            if row.depth != depth:
                return None
            self._proven[row.node] = depth
        while len(self._proven) > _VERIFIED_KEPT:
            self._proven.popitem(last=False)
        return depth

    def _is_kept(self, digest: str) -> bool:
        if digest in self._verified:
            return True
        if content_digest(self._store.salt, self._store.content(digest)).hex() != digest:
            return False
        self._verified[digest] = None
        if len(self._verified) > _VERIFIED_KEPT:
            self._verified.popitem(last=False)
        return True
