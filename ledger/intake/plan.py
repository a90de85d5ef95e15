"""What one batch of items will write: who was recorded before, and what comes where."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.events import Draft, Record, Sibling
from ledger.intake.desk import Desk, Item
from ledger.store import EventStore, KeyRow, SourceKey

_SEQS_KEPT = 100_000
_SEEN_KEPT = 200_000


@dataclass
class Plan:
    """What one batch will write, made anew when another writer was first."""

    drafts: dict[str, list[Draft]] = field(default_factory=dict)
    """New drafts by session."""
    keys: list[SourceKey] = field(default_factory=list)
    """Identities of the source records that these come from, and claims."""
    placed: dict[bytes, SourceKey] = field(default_factory=dict)
    """Those of them that are no claims, by key."""
    claims: set[bytes] = field(default_factory=set)
    """Those that are claims."""
    counted: list[Item] = field(default_factory=list)
    """Items to count for the report."""
    seen: dict[bytes, None] = field(default_factory=dict)
    """Keys of these."""
    duplicates: int = 0
    """Items that the source held before."""
    dangling: list[tuple[int | None, str]] = field(default_factory=list)
    """Items whose cause was never seen."""


class Planner:
    """Says what a batch will write: looks up who was recorded before, and joins items to their causes."""

    def __init__(self, store: EventStore, desk: Desk, format_name: str) -> None:
        self._store = store
        self._desk = desk
        self._format = format_name
        self._seqs: OrderedDict[bytes, int] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def key(self, session: str, key: str) -> bytes:
        """What an item is found by."""
        return self._digest(f"{session}\0{key}")

    def claim_key(self, claim: str) -> bytes:
        """What a claim is found by."""
        return self._digest(f"\0{claim}")

    def _digest(self, identity: str) -> bytes:
        return hashlib.sha256(f"{self._format}\0{identity}".encode("utf-8", "surrogatepass")).digest()[:16]

    def plan(self, batch: list[tuple[Item, bytes]], foreseen: Mapping[bytes, KeyRow | None]) -> Plan:
        """What these items, each with its key, will write. `foreseen`: what the ledger said already about keys."""
        plan = Plan()
        known = self._store.known_keys([key for _, key in batch if key not in foreseen])
        for item, key in batch:
            check = _check(item.check)
            before = known.get(key) or foreseen.get(key) or plan.placed.get(key)
            if before is not None and before.check != check:
                # The same native id with other content is another record: nothing is dropped.
                key = self.key(item.session, f"{item.key}\0{check}")
                before = plan.placed.get(key) or self._store.known_keys([key]).get(key)
            if key in self._seen or key in plan.seen:
                plan.duplicates += 1
                continue
            plan.seen[key] = None
            plan.counted.append(item)
            if before is None:
                self._add(plan, item, key, check)
            elif isinstance(before, KeyRow):  # recorded by an earlier import, or from another file
                self._remember(key, before.seq)
                self._cause(plan, item)  # counts a dangling parent again
        return plan

    def _add(self, plan: Plan, item: Item, key: bytes, check: int) -> None:
        group = plan.drafts.setdefault(item.session, [])
        index = len(group) if item.drafts else len(group) - 1
        cause = self._cause(plan, item)
        plan.placed[key] = SourceKey(item.session, index, key, item.line or 0, check)
        plan.keys.append(plan.placed[key])
        if item.claim is not None:
            claim = self.claim_key(item.claim)
            if claim not in plan.claims and not self._store.known_keys([claim]):
                plan.claims.add(claim)
                plan.keys.append(SourceKey(item.session, index, claim, 0, self._desk.claim_of(item.session)))
        base = len(group)
        for draft in item.drafts:
            if isinstance(draft.cause, Sibling):
                draft = _caused(draft, Sibling(base + draft.cause.place))
            elif draft.cause is None and cause is not None:
                draft = _caused(draft, cause)
            group.append(draft)

    def _cause(self, plan: Plan, item: Item) -> int | Sibling | None:
        if item.cause is None:
            return None
        key = self.key(item.session, item.cause)
        if key in plan.placed:
            return Sibling(plan.placed[key].place)
        if key not in self._seqs:
            found = self._store.known_keys([key])
            if key not in found:
                plan.dangling.append((item.line, item.cause))
                return None
            self._remember(key, found[key].seq)
        return self._seqs[key] or None

    def settle(self, plan: Plan, records: list[Record]) -> None:
        """Remember and count what a batch that is written leaves behind."""
        first: dict[str, int] = {}
        for record in records:
            first.setdefault(record.session, record.seq)
        for row in plan.placed.values():
            if row.session in first:
                self._remember(row.key, first[row.session] + row.place)
        self._seen.update(plan.seen)
        while len(self._seen) > _SEEN_KEPT:
            self._seen.popitem(last=False)
        self._desk.tally.duplicates += plan.duplicates
        for line, parent in plan.dangling:
            self._desk.dangle(line, parent)
        for item in plan.counted:
            self._desk.count(item)

    def _remember(self, key: bytes, seq: int) -> None:
        self._seqs[key] = seq
        if len(self._seqs) > _SEQS_KEPT:
            self._seqs.popitem(last=False)


def _caused(draft: Draft, cause: int | Sibling) -> Draft:
    """The same draft with a cause. Written out, for it is done for every draft, and `replace` takes thrice as long."""
    return Draft(
        draft.event,
        draft.occurred_at,
        draft.actor,
        cause,
        draft.correlation,
        draft.agent,
        draft.depth,
        draft.source,
        draft.grade,
    )


def _check(content: bytes) -> int:
    """63 bits of SHA-256, so that every database holds it as an integer."""
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1 if content else 0
