"""Writes one live session: one keeper and one lock for it, intents that fail closed, ends that never hide an error."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from ledger.capture.gates.holds import Holds
from ledger.capture.gates.meter import Meter, Whose
from ledger.capture.turns import Turns
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import (
    ConflictError,
    LedgerError,
    NotApprovedError,
    NotRecordedError,
    StoreUnavailableError,
)
from ledger.events import Actor, Draft, Event, Record
from ledger.events.record import Grade
from ledger.events.tool_call import EffectClass
from ledger.protocols.requests import RequestTaker
from ledger.recorder import ContextChain, Keeper, Recorder


@dataclass(frozen=True)
class Surroundings:
    """What is the same for a session and all that it delegates to."""

    recorder: Recorder
    """Writes."""

    monotonic: Callable[[], float] = time.monotonic
    """Seconds, for durations."""

    random: Callable[[], float] | None = None
    """Numbers from 0 up to 1, for `draw.random`."""

    meter: Meter | None = None
    """Budgets, where the loop has some."""

    turns: Turns = field(default_factory=Turns)
    """Order of what an asynchronous loop writes."""

    def limited(self, session: str, usd: Decimal | None) -> "Surroundings":
        """Those of a session that is handed work with so much to spend, itself and through others."""
        if usd is None:
            return self
        meter = self.meter or Meter(LoopPolicy(), self.monotonic, self.recorder.ids)
        meter.limit(session, usd)
        return replace(self, meter=meter)


class Watching(Protocol):
    """Looks at what happens beside the calls: files, and checkpoints by rule. Called with the journal's lock held."""

    def before(
        self, call_id: str, tool: str, arguments: Any, effect_class: EffectClass | None
    ) -> list[Draft]:
        """A call is about to be recorded, and then to run."""

    def after(self, call_id: str) -> list[Draft]:
        """A call has ended."""

    def compacting(self) -> list[Draft]:
        """The context is about to be replaced."""

    def taken(self, label: str | None, checkpoint_id: str) -> list[Draft]:
        """The loop asks for a checkpoint."""

    def counted(self, records: int) -> None:
        """So many records were appended."""

    def due(self) -> list[Draft]:
        """What is to be recorded before anything else."""


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
        self._is_charged = False
        self.edge: str | None = None
        """`FROM -> TO`, where another agent handed over to this one."""
        self.holds = Holds(surroundings.recorder.store, session)
        """Whether somebody holds the session."""
        self.watch: Watching | None = None
        """Looks at files and takes checkpoints by rule, where the loop asked for that."""
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
        expect: int | None = None,
    ) -> list[Record]:
        """Append to the session, and to others in the same transaction. Call with the lock held.

        `expect` names the seq that the session must be at: ConflictError otherwise.
        """
        try:
            records = self.surroundings.recorder.append_many(
                {self.session: drafts, **(others or {})},
                self.keep,
                durable=durable,
                expect=None if expect is None else {self.session: expect},
            )
            if drafts:
                self.holds.saw(records[0].seq, records[-1 if others is None else len(drafts) - 1].seq)
            if self.surroundings.meter is not None:
                self._charge(self.surroundings.meter, records)
            if self.watch is not None:
                self.watch.counted(len(drafts))
            return records
        except BaseException:
            self._fresh()  # what was staged belonged to this append; the next one brings all that it needs
            raise

    def wrote(self, records: Sequence[Record]) -> None:
        """Records of this session were written together with another's."""
        self.holds.saw(records[0].seq, records[-1].seq)
        if self.surroundings.meter is not None:
            self._charge(self.surroundings.meter, records)

    def _charge(self, meter: Meter, records: Sequence[Record]) -> None:
        """Take what was written from the budgets; one that is used up holds this session."""
        place = Whose(self.session, self.agent, self.depth, self.edge)
        if records[0].session == self.session and records[0].seq > 1 and not self._is_charged:
            past = self.surroundings.recorder.store.read(
                self.session, upto=records[0].seq - 1, names=meter.NAMES
            )
            meter.recall(place, past)
            if not self.depth:
                meter.recall_below(self.surroundings.recorder.store, self.session, self.agent)
        self._is_charged = True
        if self.holds.released:
            meter.released(self.holds.released)
            self.holds.released.clear()
        told = meter.charge(place, records)
        if told:
            system = Actor("system")
            self.holds.wrote(told)
            self.append([self.draft(event, actor=system) for event in told])

    def intent(self, what: str) -> "_Recording":
        """Around the recording of an intent. Raises NotRecordedError when it fails, whatever the reason."""
        return _Recording(self, what, NotRecordedError, ", so it was not started")

    def fact(self, what: str) -> "_Recording":
        """Around the recording of what has happened already. Raises StoreUnavailableError when it fails."""
        return _Recording(self, what, StoreUnavailableError, "; the ledger shows what was recorded before")

    def catch_up(self, *, is_last: bool = False) -> None:
        """Record what happened unseen since the last append."""
        if self.watch is not None and (due := self.watch.due()):
            self.append(due)
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
        if not isinstance(error, Exception) or isinstance(
            error, NotRecordedError | NotApprovedError | ConflictError
        ):
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
