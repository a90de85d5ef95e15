"""Where sessions part: forks, rollbacks, and what each model call cost, kept up by position. Reads no content."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import CheckpointTaken, RolledBack
from ledger.events.replaying import ReplayAnswered
from ledger.events.session import SessionForked
from ledger.store import EventStore
from ledger.views.session_row import Charge, charge_of
from ledger.views.view_file import ViewFile, column

VERSION = 1
"""Number of what the rows mean: another number is another file."""

_NAMES = tuple(
    event.TYPE for event in (SessionForked, RolledBack, CheckpointTaken, ModelCallAnswered, ReplayAnswered)
)

_TABLES = """
create table if not exists forks (
    session text primary key,
    origin text not null,
    at integer,
    seq integer not null,
    runs_again integer not null,
    left_seq integer,
    left_origin_seq integer
) without rowid;
create index if not exists forks_by_origin on forks (origin, at, session);
create table if not exists rollbacks (
    session text not null,
    seq integer not null,
    to_seq integer,
    primary key (session, seq)
) without rowid;
create table if not exists named (
    session text not null,
    checkpoint text not null,
    seq integer not null,
    primary key (session, checkpoint)
) without rowid;
create table if not exists spent (
    session text not null,
    seq integer not null,
    call_id text not null,
    tokens text not null,
    cost text,
    calls integer not null,
    primary key (session, seq)
) without rowid;
create index if not exists spent_by_call on spent (session, call_id);
create table if not exists given (
    session text not null,
    call_id text not null,
    primary key (session, call_id)
) without rowid;
"""


class ForkRow(NamedTuple):
    """A session that goes on from another one."""

    session: str
    """The session."""

    origin: str
    """Session that it goes on from."""

    at: int | None
    """Last seq of the origin that counts here; None where the source does not tell."""

    seq: int
    """Seq at which it says so."""

    runs_again: bool
    """Whether its own records repeat what it shares."""

    left_seq: int | None
    """In one that runs again: seq at which an answer came that is not the recorded one."""

    left_origin_seq: int | None
    """The recorded step that had another answer; None where nothing recorded fits."""


class RollbackRow(NamedTuple):
    """A rollback of a session."""

    seq: int
    """Seq at which it happened."""

    to_seq: int
    """Seq that it went back to."""


class SpentRow(NamedTuple):
    """What the answer of a model counts for."""

    seq: int
    """Seq of the answer."""

    charge: Charge
    """Calls, tokens, cost."""


class BranchesView(ViewFile):
    """Where sessions part, in a file of its own. Use as a context manager, or call `close()`."""

    _names = _NAMES

    def __init__(self, home: Path, store: EventStore) -> None:
        tables = ("forks", "rollbacks", "named", "spent", "given")
        super().__init__(home, store, name=f"branches-v{VERSION}", script=_TABLES, tables=tables)

    @property
    def store(self) -> EventStore:
        """The store that it shows."""
        return self._store

    # -- reading -----------------------------------------------------------------------------------------------------

    def fork(self, session: str) -> ForkRow | None:
        """Where a session goes on from; None for one that begins by itself."""
        found = self._connection.execute("select * from forks where session = ?", (session,)).fetchone()
        return None if found is None else _fork(found)

    def forks_of(self, origin: str) -> list[ForkRow]:
        """The sessions that go on from a session, the earliest place first."""
        found = self._connection.execute(
            "select * from forks where origin = ? and session <> origin order by at, session", (origin,)
        )
        return [_fork(row) for row in found]

    def rollbacks(self, session: str) -> list[RollbackRow]:
        """The rollbacks of a session whose target is known, in order."""
        found = self._connection.execute(
            "select seq, to_seq from rollbacks"
            " where session = ? and to_seq is not null and to_seq >= 0 and to_seq < seq order by seq",
            (session,),
        )
        return [RollbackRow._make(row) for row in found]

    def spent(self, session: str) -> Iterator[SpentRow]:
        """What the answers of models count for, in order; those given from a record count for nothing."""
        found = self._connection.execute(
            "select seq, calls, tokens, cost from spent where session = ? order by seq", (session,)
        )
        for seq, calls, tokens, cost in found:
            yield SpentRow(seq, Charge(calls, json.loads(tokens), cost))

    # -- keeping up --------------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        session, seq, execute = column(record.session), record.seq, self._connection.execute
        match record.event:
            case SessionForked() as event:
                execute(
                    "insert or ignore into forks values (?, ?, ?, ?, ?, null, null)",
                    (session, column(event.origin), event.origin_seq, seq, int(event.runs_again)),
                )
            case CheckpointTaken() as event:
                target = seq - 1 if event.seq is None else event.seq
                execute(
                    "insert or replace into named values (?, ?, ?)",
                    (session, column(event.checkpoint_id), target),
                )
            case RolledBack() as event:
                to_seq = event.to_seq
                if to_seq is None and event.checkpoint_id is not None:
                    to_seq = self._named(session, column(event.checkpoint_id))
                execute("insert or replace into rollbacks values (?, ?, ?)", (session, seq, to_seq))
            case ReplayAnswered() as event:
                self._answered_again(session, seq, event)
            case ModelCallAnswered() as event:
                self._charge(session, seq, event)
            case _:
                pass

    def _named(self, session: str, checkpoint: str) -> int | None:
        found = self._connection.execute(
            "select seq from named where session = ? and checkpoint = ?", (session, checkpoint)
        ).fetchone()
        return None if found is None else int(found[0])

    def _answered_again(self, session: str, seq: int, event: ReplayAnswered) -> None:
        if event.source != "recorded":
            self._connection.execute(
                "update forks set left_seq = ?, left_origin_seq = ? where session = ? and left_seq is null",
                (seq, event.origin_seq, session),
            )
        elif event.call_id is not None:
            self._connection.execute(
                "insert or ignore into given values (?, ?)", (session, column(event.call_id))
            )

    def _charge(self, session: str, seq: int, event: ModelCallAnswered) -> None:
        call_id = column(event.call_id)
        if event.revision > 0:
            self._connection.execute(
                "delete from spent where session = ? and seq ="
                " (select max(seq) from spent where session = ? and call_id = ?)",
                (session, session, call_id),
            )
        given = self._connection.execute(
            "select 1 from given where session = ? and call_id = ?", (session, call_id)
        ).fetchone()
        charge = charge_of(event)
        if given is not None:
            charge = charge._replace(tokens={}, cost_usd=None)
        self._connection.execute(
            "insert or replace into spent values (?, ?, ?, ?, ?, ?)",
            (session, seq, call_id, json.dumps(charge.tokens), charge.cost_usd, charge.calls),
        )


def _fork(row: tuple[Any, ...]) -> ForkRow:
    return ForkRow._make(row)._replace(runs_again=bool(row[4]))
