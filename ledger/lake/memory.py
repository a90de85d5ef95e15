"""The tables of a lake over records in memory: for sessions that are looked at while they run. Writes no file."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping

from ledger.lake.columns import RECORDED_DATE, SCHEMA
from ledger.lake.connection import OWN, Config, connect_files, lock_up
from ledger.lake.feed import Stored
from ledger.lake.reading import columns_read
from ledger.lake.rows import Rows

_MOST_ROWS = 500_000
_ALWAYS = ("session", "seq", "type", "recorded_at")


class MemoryLake:
    """The last records of the sessions that are added to; the session that was quiet longest goes first.

    With `queries`, only the columns that these need are kept: the others are NULL. One thread adds; others ask, each
    by a cursor of its own.
    """

    def __init__(
        self,
        contents: Callable[[list[str]], Mapping[str, bytes]],
        *,
        most: int = _MOST_ROWS,
        queries: Collection[str] | None = None,
    ) -> None:
        self._contents = contents
        self._most = most
        self._reached: OrderedDict[str, int] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._given: dict[str, set[str]] = {}
        self._rows = 0
        self._columns: list[str] | None = None
        config: Config = {}
        if queries is not None:
            needed = {*_ALWAYS, *columns_read(queries)}
            self._columns = [name for name in SCHEMA.names if name in needed]
            config = {"threads": 1}  # a slow query takes one core, and leaves the others to those beside it
        self._table = "events" if queries is None else OWN
        self.connection = connect_files([], config=config, columns=self._columns)
        """All tables of a lake, over what was added."""
        lock_up(self.connection, None)

    def reached(self, session: str) -> int:
        """The last seq of a session that was added; 0 when none is here."""
        return self._reached.get(session, 0)

    def add(self, session: str, records: Iterable[Stored], upto: int | None = None) -> None:
        """Take in what came to a session since `reached`, up to a seq where records that nobody wants are left out."""
        rows = Rows(self._contents, self._columns, self._given.setdefault(session, set()))
        for stored in records:
            rows.add(stored)
            self._reached[session] = stored.seq
        if upto is not None:
            self._reached[session] = upto
        if session in self._reached:
            self._reached.move_to_end(session)
        if not rows.size:
            return
        self.connection.register("came", rows.table())
        self.connection.execute(
            f"insert into {self._table} by name"  # noqa: S608 - one of two names of ours
            f" select *, recorded_at::date as {RECORDED_DATE.name} from came"
        )
        self.connection.unregister("came")
        self._sizes[session] = self._sizes.get(session, 0) + rows.size
        self._rows += rows.size
        while self._rows > self._most and len(self._reached) > 1:
            self._forget(next(iter(self._reached)))

    def _forget(self, session: str) -> None:
        self.connection.execute(f"delete from {self._table} where session = ?", [session])  # noqa: S608
        del self._reached[session]
        self._rows -= self._sizes.pop(session, 0)
        self._given.pop(session, None)
