"""/sessions/S/rollback: what going back to a checkpoint would do, shown before it is done, and what it did."""

from typing import Annotated

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field, ValidationError

from ledger.errors import InputError, LedgerError
from ledger.events.canonical import decode_json
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.home import Ledger
from replay.recovery.compensations import Compensator
from replay.recovery.plan import make_plan
from replay.recovery.rollback import RollbackConflictError, roll_back
from webui.dependencies import LedgerDep, SessionDep, WhoDep, segment
from webui.forms import NUMBER
from webui.page import Context, Done, Page
from webui.plans import PlanTold, plan_told

_LISTED = 20

page = Page("Rollback")


class RolledBackLine(Context):
    """A rollback that was done."""

    seq: int
    """Its record."""
    to_seq: int | None
    """Record whose state came back; None where the source does not tell."""
    at: str
    """When."""
    by: str | None
    """Who did it."""
    reason: str | None
    """Why."""


class RollbackContext(Context):
    """What rollback.html may use."""

    session: str
    """Its id."""
    to: int
    """Record that took the checkpoint; 0 where none was chosen."""
    plan: PlanTold | None
    """What it would do, or what it did."""
    problem: str | None
    """Why there is no plan."""
    done: RolledBackLine | None
    """The rollback that the plan was carried out by."""
    is_begun: bool
    """Whether a rollback to it was begun and did not end: it can be finished."""
    is_done: bool
    """Whether the session is there already."""
    earlier: list[RolledBackLine]
    """Rollbacks of the session, the last first."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return "Rolled back" if self.done else "Rollback"


class RollbackForm(BaseModel):
    """A rollback that was looked at."""

    to: Annotated[int, Field(ge=1, le=2**53), NUMBER]
    """Record that took the checkpoint."""
    head: Annotated[int, Field(ge=1, le=2**53), NUMBER]
    """Last record of the session when the plan was shown."""
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Why."""
    overwrite: bool = False
    """Put files back that somebody else changed since, too."""


@page.view("/sessions/{session}/rollback", template="rollback.html")
def rollback(
    ledger: LedgerDep,
    session: SessionDep,
    to: Annotated[int, Query(ge=0, le=2**53, description="Record that took the checkpoint.")] = 0,
    done: Annotated[int, Query(ge=0, le=2**53, description="Record of a rollback: what it did.")] = 0,
) -> RollbackContext:
    """The plan of a rollback, or what one did. Touches nothing."""
    earlier = _earlier(ledger, session)
    plan, problem, line, is_begun, is_done = None, None, None, False, False
    if done:
        line, plan = _kept(ledger, session, done)
        problem = None if plan else "This rollback keeps no plan: the source tells only that it happened."
    elif to:
        try:
            made = make_plan(
                ledger, session, _checkpoint(ledger, session, to), Compensator(), ledger.recorder.keeper()
            )
            plan, is_begun, is_done = plan_told(made.as_json()), made.begun is not None, made.done is not None
        except InputError as error:
            problem = str(error)
    return RollbackContext(
        session=session,
        to=to,
        plan=plan,
        problem=problem,
        done=line,
        is_begun=is_begun,
        is_done=is_done,
        earlier=earlier,
    )


@page.action("/sessions/{session}/rollback")
def go_back(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: RollbackForm) -> Done:
    """Carry out the plan that was shown. Nothing is deleted: what came after stays on record as a branch."""
    name = _checkpoint(ledger, session, form.to)
    head = ledger.store.head(session).seq
    if head != form.head:
        raise HTTPException(
            409,
            f"The session went on since the plan was shown, from #{form.head} to #{head}: look at it again.",
        )
    try:
        done = roll_back(ledger, session, name, reason=form.reason, overwrite=form.overwrite, person=who.id)
    except RollbackConflictError as error:
        raise HTTPException(
            409, str(error).replace("--overwrite puts", "The form with `put back` ticked puts")
        ) from error
    except OSError as error:
        raise HTTPException(
            500,
            f"The files could not all be put back: {error.strerror}. What was begun is on record: look at the plan"
            " again, and finish it there when the cause is mended. Nothing is run twice.",
        ) from error
    return Done(
        to=f"/sessions/{segment(session)}/rollback?done={done.seq}", recorded=[f"{session}#{done.seq}"]
    )


def _checkpoint(ledger: Ledger, session: str, taken: int) -> str:
    """Id of the checkpoint that a record took. Raises InputError where it took none."""
    event = ledger.store.record(session, taken).event
    if not isinstance(event, CheckpointTaken):
        raise InputError(f"Record {taken} takes no checkpoint; the page of checkpoints lists those that do.")
    return event.checkpoint_id


def _earlier(ledger: Ledger, session: str) -> list[RolledBackLine]:
    found = [
        _line(ledger, session, record.seq) for record in ledger.store.read(session, names=(RolledBack.TYPE,))
    ]
    return found[-_LISTED:][::-1]


def _line(ledger: Ledger, session: str, seq: int) -> RolledBackLine:
    record = ledger.store.record(session, seq)
    if not isinstance(record.event, RolledBack):
        raise HTTPException(404, f"Record {seq} is no rollback.")
    return RolledBackLine(
        seq=seq,
        to_seq=record.event.to_seq,
        at=record.occurred_at or record.recorded_at,
        by=None if record.actor is None else record.actor.id,
        reason=record.event.reason,
    )


def _kept(ledger: Ledger, session: str, seq: int) -> tuple[RolledBackLine, PlanTold | None]:
    """A rollback, and the plan that it keeps; None where it keeps none that can be read."""
    line = _line(ledger, session, seq)
    event = ledger.store.record(session, seq).event
    assert isinstance(event, RolledBack)
    if event.plan is None:
        return line, None
    try:
        return line, plan_told(decode_json(ledger.store.content(event.plan.digest)))
    except (LedgerError, ValidationError, KeyError, TypeError, AttributeError, ValueError):
        return line, None  # a source's own plan, in words of its own
