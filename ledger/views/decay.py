"""Governance decay in a ledger: worked out for its sessions, and kept as events where queries ask for it."""

from collections.abc import Callable, Collection, Iterable, Sequence

from ledger.audit.decay import DecayWatch, SessionDecay
from ledger.audit.decay.outcome import Sighting
from ledger.audit.decay.watching import READS
from ledger.effects.constraints import Constraint
from ledger.errors import ConflictError
from ledger.events import Actor, Draft
from ledger.events.visibility import ConstraintSeen
from ledger.recorder import Recorder
from ledger.store import EventStore
from ledger.views.findings import reader_of

_NAMES = tuple(event.TYPE for event in READS)
_ACTOR = "decay"


def decays(
    store: EventStore,
    sessions: Collection[str] | None = None,
    declared: Sequence[Constraint] = (),
    *,
    finds: bool = True,
) -> list[SessionDecay]:
    """What became of the rules of some sessions, or of all. `declared` are in force from the start of each."""
    wanted = sorted(sessions) if sessions is not None else sorted(store.sessions())
    return [decay_of(store, session, declared, finds=finds) for session in wanted]


def decay_of(
    store: EventStore,
    session: str,
    declared: Sequence[Constraint] = (),
    *,
    finds: bool = True,
    upto: int | None = None,
    tell: Callable[[int], None] = lambda seq: None,
) -> SessionDecay:
    """What became of the rules of one session, up to a record. `tell` hears of each record before it is read."""
    watch = DecayWatch(session, reader_of(store), declared, finds=finds)
    for record in store.read(session, names=_NAMES, upto=upto):
        tell(record.seq)
        watch.take(record)
    return watch.end()


def keep_sightings(recorder: Recorder, found: Iterable[SessionDecay]) -> int:
    """Keep how rules stood as events of their sessions, each once; gives how many are new."""
    return sum(_keep(recorder, one) for one in found if one.sightings)


def _keep(recorder: Recorder, found: SessionDecay) -> int:
    while True:
        head = recorder.store.head(found.session).seq
        known = {
            (record.event.constraint, record.event.at_seq, record.event.visibility)
            for record in recorder.store.read(found.session, names=(ConstraintSeen.TYPE,))
            if isinstance(record.event, ConstraintSeen)
        }
        new = [one for one in found.sightings if (one.rule, one.seq, one.how) not in known]
        if not new:
            return 0
        keeper = recorder.keeper()

        def event(one: Sighting) -> ConstraintSeen:
            rule = found.rules[one.rule]
            return ConstraintSeen(
                constraint=one.rule,
                at_seq=one.seq,
                call_id=one.call_id,
                visibility=one.how,
                lane=one.lane or None,
                compaction_seq=one.lost_by,
                text=keeper.text(rule.text, "constraint"),  # noqa: B023 - used at once
                modality=rule.modality,
                hardness=rule.hardness,
                origin=rule.origin,
                declared=rule.is_declared,
            )

        drafts = [Draft(event(one), actor=Actor("system", _ACTOR), cause=one.seq) for one in new]
        try:
            recorder.append(found.session, drafts, keeper, expect=head)
        except ConflictError:
            continue  # the loop wrote to the session since we looked
        return len(new)
