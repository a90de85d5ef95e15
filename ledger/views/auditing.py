"""Audits sessions while they run: folds see each record as it comes, queries the session's rows. Raises findings.

Our folds have a thread, our queries another, and each detector of others one of its own: none keeps another waiting.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from ledger.audit import Detector, Finding
from ledger.audit.failure import Failure
from ledger.audit.running import events_read, text_of
from ledger.errors import LedgerError
from ledger.lake.memory import MemoryLake
from ledger.recorder import Recorder
from ledger.views.findings import Places, Raising, about_nothing, broken, reader_of
from ledger.views.lake import lake_feed
from ledger.views.lanes import Lane, News, Road
from ledger.views.looking import FoldLane, QueryLane, RowsLane

_BATCH = 2000
_LONGEST_S = 60.0
_PARTING_S = 5.0
_AGAIN_S = 1.0
_OF_REVIEW = "review."
_log = logging.getLogger(__name__)


def _log_failure(failure: Failure) -> None:
    _log.error("detector %s: %s", failure.detector, failure.error)


class AuditFollower:
    """Follows a ledger in threads of its own and raises findings. Use as a context manager.

    Detectors that compare sessions are left out: only those that run are seen here.

    A session is looked at from its first record on as soon as it gets a new one; sessions that need little reading go
    before one that needs much. `tell` is called with each finding that is new, `tell_failed` once with each detector
    that breaks: a fold sees no more of the session in which it broke, a query is not asked any more.
    """

    def __init__(
        self,
        recorder: Recorder,
        detectors: Sequence[Detector],
        *,
        tell: Callable[[Finding], None] = lambda finding: None,
        tell_failed: Callable[[Failure], None] = _log_failure,
        after: int | None = None,
        pause_s: float = 0.05,
        longest_s: float = _LONGEST_S,
    ) -> None:
        self._store = recorder.store
        self._detectors = detectors = [one for one in detectors if one.is_live]
        self._tell = tell
        self._tell_failed = tell_failed
        self._pause_s = pause_s
        self._longest_s = longest_s
        self._position = self._store.last_position() if after is None else after
        self._raising = Raising(recorder)
        self._places = Places(self._store)
        self._failed: set[str] = set()
        self._lock = threading.RLock()  # over what is raised and told
        self._road = Road()
        self._stop = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._follow, name="audit", daemon=True)
        self._folds = [
            FoldLane(name, self._road, some, self._store, reader_of(self._store), self._raise, self._fail)
            for name, some in _lanes("audit-folds", [one for one in detectors if one.start is not None])
        ]
        self._queries: list[QueryLane] = []
        self._first: list[Lane] = [*self._folds]
        asking = [one for one in detectors if one.sql is not None]
        if asking:
            self._follow_rows(asking)

    def _follow_rows(self, asking: list[Detector]) -> None:
        lake = MemoryLake(lake_feed(self._store).contents, queries=[text_of(one) for one in asking])

        def again(news: Mapping[str, News]) -> None:
            rows.tell(news)

        self._queries = [
            QueryLane(name, self._road, some, lake, self._raise, self._fail, again)
            for name, some in _lanes("audit-queries", asking)
        ]
        read = [events_read(one) for one in asking]
        names = None if None in read else frozenset[str]().union(*(one for one in read if one is not None))
        rows = RowsLane(self._road, self._store, lake, names, [lane.tell for lane in self._queries])
        self._first.append(rows)

    def __enter__(self) -> "AuditFollower":
        for failure in broken(self._detectors):
            self._fail(failure)
        for lane in (*self._first, *self._queries):
            lane.start()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Look at what has come by now, for some seconds at most."""
        self._stop.set()
        self._thread.join()
        ends_by = time.monotonic() + _PARTING_S
        left = []
        for together in (self._first, self._queries):  # what folds were the last to see, queries see too
            ends_by = max(ends_by, time.monotonic() + _PARTING_S / 2)
            for lane in together:
                lane.stop(ends_by)
            left += [lane.name for lane in together if not lane.join()]
        self._is_over = True
        for query in self._queries:
            query.interrupt()
        if left:
            _log.warning("the audit ended before %s had looked at everything", ", ".join(left))

    def wait(self, timeout_s: float) -> bool:
        """Wait until all that the ledger holds by now was looked at; False when the time was over first."""
        position = self._store.last_position()
        lanes = [*self._first, *self._queries]
        with self._road.changed:
            return self._road.changed.wait_for(
                lambda: self._position >= position and all(lane.is_idle() for lane in lanes), timeout_s
            )

    # -- what comes -----------------------------------------------------------------------------------------

    def _follow(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._pause_s)
            try:
                while self._batch():
                    pass
            except (LedgerError, OSError):
                _log.exception("the audit did not keep up with the ledger; it is tried again")
                self._stop.wait(_AGAIN_S)
            self._look_after()

    def _batch(self) -> bool:
        """Tell the lanes of some new records; whether there may be more."""
        if self._store.last_position() <= self._position:
            return False
        rows = self._store.recorder.select_notifications(
            self._position, _BATCH, None, (), inclusive_of_start=False
        )
        came: dict[str, News] = {}
        for row in rows:
            if not row.topic.startswith(_OF_REVIEW):  # what we raise is nothing to look at
                news = came.setdefault(str(row.originator_id), News(0))
                news.seq = row.originator_version
                news.names.add(row.topic)
        with self._road.changed:
            for lane in self._first:
                lane.tell(came)
            if rows:
                self._position = rows[-1].id
            self._road.changed.notify_all()
        return len(rows) == _BATCH

    def _look_after(self) -> None:
        """End queries that take too long; folds cannot be ended, but told of."""
        for query in self._queries:
            query.interrupt(self._longest_s)
        now = time.monotonic()
        for lane in self._folds:
            since = lane.busy_since
            if since is not None and now - since > self._longest_s:
                for detector in lane.detectors:
                    told = (
                        f"{detector.place}: detector {detector.name} is busy with a few records for too long"
                    )
                    self._fail(Failure.of(detector, told))

    # -- what is found --------------------------------------------------------------------------------------

    def _raise(self, found: Sequence[Finding]) -> None:
        if not found or self._is_over:
            return
        with self._lock:
            there = []
            for finding in found:
                if self._places.has(finding):
                    there.append(finding)
                else:
                    self._fail(about_nothing(finding, self._detectors))
            for finding in self._raising.keep(there):
                self._tell(finding)

    def _fail(self, failure: Failure) -> None:
        """Tell of a detector that broke, once: what it cannot do it mostly cannot do again and again."""
        with self._lock:
            if failure.detector not in self._failed and not self._is_over:
                self._failed.add(failure.detector)
                self._tell_failed(failure)


def _lanes(name: str, detectors: Sequence[Detector]) -> list[tuple[str, list[Detector]]]:
    """Ours together, each of others alone."""
    ours = [one for one in detectors if one.is_shipped]
    others = [(f"{name}-{one.name}", [one]) for one in detectors if not one.is_shipped]
    return [(name, ours), *others] if ours else others
