"""/sessions/S/replays: what replays of a session have shown, and one more that is proved from the ledger alone."""

import threading
import time
from typing import Annotated, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field

from ledger.events import Draft
from ledger.events.review import NoteWritten
from ledger.views.replays import ReplayRow, ReplaysView
from replay.keeping import keep_verdict
from replay.proving import prove_requests, prove_states
from webui.dependencies import LedgerDep, SessionDep, WhoDep, segment
from webui.page import Context, Done, Page

_ROWS = 60
LONGEST_S = 60.0
"""How long a replay may take that somebody waits for."""

_one_at_a_time = threading.Lock()

page = Page("Replays", link="/sessions/{session}/replays", order=70)


class ReplayLine(Context):
    """A replay."""

    session: str
    """Its own session."""
    level: str
    """What was to be proved: state, request, rerun, branch."""
    mode: str
    """What ran: check, wire, in_process."""
    at: str
    """When it began."""
    verdict: str | None
    """equal, diverged, incomplete; None while it runs, or where it was cut off."""
    checked: int
    """What was compared."""
    unchecked: int
    """What could not be."""
    kind: str | None
    """What differs, where it diverged."""
    at_seq: int | None
    """First record of the session that it is not equal to."""
    judged: str | None
    """What a person said of it last: drift, defect."""


class ReplaysContext(Context):
    """What replays.html may use."""

    session: str
    """Its id."""
    origin: str | None
    """Session that this one is a replay of, where it is one."""
    rows: list[ReplayLine]
    """Replays of it, the last first."""
    is_cut: bool
    """Whether there are more."""
    head: int
    """Records of the session."""
    seconds: int
    """How long a replay from the page may take."""


class ReplayForm(BaseModel):
    """A replay to be run."""

    level: Literal["state", "request"]
    """What is to be proved."""
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Why."""


class _TooLongError(Exception):
    """The time for a replay from the page is over."""


@page.view("/sessions/{session}/replays", template="replays.html")
def replays(ledger: LedgerDep, session: SessionDep) -> ReplaysContext:
    """The replays of a session."""
    with ReplaysView(ledger.home, ledger.store) as view:
        view.catch_up()
        found = view.rows(session, _ROWS + 1)
        itself = view.row(session)
    return ReplaysContext(
        session=session,
        origin=None if itself is None else itself.origin,
        rows=[_line(row) for row in found[:_ROWS]],
        is_cut=len(found) > _ROWS,
        head=ledger.store.head(session).seq,
        seconds=int(LONGEST_S),
    )


@page.action("/sessions/{session}/replays")
def run(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: ReplayForm) -> Done:
    """Prove that the session can be rebuilt. Nothing runs and nothing is sent; the verdict is a session of its own."""
    if not _one_at_a_time.acquire(blocking=False):
        raise HTTPException(409, "Another replay runs just now: one at a time. Try again when it is done.")
    try:
        ends_at = time.monotonic() + LONGEST_S

        def tell(seq: int) -> None:
            if time.monotonic() > ends_at:
                raise _TooLongError(seq)

        prove = prove_states if form.level == "state" else prove_requests
        report = prove(ledger.store, session, tell)
    except _TooLongError as stopped:
        raise HTTPException(
            503,
            f"Stopped after {LONGEST_S:.0f} s at record {stopped} of {ledger.store.head(session).seq}; nothing was"
            f" kept. `loopledger replay {session} --level {form.level} --keep` has no limit.",
        ) from stopped
    finally:
        _one_at_a_time.release()
    kept = keep_verdict(ledger, report)
    keeper = ledger.recorder.keeper()
    note = NoteWritten(about=kept, text=keeper.text(form.reason, "note"))
    records = ledger.recorder.append(kept, [Draft(note, actor=who)], keeper, durable=True)
    return Done(
        to=f"/sessions/{segment(kept)}/divergence",
        recorded=[f"{kept}#1", *(f"{kept}#{one.seq}" for one in records)],
    )


def _line(row: ReplayRow) -> ReplayLine:
    names = ReplayLine.model_fields
    return ReplayLine(**{name: value for name, value in row._asdict().items() if name in names})
