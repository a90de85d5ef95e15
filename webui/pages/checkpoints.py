"""/sessions/S/checkpoints: places to return to, and one more by hand."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from ledger.views.checkpoints import CheckpointsView
from replay.recovery.checkpoints import take_checkpoint
from webui.dependencies import LedgerDep, SessionDep, WhoDep, segment
from webui.page import Context, Done, Page

_ROWS = 60

page = Page("Checkpoints", link="/sessions/{session}/checkpoints", order=60)


class CheckpointLine(Context):
    """A checkpoint."""

    checkpoint_id: str
    """Its name."""
    seq: int
    """Record whose state it names."""
    taken: int
    """Record that took it."""
    taken_by: str
    """Who took it: loop, rule, source, human."""
    label: str | None
    """Label for people."""
    files: str | None
    """Digest of its files; None where it has none."""
    at: str
    """When it was taken."""


class CheckpointsContext(Context):
    """What checkpoints.html may use."""

    session: str
    """Its id."""
    rows: list[CheckpointLine]
    """Checkpoints, the last taken first."""
    total: int
    """How many there are."""
    earlier: int | None
    """Record that took the last one listed, when there are earlier ones."""
    head: int
    """Last record of the session."""


class CheckpointForm(BaseModel):
    """A checkpoint by hand."""

    label: Annotated[str, Field(min_length=1, max_length=200)]
    """What it is for."""
    at: Annotated[str, Field(pattern=r"^[0-9]{0,15}$")] = ""
    """A record; empty: the last, with the files of the workspace as they are now."""


@page.view("/sessions/{session}/checkpoints", template="checkpoints.html")
def checkpoints(
    ledger: LedgerDep,
    session: SessionDep,
    before: Annotated[int, Query(ge=0, le=2**53, description="Only those taken before this record.")] = 0,
) -> CheckpointsContext:
    """The checkpoints of a session."""
    with CheckpointsView(ledger.home, ledger.store) as view:
        view.catch_up()
        found = view.rows(session)
    shown = [row for row in reversed(found) if not before or row.taken < before]
    return CheckpointsContext(
        session=session,
        rows=[CheckpointLine(**row._asdict()) for row in shown[:_ROWS]],
        total=len(found),
        earlier=shown[_ROWS - 1].taken if len(shown) > _ROWS else None,
        head=ledger.store.head(session).seq,
    )


@page.action("/sessions/{session}/checkpoints")
def take(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: CheckpointForm) -> Done:
    """Name a place to return to; with the files of the workspace that was looked at last, where it is the last."""
    at = int(form.at) if form.at else None
    taken = take_checkpoint(ledger, session, at=at, label=form.label, person=who.id)
    return Done(to=f"/sessions/{segment(session)}/checkpoints", recorded=[f"{session}#{taken['taken']}"])
