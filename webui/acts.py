"""Records what people do with the pages when it is about no session: in a session of its own, under their name."""

from ledger.events import Actor, Draft, Event
from ledger.events.review import NoteWritten
from ledger.home import Ledger
from ledger.recorder import Keeper

SESSION = "loopledger-acts"
"""Id of the session that tells of questions in SQL, exports, and files that were given."""


def record_wish(ledger: Ledger, who: Actor, wish: str, about: str | None = None) -> str:
    """Record that somebody asked for work that takes long; `about` is the session, none for the whole ledger."""
    keeper = ledger.recorder.keeper()
    return record_act(
        ledger, who, NoteWritten(about=about or SESSION, text=keeper.text(wish, "note")), keeper
    )


def record_act(ledger: Ledger, who: Actor, event: Event, keeper: Keeper) -> str:
    """Record it; gives its place."""
    records = ledger.recorder.append(SESSION, [Draft(event, actor=who)], keeper, durable=True)
    return records[0].place
