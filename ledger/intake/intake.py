"""Takes items in batches to the recorder. What is in the ledger already, by whichever way it came, adds nothing."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

from ledger.errors import RecordNotFoundError
from ledger.events import Draft, Event, Record
from ledger.events.credential import SecretRedacted
from ledger.events.record import Grade
from ledger.intake.desk import Desk, Item, Known
from ledger.intake.plan import Plan, Planner
from ledger.recorder import Recorder
from ledger.store import KeyRow, KeysTakenError

_BATCH_ITEMS = 400
_BATCH_BYTES = 4 * 1024 * 1024
_CLAIMANTS_KEPT = 10_000
_FORESEEN_KEPT = 20_000


class Intake:
    """The way into the ledger for the records of one source. For one thread."""

    def __init__(
        self,
        recorder: Recorder,
        format_name: str,
        grade: Grade,
        *,
        name: str,
        path: Path,
        durable: bool = False,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """`name` and `path` of the source; `durable`: every commit survives the death of the machine.

        `written` is called after each batch that filled up.
        """
        self._recorder = recorder
        self._grade = grade
        self._durable = durable
        self._written = written
        self._keeper = recorder.keeper()
        self._batch: list[tuple[Item, bytes]] = []
        self._batch_bytes = 0
        self._claims: set[str] = set()
        self._foreseen: dict[bytes, KeyRow | None] = {}
        self._claimants: OrderedDict[int, str] = OrderedDict()
        self._findings: list[SecretRedacted] = []
        self.desk = Desk(
            self._keeper,
            name,
            path,
            lookup=self._lookup,
            recall=self._recall,
            recorded=self._recorded,
            claimed=self._claimed,
            foresee=self._foresee,
        )
        """Where content is kept and things are counted."""
        self.added = 0
        """Records that were written."""
        self._planner = Planner(recorder.store, self.desk, format_name)

    def take(self, item: Item) -> None:
        """Take an item in. It is written when its batch is full, or by `commit`."""
        item.session = self.desk.session_name(item.session)
        key = self._planner.key(item.session, item.key)
        self._take_findings()
        if item.drafts and self._findings:
            item.drafts.extend(Draft(finding, grade=self._grade) for finding in self._findings)
            self._findings = []
        self._batch.append((item, key))
        if item.claim is not None:
            self._claims.add(item.claim)
        self._batch_bytes += len(item.check)
        if (
            len(self._batch) >= _BATCH_ITEMS
            or self._keeper.staged_bytes >= _BATCH_BYTES
            or self._batch_bytes >= 4 * _BATCH_BYTES
        ):
            self._flush(between_items=True)
            self._written()

    def commit(self) -> None:
        """Write what was taken in, and forget what was foreseen."""
        self._flush(between_items=True)
        self._foreseen.clear()

    def close_with(self, session: str, draft: Draft) -> int:
        """Commit, then add a record about the whole, with secrets that no item had room for; gives how many."""
        self.commit()
        self._take_findings()
        findings = [Draft(finding, grade=self._grade) for finding in self._findings]
        self._findings = []
        return len(self._recorder.append(session, [draft, *findings], self._keeper))

    def _take_findings(self) -> None:
        for finding in self._keeper.take_findings():
            self.desk.tally.secrets[finding.kind] += finding.count
            self._findings.append(finding)

    def _lookup(self, session: str, key: str) -> Known | None:
        self._flush(between_items=False)
        name = self._planner.key(session, key)
        row = self._recorder.store.known_keys([name]).get(name)
        return None if row is None else Known(row.seq, row.line)

    def _recall(self, session: str, key: str, place: int) -> Event | None:
        known = self._lookup(session, key)
        try:
            return None if known is None else self._recorder.store.record(session, known.seq + place).event
        except RecordNotFoundError:
            return None

    def _recorded(self, session: str, key: str) -> bool:
        return self._row(self._planner.key(session, key)) is not None

    def _claimed(self, claim: str) -> str | None:
        if claim in self._claims:
            self._flush(between_items=False)
        row = self._row(self._planner.claim_key(claim))
        if row is None:
            return None
        if row.check not in self._claimants:
            sessions = self._recorder.store.sessions()
            found = next((session for session in sessions if self.desk.claim_of(session) == row.check), None)
            if found is None:
                return None
            self._claimants[row.check] = found
            if len(self._claimants) > _CLAIMANTS_KEPT:
                self._claimants.popitem(last=False)
        return self._claimants[row.check]

    def _foresee(self, items: Iterable[tuple[str, str]], claims: Iterable[str]) -> None:
        names = [self._planner.key(session, key) for session, key in items]
        names.extend(self._planner.claim_key(claim) for claim in claims)
        found = self._recorder.store.known_keys(names)
        for name in names:
            self._foreseen[name] = found.get(name)

    def _row(self, name: bytes) -> KeyRow | None:
        """What the ledger holds by a key. Another process may have been faster: the append will find out."""
        if name not in self._foreseen:
            self._foreseen[name] = self._recorder.store.known_keys([name]).get(name)
        return self._foreseen[name]

    def _flush(self, *, between_items: bool) -> None:
        while self._batch:
            plan = self._planner.plan(self._batch, self._foreseen)
            try:
                records = self._write(plan, between_items)
            except KeysTakenError:
                self._foreseen.clear()  # another writer of the same source was first; look again at what is new
                continue
            self._batch, self._batch_bytes = [], 0
            self._claims.clear()
            for row in plan.keys:
                self._foreseen.pop(row.key, None)
            if len(self._foreseen) > _FORESEEN_KEPT:
                self._foreseen.clear()
            self.added += len(records)
            self._planner.settle(plan, records)

    def _write(self, plan: Plan, between_items: bool) -> list[Record]:
        if not plan.keys:
            if between_items:  # an importer that looks something up may have staged half of its next item
                recorder = self._recorder.store.recorder
                self._keeper.known(lambda node: recorder.get_node(node) is not None)
            return []
        return self._recorder.append_many(plan.drafts, self._keeper, keys=plan.keys, durable=self._durable)
