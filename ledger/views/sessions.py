"""The list of sessions: one row for each, kept up with the ledger. Made from records, remade at will."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError
from ledger.store import EventStore, Problem
from ledger.store.mapper import decode_record
from ledger.views.session_row import Charge, SessionRow, apply
from ledger.views.view_file import ViewFile, optional_column

VERSION = 4
"""Number of what the rows mean: another number is another file."""

_BATCH = 2000

_TABLES = """
create table if not exists sessions (
    id text primary key,
    body blob not null,
    started_at text,
    parent text,
    head_seq integer not null
) without rowid;
create table if not exists calls (
    session text not null,
    call_id blob not null,
    charge blob not null,
    primary key (session, call_id)
) without rowid;
create table if not exists verifications (
    session text primary key,
    seq integer not null,
    problems integer not null
) without rowid;
create index if not exists sessions_by_time on sessions (started_at, id);
create index if not exists sessions_by_parent on sessions (parent, id);
"""


class SessionsView(ViewFile):
    """The list of sessions of one store, in a file of its own. Use as a context manager, or call `close()`."""

    def __init__(self, home: Path, store: EventStore) -> None:
        name, tables = f"sessions-v{VERSION}", ("sessions", "calls", "verifications")
        super().__init__(home, store, name=name, script=_TABLES, tables=tables)

    # -- keeping up --------------------------------------------------------------------------------------------------

    def _batch(self) -> bool:
        """Take in some records, in one transaction; whether there may be more."""
        with self._transaction():
            position = self._checked_position()
            rows = self._store.recorder.select_notifications(
                position, _BATCH, None, (), inclusive_of_start=False
            )
            if not rows:
                return False
            touched: dict[str, SessionRow] = {}
            for row in rows:
                session = str(row.originator_id)
                if session not in touched:
                    touched[session] = self.row(session) or SessionRow(session)
                entry = touched[session]
                try:
                    apply(entry, decode_record(row), self._earlier_charge, self._remember_charge)
                except LedgerError:
                    entry.head_seq, entry.damaged = row.originator_version, entry.damaged + 1
            self._connection.executemany(
                "insert or replace into sessions values (?, ?, ?, ?, ?)",
                [
                    (
                        row.id,
                        row.packed(),
                        optional_column(row.started_at),
                        optional_column(row.parent),
                        row.head_seq,
                    )
                    for row in touched.values()
                ],
            )
            self._show(rows[-1].id)
        return len(rows) == _BATCH

    def _earlier_charge(self, session: str, call_id: str) -> Charge | None:
        found = self._connection.execute(
            "select charge from calls where session = ? and call_id = ?", (session, _bytes(call_id))
        ).fetchone()
        return Charge.unpacked(found[0]) if found else None

    def _remember_charge(self, session: str, call_id: str, charge: Charge) -> None:
        self._connection.execute(
            "insert or replace into calls values (?, ?, ?)", (session, _bytes(call_id), charge.packed())
        )

    # -- reading -----------------------------------------------------------------------------------------------------

    def row(self, session: str) -> SessionRow | None:
        """The row of a session."""
        found = self._connection.execute(f"{_SELECT} where sessions.id = ?", (session,)).fetchone()
        return _row(found) if found else None

    def rows(self, last: int | None = None) -> Iterator[SessionRow]:
        """The rows, or the `last` of them: the first started first; those that tell no time before all others."""
        ordered = f"{_SELECT} order by sessions.started_at, sessions.id"
        if last is None:
            return self._rows(ordered, ())
        newest = f"{_SELECT} order by sessions.started_at desc, sessions.id desc limit ?"
        return reversed(list(self._rows(newest, (last,))))

    def newest(self, before: tuple[str, str] | None = None) -> Iterator[SessionRow]:
        """The rows, the last started first; `before`: those after this start (or empty text) and id in that order."""
        if before is None:
            return self._rows(f"{_SELECT} order by sessions.started_at desc, sessions.id desc", ())
        return self._rows(
            f"{_SELECT} where (coalesce(sessions.started_at, ''), sessions.id) < (?, ?)"
            " order by sessions.started_at desc, sessions.id desc",
            before,
        )

    def long(self, least: int) -> list[tuple[str, int]]:
        """Id and last seq of the sessions with at least so many records, the last started first."""
        query = "select id, head_seq from sessions where head_seq >= ? order by started_at desc, id desc"
        return self._connection.execute(query, (least,)).fetchall()

    def children(self, session: str) -> Iterator[SessionRow]:
        """Rows of the sessions that a session delegated to."""
        return self._rows(f"{_SELECT} where sessions.parent = ? order by sessions.id", (session,))

    def _rows(self, query: str, values: tuple[str | int, ...]) -> Iterator[SessionRow]:
        # The cursor ends with this generator, which may outlive the connection: then nothing is left to close.
        yield from map(_row, self._connection.execute(query, values))

    # -- verification ------------------------------------------------------------------------------------------------

    def note_verification(self, problems: Iterable[Problem], session: str | None = None) -> None:
        """Remember what a verification of a session, or of the whole ledger, found as far as the rows show it."""
        by_session = Counter(problem.session for problem in problems)
        with self._transaction():
            if session is None and None not in by_session:
                self._connection.execute(
                    "insert or replace into verifications select id, head_seq, 0 from sessions order by id"
                )
            elif session is None:
                self._connection.execute("delete from verifications")  # whose damage it is, nobody can say
            else:
                by_session.setdefault(session, 0)
            self._connection.executemany(
                "insert or replace into verifications select id, head_seq, ? from sessions where id = ?",
                [(count, name) for name, count in by_session.items() if name is not None],
            )


_SELECT = """
select sessions.id, sessions.body, verifications.seq, verifications.problems
from sessions left join verifications on verifications.session = sessions.id
"""


def _row(found: tuple[Any, ...]) -> SessionRow:
    identity, body, verified_seq, problems = found
    row = SessionRow.unpacked(identity, body)
    row.verified_seq, row.problems = verified_seq, problems or 0
    return row


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
