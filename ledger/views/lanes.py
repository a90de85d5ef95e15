"""Lanes: threads that look at sessions as these get records, each at its own pace. None waits for another."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from ledger.errors import StoreUnavailableError

_LOOKED_AT = 64  # of those that wait: the first and the last so many
_OLDEST_EVERY = 4
_AGAIN_S = 1.0
_TURN_S = 0.2
_BREATH_S = 0.02
_log = logging.getLogger(__name__)


@dataclass
class News:
    """What came to a session."""

    seq: int
    """Its last record."""

    names: set[str] = field(default_factory=set)
    """Events of which there are new ones."""

    def and_before(self, earlier: "News | None") -> "News":
        """Both together."""
        if earlier is None:
            return self
        return News(max(self.seq, earlier.seq), self.names | earlier.names)


class Road:
    """What the lanes of one audit share."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Over what waits in a lane; told of each change."""
        self.turn = threading.Lock()
        """Held by the lane that reads much."""


class Lane:
    """A thread and the sessions that it has still to look at, a stretch of one at a time."""

    def __init__(self, name: str, road: Road) -> None:
        self.name = name
        """What it is called in the log."""
        self.busy_since: float | None = None
        """When it began what it does now, by the monotonic clock; None: it waits."""
        self._changed = road.changed
        self._much = road.turn
        self._waiting: dict[str, News] = {}
        self._turn = 0
        self._is_over = False
        self._ends_by = float("inf")
        self._rests_until = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def reached(self, session: str) -> int:
        """The seq up to which it has looked at a session."""
        raise NotImplementedError

    def look(self, session: str, news: News) -> bool:
        """Look at a stretch of a session; whether that was all."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self, news: Mapping[str, News]) -> None:
        """More to look at."""
        with self._changed:
            for session, one in news.items():
                self._waiting[session] = one.and_before(self._waiting.get(session))
            self._changed.notify_all()

    def take_all(self) -> dict[str, News]:
        """All that waits, for a kind of lane that looks at it together."""
        with self._changed:
            waiting, self._waiting = self._waiting, {}
            return waiting

    def rest(self, seconds: float) -> None:
        """Do nothing for so long once this is done."""
        self._rests_until = time.monotonic() + seconds

    @contextmanager
    def reading(self, *, much: bool) -> Iterator[None]:
        """Reads a stretch. Of what is much, one lane at a time reads: two would be no faster, and who has little to
        read would wait for Python's lock. One that hangs is not waited for.
        """
        has_turn = much and self._much.acquire(timeout=_TURN_S)
        try:
            yield
        finally:
            if has_turn:
                self._much.release()
            if much:
                self.rest(_BREATH_S)

    def is_idle(self) -> bool:
        """Whether it has looked at all that it was told of."""
        return not self._waiting and self.busy_since is None

    def stop(self, ends_by: float) -> None:
        """No more will be told: end when all is looked at, or at that time of the monotonic clock."""
        with self._changed:
            self._is_over, self._ends_by = True, ends_by
            self._changed.notify_all()

    def join(self) -> bool:
        """Wait for its end, no longer than it was given; whether it had looked at everything."""
        self._thread.join(max(0.0, self._ends_by - time.monotonic()))
        return not self._thread.is_alive() and not self._waiting

    def _run(self) -> None:
        while (chosen := self._next()) is not None:
            session, news = chosen
            is_done = True
            try:
                is_done = self.look(session, news)
            except StoreUnavailableError:
                is_done = self._is_over
                if not self._is_over:
                    _log.exception("%s cannot read the ledger; it is tried again", self.name)
                    self.rest(_AGAIN_S)
            except Exception:  # noqa: BLE001 - the lane goes on with other sessions
                if not self._is_over:
                    _log.exception("%s: session %s is not looked at up to %s", self.name, session, news.seq)
            with self._changed:
                self.busy_since = None
                if not is_done:  # put last: others have their turn
                    self._waiting[session] = news.and_before(self._waiting.pop(session, None))
                self._changed.notify_all()

    def _next(self) -> tuple[str, News] | None:
        """The session that is looked at now; None at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                if now >= self._ends_by or (self._is_over and not self._waiting):
                    return None
                rests = 0 if self._is_over else self._rests_until - now
                if self._waiting and rests <= 0:
                    session = self._pick()
                    self.busy_since = now
                    return session, self._waiting.pop(session)
                self._changed.wait(rests if self._waiting else None)

    def _pick(self) -> str:
        """The one with the least to read, so that nobody waits for a long one; and now and then the oldest."""
        self._turn += 1
        if self._turn % _OLDEST_EVERY == 0:
            return next(iter(self._waiting))
        some = [*islice(self._waiting, _LOOKED_AT), *islice(reversed(self._waiting), _LOOKED_AT)]
        return min(some, key=lambda session: self._waiting[session].seq - self.reached(session))
