"""What holds a session: the holds of people and breakers that nobody has released. Changes nothing."""

from ledger.errors import LedgerError
from ledger.events.policy import Held, Released
from ledger.events.session import SessionEnded
from ledger.home import Ledger
from webui.page import Context
from webui.reading import Lists

_LONGEST = 400
_MOST = 20


class Hold(Context):
    """A hold that is in force."""

    seq: int
    """Its record."""
    by: str
    """Who held it: a person, or a breaker by its name."""
    at: str
    """When."""
    reason: str | None
    """Why, in their words."""


class Brake(Context):
    """How the hand brake of a session stands."""

    holds: list[Hold]
    """What holds it, or the last of that."""
    is_over: bool
    """Whether the session has ended, so that there is nothing to hold."""


def brake_of(ledger: Ledger, lists: Lists, session: str) -> Brake:
    """The brake of a session. Where the list of events shows no hold, only what came after it is read."""
    with lists.events() as events:
        listed = events.head(session)
        was_held = any(kind.type == Held.TYPE for kind in events.kinds(session))
    open_holds: dict[str, Hold] = {}
    after = 0 if was_held else listed
    for record in ledger.store.read(session, after=after, names=(Held.TYPE, Released.TYPE)):
        event = record.event
        if isinstance(event, Released):
            open_holds.pop(event.hold_id, None)
        elif isinstance(event, Held):
            who = None if record.actor is None else record.actor.id
            open_holds[event.hold_id] = Hold(
                seq=record.seq,
                by=f"breaker {event.breaker}" if event.breaker else who or "somebody",
                at=record.occurred_at or record.recorded_at,
                reason=None if event.reason is None else _text(ledger, event.reason.digest),
            )
    return Brake(holds=list(open_holds.values())[-_MOST:], is_over=_is_over(ledger, lists, session))


def _is_over(ledger: Ledger, lists: Lists, session: str) -> bool:
    """Whether a session has ended and not gone on; notes and findings may come after its end."""
    with lists.sessions() as listed:
        row = listed.row(session)
    if row is not None and row.outcome is not None:
        return True
    last = ledger.store.record(session, ledger.store.head(session).seq)
    return isinstance(last.event, SessionEnded)


def _text(ledger: Ledger, digest: str) -> str:
    try:
        return ledger.store.content(digest).decode("utf-8", "replace")[:_LONGEST]
    except LedgerError as error:
        return f"not to be had: {error}"
