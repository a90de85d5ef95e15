"""The questions of sessions and their answers, folded from records: who waits and who decides read the same."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.store import EventStore

APPROVALS = (ApprovalAsked.TYPE, ApprovalDecided.TYPE, ApprovalUsed.TYPE)
"""Names of the events that this is folded from."""


@dataclass
class Question:
    """One question, as far as the records tell."""

    session: str
    """Session that asks."""

    asked: ApprovalAsked
    """The question."""

    asked_seq: int
    """Seq at which it was asked."""

    asked_at: str
    """RFC 3339 time at which it was asked."""

    agent: str | None = None
    """Agent that asks."""

    decided: ApprovalDecided | None = None
    """The first answer: the one that counts."""

    decided_seq: int | None = None
    """Seq of that answer."""

    decided_at: str | None = None
    """RFC 3339 time of that answer."""

    used: int = 0
    """How often the answer was used."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has answered it."""
        return self.decided is None

    @property
    def is_approved(self) -> bool:
        """Whether the answer is a yes."""
        return self.decided is not None and self.decided.outcome == "approved"

    @property
    def is_queued(self) -> bool:
        """Whether a loop waits for its answer through the ledger; others ask their own way and only tell."""
        return self.asked.key is not None


class Questions:
    """Those of one session or of many."""

    def __init__(self) -> None:
        self.by_id: dict[tuple[str, str], Question] = {}
        """By session and approval id, in the order in which they were asked."""

    def take(self, record: Record) -> None:
        """One more record, in order."""
        event, session = record.event, record.session
        if isinstance(event, ApprovalAsked):
            time = record.occurred_at or record.recorded_at
            question = Question(session, event, record.seq, time, record.agent)
            self.by_id.setdefault((session, event.approval_id), question)
            return
        if not isinstance(event, ApprovalDecided | ApprovalUsed):
            return
        found = self.by_id.get((session, event.approval_id))
        if found is None:
            return
        if isinstance(event, ApprovalUsed):
            found.used += 1
        elif found.decided is None:
            found.decided, found.decided_seq = event, record.seq
            found.decided_at = record.occurred_at or record.recorded_at

    def take_all(self, records: Iterable[Record]) -> None:
        """More records, in order."""
        for record in records:
            self.take(record)


class SessionQuestions:
    """The questions of one session, kept up to date as it grows. Threads may share it."""

    def __init__(self, store: EventStore, session: str) -> None:
        self._store = store
        self._session = session
        self._questions = Questions()
        self._lock = threading.Lock()
        self._seq = 0

    @property
    def seq(self) -> int:
        """The seq up to which it was read."""
        return self._seq

    def catch_up(self) -> int:
        """Read what was recorded since; gives the seq up to which it was read."""
        with self._lock:
            return self._catch_up()

    def look(self, approval_id: str) -> tuple[Question | None, int]:
        """A question as it stands at a seq, which is the last of the session by now."""
        with self._lock:
            seq = self._catch_up()
            found = self._questions.by_id.get((self._session, approval_id))
            return None if found is None else replace(found), seq

    def all(self) -> list[Question]:
        """All, last asked first."""
        with self._lock:
            return [replace(question) for question in reversed(self._questions.by_id.values())]

    def _catch_up(self) -> int:
        head = self._store.head(self._session).seq
        if head > self._seq:
            self._questions.take_all(
                self._store.read(self._session, after=self._seq, upto=head, names=APPROVALS)
            )
            self._seq = head
        return self._seq
