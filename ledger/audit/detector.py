"""A detector: a head that says what it suspects and what it misses, and a query or a fold that finds it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ledger.audit.finding import Found, Level
from ledger.audit.reader import Reader
from ledger.events import Record
from ledger.events.review import Severity


class Given(NamedTuple):
    """What a fold is begun with."""

    session: str
    """The session whose records it will see."""

    reader: Reader
    """Looks up contents and what else it needs."""


class Fold(Protocol):
    """Sees the records of one session in order and says what it suspects. Holds memory that does not grow with it.

    It must give the same for the same records, whenever it is asked: no clock, no chance, no order of a set.
    """

    def take(self, record: Record) -> Iterable[Found]:
        """One more record: what shows now."""

    def end(self) -> Iterable[Found]:
        """What shows only when no more records come. May be asked again after further records."""


Start = Callable[[Given], Fold]
"""Begins a fold over one session."""


@dataclass(frozen=True)
class Detector:
    """One file of suspicions."""

    name: str
    """That of its file."""

    title: str
    """What it suspects, in few words."""

    severity: Severity
    """How bad that is, where a finding does not say otherwise."""

    why: str
    """Why it matters."""

    misses: str
    """What it cannot see."""

    reads: tuple[str, ...]
    """For a fold: the events that it wants, by stored name, all if empty. For a query: the tables; where it names
    events, too, its answer rests on no others than these and those of the tables."""

    source: str
    """Where the idea comes from."""

    level: Level
    """Whether one action alone shows it, or only several together."""

    is_experimental: bool
    """Off unless asked for: it has not been shown to beat its trivial baseline."""

    digest: str
    """Digest of its text, its first 16 digits."""

    place: str
    """Its file, for messages."""

    sql: str | None = None
    """The query, for one of SQL."""

    start: Start | None = None
    """Begins a fold, for one of Python."""

    is_own: bool = False
    """Whether it is the user's own, and neither shipped nor installed."""

    is_live: bool = True
    """Whether it looks at sessions while they run; not where it compares sessions: those that ended are not seen."""

    is_shipped: bool = False
    """Whether it is one of ours: those of others are not let keep ours waiting."""

    broken: str | None = None
    """Why it cannot be used: it has neither query nor fold then. None: it can."""

    @classmethod
    def unusable(cls, name: str, place: str, error: str) -> "Detector":
        """What stands for a file that is no detector, so that it is told of and the others run."""
        title, misses = "Cannot be used", "Everything, as long as it cannot be used."
        return cls(name, title, "info", error, misses, (), "-", "trajectory", False, "", place, broken=error)
