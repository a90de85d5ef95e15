"""The events of all sessions as a list wants them: windows by seq, filtered, and sums of stretches for an overview.

Made from records, remade at will. Holds no content; the rows of one window cost the same anywhere in a session.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledger.errors import LedgerError
from ledger.events import Record
from ledger.events.model_call import ModelCallAnswered
from ledger.events.review import FindingRaised
from ledger.store import EventStore
from ledger.store.mapper import decode_record
from ledger.views.event_row import LEVELS, EventRow, level_of_severity, row_of
from ledger.views.view_file import ViewFile, column, optional_column

VERSION = 3
"""Number of what the rows mean: another number is another file."""

STRETCH = 16
"""Records of a session whose sums are kept together."""

_BATCH = 1000
_UNREADABLE = "this record cannot be read; `loopledger verify` names what is wrong"

_TABLES = """
create table if not exists sessions (
    number integer primary key,
    id text not null unique
);
create table if not exists events (
    session integer not null,
    seq integer not null,
    type text not null,
    level integer not null,
    agent text,
    at text,
    said text not null,
    tokens integer not null,
    findings integer not null,
    tool text,
    cost_usd real,
    primary key (session, seq)
) without rowid;
create index if not exists tools_of_events on events (session, seq, tool) where tool is not null;
create index if not exists costs_of_events on events (session, seq, cost_usd) where cost_usd is not null;
create index if not exists weighty_events on events (session, seq) where level > 0;
create table if not exists stretches (
    session integer not null,
    stretch integer not null,
    low integer not null,
    medium integer not null,
    high integer not null,
    tokens integer not null,
    primary key (session, stretch)
) without rowid;
create table if not exists answers (
    session integer not null,
    call_id text not null,
    seq integer not null,
    primary key (session, call_id)
) without rowid;
create table if not exists kinds (
    session integer not null,
    type text not null,
    agent text not null,
    events integer not null,
    primary key (session, type, agent)
) without rowid;
"""

_HAS_TEXT = (
    "(said like ? escape '\\' or type like ? escape '\\'"
    " or (instr(said, char(0)) > 0 and instr(lower(said), lower(?)) > 0))"
)
"""`like` makes no copy of each row as `lower` does, but sees nothing behind a NUL."""

_COLUMNS = "seq, type, level, agent, at, said, tokens, findings"


class Wanted(NamedTuple):
    """Which events of a session are wanted; the defaults want all."""

    kind: str = ""
    """A type such as `tool_call.settled`, or a family such as `tool_call`."""

    level: str = ""
    """The least level."""

    agent: str = ""
    """Agent that acted."""

    text: str = ""
    """Text that the row contains, in any case of letters."""

    first: int = 0
    """The least seq."""

    last: int = 0
    """The greatest seq; 0 for the last of the session."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not any(self)

    def condition(self) -> tuple[str, list[Any]]:
        """As SQL after `where session = ?`, and its values."""
        parts: list[str] = []
        values: list[Any] = []
        if self.kind:
            parts.append("(type = ? or substr(type, 1, ?) = ?)")
            values += [self.kind, len(self.kind) + 1, f"{self.kind}."]
        if self.level and self.level != LEVELS[0]:
            parts.append("level > 0 and level >= ?")
            values.append(LEVELS.index(self.level))
        if self.agent:
            parts.append("agent = ?")
            values.append(self.agent)
        if self.text:
            parts.append(_HAS_TEXT)
            part = "".join(f"\\{char}" if char in "%_\\" else char for char in self.text)
            values += [f"%{part}%", f"%{part}%", self.text]
        if self.first:
            parts.append("seq >= ?")
            values.append(self.first)
        if self.last:
            parts.append("seq <= ?")
            values.append(self.last)
        return "".join(f" and {part}" for part in parts), values


class Bucket(NamedTuple):
    """Sums of some stretches that follow each other."""

    first: int
    """First seq."""
    low: int
    """Events at the lowest level."""
    medium: int
    """Events at the middle level."""
    high: int
    """Events at the highest level."""
    tokens: int
    """Tokens of models."""

    @property
    def events(self) -> int:
        """All events."""
        return self.low + self.medium + self.high


class Kind(NamedTuple):
    """How often a type of event was caused by an agent."""

    type: str
    """Stored name."""
    agent: str
    """The agent; empty where nobody is named."""
    events: int
    """How often."""


