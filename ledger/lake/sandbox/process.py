"""One worker process, seen from the one who started it: asked, read up to a deadline, and killed."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ledger.errors import LedgerError
from ledger.lake.sandbox.frames import END, PROGRESS, READY, REFUSED, ROWS, Frame, FrameReader
from ledger.lake.sandbox.limits import Limits
from ledger.lake.sandbox.result import QueryRefusedError, SafeResult, StopKind, Stopped

_KILLED_AFTER = 0.5
"""The engine stops a query at its time; a worker that has not said so by then is killed."""

_STARTS_WITHIN = 60.0
_FRAMES_BESIDE_ROWS = 1 << 20
_CHUNK = 1 << 16
_ESCAPED = 8
"""A text grows by so much at most when it is written as JSON, with room for parameters."""
_START = (
    "import json, sys; sys.path += [one for one in json.loads(sys.argv[1])['path'] if one not in sys.path]; "
    "from ledger.lake.sandbox.worker import main; main()"
)
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}  # they keep address space small

_NOT_UNDERSTOOD = (pa.ArrowException, ValueError, KeyError, TypeError)
"""A worker that says what no worker says is taken for dead."""

Progress = Callable[[float], None]
"""Told how many percent are done."""


class WorkerLostError(LedgerError):
    """A worker that ended before it took the query."""


class _End(NamedTuple):
    """How an answer ended."""

    kind: StopKind | None
    seconds: float


class Worker:
    """A process that answers safe queries over one lake."""

    def __init__(self, folder: Path, limits: Limits, *, is_fenced: bool = True) -> None:
        self._limits = limits
        asked = {
            "folder": str(folder.resolve()),
            "limits": asdict(limits),
            "fenced": is_fenced,
            "path": [str(Path(__file__).parents[3]), *(one for one in sys.path if Path(one).is_absolute())],
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
        )
        self.is_usable = True
        """Whether it can be asked again."""
        self._fence: str | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def ask(self, sql: str, parameters: Mapping[str, Any], on_progress: Progress | None = None) -> SafeResult:
        """Ask it. Raises QueryRefusedError; WorkerLostError when it is gone."""
        is_answered = False
        try:
            self._wait_until_ready()
            self._write(self._request(sql, parameters))
            result = self._answer(on_progress)
            is_answered = result.stopped is None or result.stopped.kind in ("rows", "bytes")
            return result
        except QueryRefusedError:
            is_answered = True
            raise
        finally:
            if not is_answered:
                self.kill()

    def is_alive(self) -> bool:
        """Whether its process is still there; one that had nothing to do for long is not."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once."""
        self.is_usable = False
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.wait()

    def stop(self) -> None:
        """End what it does, from another thread: the one that asked learns of it and takes care of the rest."""
        self.is_usable = False
        self._process.kill()

    def _wait_until_ready(self) -> None:
        if self._fence is None:
            reader = FrameReader(_CHUNK)
            for frame in self._frames(reader, time.monotonic() + _STARTS_WITHIN):
                if frame.kind == READY:
                    self._fence = json.loads(frame.body)["fence"]
                    return
            raise WorkerLostError("a worker for safe queries did not start")

    def _request(self, sql: str, parameters: Mapping[str, Any]) -> bytes:
        asked = {"sql": sql, "parameters": {name: _plain(name, value) for name, value in parameters.items()}}
        line = json.dumps(asked).encode() + b"\n"
        most = _ESCAPED * self._limits.text_bytes
        if len(line) > most:
            raise QueryRefusedError(
                f"the query is too long with its parameters: expected at most {most} bytes"
            )
        return line

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise WorkerLostError("a worker for safe queries ended") from error

    def _answer(self, on_progress: Progress | None) -> SafeResult:
        started = time.monotonic()
        schema, batches, end = pa.schema([]), list[pa.RecordBatch](), None
        reader = FrameReader(2 * self._limits.result_bytes + _FRAMES_BESIDE_ROWS)
        late = started + self._limits.seconds + _KILLED_AFTER
        with contextlib.suppress(*_NOT_UNDERSTOOD):
            for frame in self._frames(reader, late):
                if frame.kind == PROGRESS and on_progress is not None:
                    on_progress(min(100.0, max(0.0, float(json.loads(frame.body)))))
                elif frame.kind == ROWS:
                    batch = _batch(frame.body)
                    schema = batch.schema
                    batches += [batch] if batch.num_rows else []
                elif frame.kind == REFUSED:
                    raise QueryRefusedError(str(json.loads(frame.body)["message"]))
                elif frame.kind == END:
                    told = json.loads(frame.body)
                    end = _End(told["stopped"], float(told["seconds"]))
                    break
        if end is None:
            end = _End(self._cause(is_late=time.monotonic() >= late), time.monotonic() - started)
        stopped = None if end.kind is None else Stopped(end.kind, self._words(end.kind))
        return SafeResult(schema, batches, stopped, end.seconds, self._fence or "")

    def _frames(self, reader: FrameReader, deadline: float) -> Iterator[Frame]:
        """Frames until the deadline or the end of the worker."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        something = select.poll()  # `select` knows no descriptor beyond 1023, and a server may have many
        something.register(descriptor, select.POLLIN)
        while True:
            while (frame := reader.take()) is not None:
                yield frame
            left = deadline - time.monotonic()
            if left <= 0 or not something.poll(left * 1000):
                return
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return
            try:
                reader.feed(chunk)
            except ValueError:
                return

    def _cause(self, *, is_late: bool) -> StopKind:
        """Why a worker said nothing more."""
        if is_late:
            return "time"
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_KILLED_AFTER)
            if status in (-signal.SIGXCPU, -signal.SIGALRM):
                return "time"
            if not self.is_usable:
                return "cancelled"
        return "died"

    def _words(self, kind: StopKind) -> str:
        limits = self._limits
        match kind:
            case "rows":
                return f"more than {limits.rows} rows: the rest is left out"
            case "bytes":
                return f"more than {limits.result_bytes} bytes: the rest is left out"
            case "time":
                return f"stopped after {limits.seconds:g} s"
            case "memory":
                return (
                    f"stopped: it takes more memory than the {limits.memory_bytes >> 20} MiB of a safe query"
                )
            case "cancelled":
                return "cancelled"
            case "died":
                return "stopped: its worker died, as happens to one that takes more memory than it may"


def _batch(body: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(body) as reader:
        batch = reader.read_next_batch()
    batch.validate(full=True)
    return batch


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it; a date as an object that says so."""
    if type(value) is date:
        return {"date": value.isoformat()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise QueryRefusedError(
        f"parameter {name} must be a text, number, flag or date, found {type(value).__name__}"
    )
