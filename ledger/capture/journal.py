"""Writes one live session: one keeper and one lock for it, intents that fail closed, ends that never hide an error."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ledger.errors import LedgerError, NotRecordedError, StoreUnavailableError
from ledger.events import Actor, Draft, Event, Record
from ledger.events.record import Grade
from ledger.protocols.requests import RequestTaker
from ledger.recorder import ContextChain, Keeper, Recorder


class Surroundings(NamedTuple):
    """What is the same for a session and all that it delegates to."""

    recorder: Recorder
    """Writes."""

    monotonic: Callable[[], float] = time.monotonic
    """Seconds, for durations."""

    random: Callable[[], float] | None = None
    """Numbers from 0 up to 1, for `draw.random`."""


class Journal:
    """The session's one way to the recorder. Threads may share it."""

    def __init__(
        self,
        surroundings: Surroundings,
        session: str,
        *,
        agent: str | None,
        correlation: str,
        depth: int,
        grade: Grade = "wire",
    ) -> None:
        self.surroundings = surroundings
        self.session = session
        self.agent = agent
        self.correlation = correlation
        self.depth = depth
        self._actor = Actor("agent", agent)
        self.grade: Grade = grade
        """What is told without a grade of its own is of this one: `wire` where the loop's own calls are wrapped."""
        self.lock = threading.RLock()
        """Held from the first content of an append to its end: what is staged belongs to that append."""
        self.waiting: list[Callable[[bool], bool]] = []
        """Asked before the next append, to record first what happened before it; told whether it is the last.
        Those that answer true are asked again."""
        self._fresh()

    def _fresh(self) -> None:
        self.keep: Keeper = self.surroundings.recorder.keeper()
        self.requests = RequestTaker(self.keep)
        self.chains: dict[str, ContextChain] = {}

    def chain(self, purpose: str) -> ContextChain:
        """The context of the calls of one purpose: side calls do not cut the main conversation."""
        return self.chains.setdefault(purpose, ContextChain(self.keep))

    def new_id(self) -> str:
        """An id from the recorder's source of them."""
        return self.surroundings.recorder.ids()

    def draft(
        self,
        event: Event,
        *,
        actor: Actor | None = None,
        cause: int | None = None,
        grade: Grade | None = None,
    ) -> Draft:
        """An event with what this session knows around it."""
        grade = grade or self.grade
        return Draft(
            event,
            # Below `wire` somebody tells us; the stamp of the ledger is then not taken for the time of the fact.
            occurred_at=None if grade == "wire" else self.surroundings.recorder.clock(),
            actor=actor or self._actor,
            cause=cause,
            correlation=self.correlation,
            agent=self.agent,
            depth=self.depth,
            grade=grade,
        )

    def append(
        self,
        drafts: Sequence[Draft],
        *,
        others: Mapping[str, Sequence[Draft]] | None = None,
        durable: bool = False,
    ) -> list[Record]:
        """Append to the session, and to others in the same transaction. Call with the lock held."""
        try:
            return self.surroundings.recorder.append_many(
                {self.session: drafts, **(others or {})}, self.keep, durable=durable
            )
        except BaseException:
            self._fresh()  # what was staged belonged to this append; the next one brings all that it needs
            raise

    def intent(self, what: str) -> "_Recording":
        """Around the recording of an intent. Raises NotRecordedError when it fails, whatever the reason."""
        return _Recording(self, what, NotRecordedError, ", so it was not started")

    def fact(self, what: str) -> "_Recording":
        """Around the recording of what has happened already. Raises StoreUnavailableError when it fails."""
        return _Recording(self, what, StoreUnavailableError, "; the ledger shows what was recorded before")

    def catch_up(self, *, is_last: bool = False) -> None:
        """Record what happened unseen since the last append."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        self.waiting += [look for look in waiting if look(is_last)]


class _Recording:
    """Holds the journal's lock around one recording; says what it was when that fails."""

    __slots__ = ("_journal", "_kind", "_outcome", "_what")

    def __init__(self, journal: Journal, what: str, kind: type[LedgerError], outcome: str) -> None:
        self._journal = journal
        self._what = what
        self._kind = kind
        self._outcome = outcome

    def __enter__(self) -> None:
        self._journal.lock.acquire()
        try:
            self._journal.catch_up()
        except BaseException:
            self._journal.lock.release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._journal.lock.release()
        if not isinstance(error, Exception) or isinstance(error, NotRecordedError):
            return
        raise self._kind(
            f"{self._what} of session {self._journal.session} could not be recorded{self._outcome}: {error}"
        ) from error


@contextmanager
def beside(error: BaseException) -> Iterator[None]:
    """Around the recording of a failure: when that fails too, the loop's own error goes on, with a note."""
    try:
        yield
    except Exception as second:  # noqa: BLE001 - the first error is what the caller must see
        error.add_note(f"loopledger could not record this failure: {second}")
