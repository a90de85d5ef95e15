"""Whether a session is held: heard from its own stream, at the price of one comparison where nobody else wrote."""

from collections.abc import Iterable

from ledger.events import Event, Record
from ledger.events.policy import Held, Released
from ledger.store import EventStore

_NAMES = (Held.TYPE, Released.TYPE)


class Holds:
    """Those of one session, as far as its writer has heard."""

    def __init__(self, store: EventStore, session: str) -> None:
        self._store = store
        self.session = session
        """Id of the session."""
        self._next = 1
        self.is_watched = False
        """Whether anybody stops for them; who does not, is spared the look at what a session held before."""
        self.open: dict[str, Held] = {}
        """Holds that nobody has released, by id."""
        self.released: list[str] = []
        """Holds whose release was heard; for who reacts to them to take."""

    @property
    def last_seq(self) -> int:
        """The last seq that was heard of."""
        return self._next - 1

    def saw(self, first: int, last: int) -> None:
        """We wrote records from one seq to another. A gap before them is somebody else's."""
        if first != self._next and self.is_watched:
            self._take(self._store.read(self.session, after=self._next - 1, upto=first - 1, names=_NAMES))
        self._next = last + 1

    def wrote(self, events: Iterable[Event]) -> None:
        """We are about to write these ourselves."""
        self.open |= {event.hold_id: event for event in events if isinstance(event, Held)}

    def hear(self) -> None:
        """Look for what others wrote since."""
        head = self._store.head(self.session).seq
        if head >= self._next:
            self.saw(head + 1, head)

    def wait(self, timeout_s: float) -> None:
        """Wait until somebody writes to the session, or the time is over."""
        if self._store.wait(self.session, self.last_seq, timeout_s):
            self.hear()

    def _take(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Held):
                self.open[record.event.hold_id] = record.event
            elif isinstance(record.event, Released):
                self.open.pop(record.event.hold_id, None)
                self.released.append(record.event.hold_id)
