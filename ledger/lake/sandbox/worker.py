"""The worker: a process that is confined, then answers one query after another, each in an engine of its own.

Started by `ledger.lake.sandbox.process` with a JSON argument: the folder of the lake and the limits. Queries come as
lines of JSON on its standard input, frames go to its standard output. It is killed, not asked, where a query goes on.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

from ledger.errors import LedgerError
from ledger.lake.connection import connect_files
from ledger.lake.manifest import DataFile
from ledger.lake.query import Answer, QueryCancelledError, QueryTooSlowError
from ledger.lake.sandbox import confine
from ledger.lake.sandbox.engine import Engines, lake_files
from ledger.lake.sandbox.frames import END, PROGRESS, READY, REFUSED, ROWS, Send, write_frame
from ledger.lake.sandbox.gate import Gate
from ledger.lake.sandbox.limits import Limits
from ledger.lake.sandbox.result import QueryRefusedError

GRACE_SECONDS = 2.0
"""So long after its time a worker ends by itself, were nobody left to kill it."""

_ENGINE_SHARE = 4
_LONGEST_MESSAGE = 600
_OUT_OF_MEMORY = "bad_alloc"


def main() -> None:
    """Confine this process, say so, and serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the one who started it
    asked = json.loads(sys.argv[1])
    limits = Limits(**asked["limits"])
    os.chdir(asked["folder"])
    with connect_files([], config={"threads": 1, "async_threads": 1}) as engine:
        gate = Gate(engine, limits.text_bytes)  # and all that is read from files has been read
    confine.give_way()
    fence = confine.shut_in(".") if asked["fenced"] else ""
    confine.limit(limits.memory_bytes)

    def send(kind: bytes, body: bytes) -> None:
        write_frame(1, kind, body)

    engines = Engines(limits.memory_bytes // _ENGINE_SHARE, limits.seconds, is_fenced=bool(fence))
    engines.prepare()
    send(READY, json.dumps({"fence": fence}).encode())
    while select.select([0], [], [], limits.idle_seconds)[0] and (line := sys.stdin.buffer.readline()):
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + GRACE_SECONDS)
        confine.limit_processor(limits.seconds + GRACE_SECONDS)
        _serve(json.loads(line), limits, gate, engines, send, asked["folder"])
        signal.setitimer(signal.ITIMER_REAL, 0)
        engines.prepare()


def _serve(
    asked: dict[str, Any], limits: Limits, gate: Gate, engines: Engines, send: Send, folder: str
) -> None:
    """Answer one query by frames, the last of which is END or REFUSED."""
    started = time.monotonic()
    hidden: list[str] = [folder]

    def tell(percent: float | None) -> None:
        if percent is not None and percent >= 0:
            send(PROGRESS, json.dumps(percent).encode())

    kind: str | None = None
    try:
        files = lake_files()
        hidden += [file.path for file in files]
        with _opened(engines, files) as connection:
            text = gate.checked(connection, asked["sql"])
            left = limits.seconds - (time.monotonic() - started)
            values = _values(asked["parameters"])
            with Answer(
                connection, text, values, limit=limits.rows, timeout_s=left, on_progress=tell
            ) as answer:
                kind = _send_rows(answer, limits.result_bytes, send)
    except QueryRefusedError as error:
        send(REFUSED, json.dumps({"message": _scrubbed(str(error), hidden)}).encode())
        return
    except (QueryTooSlowError, QueryCancelledError):  # the latter by the engine's own limit of time
        kind = "time"
    except MemoryError:
        kind = "memory"
    except (LedgerError, duckdb.Error) as error:
        if not _is_memory(error):
            send(REFUSED, json.dumps({"message": _scrubbed(str(error), hidden)}).encode())
            return
        kind = "memory"
    except pa.ArrowException as error:
        kind = "memory" if _is_memory(error) else "died"
    send(END, json.dumps({"stopped": kind, "seconds": time.monotonic() - started}).encode())


def _opened(engines: Engines, files: list[DataFile]) -> duckdb.DuckDBPyConnection:
    try:
        return engines.take(files)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # it would say where the files lie
        raise QueryRefusedError("the lake cannot be read: a file of it is damaged or gone") from error


def _send_rows(answer: Answer, most: int, send: Send) -> str | None:
    """Send the rows as far as they fit; gives what cut them off."""
    send(ROWS, _stream(pa.RecordBatch.from_pylist([], schema=answer.schema)))
    for batch in answer.batches():
        fitting = batch
        while fitting.num_rows and fitting.nbytes > most:
            fitting = fitting.slice(0, fitting.num_rows // 2)
        most -= fitting.nbytes
        if fitting.num_rows:
            send(ROWS, _stream(fitting))
        if fitting.num_rows < batch.num_rows:
            return "bytes"
    return "rows" if answer.is_cut else None


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _values(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters; a date comes as an object that says so."""
    return {
        name: date.fromisoformat(value["date"]) if isinstance(value, dict) else value
        for name, value in given.items()
    }


def _is_memory(error: Exception) -> bool:
    if isinstance(error, duckdb.OutOfMemoryException | pa.ArrowMemoryError):
        return True
    if isinstance(error.__cause__, duckdb.OutOfMemoryException | pa.ArrowMemoryError | MemoryError):
        return True
    return _OUT_OF_MEMORY in str(error)


def _scrubbed(text: str, hidden: Sequence[str]) -> str:
    """The first line of a message, without the names of files; further lines show pieces of them."""
    text = text.partition("\n")[0]
    for name in sorted(hidden, key=len, reverse=True):
        text = text.replace(name, "(a file of the lake)")
    return text[:_LONGEST_MESSAGE]
