"""The replays of the whole ledger, kept up by position: which session replays which, and what it showed."""

from pathlib import Path
from typing import NamedTuple

from ledger.events import Record
from ledger.events.replaying import ReplayDiverged, ReplayEnded, ReplayJudged, ReplayStarted
from ledger.store import EventStore
from ledger.views.view_file import ViewFile, column, told_at

VERSION = 1
"""Number of what the rows mean: another number is another file."""

_NAMES = tuple(event.TYPE for event in (ReplayStarted, ReplayDiverged, ReplayEnded, ReplayJudged))

_TABLES = """
create table if not exists replays (
    session text primary key,
    origin text not null,
    origin_seq integer,
    position integer not null,
    level text not null,
    mode text not null,
    at text not null,
    verdict text,
    checked integer not null default 0,
    unchecked integer not null default 0,
    kind text,
    diverged integer,
    at_seq integer,
    judged text
) without rowid;
create index if not exists replays_by_origin on replays (origin, position);
"""

_SELECT = """
select
    session, origin, origin_seq, position, level, mode, at,
    verdict, checked, unchecked, kind, diverged, at_seq, judged
from replays
"""


class ReplayRow(NamedTuple):
    """A replay as a list shows it."""

    session: str
    """Its own session."""

    origin: str
    """Session that it replays."""

    origin_seq: int | None
    """Last record of that one that counts."""

    position: int
    """Where in the ledger it began."""

    level: str
    """What was to be proved: state, request, rerun, branch."""

    mode: str
    """What ran: check, wire, in_process."""

    at: str
    """When it began."""

    verdict: str | None
    """equal, diverged, incomplete; None while it runs, or where it was cut off."""

    checked: int
    """What was compared."""

    unchecked: int
    """What could not be."""

    kind: str | None
    """What differs, where it diverged."""

    diverged: int | None
    """Record of the replay that tells of it."""

    at_seq: int | None
    """First record of the origin that it is not equal to."""

    judged: str | None
    """What a person said of it last: drift, defect."""


class ReplaysView(ViewFile):
    """The list, in a file of its own. Use as a context manager, or call `close()`."""

    _names = _NAMES

    def __init__(self, home: Path, store: EventStore) -> None:
        super().__init__(home, store, name=f"replays-v{VERSION}", script=_TABLES, tables=("replays",))

    def rows(self, origin: str, limit: int) -> list[ReplayRow]:
        """The replays of a session, the last first."""
        query = f"{_SELECT} where origin = ? order by position desc limit ?"
        return [ReplayRow._make(row) for row in self._connection.execute(query, (column(origin), limit))]

    def row(self, session: str) -> ReplayRow | None:
        """The replay that a session is; None where it is none."""
        query = f"{_SELECT} where session = ?"
        found = self._connection.execute(query, (column(session),)).fetchone()
        return None if found is None else ReplayRow._make(found)

    def _take(self, record: Record) -> None:
        session, execute = column(record.session), self._connection.execute
        match record.event:
            case ReplayStarted() as event:
                execute(
                    "insert or ignore into replays (session, origin, origin_seq, position, level, mode, at)"
                    " values (?, ?, ?, ?, ?, ?, ?)",
                    (
                        session,
                        column(event.origin),
                        event.origin_seq,
                        record.position,
                        event.level,
                        event.mode,
                        told_at(record),
                    ),
                )
            case ReplayDiverged() as event:
                execute(
                    "update replays set kind = ?, diverged = ?, at_seq = ? where session = ? and diverged is null",
                    (column(event.kind), record.seq, event.origin_seq, session),
                )
            case ReplayEnded() as event:
                execute(
                    "update replays set verdict = ?, checked = ?, unchecked = ? where session = ?",
                    (event.verdict, event.checked, event.unchecked, session),
                )
            case ReplayJudged() as event:
                execute("update replays set judged = ? where session = ?", (event.verdict, session))
