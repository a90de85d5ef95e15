"""Stands between a program and the one that started it: passes every line on as it is, after it was recorded.

A line goes on as soon as it is whole and its facts are kept; nothing waits for the next. Standard error is the child's
own. Where a line cannot be recorded the child is stopped, or, when the user chose so, everything goes on unrecorded.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Protocol

from ledger.errors import InputError

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line that are held to be recorded; a longer one goes on in pieces."""

_PIECE = 1 << 16
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE_S = 5.0


class Recording(Protocol):
    """Takes the lines of both directions, one at a time."""

    def take(self, line: bytes, *, to_server: bool) -> None:
        """Record a line before it goes on."""

    def too_long(self, start: bytes, *, to_server: bool) -> None:
        """Record that a line is longer than is held."""

    def end(self, status: int | None) -> None:
        """Both directions are closed."""

    @property
    def recorded(self) -> int:
        """Messages recorded so far."""


class Guard:
    """Keeps a recording's failures from the traffic, or the traffic from going on without a recording."""

    def __init__(self, recording: Recording, *, fail_open: bool, warn: Callable[[str], None]) -> None:
        self._recording = recording
        self._fail_open = fail_open
        self._warn = warn
        self._lock = threading.Lock()
        self.unrecorded = 0
        """Lines that went on without a record."""
        self.failed: Exception | None = None
        """Why nothing is recorded any more."""

    def may_pass(self, line: bytes, *, to_server: bool, is_whole: bool = True) -> bool:
        """Record a line; false when it must not go on."""
        with self._lock:
            if self.failed is None:
                try:
                    if is_whole:
                        self._recording.take(line, to_server=to_server)
                    else:
                        self._recording.too_long(line, to_server=to_server)
                except Exception as error:  # noqa: BLE001 - the traffic must end, or go on, in a defined way
                    self._give_up(error)
                else:
                    return True
            self.unrecorded += 1
            return self._fail_open

    def finish(self, status: int | None) -> None:
        """The end of the traffic; says what is not in the ledger."""
        with self._lock:
            if self.failed is None:
                try:
                    self._recording.end(status)
                except Exception as error:  # noqa: BLE001 - as above
                    self._give_up(error)
            if self.failed is None and not self._recording.recorded:
                self._warn("the tap recorded NOTHING: no message that it knows passed through it")
            elif self.unrecorded:
                self._warn(f"{self.unrecorded} lines passed or came that are NOT in the ledger")

    def _give_up(self, error: Exception) -> None:
        self.failed = error
        what = "everything goes on UNRECORDED" if self._fail_open else "the program is stopped"
        self._warn(f"the ledger cannot be written, {what}: {error}")


def run_tapped(command: Sequence[str], recording: Recording, *, fail_open: bool) -> int:
    """Run a program with its standard streams tapped; gives its exit status, below 0 for a signal."""
    guard = Guard(recording, fail_open=fail_open, warn=_warn)
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        raise InputError(f"{command[0]!r} cannot be started: {error.strerror}") from error
    assert child.stdin is not None and child.stdout is not None
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    with _forwarding(child):
        inward = threading.Thread(
            target=_pump, args=(source, child.stdin.fileno(), guard, True, child), daemon=True
        )
        inward.start()
        _pump(child.stdout.fileno(), sink, guard, False, child)
        status = _status(child, guard)
    guard.finish(status)
    return status if guard.failed is None or fail_open else 2


def _pump(source: int, sink: int, guard: Guard, to_server: bool, child: "subprocess.Popen[bytes]") -> None:
    """Pass lines on until the source ends, the sink is closed, or one must not go on."""
    with contextlib.suppress(BrokenPipeError):
        for line, is_whole, is_start in _lines(source):
            passes = True
            if is_whole and is_start:
                passes = guard.may_pass(line, to_server=to_server)
            elif is_start:
                passes = guard.may_pass(line, to_server=to_server, is_whole=False)
            if not passes:
                child.terminate()
                break
            _write(sink, line)
    if to_server and child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()


def _lines(source: int) -> Iterator[tuple[bytes, bool, bool]]:
    """Lines with their ends; of one that is too long, pieces: is it whole, and is it the start of a line."""
    held = bytearray()
    searched = 0
    is_start = True
    while piece := _read(source):
        held += piece
        while (end := held.find(b"\n", searched)) >= 0:
            line = bytes(held[: end + 1])
            del held[: end + 1]
            searched = 0
            yield line, is_start, is_start
            is_start = True
        searched = len(held)
        if len(held) > LONGEST_LINE:
            yield bytes(held), False, is_start
            held.clear()
            searched = 0
            is_start = False
    if held:
        yield bytes(held), is_start, is_start


def _read(source: int) -> bytes:
    try:
        return os.read(source, _PIECE)
    except OSError:
        return b""


def _write(sink: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(sink, view) :]


def _status(child: "subprocess.Popen[bytes]", guard: Guard) -> int:
    """How the child ended. One that is to end and does not is ended."""
    if child.stdout is not None:
        child.stdout.close()
    is_over = guard.failed is not None or (child.stdin is not None and child.stdin.closed)
    for end in (child.terminate, child.kill) if is_over else ():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(_GRACE_S)
        end()
    return child.wait()


@contextlib.contextmanager
def _forwarding(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Signals sent to the tap reach the child, which decides what becomes of both."""

    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _warn(text: str) -> None:
    sys.stderr.write(f"loopledger: {text}\n")
    sys.stderr.flush()
