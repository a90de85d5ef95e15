"""Safe queries over a lake: so many at a time, the next ones wait, the rest hear that it is busy. For any thread."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from ledger.errors import InputError, LedgerError
from ledger.lake.connection import lake_folder
from ledger.lake.sandbox.limits import Limits
from ledger.lake.sandbox.process import Progress, Worker, WorkerLostError
from ledger.lake.sandbox.result import SafeResult, Stopped

_TRIES = 3


class QueriesBusyError(LedgerError):
    """All workers are taken and enough queries wait already."""


class QueryHandle:
    """One query, seen from other threads: how far it is, and a way to end it."""

    def __init__(self, on_progress: Progress | None = None) -> None:
        self.progress: float | None = None
        """Percent done, as far as the engine can tell; None: it does not say."""
        self.is_cancelled = False
        """Whether somebody ended it."""
        self._on_progress = on_progress
        self._worker: Worker | None = None
        self._changed = threading.Lock()

    def cancel(self) -> None:
        """End the query, whether it waits or runs."""
        with self._changed:
            self.is_cancelled = True
            if self._worker is not None:
                self._worker.stop()

    def _told(self, percent: float) -> None:
        self.progress = percent
        if self._on_progress is not None:
            self._on_progress(percent)

    def _taken_by(self, worker: Worker | None) -> bool:
        """Note who answers it; False where it was cancelled."""
        with self._changed:
            self._worker = worker
            return not self.is_cancelled


class SafeQueries:
    """Runs the SQL of strangers over the lake in a folder.

        with SafeQueries("/path/to/home") as queries:
            result = queries.run("select tool, count(*) from tool_calls group by tool")

    Each query runs in a worker process that can read the lake and nothing else; a worker that was stopped is killed and
    another takes its place. Use as a context manager, or call `close`.
    """

    def __init__(
        self, home: str | Path | None = None, limits: Limits | None = None, *, is_fenced: bool = True
    ) -> None:
        self.limits = limits or Limits()
        """What a query may take."""
        self._folder = lake_folder(home)
        self._is_fenced = is_fenced
        self._free = threading.Condition()
        self._idle: list[Worker] = []
        self._busy = 0
        self._waiting = 0
        self._is_closed = False

    def __enter__(self) -> "SafeQueries":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that have nothing to do; those at work end with their query."""
        with self._free:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._free.notify_all()
        for worker in idle:
            worker.kill()

    def run(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, handle: QueryHandle | None = None
    ) -> SafeResult:
        """The rows of one query; parameters are bound as values, `$name` in the text.

        A query that is stopped at a limit still gives what there is, with the reason in `stopped`. Raises
        QueryRefusedError for one that may not run or is wrong; QueriesBusyError.
        """
        handle = handle or QueryHandle()
        with self._turn(handle):
            for _ in range(_TRIES):
                worker = self._worker()
                try:
                    if not handle._taken_by(worker):
                        return _cancelled()
                    result = worker.ask(sql, parameters or {}, handle._told)
                    return _cancelled() if handle.is_cancelled and result.stopped else result
                except WorkerLostError:
                    if handle.is_cancelled:
                        return _cancelled()
                finally:
                    handle._taken_by(None)
                    self._give_back(worker)
        raise LedgerError("no worker for safe queries could be started")

    @contextmanager
    def _turn(self, handle: QueryHandle) -> Iterator[None]:
        """Wait for a place among those that run."""
        deadline = time.monotonic() + self.limits.wait_seconds
        with self._free:
            if self._busy >= self.limits.workers and self._waiting >= self.limits.waiting:
                raise QueriesBusyError(
                    f"busy: {self._busy} queries run and {self._waiting} wait; ask again later"
                )
            self._waiting += 1
            try:
                while self._busy >= self.limits.workers and not self._is_closed:
                    if not self._free.wait(deadline - time.monotonic()):
                        raise QueriesBusyError(
                            f"busy: no worker was free within {self.limits.wait_seconds:g} s; ask again later"
                        )
                if self._is_closed:
                    raise InputError("safe queries are closed")
                self._busy += 1
            finally:
                self._waiting -= 1
        try:
            yield
        finally:
            with self._free:
                self._busy -= 1
                self._free.notify()

    def _worker(self) -> Worker:
        with self._free:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.kill()
        return self._started()

    def _started(self) -> Worker:
        return Worker(self._folder, self.limits, is_fenced=self._is_fenced)

    def _give_back(self, worker: Worker) -> None:
        """Have it, or one in its place that starts while nobody waits for it."""
        if not worker.is_usable:
            worker.kill()
        with self._free:
            if not self._is_closed:
                self._idle.append(worker if worker.is_usable else self._started())
                return
        worker.kill()


def _cancelled() -> SafeResult:
    return SafeResult.empty(Stopped("cancelled", "cancelled"))
