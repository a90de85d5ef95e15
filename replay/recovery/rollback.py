"""Carries out a rollback: intent, compensations in reverse order, files, the rollback itself. Deletes no record.

It may be killed anywhere and called again: a compensation is never run twice, files are put back whole or not at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ledger.errors import InputError
from ledger.events import Actor, Draft, Event
from ledger.events.effect import CompensationStarted, EffectCompensated, EffectNotUndone
from ledger.events.recovery import FilesSeen, RollbackStarted, RolledBack
from ledger.home import Ledger
from ledger.recorder import Keeper
from ledger.workspace import restore
from replay.cli import open_timeline
from replay.recovery.compensations import Compensator, Prepared
from replay.recovery.plan import Plan, PlannedEffect, digest_of_what_goes_back, make_plan

_CONFLICTS_SHOWN = 5


@dataclass(frozen=True)
class Done:
    """What a rollback did."""

    plan: Plan
    """The plan that was carried out, as it stands at the end."""

    seq: int
    """Record of the rollback."""

    state_digest: str
    """Digest of the parts of the state that go back, now."""

    files_digest: str | None
    """Digest of the files, now."""

    failed: list[str]
    """Compensations that failed, with the reason."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.plan.as_json(),
            "rolled_back": self.seq,
            "state_digest_now": self.state_digest,
            "files_digest_now": self.files_digest,
            "failed_compensations": self.failed,
        }


class RollbackConflictError(InputError):
    """Somebody changed what a rollback would put back; nothing was touched."""

    def __init__(self, plan: Plan) -> None:
        assert plan.files is not None
        found = plan.files.conflicts
        shown = "; ".join(f"{one.path}: {one.why}" for one in found[:_CONFLICTS_SHOWN])
        more = f"; and {len(found) - _CONFLICTS_SHOWN} more" if len(found) > _CONFLICTS_SHOWN else ""
        super().__init__(
            f"{plan.files.root} was changed since, nothing was touched: {shown}{more}. "
            "--overwrite puts them back all the same; what is there now stays in the ledger"
        )
        self.plan = plan


def roll_back(
    ledger: Ledger,
    session: str,
    to: str,
    *,
    reason: str | None = None,
    compensator: Compensator | None = None,
    overwrite: bool = False,
    person: str | None = None,
    progress: Callable[[str], None] = lambda path: None,
) -> Done:
    """Go back to a checkpoint, or finish a rollback to it that was stopped.

    Raises RollbackConflictError before anything was touched, InputError, ConflictError.
    """
    compensator = compensator or Compensator()
    writer = _Writer(ledger, session, person)
    plan = make_plan(ledger, session, to, compensator, writer.keeper)
    if plan.done is not None and (plan.files is None or plan.files.is_done(plan.files.now.tree.entries)):
        return _told(ledger, plan, plan.head, [])
    if plan.begun is not None and plan.begun.to_seq != plan.checkpoint.seq:
        raise InputError(
            f"a rollback of {session} to record {plan.begun.to_seq} was begun and did not end: "
            f"finish it with --to {plan.begun.checkpoint_id} first"
        )
    if plan.files is not None and plan.files.conflicts and not overwrite:
        raise RollbackConflictError(plan)
    rollback_id = plan.begun.rollback_id if plan.begun is not None else ledger.recorder.ids()
    if plan.begun is None:
        writer.begin(plan, rollback_id, reason)
    else:
        writer.head = plan.head
        reason = reason or plan.begun.reason
    failed = _compensate(plan, writer, rollback_id)
    if plan.files is not None:
        now = plan.files.look(writer.keeper)
        ran = any(one.judgement.prepared is not None for one in plan.effects)
        if not ran and now.tree.digest != plan.files.now.tree.digest:
            raise InputError(
                f"{plan.files.root} was changed just now, no file was touched; call the rollback again"
            )
        restore(
            plan.files.root,
            now.tree.entries,
            plan.files.source.wanted(now.tree.entries),
            plan.files.source.content,
            progress,
        )
    return _finish(ledger, plan, writer, rollback_id, reason, compensator, failed)


