"""Keeps states of long sessions before anybody looks: none is folded from its beginning while somebody waits."""

from collections.abc import Callable, Iterable

from ledger.errors import LedgerError
from ledger.home import Ledger
from ledger.views.snapshots import SnapshotFile
from replay.snapshots import INTERVAL, StateSnapshots
from replay.timeline import session_timeline

LEAST = 2000
"""Records that are folded before anybody notices; a shorter session needs no states kept ahead."""


class Ahead:
    """What was folded of one ledger's sessions."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._reached: dict[str, int] = {}

    def catch_up(self, sessions: Iterable[tuple[str, int]], pause: Callable[[int], object]) -> None:
        """Fold sessions, given with their last seqs, up to there. `pause` is called again and again on the way."""
        for session, head in sessions:
            if head - self._reached.get(session, 0) >= LEAST:
                self._reached[session] = head
                try:
                    self._fold(session, pause)
                except (LedgerError, ValueError):
                    continue  # whoever looks at it is told why

    def _fold(self, session: str, pause: Callable[[int], object]) -> None:
        store = self._ledger.store
        with SnapshotFile(self._ledger.home / "views" / "snapshots.sqlite", store.salt) as file:
            timeline = session_timeline(store, session, StateSnapshots(file, store, session))
            for record in timeline.walk(timeline.start(timeline.head), timeline.head):
                if record.seq % INTERVAL == 0:
                    pause(record.position)
