"""Takes export requests from any thread, and answers each after its commit.

One thread writes. It takes what waits as one group, so that many small requests share a commit.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from ledger.capture.otlp.requests import BusyError, Entry, decoded
from ledger.capture.otlp.writing import Answer, Writer
from ledger.errors import LedgerError, StoreUnavailableError
from ledger.recorder import Recorder

_WAITING = 64
_HELD_BYTES = 512 * 1024 * 1024
_GROUP = 16


@dataclass
class _Request:
    entries: list[Entry]
    done: "Future[Answer]" = field(default_factory=Future)


class Receiver:
    """Takes requests from any thread; its own thread writes them. Close it before the ledger."""

    def __init__(self, recorder: Recorder, *, waiting: int = _WAITING, held_bytes: int = _HELD_BYTES) -> None:
        """`waiting` requests and `held_bytes` of bodies at once are the most before `BusyError`."""
        self._queue: queue.Queue[_Request | None] = queue.Queue(waiting)
        self._most_held = held_bytes
        self._held = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._writer = Writer(recorder)
        self._thread = threading.Thread(target=self._run, name="otlp-writer", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def holding(self) -> Iterator["Hold"]:
        """A count of bytes that a request holds, given back at the end."""
        hold = Hold(self)
        try:
            yield hold
        finally:
            self._reserve(-hold.size)

    def _reserve(self, size: int) -> None:
        with self._lock:
            # The first comer always gets room: a request may be as large as its own limit allows.
            if size > 0 and self._held and self._held + size > self._most_held:
                raise BusyError(f"{self._held} bytes are waiting to be written")
            self._held += size

    def submit(self, body: bytes, content_type: str) -> "Future[Answer]":
        """Take an unpacked request; its answer comes after its commit, or a LedgerError when it was not recorded.

        Raises UndecodableError, UnknownTypeError, BusyError.
        """
        request = _Request(decoded(body, content_type))
        request.done.set_running_or_notify_cancel()  # whoever gives up waiting cannot take it back
        with self._lock:
            if self._is_closed:
                raise BusyError("the receiver is closing")
            try:
                self._queue.put_nowait(request)
            except queue.Full as error:
                raise BusyError(f"{self._queue.maxsize} requests are waiting to be written") from error
        return request.done

    def close(self) -> None:
        """Write what waits, then end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            group: list[_Request] = []
            with contextlib.suppress(queue.Empty):
                while len(group) < _GROUP and not is_last:
                    request = self._queue.get_nowait() if group else self._queue.get()
                    if request is None:
                        is_last = True
                    else:
                        group.append(request)
            self._record(group)

    def _record(self, group: list[_Request]) -> None:
        """Record a group with one commit. One that fails is tried request by request, then entry by entry."""
        try:
            answers = self._writer.write([request.entries for request in group])
        except Exception as error:  # noqa: BLE001  # senders wait for an answer, and later ones for this thread
            if len(group) > 1:  # one of them may be the cause: it must not cost the others
                for request in group:
                    self._record([request])
            elif isinstance(error, StoreUnavailableError):
                group[0].done.set_exception(error)
            else:
                self._record_one_by_one(group[0])
            return
        for request, answer in zip(group, answers, strict=True):
            request.done.set_result(answer)

    def _record_one_by_one(self, request: _Request) -> None:
        try:
            answer = self._writer.write_one_by_one(request.entries)
        except Exception as error:  # noqa: BLE001  # as above; not even the bytes could be kept
            failure = f"not recorded: {type(error).__name__}: {error}"
            request.done.set_exception(error if isinstance(error, LedgerError) else LedgerError(failure))
        else:
            request.done.set_result(answer)


class Hold:
    """Bytes that one request holds."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.size = 0
        """How many."""

    def add(self, size: int) -> None:
        """Hold more. Raises BusyError when there is no room."""
        self._receiver._reserve(size)
        self.size += size
