"""Starts work that takes long in a process of its own, one piece at a time, and remembers how far it is."""

import contextlib
import json
import logging
import os
import secrets
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ledger.errors import LedgerError

JobKind = Literal["import", "verify", "export", "audit", "backtest", "scorecard", "constraints"]
"""What can be done so."""

_REMEMBERED = 50
_MOST_WAITING = 8
_ENDS_WITHIN_S = 30
_LONGEST_LINE = 64 << 20
_ROOT = Path(__file__).parent.parent
_log = logging.getLogger(__name__)


class BusyError(LedgerError):
    """Too much waits already."""


@dataclass
class Job:
    """A piece of work."""

    id: str
    """Its id."""

    kind: JobKind
    """What it does."""

    asked: dict[str, Any]
    """What it needs."""

    state: Literal["waits", "runs", "done", "failed"] = "waits"
    """How it stands."""

    progress: dict[str, Any] = field(default_factory=dict)
    """How far it is."""

    result: dict[str, Any] = field(default_factory=dict)
    """What came of it."""

    after: Callable[["Job"], None] = lambda job: None
    """Called when it is over, in the thread of the jobs."""


def start_process(asked: dict[str, Any], store: str | None) -> "subprocess.Popen[bytes]":
    """A process of `webui.working` that has been told what to do."""
    environment = dict(os.environ)
    if store is not None:
        environment["LOOPLEDGER_STORE"] = store  # may hold a password, so not among the arguments
    environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *filter(None, [environment.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "webui.working"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.flush()
    return process


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End it, by closing what it reads; at once where it does not hear that."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Jobs:
    """The pieces of work of one server."""

    def __init__(self, home: Path, store: str | None = None) -> None:
        self._home = home
        self._store = store
        self._changed = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def start(
        self, kind: JobKind, asked: dict[str, Any], after: Callable[[Job], None] = lambda job: None
    ) -> Job:
        """Begin it, or let it wait for its turn. Raises BusyError when too many wait."""
        job = Job(secrets.token_hex(8), kind, asked, after=after)
        with self._changed:
            if self._is_closed or sum(one.state == "waits" for one in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError("The server has enough to do; try again when what was started is done.")
            self._jobs[job.id] = job
            while len(self._jobs) > _REMEMBERED and next(iter(self._jobs.values())).state in (
                "done",
                "failed",
            ):
                self._jobs.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()
        return job

    def find(self, identity: str) -> Job | None:
        """A piece of work; None when it is not remembered."""
        return self._jobs.get(identity)

    def latest(self) -> Job | None:
        """The last that was started."""
        with self._changed:
            return next(reversed(self._jobs.values()), None)

    def last(self, kind: JobKind, fits: Callable[[Job], bool] = lambda job: True) -> Job | None:
        """The last started of a kind."""
        with self._changed:
            return next(
                (job for job in reversed(self._jobs.values()) if job.kind == kind and fits(job)), None
            )

    def close(self) -> None:
        """End what runs."""
        with self._changed:
            self._is_closed = True
            thread, process = self._thread, self._process
        if process is not None:
            process.kill()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                waiting = [job for job in self._jobs.values() if job.state == "waits"]
                if self._is_closed or not waiting:
                    self._thread = None
                    return
                job = waiting[0]
                job.state = "runs"
            try:
                self._run(job)
            except Exception:  # noqa: BLE001 - one piece of work must not stop those after it
                _log.exception("work %s failed", job.kind)
                job.result = {"failed": "The server failed at this; its log tells more."}
            job.state = "failed" if "failed" in job.result else "done"
            try:
                job.after(job)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("what was done could not be noted")

    def _run(self, job: Job) -> None:
        asked = {"kind": job.kind, "home": str(self._home.resolve()), **job.asked}
        process = start_process(asked, self._store)
        with self._changed:
            self._process = process
            is_closed = self._is_closed
        if is_closed:
            process.kill()
        assert process.stdout is not None
        job.result = {"failed": "It ended before it was done."}
        try:
            while line := process.stdout.readline(_LONGEST_LINE):
                told = json.loads(line)
                job.progress = told.get("progress", job.progress)
                job.result = told.get("result", job.result)
                if "fault" in told:
                    _log.error("work %s failed: %s", job.kind, told["fault"])
        finally:
            with self._changed:
                self._process = None
            end_process(process)
