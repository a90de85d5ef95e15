"""What the live audit does in its lanes: folds see each record as it comes, queries the rows of the sessions."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.audit import Detector, Finding, Reader, SessionFolds, query
from ledger.audit.failure import BREAKS, Failure
from ledger.audit.running import events_read
from ledger.errors import RecordDamagedError, StoreUnavailableError, UnknownEventError
from ledger.events import BY_NAME
from ledger.events.keeping import Imported
from ledger.events.session import SessionEnded
from ledger.lake.feed import Stored
from ledger.lake.memory import MemoryLake
from ledger.store import EventStore
from ledger.views.lanes import Lane, News, Road

_ENDS = (SessionEnded.TYPE, Imported.TYPE)
_SESSIONS = 512
_STRETCH_S = 0.1
_RECORDS = 500
_REST = 0.5  # a query waits so many times as long as the last one took: a busy ledger is not kept busier
_log = logging.getLogger(__name__)

Raise = Callable[[Sequence[Finding]], None]
"""Takes what was found."""

Fail = Callable[[Failure], None]
"""Takes what is told of a detector that broke."""

Tell = Callable[[Mapping[str, News]], None]
"""Takes what came to sessions."""


@dataclass
class _Live:
    """A session that folds look at."""

    folds: SessionFolds
    seq: int = 0
    has_ended: bool = False
    told: int = 0
    unsaid: list[Finding] = field(default_factory=list)


class FoldLane(Lane):
    """Folds over the sessions, each from its first record on."""

    def __init__(
        self,
        name: str,
        road: Road,
        detectors: Sequence[Detector],
        store: EventStore,
        reader: Reader,
        found: Raise,
        failed: Fail,
    ) -> None:
        super().__init__(name, road)
        self.detectors = detectors
        """Who looks in this lane."""
        self._store = store
        self._reader = reader
        self._found = found
        self._failed = failed
        self._sessions: OrderedDict[str, _Live] = OrderedDict()

    def reached(self, session: str) -> int:
        """The seq up to which the folds have seen a session."""
        live = self._sessions.get(session)
        return 0 if live is None else live.seq

    def look(self, session: str, news: News) -> bool:
        """Show the folds some more records, and raise what they find."""
        live = self._live(session)
        self._say(live)
        try:
            with self.reading(much=news.seq - live.seq > _RECORDS):
                self._read(session, live, news.seq)
        except (RecordDamagedError, UnknownEventError):  # nobody can say what would follow from it
            _log.exception("session %s is not looked at by folds any more", session)
            live.folds, live.seq, live.told = SessionFolds(session, (), self._reader), news.seq, 0
        is_done = live.seq >= news.seq
        if is_done and live.has_ended:  # what comes after an end may end, too
            live.unsaid += live.folds.end()
            self._sessions.move_to_end(session, last=False)  # it is the first to be forgotten
        self._say(live)
        return is_done

    def _read(self, session: str, live: _Live, seq: int) -> None:
        names = live.folds.wanted()
        wanted = names | set(_ENDS) if names else names
        if live.folds.has_ended:
            live.seq = seq
            return
        upto, since = min(seq, live.seq + _RECORDS), time.monotonic()
        for record in self._store.read(session, after=live.seq, upto=upto, names=wanted):
            live.unsaid += live.folds.take(record)
            live.seq = record.seq
            live.has_ended |= record.type in _ENDS
            if time.monotonic() - since > _STRETCH_S:
                return
        live.seq = upto

    def _say(self, live: _Live) -> None:
        for failure in live.folds.failures[live.told :]:
            self._failed(failure)
        live.told = len(live.folds.failures)
        self._found(live.unsaid)
        live.unsaid = []

    def _live(self, session: str) -> _Live:
        live = self._sessions.get(session)
        if live is None:
            live = self._sessions[session] = _Live(SessionFolds(session, self.detectors, self._reader))
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(session)
        return live


class RowsLane(Lane):
    """Keeps the rows of the sessions up for the queries; a session is shown to them when it is whole."""

    def __init__(
        self,
        road: Road,
        store: EventStore,
        lake: MemoryLake,
        names: frozenset[str] | None,
        tells: Sequence[Tell],
    ) -> None:
        super().__init__("audit-rows", road)
        self._store = store
        self._lake = lake
        self._names = tuple(names or ())
        self._tells = tells
        self._begun: set[str] = set()

    def reached(self, session: str) -> int:
        """The seq up to which the rows of a session are there."""
        return self._lake.reached(session)

    def look(self, session: str, news: News) -> bool:
        """Take in some more records, and tell of them when there are no more."""
        after = self._lake.reached(session)
        if after == 0:
            self._begun.add(session)
        upto = min(news.seq, after + _RECORDS)
        with self.reading(much=upto < news.seq):
            self._lake.add(session, self._rows(session, after, upto), upto)
        if upto < news.seq:
            return False
        if session in self._begun:  # nobody knows yet what it holds
            self._begun.remove(session)
            news = News(news.seq, {*BY_NAME})
        for tell in self._tells:
            tell({session: news})
        return True

    def _rows(self, session: str, after: int, upto: int) -> Iterator[Stored]:
        recorder: Any = self._store.recorder
        for row in recorder.select_events(session, gt=after, lte=upto, topics=self._names):
            yield Stored(row.id, session, row.originator_version, row.topic, row.state)


class QueryLane(Lane):
    """Asks detectors of SQL about the sessions that got records which their answers rest on."""

    def __init__(
        self,
        name: str,
        road: Road,
        detectors: Sequence[Detector],
        lake: MemoryLake,
        found: Raise,
        failed: Fail,
        again: Tell,
    ) -> None:
        super().__init__(name, road)
        self._asking = [(detector, events_read(detector)) for detector in detectors]
        self._lake = lake
        self._cursor = lake.connection.cursor()
        self._found = found
        self._failed = failed
        self._again = again
        self._asked: tuple[Detector, float] | None = None
        self._is_late = False
        self._lock = threading.Lock()  # over what is asked: an interruption hits no other question

    def reached(self, session: str) -> int:
        """All are asked about together: none is before another."""
        return 0

    def look(self, session: str, news: News) -> bool:
        """Ask about all sessions that wait."""
        waiting = {**self.take_all(), session: news}
        began = time.monotonic()
        for detector, events in list(self._asking):
            sessions = [
                name for name, one in waiting.items() if events is None or not events.isdisjoint(one.names)
            ]
            if sessions:
                try:
                    self._found(self._ask(detector, events, sessions))
                except StoreUnavailableError:
                    self.tell(waiting)
                    raise
        if gone := {name: one for name, one in waiting.items() if self._lake.reached(name) < one.seq}:
            self._again(
                gone
            )  # others took their place meanwhile: nobody knows what was there when it was asked
        self.rest(_REST * (time.monotonic() - began))
        return True

    def _ask(
        self, detector: Detector, events: frozenset[str] | None, sessions: list[str]
    ) -> Sequence[Finding]:
        try:
            with self._lock:
                self._asked = detector, time.monotonic()
            return query(self._cursor, detector, sessions)
        except BREAKS as error:
            self._asking.remove((detector, events))
            told = str(error)
            if self._is_late:
                told = f"{detector.place}:1: the query took too long to be asked while sessions run"
            self._failed(Failure.of(detector, told))
            return ()
        finally:
            with self._lock:
                self._asked, self._is_late = None, False

    def interrupt(self, after_s: float = 0) -> None:
        """End a query that has taken longer than that."""
        with self._lock:
            if self._asked is not None and time.monotonic() - self._asked[1] >= after_s:
                self._is_late = True
                self._cursor.interrupt()
