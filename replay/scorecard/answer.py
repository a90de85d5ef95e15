"""What a scorecard says: six questions to a loop, each answered from records, with the records, or "no evidence"."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ledger.events import Record

NO_EVIDENCE = "no evidence"
"""The answer where nothing on record tells."""

_MOST_WITNESSES = 5

QUESTIONS: dict[str, str] = {
    "restart": "Does work survive a restart?",
    "sight": "What can executing code see?",
    "pauses": "Which actions pause by the runtime?",
    "capability": "Does capability load on demand, or ride every turn?",
    "rebuild": "Can a run be rebuilt from its traces?",
    "leaving": "What would be lost on leaving?",
}
"""The questions by key, in their order."""


class Witness(NamedTuple):
    """A record that an answer rests on."""

    place: str
    """The record, as `SESSION#SEQ`."""

    what: str
    """What it shows."""


@dataclass
class Evidence:
    """The first records of each sort that an answer rests on, and how many there are."""

    counts: dict[str, int] = field(default_factory=dict)
    """Records by sort."""
    witnesses: list[Witness] = field(default_factory=list)
    """The first few of each sort."""

    def add(self, record: Record, what: str) -> None:
        """One more record."""
        self.counts[what] = self.counts.get(what, 0) + 1
        if self.counts[what] <= _MOST_WITNESSES:
            self.witnesses.append(Witness(record.place, what))

    def __getitem__(self, what: str) -> int:
        return self.counts.get(what, 0)

    def __bool__(self) -> bool:
        return bool(self.counts)


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    question: str
    """Key of the question."""

    answer: str
    """In a word or two; `no evidence` where nothing on record tells."""

    told: str
    """In a sentence."""

    witnesses: tuple[Witness, ...] = ()
    """Records that it rests on."""

    facts: dict[str, Any] = field(default_factory=dict)
    """Numbers behind it."""

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "question": self.question,
            "asks": QUESTIONS[self.question],
            "answer": self.answer,
            "told": self.told,
            "evidence": [{"place": one.place, "what": one.what} for one in self.witnesses],
            "facts": self.facts,
        }


def nothing(question: str, told: str, **facts: Any) -> Answer:
    """No evidence, and why not."""
    return Answer(question, NO_EVIDENCE, told, (), facts)


class Asker(Protocol):
    """Asks one question of one session: sees its records in order. Holds memory that does not grow with them."""

    def take(self, record: Record) -> None:
        """One more record."""

    def answer(self) -> Answer:
        """The answer, when all were seen."""


@dataclass(frozen=True)
class Card:
    """The answers of one session."""

    session: str
    """The session."""

    harness: str | None
    """Program that ran it."""

    answers: tuple[Answer, ...]
    """One for each question."""

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "session": self.session,
            "harness": self.harness,
            "answers": [answer.as_json() for answer in self.answers],
        }


def some(words: Iterable[str], most: int = 5) -> str:
    """A few words, in their order."""
    listed = list(words)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
