"""The tables of a lake over records in memory: for sessions that are looked at while they run. Writes no file."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from ledger.lake.connection import connect_files, lock_up
from ledger.lake.feed import Stored
from ledger.lake.rows import Rows

_MOST_ROWS = 500_000


class MemoryLake:
    """The last records of the sessions that are added to; the session that was quiet longest goes first."""

    def __init__(
        self, contents: Callable[[list[str]], Mapping[str, bytes]], *, most: int = _MOST_ROWS
    ) -> None:
        self._contents = contents
        self._most = most
        self._reached: OrderedDict[str, int] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self.connection = connect_files([])
        lock_up(self.connection, None)
        """All tables of a lake, over what was added."""

    def reached(self, session: str) -> int:
        """The last seq of a session that is here; 0 when none is."""
        return self._reached.get(session, 0)

    def add(self, session: str, records: Iterable[Stored]) -> None:
        """Take in what came to a session since `reached`."""
        rows = Rows(self._contents)
        for stored in records:
            rows.add(stored)
            self._reached[session] = stored.seq
        if not rows.size:
            return
        table = rows.table()
        self.connection.register("came", table)
        self.connection.execute(
            "insert into events by name select *, recorded_at::date as recorded_date from came"
        )
        self.connection.unregister("came")
        self._reached.move_to_end(session)
        self._sizes[session] = self._sizes.get(session, 0) + rows.size
        while sum(self._sizes.values()) > self._most and len(self._reached) > 1:
            self._forget(next(iter(self._reached)))

    def _forget(self, session: str) -> None:
        self.connection.execute("delete from events where session = ?", [session])
        del self._reached[session], self._sizes[session]
