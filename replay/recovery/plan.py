"""The plan of a rollback: what goes back, what is taken back, what stays, who used it. Touches nothing."""

import hashlib
from dataclasses import dataclass
from typing import Any

from ledger.errors import InputError
from ledger.events import ContentRef, Record
from ledger.events.canonical import canonical_json
from ledger.events.recovery import CheckpointTaken, RollbackStarted, RolledBack
from ledger.home import Ledger
from ledger.recorder import Keeper
from replay.cli import open_timeline
from replay.fold import checkpoint_target
from replay.recovery.compensations import Compensator
from replay.recovery.consumers import Consumer, ConsumerReader
from replay.recovery.edits import Edit
from replay.recovery.effects import CallEffect, EffectReader, find_duplicates, with_delegated
from replay.recovery.files import FilePlan, FileReader, change_json, plan_files
from replay.recovery.judging import Judgement, judge
from replay.state import FOLD_VERSION, GOES_BACK, State

_CONSUMERS_SHOWN = 200


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint to go back to."""

    checkpoint_id: str
    """Its name."""

    seq: int
    """State is that after this record."""

    taken: int
    """Record that took it."""

    label: str | None
    """Label for people."""

    files: ContentRef | None
    """Its files."""


@dataclass(frozen=True)
class PlannedEffect:
    """One effect after the checkpoint and what becomes of it."""

    call: CallEffect
    """The call."""

    judgement: Judgement
    """What becomes of it."""

    consumers: list[Consumer]
    """Who used its result since."""

    def as_json(self, session: str) -> dict[str, Any]:
        """For programs; `consumers` are records of the session itself."""
        own = sorted({one.seq for one in self.consumers if one.session == session})
        return {
            **self.call.as_json(),
            "disposition": self.judgement.disposition,
            "reason": self.judgement.why,
            "runs": self.judgement.prepared is not None,
            "consumers": own,
            "consumed_by": [one.as_json() for one in self.consumers[:_CONSUMERS_SHOWN]],
        }


@dataclass(frozen=True)
class Plan:
    """What a rollback will do."""

    session: str
    """The session."""

    checkpoint: Checkpoint
    """Where to."""

    head: int
    """Last record of the session when the plan was made."""

    effects: list[PlannedEffect]
    """Effects after the checkpoint, in order."""

    approvals: list[dict[str, Any]]
    """Approvals that lapse, and questions that are open again."""

    files: FilePlan | None
    """What becomes of files; None where the checkpoint has none."""

    state_digest: str
    """Digest of the parts of the state that go back, at the checkpoint."""

    begun: RollbackStarted | None
    """A rollback to this checkpoint that was begun and did not end."""

    done: RolledBack | None
    """A rollback to this checkpoint after which nothing happened."""

    @property
    def clean(self) -> bool:
        """Whether everything after the checkpoint is undone."""
        covered = all(one.judgement.disposition in ("restored", "compensated") for one in self.effects)
        return covered and not (self.files is not None and (self.files.uncovered or self.files.conflicts))

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        files = self.files
        return {
            "session": self.session,
            "to": self.checkpoint.checkpoint_id,
            "to_seq": self.checkpoint.seq,
            "label": self.checkpoint.label,
            "head": self.head,
            "abandons": {"from": self.checkpoint.seq + 1, "to": self.head},
            "restores": [] if files is None else [change_json(change) for change in files.restores],
            "workspace": None if files is None else str(files.root),
            "uncovered_files": [] if files is None else [one._asdict() for one in files.uncovered],
            "conflicts": [] if files is None else [one._asdict() for one in files.conflicts],
            "effects": [one.as_json(self.session) for one in self.effects],
            "approvals": self.approvals,
            "state_digest": self.state_digest,
            "files_digest": None if files is None else files.digest,
            "clean": self.clean,
        }


def digest_of_what_goes_back(state: State) -> str:
    """SHA-256 of the conversation and of the sections of a state that a rollback takes back."""
    parts = {name: state.sections[name] for name in GOES_BACK}
    form = {"fold_version": FOLD_VERSION, "node": state.node, "since": [list(item) for item in state.since()]}
    return hashlib.sha256(canonical_json({**form, **parts})).hexdigest()


def find_checkpoint(ledger: Ledger, session: str, name: str) -> Checkpoint:
    """A checkpoint by its id, an unambiguous start of it, its label, or the record that took it. Raises InputError."""
    by_id: dict[str, Checkpoint] = {}
    for record in ledger.store.read(session):
        event = record.event
        if isinstance(event, CheckpointTaken):
            by_id[event.checkpoint_id] = Checkpoint(
                event.checkpoint_id,
                checkpoint_target(event, record.seq),
                record.seq,
                event.label,
                event.files,
            )
    if name in by_id:
        return by_id[name]
    number = name.removeprefix("#")
    kinds = (
        [one for one in by_id.values() if one.label == name],
        [one for one in by_id.values() if number.isdigit() and one.taken == int(number)],
        [one for one in by_id.values() if name and one.checkpoint_id.startswith(name)],
    )
    for found in kinds:
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(f"{one.checkpoint_id} (record {one.taken})" for one in found[:5])
            raise InputError(f"{name!r} names several checkpoints of {session}: {several}; give more of it")
    raise InputError(
        f"{session} has no checkpoint {name!r}; `loopledger checkpoints {session}` lists those that it has"
    )


def make_plan(ledger: Ledger, session: str, to: str, compensator: Compensator, keeper: Keeper) -> Plan:
    """The plan. Raises InputError when the checkpoint or its workspace is not there."""
    store = ledger.store
    checkpoint = find_checkpoint(ledger, session, to)
    reader, files, ends = EffectReader(store, session, compensator.policy), FileReader(), _Ends(checkpoint)
    head = 0
    for record in store.read(session):
        reader.take(record)
        files.take(record)
        ends.take(record)
        head = record.seq
    own = _after(reader.calls, checkpoint.seq)
    find_duplicates(reader.calls)
    calls = own + list(with_delegated(store, reader, checkpoint.seq, compensator.policy))
    for call in calls:
        call.undone = reader.undone.get(call.effect_id)
    file_plan = plan_files(
        store,
        keeper,
        checkpoint.files,
        files,
        checkpoint.seq,
        None if ends.begun is None else ends.begun.files,
        [Edit(call.tool, reader.value(call.arguments)) for call in calls if call.outcome == "returned"],
    )
    judged = []
    for call in calls:
        prepared = compensator.prepare(store, call)
        judgement = judge(call, reader.value(call.arguments), file_plan, prepared)
        if judgement is not None:
            judged.append((call, judgement))
    consumers = ConsumerReader(store, [call for call, _ in judged])
    if judged:
        for name in dict.fromkeys([session, *(call.session for call in calls)]):
            for record in store.read(name, after=checkpoint.seq if name == session else 0):
                consumers.take(record)
    with open_timeline(ledger, session) as timeline:
        earlier, later = timeline.at(checkpoint.seq), timeline.at(head)
    return Plan(
        session,
        checkpoint,
        head,
        [PlannedEffect(call, judgement, consumers.found[call.effect_id]) for call, judgement in judged],
        _lapsing(earlier, later),
        file_plan,
        digest_of_what_goes_back(earlier),
        ends.begun,
        ends.done,
    )


def _after(calls: list[CallEffect], seq: int) -> list[CallEffect]:
    """Calls that acted after a record, or may have: those open there too, unless the loop had gone on past them."""
    passed = max((call.seq for call in calls if call.settled is not None and call.settled <= seq), default=0)
    return [
        call
        for call in calls
        if call.seq > seq or (call.settled is None and call.seq > passed) or (call.settled or 0) > seq
    ]


class _Ends:
    """Notes where earlier rollbacks to a checkpoint began and ended."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.begun: RollbackStarted | None = None
        self.done: RolledBack | None = None

    def take(self, record: Record) -> None:
        """One more record."""
        event = record.event
        if isinstance(event, RollbackStarted):
            self.begun, self.done = event, None
        elif isinstance(event, RolledBack):
            self.begun = None
            self.done = event if event.rollback_id and event.to_seq == self._checkpoint.seq else None
        elif not record.type.startswith(("effect.", "recovery.", "credential.", "review.", "ledger.")):
            self.done = None


def _lapsing(earlier: State, later: State) -> list[dict[str, Any]]:
    """Approvals that a rollback ends, and questions that it opens again."""
    found = []
    before = earlier.sections["approvals"]
    for name, approval in later.sections["approvals"].items():
        if name not in before:
            found.append({"approval_id": name, "becomes": "lapsed", **_short(approval)})
    for name, approval in before.items():
        now = later.sections["approvals"].get(name) or later.sections["approvals_past"].get(name)
        if now is not None and now["status"] != approval["status"]:
            found.append({"approval_id": name, "becomes": approval["status"], **_short(now)})
    return found


def _short(approval: dict[str, Any]) -> dict[str, Any]:
    return {name: approval[name] for name in ("status", "tool", "call_id", "asked", "decided")}