class EventsView(ViewFile):
    """The list of one store, in a file of its own. `say` puts the fields of a record in few words."""

    def __init__(self, home: Path, store: EventStore, say: Callable[[Record], str]) -> None:
        tables = ("sessions", "events", "stretches", "answers", "kinds")
        super().__init__(home, store, name=f"events-v{VERSION}", script=_TABLES, tables=tables)
        self._say = say

    # -- keeping up --------------------------------------------------------------------------------------------------

    def _batch(self) -> bool:
        """Take in some records, in one transaction; whether there may be more."""
        with self._transaction():
            position = self._checked_position()
            found = self._store.recorder.select_notifications(
                position, _BATCH, None, (), inclusive_of_start=False
            )
            if not found:
                return False
            numbers: dict[str, int] = {}
            raised: list[tuple[str, str]] = []
            rows: list[tuple[int, EventRow]] = []
            answers: list[tuple[int, int, ModelCallAnswered]] = []
            for item in found:
                session = str(item.originator_id)
                if session not in numbers:
                    numbers[session] = self._number(session, make=True)
                try:
                    record = decode_record(item)
                    row = _kept(row_of(record, self._say(record)))
                    if isinstance(record.event, FindingRaised):
                        raised += [(place, record.event.severity) for place in record.event.witnesses]
                    if isinstance(record.event, ModelCallAnswered) and (row.tokens or row.cost_usd):
                        answers.append((numbers[session], record.seq, record.event))
                except LedgerError:
                    row = EventRow(
                        item.originator_version, column(item.topic), len(LEVELS) - 1, None, None, _UNREADABLE
                    )
                rows.append((numbers[session], row))
            self._insert(rows)
            for number, seq, answer in answers:
                self._count_once(number, seq, answer)
            for place, severity in raised:
                self._raise(place, severity)
            self._show(found[-1].id)
        return len(found) == _BATCH

    def _insert(self, rows: Sequence[tuple[int, EventRow]]) -> None:
        self._connection.executemany(
            "insert or replace into events values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *row) for number, row in rows],
        )
        sums: dict[tuple[int, int], list[int]] = {}
        kinds: dict[tuple[int, str, str], int] = {}
        for number, row in rows:
            counts = sums.setdefault((number, (row.seq - 1) // STRETCH), [0, 0, 0, 0])
            counts[row.level] += 1
            counts[3] += row.tokens
            kind = (number, row.type, row.agent or "")
            kinds[kind] = kinds.get(kind, 0) + 1
        self._connection.executemany(
            "insert into stretches values (?, ?, ?, ?, ?, ?) on conflict do update set low = low + excluded.low,"
            " medium = medium + excluded.medium, high = high + excluded.high, tokens = tokens + excluded.tokens",
            [(*key, *counts) for key, counts in sums.items()],
        )
        self._connection.executemany(
            "insert into kinds values (?, ?, ?, ?) on conflict do update set events = events + excluded.events",
            [(*key, count) for key, count in kinds.items()],
        )

    def _count_once(self, number: int, seq: int, answer: ModelCallAnswered) -> None:
        """A fuller reading of an answer counts in the place of the one before."""
        call = (number, column(answer.call_id))
        if answer.revision:
            before = self._connection.execute(
                "select e.seq, e.tokens from answers a join events e on e.session = a.session and e.seq = a.seq"
                " where a.session = ? and a.call_id = ?",
                call,
            ).fetchone()
            if before is not None:
                self._connection.execute(
                    "update events set tokens = 0, cost_usd = null where session = ? and seq = ?",
                    (number, before[0]),
                )
                self._connection.execute(
                    "update stretches set tokens = tokens - ? where session = ? and stretch = ?",
                    (before[1], number, (before[0] - 1) // STRETCH),
                )
        self._connection.execute("insert or replace into answers values (?, ?, ?)", (*call, seq))

    def _raise(self, place: str, severity: str) -> None:
        """A finding names a record as witness: the record counts at least as the finding does."""
        session, _, seq = place.rpartition("#")
        number = self._number(session)
        if not number or not seq.isascii() or not seq.isdigit() or len(seq) > 18:
            return
        level = LEVELS.index(level_of_severity(severity))
        found = self._connection.execute(
            "select level from events where session = ? and seq = ?", (number, int(seq))
        ).fetchone()
        if found is None:
            return
        self._connection.execute(
            "update events set level = max(level, ?), findings = findings + 1 where session = ? and seq = ?",
            (level, number, int(seq)),
        )
        if level > found[0]:
            old, new = LEVELS[found[0]], LEVELS[level]
            self._connection.execute(
                f"update stretches set {old} = {old} - 1, {new} = {new} + 1"  # noqa: S608 - our own names
                " where session = ? and stretch = ?",
                (number, (int(seq) - 1) // STRETCH),
            )

    def _number(self, session: str, *, make: bool = False) -> int:
        name = column(session)
        if make:
            self._connection.execute("insert or ignore into sessions (id) values (?)", (name,))
        found = self._connection.execute("select number from sessions where id = ?", (name,)).fetchone()
        return int(found[0]) if found else 0

    # -- reading -----------------------------------------------------------------------------------------------------

    def head(self, session: str) -> int:
        """Last seq of a session that the rows show; 0 for none."""
        found = self._connection.execute(
            "select max(seq) from events where session = ?", (self._number(session),)
        ).fetchone()
        return int(found[0] or 0)

    def window(
        self, session: str, wanted: Wanted, *, first: int, count: int, back: bool = False
    ) -> list[EventRow]:
        """So many rows from a seq on, in order; `back`: those up to it."""
        condition, values = wanted.condition()
        side, order = ("<=", "desc") if back else (">=", "asc")
        found = self._connection.execute(
            f"select {_COLUMNS} from events where session = ? and seq {side} ?{condition}"  # noqa: S608
            f" order by seq {order} limit ?",
            (self._number(session), first, *values, count),
        ).fetchall()
        rows = [EventRow(*row) for row in found]
        return rows[::-1] if back else rows

    def counts(self, session: str, wanted: Wanted, before: int) -> tuple[int, int]:
        """How many rows are wanted, and how many of those have a smaller seq: in one pass."""
        condition, values = wanted.condition()
        found = self._connection.execute(
            f"select count(*), count(*) filter (where seq < ?) from events where session = ?{condition}",  # noqa: S608
            (before, self._number(session), *values),
        ).fetchone()
        return int(found[0]), int(found[1])

    def bounds(self, session: str, wanted: Wanted, size: int) -> list[int]:
        """First seq of each window of `size` rows."""
        condition, values = wanted.condition()
        found = self._connection.execute(
            "select seq from (select seq, row_number() over (order by seq) as place from events"  # noqa: S608
            f" where session = ?{condition}) where place % ? = 1 % ? order by seq",
            (self._number(session), *values, size, size),
        )
        return [int(seq) for (seq,) in found]

    def buckets(self, session: str, most: int) -> list[Bucket]:
        """The sums of a session in at most so many buckets of equal length."""
        number = self._number(session)
        last = self._connection.execute(
            "select max(stretch) from stretches where session = ?", (number,)
        ).fetchone()[0]
        width = -(-((last or 0) + 1) // most)
        found = self._connection.execute(
            "select min(stretch) / ? * ? * ? + 1, sum(low), sum(medium), sum(high), sum(tokens)"
            " from stretches where session = ? group by stretch / ? order by 1",
            (width, width, STRETCH, number, width),
        )
        return list(map(Bucket._make, found))

    def width(self, session: str, most: int) -> int:
        """Records in each of the buckets that `buckets` gives."""
        stretches = -(-self.head(session) // STRETCH)
        return STRETCH * max(1, -(-stretches // most))

    def tools(self, session: str, width: int) -> list[tuple[int, str, int]]:
        """How often each tool was asked for in each window of so many records: first seq, tool, how often."""
        found = self._connection.execute(
            "select (seq - 1) / ? * ? + 1, tool, count(*) from events"
            " where session = ? and tool is not null group by 1, 2 order by 1, 2",
            (width, width, self._number(session)),
        )
        return [(int(first), str(tool), int(count)) for first, tool, count in found]

    def costs(self, session: str, width: int) -> list[tuple[int, float]]:
        """What models cost in each window of so many records, where the source says: first seq, USD."""
        found = self._connection.execute(
            "select (seq - 1) / ? * ? + 1, sum(cost_usd) from events"
            " where session = ? and cost_usd is not null group by 1 order by 1",
            (width, width, self._number(session)),
        )
        return [(int(first), float(cost)) for first, cost in found]

    def kinds(self, session: str) -> list[Kind]:
        """How often each type of event was caused by each agent."""
        found = self._connection.execute(
            "select type, agent, events from kinds where session = ? order by type, agent",
            (self._number(session),),
        )
        return list(map(Kind._make, found))

    def kinds_between(self, session: str, first: int, last: int) -> list[tuple[str, int]]:
        """How often each type happened from one seq to another, the most frequent first."""
        found = self._connection.execute(
            "select type, count(*) from events where session = ? and seq between ? and ?"
            " group by type order by count(*) desc, type",
            (self._number(session), first, last),
        )
        return [(str(name), int(count)) for name, count in found]


def _kept(row: EventRow) -> EventRow:
    """The row in text that a database takes."""
    return row._replace(
        agent=optional_column(row.agent),
        at=optional_column(row.at),
        said=column(row.said),
        tool=optional_column(row.tool),
    )


__all__ = ["Bucket", "EventRow", "EventsView", "Kind", "Wanted"]
