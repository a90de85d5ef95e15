"""The checkpoints of all sessions, listed without reading a session: what a list shows, and no content."""

from pathlib import Path
from typing import NamedTuple

from ledger.events import Record
from ledger.events.recovery import CheckpointTaken
from ledger.store import EventStore
from ledger.views.view_file import ViewFile, column, optional_column, told_at

VERSION = 2
"""Number of what the rows mean: another number is another file."""

_TABLES = """
create table if not exists checkpoints (
    session text not null,
    taken integer not null,
    checkpoint_id text not null,
    seq integer not null,
    taken_by text not null,
    label text,
    files text,
    at text not null,
    primary key (session, taken)
) without rowid;
"""

SELECT = """
select checkpoint_id, seq, taken, taken_by, label, files, at
from checkpoints
where session = ?
order by taken
"""
"""The rows of one session; the yardstick of the benchmark is this query alone."""


class CheckpointRow(NamedTuple):
    """A checkpoint as a list shows it."""

    checkpoint_id: str
    """Its name."""

    seq: int
    """Record whose state it names."""

    taken: int
    """Record that took it."""

    taken_by: str
    """Who took it: loop, rule, source, human."""

    label: str | None
    """Label for people."""

    files: str | None
    """Digest of its files; None where it has none."""

    at: str
    """When: as the source says, or as it was recorded."""


class CheckpointsView(ViewFile):
    """The list, in a file of its own. Use as a context manager, or call `close()`."""

    _names = (CheckpointTaken.TYPE,)

    def __init__(self, home: Path, store: EventStore) -> None:
        name = f"checkpoints-v{VERSION}"
        super().__init__(home, store, name=name, script=_TABLES, tables=("checkpoints",))

    def rows(self, session: str) -> list[CheckpointRow]:
        """The checkpoints of a session, in the order in which they were taken."""
        return list(map(CheckpointRow._make, self._connection.execute(SELECT, (column(session),))))

    def _take(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, CheckpointTaken)
        row = (
            column(record.session),
            record.seq,
            column(event.checkpoint_id),
            record.seq - 1 if event.seq is None else event.seq,
            event.taken_by,
            optional_column(event.label),
            None if event.files is None else event.files.digest,
            told_at(record),
        )
        self._connection.execute("insert or replace into checkpoints values (?, ?, ?, ?, ?, ?, ?, ?)", row)
