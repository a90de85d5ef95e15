"""Lets answers out in the order in which they ended when they were recorded.

Whoever must wait gets a `Future`: a thread waits for its result, a coroutine wraps it. Nothing here reads a clock.
"""

import threading
from concurrent.futures import Future
from typing import NamedTuple

from replay.recordings import Recording


class _Waiting(NamedTuple):
    entry: Recording
    turn: "Future[None]"


class Gate:
    """The order of one run. An answer waits for those that ended before it did, but for those that began after its own
    first byte: these may have been asked for because of it, while it still streamed.
    """

    def __init__(self, entries: list[Recording]) -> None:
        self._order = sorted((one for one in entries if one.ended is not None), key=_end)
        self._out: set[int] = set()
        self._rank = {id(entry): rank for rank, entry in enumerate(self._order)}
        self._last: dict[tuple[str, str], Recording] = {}
        for one in sorted(entries, key=lambda one: one.started):
            if one.protocol is not None and one.lane is not None:
                self._last[one.session, one.lane] = one
        self._low = 0
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()

    def turn(self, entry: Recording) -> "Future[None]":
        """Done as soon as the answer may go out."""
        turn: Future[None] = Future()
        with self._lock:
            if self._before(entry):
                self._waiting.append(_Waiting(entry, turn))
                return turn
        turn.set_result(None)
        return turn

    def follows_an_end(self, entry: Recording) -> bool:
        """Whether the answer just before was the last one of another conversation: its agent has ended with it.

        What the harness makes of that end takes it some time, and comes in the order of these ends.
        """
        rank = self._rank.get(id(entry), 0)
        before = self._order[rank - 1] if rank else None
        if before is None or before.session != entry.session or before.lane in (None, entry.lane):
            return False
        return self._last.get((before.session, str(before.lane))) is before

    def before(self, entry: Recording) -> list[Recording]:
        """What an answer waits for."""
        with self._lock:
            return self._before(entry)

    def out(self, entry: Recording) -> None:
        """An answer is out, or is not waited for any longer."""
        with self._lock:
            rank = self._rank.get(id(entry))
            if rank is not None:
                self._out.add(rank)
                while self._low in self._out:
                    self._out.discard(self._low)
                    self._low += 1
            free = [one for one in self._waiting if not self._before(one.entry)]
            self._waiting = [one for one in self._waiting if one not in free]
        _release(free)

    def open(self) -> None:
        """Let everybody go: the replay has stopped."""
        with self._lock:
            free, self._waiting = self._waiting, []
        _release(free)

    def _before(self, entry: Recording) -> list[Recording]:
        rank = self._rank.get(id(entry))
        if rank is None:
            return []
        begun = entry.first_byte
        return [
            one
            for at in range(self._low, rank)
            if at not in self._out
            and (one := self._order[at]).session == entry.session
            and not (begun is not None and one.started >= begun)
            and one.protocol is not None
        ]


def _end(entry: Recording) -> tuple[int, int]:
    return (entry.ended or 0, entry.answer_seq or 0)


def _release(free: list[_Waiting]) -> None:
    for one in free:
        if one.turn.set_running_or_notify_cancel():
            one.turn.set_result(None)
