"""One thread that writes: jobs in the order in which they came, those that wait together in one append."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from ledger.errors import NotRecordedError
from ledger.events import Record

_TOGETHER = 64

Written = Future[list[Record]]
"""The records of a job, once they are in the ledger."""


class Job(NamedTuple):
    """Something to write."""

    target: "Target"
    """What it belongs to."""

    work: Callable[[], object]
    """Makes its drafts; what it gives is for the target to understand."""

    written: Written
    """Told when it is done."""


class Target(Protocol):
    """What can write a group of jobs of its own."""

    def write(self, jobs: list[Job]) -> None:
        """Write them, in order; tell each."""


class Writer:
    """The thread. `close` writes what waits."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="proxy-writer", daemon=True)
        self._thread.start()

    def submit(self, target: Target, work: Callable[[], object]) -> Written:
        """Write something, soon."""
        written: Written = Future()
        if self._is_closed:
            written.set_exception(NotRecordedError("the recorder of the proxy is closed"))
        else:
            self._jobs.put(Job(target, work, written))
        return written

    def close(self) -> None:
        """Write what waits, and stop."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs, is_last = [job], False
            while len(jobs) < _TOGETHER and not self._jobs.empty():
                more = self._jobs.get()
                if more is None:
                    is_last = True
                    break
                jobs.append(more)
            groups: dict[int, list[Job]] = {}
            for one in jobs:
                groups.setdefault(id(one.target), []).append(one)
            for group in groups.values():
                _write(group)
            if is_last:
                return


def _write(jobs: list[Job]) -> None:
    try:
        jobs[0].target.write(jobs)
    except Exception as error:  # noqa: BLE001 - the thread must live on; who waits is told
        for job in jobs:
            if not job.written.done():
                job.written.set_exception(error)