class _Writer:
    """Appends to the session and to nothing that somebody else has appended to since."""

    def __init__(self, ledger: Ledger, session: str, person: str | None) -> None:
        self._recorder = ledger.recorder
        self._session = session
        self._actor = Actor("human", person)
        self.keeper: Keeper = ledger.recorder.keeper()
        self.head = 0

    def begin(self, plan: Plan, rollback_id: str, reason: str | None) -> None:
        """The intent: what is there now is kept, so that the abandoned future can be looked at."""
        self.head = plan.head
        drafts: list[Event] = []
        files = plan.files
        if files is not None:
            drafts.append(
                FilesSeen(
                    files=files.now.ref,
                    call_id=rollback_id,
                    changed=len(files.restores),
                    added=files.now.added,
                )
            )
        drafts.append(
            RollbackStarted(
                rollback_id=rollback_id,
                to_seq=plan.checkpoint.seq,
                checkpoint_id=plan.checkpoint.checkpoint_id,
                reason=reason,
                plan=self.keeper.json(plan.as_json(), "plan"),
                files=None if files is None else files.now.ref,
            )
        )
        self.append(drafts)

    def append(self, events: list[Event]) -> int:
        """Append durably; give the last seq. Raises ConflictError."""
        drafts = [Draft(event, actor=self._actor) for event in events]
        records = self._recorder.append(self._session, drafts, self.keeper, expect=self.head, durable=True)
        self.head = records[-1].seq
        return self.head


def _compensate(plan: Plan, writer: _Writer, rollback_id: str) -> list[str]:
    """Run what is to be run, the last effect first, each with its intent before and its settlement after."""
    failed = []
    for one in reversed(plan.effects):
        prepared = one.judgement.prepared
        if prepared is None:
            continue
        effect_id = one.call.effect_id
        writer.append([CompensationStarted(effect_id=effect_id, how=prepared.how, rollback_id=rollback_id)])
        problem = _problem(prepared)
        if problem is None:
            writer.append([EffectCompensated(effect_id=effect_id, how=prepared.how)])
        else:
            failed.append(f"{one.call.tool} at record {one.call.seq}: {problem}")
            writer.append([EffectNotUndone(effect_id=effect_id, reason=f"{prepared.how} failed: {problem}")])
    return failed


def _problem(prepared: Prepared) -> str | None:
    """Why a compensation failed; None: it went well."""
    try:
        prepared.run()
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; the rollback goes on
        return f"{type(error).__name__}: {error}"
    return None


def _finish(
    ledger: Ledger,
    plan: Plan,
    writer: _Writer,
    rollback_id: str,
    reason: str | None,
    compensator: Compensator,
    failed: list[str],
) -> Done:
    """Say what stays, and that the session went back: in one append."""
    events: list[Event] = []
    if plan.files is not None:
        look = plan.files.look(writer.keeper)
        if not plan.files.is_done(look.tree.entries):
            raise InputError(
                f"{plan.files.root} was changed while its files were put back; call the rollback again"
            )
        events.append(
            FilesSeen(files=look.ref, call_id=rollback_id, changed=len(plan.files.restores), added=look.added)
        )
    how = f"files of checkpoint {plan.checkpoint.checkpoint_id}"
    events += [
        EffectCompensated(effect_id=effect_id, how=how)
        for one in plan.effects
        if one.judgement.disposition == "restored"
        for effect_id in one.call.file_effects
    ]
    stays = [one for one in plan.effects if one.judgement.disposition in ("not_undone", "unknown")]
    events += [EffectNotUndone(effect_id=one.call.effect_id, reason=_reason(one)) for one in stays]
    ended = make_plan(ledger, plan.session, plan.checkpoint.checkpoint_id, compensator, writer.keeper)
    # What was there to do, not what is left of it; a conflict that was overwritten is none any more.
    files = (
        None
        if ended.files is None or plan.files is None
        else plan.files._replace(conflicts=[], uncovered=ended.files.uncovered, now=ended.files.now)
    )
    ended = replace(ended, files=files, head=plan.head)
    events.append(
        RolledBack(
            to_seq=plan.checkpoint.seq,
            checkpoint_id=plan.checkpoint.checkpoint_id,
            reason=reason,
            plan=writer.keeper.json(ended.as_json(), "plan"),
            rollback_id=rollback_id,
        )
    )
    return _told(ledger, ended, writer.append(events), failed)


def _reason(one: PlannedEffect) -> str:
    return f"{one.judgement.disposition}: {one.judgement.why}"


def _told(ledger: Ledger, plan: Plan, seq: int, failed: list[str]) -> Done:
    with open_timeline(ledger, plan.session) as timeline:
        digest = digest_of_what_goes_back(timeline.at())
    files = None if plan.files is None else plan.files.now.tree.digest
    return Done(plan, seq, digest, files, failed)
