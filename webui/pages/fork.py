"""/sessions/S/fork: a branch of a session at any of its records, begun with the words of a person. Runs nothing."""

import shlex
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from ledger.errors import RecordNotFoundError
from ledger.events import Draft
from ledger.events.review import NoteWritten
from ledger.views.events import EventRow, Wanted
from replay.forking import fork_session
from webui.dependencies import LedgerDep, ListsDep, SessionDep, WhoDep, segment
from webui.forms import NUMBER
from webui.page import Context, Done, Page

_BEFORE = 5

page = Page("Fork")


class ForkContext(Context):
    """What fork.html may use."""

    session: str
    """Its id."""
    at: int
    """The last record that the branch shares with the session."""
    head: int
    """Last record of the session."""
    last: list[EventRow]
    """The last records that both share."""
    command: str
    """What runs an agent on the beginning, and lets it live on from there."""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Fork at {self.at}"


class ForkForm(BaseModel):
    """A new branch."""

    at: Annotated[int, Field(ge=1, le=2**53), NUMBER]
    """The last record that it shares with the session."""
    message: Annotated[str, Field(min_length=1, max_length=20_000)]
    """What a person says there."""
    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Why; kept as a note in the branch."""


@page.view("/sessions/{session}/fork", template="fork.html")
def plan(
    ledger: LedgerDep,
    lists: ListsDep,
    session: SessionDep,
    at: Annotated[int, Query(ge=0, le=2**53, description="Last record that counts; 0: the last of all.")] = 0,
) -> ForkContext:
    """What a branch at a record would share with its session."""
    head = ledger.store.head(session).seq
    at = at or head
    if at > head:
        raise RecordNotFoundError(session, at, head)
    with lists.events() as events:
        last = events.window(session, Wanted(), first=max(1, at - _BEFORE + 1), count=min(_BEFORE, at))
    command = f"loopledger branch {shlex.quote(session)} --at {at} -- COMMAND"
    return ForkContext(session=session, at=at, head=head, last=last, command=command)


@page.action("/sessions/{session}/fork")
def fork(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: ForkForm) -> Done:
    """Open a branch with the words of a person; a loop goes on from it later."""
    branch = fork_session(ledger, session, form.at, form.message, person=who.id)
    keeper = ledger.recorder.keeper()
    note = NoteWritten(about=branch, text=keeper.text(form.reason, "note"))
    records = ledger.recorder.append(branch, [Draft(note, actor=who)], keeper, durable=True)
    return Done(to=f"/sessions/{segment(branch)}/state", recorded=[one.place for one in records])
