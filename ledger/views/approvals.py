"""The queue of approvals of the whole ledger, kept up by position: what waits is found without reading the ledger.

A row says only where the question and its answer stand; both are read from their records, which are the truth.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ledger.capture.gates.questions import APPROVALS, Question
from ledger.errors import LedgerError
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.store import EventStore
from ledger.views.view_file import ViewFile, column

VERSION = 1
"""Number of what the rows mean: another number is another file."""


_TABLES = """
create table if not exists questions (
    session text not null,
    approval_id text not null,
    position integer not null,
    asked integer not null,
    queued integer not null,
    decided integer,
    outcome text,
    used integer not null default 0,
    primary key (session, approval_id)
) without rowid;
create index if not exists questions_by_id on questions (approval_id, position);
create index if not exists questions_by_position on questions (position);
create index if not exists questions_open on questions (position) where decided is null and queued = 1;
"""

_SELECT = "select session, approval_id, position, asked, queued, decided, outcome, used from questions"


State = Literal["open", "decided", "all"]
"""Which questions: those that a loop waits for, those that were answered, all."""


class QuestionRow(NamedTuple):
    """Where a question and its answer stand."""

    session: str
    """Session that asks."""

    approval_id: str
    """The question; half characters are question marks."""

    position: int
    """Where in the ledger it was asked."""

    asked: int
    """Seq of the question."""

    is_queued: bool
    """Whether a loop waits for its answer through the ledger; others ask their own way and only tell."""

    decided: int | None
    """Seq of the first answer: the one that counts."""

    outcome: str | None
    """What it says."""

    used: int
    """How often it was used. A rollback of the session gives no use back."""


class ApprovalsView(ViewFile):
    """The queue, in a file of its own. Use as a context manager, or call `close()`."""

    _names = APPROVALS

    def __init__(self, home: Path, store: EventStore) -> None:
        super().__init__(home, store, name=f"approvals-v{VERSION}", script=_TABLES, tables=("questions",))

    # -- reading -----------------------------------------------------------------------------------------------------

    def open_rows(self, limit: int | None = None) -> list[QuestionRow]:
        """Questions that loops wait for, first asked first."""
        query = f"{_SELECT} where decided is null and queued = 1 order by position limit ?"
        return self._rows(query, (-1 if limit is None else limit,))

    def rows(self, session: str | None = None, limit: int | None = None) -> list[QuestionRow]:
        """All questions of the ledger or of a session, decided ones and those of other queues too."""
        where = "" if session is None else "where session = ?"
        values = (() if session is None else (column(session),)) + (-1 if limit is None else limit,)
        return self._rows(f"{_SELECT} {where} order by position limit ?", values)

    def page(self, state: State, session: str | None, after: int | None, limit: int) -> list[QuestionRow]:
        """Some of the questions, after the one that was asked at a position.

        Those that somebody waits for come first asked first; others last asked first.
        """
        where = {"open": "decided is null and queued = 1", "decided": "decided is not null", "all": "1 = 1"}[
            state
        ]
        values: list[Any] = []
        if session is not None:
            where += " and session = ?"
            values.append(column(session))
        is_open = state == "open"
        if after is not None:
            where += f" and position {'>' if is_open else '<'} ?"
            values.append(after)
        order = "asc" if is_open else "desc"
        return self._rows(f"{_SELECT} where {where} order by position {order} limit ?", (*values, limit))

    def of_id(self, approval_id: str, limit: int) -> list[QuestionRow]:
        """Questions of exactly this id, of whatever queue; sources may use an id in several sessions."""
        query = f"{_SELECT} where approval_id = ? order by position limit ?"
        return self._rows(query, (column(approval_id), limit))

    def open_count(self) -> int:
        """How many questions loops wait for."""
        query = "select count(*) from questions where decided is null and queued = 1"
        return int(self._connection.execute(query).fetchone()[0])

    def named(self, start: str, limit: int) -> list[QuestionRow]:
        """Queued questions whose id is, or starts with, a text; those that are named exactly first."""
        start = column(start)
        after = start + chr(0x10FFFF)
        query = (
            f"{_SELECT} where approval_id >= ? and approval_id < ? and queued = 1"
            " order by approval_id <> ?, position limit ?"
        )
        return self._rows(query, (start, after, start, limit))

    def questions(self, rows: list[QuestionRow]) -> Iterator[Question]:
        """The questions of rows, from their records. One whose record is damaged is left out: `verify` names it."""
        for row in rows:
            try:
                yield self._question(row)
            except LedgerError:
                continue

    def _question(self, row: QuestionRow) -> Question:
        asked = self._store.record(row.session, row.asked)
        assert isinstance(asked.event, ApprovalAsked)
        question = Question(row.session, asked.event, row.asked, _time(asked), asked.agent, used=row.used)
        if row.decided is not None:
            decided = self._store.record(row.session, row.decided)
            assert isinstance(decided.event, ApprovalDecided)
            question.decided, question.decided_seq = decided.event, row.decided
            question.decided_at = _time(decided)
        return question

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[QuestionRow]:
        found = self._connection.execute(query, values)
        return [QuestionRow._make(row)._replace(is_queued=bool(row[4])) for row in found]

    # -- keeping up --------------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        event, execute = record.event, self._connection.execute
        assert isinstance(event, ApprovalAsked | ApprovalDecided | ApprovalUsed)
        key = (column(record.session), column(event.approval_id))
        if isinstance(event, ApprovalAsked):
            execute(
                "insert or ignore into questions (session, approval_id, position, asked, queued)"
                " values (?, ?, ?, ?, ?)",
                (*key, record.position, record.seq, int(event.key is not None)),
            )
        elif isinstance(event, ApprovalDecided):
            execute(
                "update questions set decided = ?, outcome = ?"
                " where session = ? and approval_id = ? and decided is null",
                (record.seq, event.outcome, *key),
            )
        else:
            execute("update questions set used = used + 1 where session = ? and approval_id = ?", key)


def _time(record: Record) -> str:
    return record.occurred_at or record.recorded_at
