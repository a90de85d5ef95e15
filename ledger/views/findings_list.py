"""The findings of all sessions, and what people said of them, listed without reading a session. Holds no content."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledger.audit import SEVERITIES
from ledger.errors import InputError
from ledger.events import Record
from ledger.events.review import FindingRaised, NoteWritten, VerdictGiven
from ledger.store import EventStore
from ledger.views.finding_rows import (
    FindingGroup,
    FindingRow,
    NoteRow,
    Order,
    SessionRisk,
    Sought,
    VerdictRow,
)
from ledger.views.view_file import ViewFile, column, optional_column, told_at

VERSION = 1
"""Number of what the rows mean: another number is another file."""

_MOST_WITNESSES = 1000
_TOLD = 5

_TABLES = """
create table if not exists findings (
    number integer primary key,
    id text not null unique,
    session text not null,
    seq integer not null,
    detector text not null,
    severity integer not null,
    level text,
    version text,
    message text not null,
    witnesses text not null,
    at text not null,
    verdict text not null default ''
);
create index if not exists findings_of_sessions on findings (session, detector, number);
create index if not exists findings_of_detectors on findings (detector, severity, number);
create table if not exists verdicts (
    finding text not null,
    session text not null,
    seq integer not null,
    verdict text not null,
    actor text,
    reason text,
    at text not null,
    primary key (finding, session, seq)
) without rowid;
create table if not exists notes (
    about text not null,
    session text not null,
    seq integer not null,
    actor text,
    message text not null,
    at text not null,
    primary key (about, session, seq)
) without rowid;
"""

_COLUMNS = "number, id, session, seq, detector, severity, level, version, message, witnesses, at, verdict"


KEYS: dict[Order, tuple[str, ...]] = {
    "severity": ("severity", "number"),
    "open": ("verdict = ''", "severity", "number"),
    "new": ("number",),
}
"""What the key of a finding is made of, in each order."""

_RISKS = (
    "select session, sum(verdict = ''), "  # noqa: S608 - our own names
    + ", ".join(f"sum(severity = {rank})" for rank in reversed(range(len(SEVERITIES))))
    + " from findings where verdict in ('', 'confirmed')"
)


class FindingsView(ViewFile):
    """The list, in a file of its own. Use as a context manager, or call `close()`."""

    _names = (FindingRaised.TYPE, VerdictGiven.TYPE, NoteWritten.TYPE)

    def __init__(self, home: Path, store: EventStore) -> None:
        tables = ("findings", "verdicts", "notes")
        super().__init__(home, store, name=f"findings-v{VERSION}", script=_TABLES, tables=tables)

    # -- keeping up ---------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        session, seq, at = column(record.session), record.seq, told_at(record)
        actor = optional_column(record.actor.id if record.actor else None)
        match record.event:
            case FindingRaised() as event:
                self._connection.execute(
                    "insert or ignore into findings (id, session, seq, detector, severity, level, version, message,"
                    " witnesses, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        column(event.finding_id),
                        session,
                        seq,
                        column(event.detector),
                        _rank(event.severity),
                        event.level,
                        optional_column(event.detector_version),
                        event.message.digest,
                        json.dumps([column(place) for place in event.witnesses[:_MOST_WITNESSES]]),
                        at,
                    ),
                )
            case VerdictGiven() as event:
                finding = column(event.finding_id)
                reason = None if event.reason is None else event.reason.digest
                self._connection.execute(
                    "insert or replace into verdicts values (?, ?, ?, ?, ?, ?, ?)",
                    (finding, session, seq, event.verdict, actor, reason, at),
                )
                self._connection.execute(
                    "update findings set verdict = ? where id = ?", (event.verdict, finding)
                )
            case NoteWritten() as event:
                self._connection.execute(
                    "insert or replace into notes values (?, ?, ?, ?, ?, ?)",
                    (column(event.about), session, seq, actor, event.text.digest, at),
                )

    # -- reading ------------------------------------------------------------------------------------------------

    def find(self, name: str) -> FindingRow:
        """The finding whose id is `name` or starts with it. Raises InputError."""
        text = column(name)
        for condition, values in (
            ("id = ?", [text]),
            ("substr(id, 1, ?) = ?", [len(text), text]),
        ):
            found = self._select(condition, values, "number", _TOLD)
            if len(found) == 1:
                return found[0]
            if found:
                some = ", ".join(one.id[:40] for one in found)
                raise InputError(f"{name!r} is the start of several findings: {some}; give more of it")
        raise InputError(f"no finding has an id that starts with {name!r}; /findings lists them")

    def groups(
        self, sought: Sought, *, by: Order = "severity", first: int = 0, count: int = -1
    ) -> list[FindingGroup]:
        """Findings by detector and severity, the worst and most frequent first; some of them, after the first ones."""
        condition, values = sought.condition()
        order = "open desc, severity desc" if by == "open" else "severity desc, open desc"
        rows = self._connection.execute(
            "select detector, severity, sum(verdict = '') as open, sum(verdict in ('confirmed', 'accepted_risk')),"  # noqa: S608
            " sum(verdict = 'dismissed'), count(*), count(distinct session) from findings"
            f" where {condition} group by detector, severity order by {order}, detector limit ? offset ?",
            (*values, count, first),
        )
        return [FindingGroup(name, SEVERITIES[rank], *counts) for name, rank, *counts in rows]

    def count_groups(self, sought: Sought) -> int:
        """How many groups there are."""
        condition, values = sought.condition()
        found = self._connection.execute(
            f"select count(*) from (select 1 from findings where {condition} group by detector, severity)",  # noqa: S608
            values,
        ).fetchone()
        return int(found[0])

    def riskiest(self, count: int, *, by: Order = "severity", first: int = 0) -> list[SessionRisk]:
        """Sessions with findings that are no false alarm, the riskiest first: by the worst severity, then how many; or
        by how many nobody has judged. Some of them, after the first ones.
        """
        worst = [f"{place} desc" for place in range(3, len(SEVERITIES) + 3)]
        order = ", ".join(["2 desc", *worst] if by == "open" else worst)
        rows = self._connection.execute(
            f"{_RISKS} group by session order by {order}, session limit ? offset ?", (count, first)
        )
        return list(map(_risk, rows))

    def count_riskiest(self) -> int:
        """How many sessions have findings that are no false alarm."""
        found = self._connection.execute(
            "select count(distinct session) from findings where verdict in ('', 'confirmed')"
        ).fetchone()
        return int(found[0])

    def risk(self, session: str) -> SessionRisk | None:
        """The findings of a session that are no false alarm; None where it has none."""
        rows = self._connection.execute(f"{_RISKS} and session = ? group by session", (column(session),))
        return next(map(_risk, rows), None)

    def rows(
        self, sought: Sought, count: int, after: tuple[int, ...] = (), *, by: Order = "severity"
    ) -> list[FindingRow]:
        """Findings, the worst first, then the last raised, or in another order; `after`: those after this key."""
        condition, values = sought.condition()
        columns = KEYS[by]
        if after:
            marks = ", ".join("?" * len(columns))
            condition += f" and ({', '.join(columns)}) < ({marks})"
            values += after
        return self._select(condition, values, ", ".join(f"{name} desc" for name in columns), count)

    def count(self, sought: Sought, *, before: int | None = None) -> int:
        """How many are wanted; `before`: of those that were raised earlier than this number."""
        condition, values = sought.condition()
        if before is not None:
            condition, values = f"{condition} and number < ?", [*values, before]
        found = self._connection.execute(
            f"select count(*) from findings where {condition}",  # noqa: S608 - our own conditions
            values,
        ).fetchone()
        return int(found[0])

    def neighbours(self, sought: Sought, number: int) -> tuple[FindingRow | None, FindingRow | None]:
        """Of those that are wanted, the one raised before and the one raised after a number."""
        condition, values = sought.condition()
        earlier = self._select(f"{condition} and number < ?", [*values, number], "number desc", 1)
        later = self._select(f"{condition} and number > ?", [*values, number], "number", 1)
        return (earlier[0] if earlier else None), (later[0] if later else None)

    def touched(self, sought: Sought, count: int, *, but: str | None = None) -> list[tuple[FindingRow, int]]:
        """Sessions with most findings, `but` one: the first finding of each, and how many there are."""
        condition, values = sought.condition()
        if but is not None:
            condition, values = f"{condition} and session <> ?", [*values, column(but)]
        rows = self._connection.execute(
            f"select {_COLUMNS}, count(*), min(number) from findings"  # noqa: S608 - our own columns
            f" where {condition} group by session order by count(*) desc, session limit ?",
            (*values, count),
        )
        return [(_row(found[:-2]), int(found[-2])) for found in rows]

    def verdicts(self, finding: str, count: int) -> list[VerdictRow]:
        """What people said of a finding, the last first."""
        found = self._connection.execute(
            "select session, seq, verdict, actor, reason, at from verdicts where finding = ?"
            " order by at desc, seq desc limit ?",
            (column(finding), count),
        )
        return list(map(VerdictRow._make, found))

    def notes(self, about: Sequence[str], count: int) -> list[NoteRow]:
        """Notes about any of some places, the first written first."""
        marks = ", ".join("?" * len(about))
        found = self._connection.execute(
            "select about, session, seq, actor, message, at from notes"  # noqa: S608 - question marks
            f" where about in ({marks}) order by at, session, seq limit ?",
            (*map(column, about), count),
        )
        return list(map(NoteRow._make, found))

    def measured(self) -> dict[str, tuple[int, int, int, int]]:
        """By detector: sessions, findings, those that people found right, those that people judged."""
        found = self._connection.execute(
            "select detector, count(distinct session), count(*),"
            " sum(verdict in ('confirmed', 'accepted_risk')),"
            " sum(verdict in ('confirmed', 'accepted_risk', 'dismissed')) from findings group by detector"
        )
        return {str(name): (runs, findings, right, judged) for name, runs, findings, right, judged in found}

    def _select(self, condition: str, values: list[Any], order: str, count: int) -> list[FindingRow]:
        found = self._connection.execute(
            f"select {_COLUMNS} from findings where {condition} order by {order} limit ?",  # noqa: S608
            (*values, count),
        )
        return list(map(_row, found))


def _row(found: Sequence[Any]) -> FindingRow:
    row = FindingRow._make(found)
    return row._replace(severity=SEVERITIES[found[5]], witnesses=tuple(json.loads(found[9])))


def _risk(found: Sequence[Any]) -> SessionRisk:
    session, not_judged, *counts = found
    return SessionRisk(session, dict(zip(reversed(SEVERITIES), counts, strict=True)), not_judged)


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity)
