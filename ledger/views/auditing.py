"""Audits sessions while they run: folds see each record as it comes, queries the session's rows. Raises findings.

Folds and queries have a thread each: a query over a long session keeps no fold waiting.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.audit import Detector, Finding, SessionFolds, query
from ledger.errors import LedgerError
from ledger.events.keeping import Imported
from ledger.events.session import SessionEnded
from ledger.lake.feed import Stored
from ledger.lake.memory import MemoryLake
from ledger.recorder import Recorder
from ledger.views.findings import keep, reader_of
from ledger.views.lake import lake_feed

_BATCH = 2000
_SESSIONS = 256
_REST = 2.0  # a query waits so many times as long as the last one took: a busy ledger is not kept busier
_OF_REVIEW = "review."
_ENDS = (SessionEnded.TYPE, Imported.TYPE)
_log = logging.getLogger(__name__)


@dataclass
class _Live:
    """A session that is looked at."""

    folds: SessionFolds
    seq: int = 0
    raised: set[str] = field(default_factory=set)


class AuditFollower:
    """Follows a ledger in threads of its own and raises findings. Use as a context manager.

    A session is looked at from its first record on as soon as it gets a new one. `tell` is called with each finding
    that is new. A detector that breaks is reported in the log and left out from then on.
    """

    def __init__(
        self,
        recorder: Recorder,
        detectors: Sequence[Detector],
        *,
        tell: Callable[[Finding], None] = lambda finding: None,
        after: int | None = None,
        pause_s: float = 0.1,
    ) -> None:
        self._recorder = recorder
        self._store = recorder.store
        self._folding = [detector for detector in detectors if detector.start is not None]
        self._asking = [detector for detector in detectors if detector.sql is not None]
        self._tell = tell
        self._pause_s = pause_s
        self._position = self._store.last_position() if after is None else after
        self._sessions: OrderedDict[str, _Live] = OrderedDict()
        self._reader = reader_of(self._store)
        self._lake = MemoryLake(lake_feed(self._store).contents)
        self._touched: set[str] = set()
        self._ask_at = 0.0
        self._lock = threading.RLock()  # over the sessions, what was touched, and what is raised
        self._threads = [self._thread("audit", self._look), self._thread("audit-queries", self._ask_of)]

    def __enter__(self) -> "AuditFollower":
        for _, thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for stop, thread in self._threads:  # what the folds were the last to see, the queries see too
            stop.set()
            thread.join()

    def _thread(self, name: str, step: Callable[[bool], None]) -> tuple[threading.Event, threading.Thread]:
        """What stops a thread, and the thread, which takes steps until then."""
        stop = threading.Event()
        return stop, threading.Thread(target=self._follow, args=(stop, step), name=name, daemon=True)

    def _follow(self, stop: threading.Event, step: Callable[[bool], None]) -> None:
        while True:
            is_last = stop.wait(self._pause_s)
            try:
                step(is_last)
            except (LedgerError, OSError):
                _log.exception("the audit did not keep up with the ledger; it goes on with what comes next")
            if is_last:
                return

    def _look(self, is_last: bool) -> None:
        while self._batch() and not is_last:
            pass

    def _ask_of(self, is_last: bool) -> None:
        with self._lock:
            touched, is_due = sorted(self._touched), is_last or time.monotonic() >= self._ask_at
            if not touched or not is_due:
                return
            self._touched.clear()
        self._ask(touched)

    def _batch(self) -> bool:
        """Look at some new records; whether there may be more."""
        if self._store.last_position() <= self._position:
            return False
        rows = self._store.recorder.select_notifications(
            self._position, _BATCH, None, (), inclusive_of_start=False
        )
        reached: dict[str, tuple[int, bool]] = {}
        for row in rows:
            if not row.topic.startswith(_OF_REVIEW):  # what we raise is nothing to look at
                session = str(row.originator_id)
                has_ended = row.topic in _ENDS or reached.get(session, (0, False))[1]
                reached[session] = row.originator_version, has_ended
        for session, (seq, has_ended) in reached.items():
            self._raise(session, self._fold(session, seq, has_ended=has_ended))
        with self._lock:
            self._touched.update(reached)
        if rows:
            self._position = rows[-1].id
        return len(rows) == _BATCH

    def _fold(self, session: str, seq: int, *, has_ended: bool) -> list[Finding]:
        live = self._live(session)
        found: list[Finding] = []
        try:
            for record in self._store.read(session, after=live.seq, upto=seq, names=live.folds.wanted()):
                found += live.folds.take(record)
            if has_ended:
                found += live.folds.end()
        except LedgerError:
            _log.exception("session %s is not looked at by folds any more", session)
            live.folds = SessionFolds(session, (), self._reader)
        live.seq = seq
        return found

    def _live(self, session: str) -> _Live:
        with self._lock:
            live = self._sessions.get(session)
            if live is None:
                live = self._sessions[session] = _Live(SessionFolds(session, self._folding, self._reader))
                if len(self._sessions) > _SESSIONS:
                    self._sessions.popitem(last=False)
            self._sessions.move_to_end(session)
            return live

    def _ask(self, touched: list[str]) -> None:
        """Run the queries over the sessions that got records."""
        began = time.monotonic()
        if self._asking:
            for session in touched:
                self._lake.add(session, self._rows(session))
        for detector in list(self._asking):
            try:
                found = query(self._lake.connection, detector, touched)
            except LedgerError:
                _log.exception("detector %s is left out from now on", detector.name)
                self._asking.remove(detector)
                continue
            for finding in found:
                self._raise(finding.session, [finding])
        self._ask_at = time.monotonic() + _REST * (time.monotonic() - began)

    def _rows(self, session: str) -> Iterator[Stored]:
        after = self._lake.reached(session)
        recorder: Any = self._store.recorder
        while rows := recorder.select_events(session, gt=after, limit=_BATCH):
            for row in rows:
                yield Stored(row.id, session, row.originator_version, row.topic, row.state)
            after = rows[-1].originator_version

    def _raise(self, session: str, found: Sequence[Finding]) -> None:
        if not found:
            return
        with self._lock:
            raised = self._live(session).raised
            new = [finding for finding in found if finding.id not in raised]
            for finding in keep(self._recorder, new) if new else ():
                self._tell(finding)
            raised.update(finding.id for finding in new)
