"""/sessions/S/brake: hold a running loop before its next call, and let it go. The overview shows the same form."""

from typing import Annotated

from pydantic import BaseModel, Field

from ledger.capture.gates.deciding import hold, release
from ledger.errors import InputError
from webui.dependencies import LedgerDep, ListsDep, SessionDep, WhoDep, segment
from webui.holding import Brake, brake_of
from webui.page import Context, Done, Page

page = Page("Hand brake")


class BrakeContext(Context):
    """What brake.html may use."""

    session: str
    """Its id."""
    brake: Brake
    """How its brake stands."""


class Held(Done):
    """What was held or released."""

    sessions: list[str]
    """The session, and those that it delegated to."""


class BrakeForm(BaseModel):
    """Why."""

    reason: Annotated[str, Field(min_length=1, max_length=2000)]
    """Kept with the hold or the release."""


@page.view("/sessions/{session}/brake", template="brake.html")
def brake(ledger: LedgerDep, lists: ListsDep, session: SessionDep) -> BrakeContext:
    """What holds a session."""
    return BrakeContext(session=session, brake=brake_of(ledger, lists, session))


@page.action("/sessions/{session}/hold")
def hold_session(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: BrakeForm) -> Held:
    """Stop a recorded loop, and those that it delegated to, before its next model or tool call."""
    held = hold(ledger.recorder, session, who.id or "unknown", form.reason)
    return Held(to=f"/sessions/{segment(session)}", sessions=held)


@page.action("/sessions/{session}/release")
def release_session(ledger: LedgerDep, session: SessionDep, who: WhoDep, form: BrakeForm) -> Held:
    """Let a loop that is held go on."""
    released = release(ledger.recorder, session, who.id or "unknown", form.reason)
    if not released:
        raise InputError(f"Nothing holds {session}: somebody may have released it before you.")
    return Held(to=f"/sessions/{segment(session)}", sessions=released)
