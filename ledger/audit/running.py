"""Runs detectors: folds over the records of a session, queries over the tables of a lake. Findings come out sorted.

One that breaks ends alone: what the others find is found.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, get_args

import duckdb

from ledger.audit.detector import Detector, Fold, Given
from ledger.audit.failure import BREAKS, DetectorFailedError, Failure
from ledger.audit.finding import SEVERITIES, Finding, Found, Level
from ledger.audit.reader import Reader
from ledger.errors import InputError
from ledger.events import BY_NAME, Record
from ledger.lake.connection import events_of

_BATCH = 1000
_NEEDED = ("session", "seq", "message")
_OPTIONAL = ("witnesses", "elsewhere", "severity", "part", "key")
_NAMED_ONE_BY_ONE = 64
_LEVELS = get_args(Level)


class SessionFolds:
    """All folds over one session, one pass over its records. One that breaks sees no more of it."""

    def __init__(self, session: str, detectors: Iterable[Detector], reader: Reader) -> None:
        self._session = session
        self._folds: list[tuple[Detector, Fold]] = []
        self._by_type: dict[str, list[tuple[Detector, Fold]]] = {}
        self.failures: list[Failure] = []
        """Folds that broke."""
        for detector in detectors:
            if detector.start is not None:
                try:
                    self._folds.append((detector, detector.start(Given(session, reader))))
                except BREAKS as error:
                    self._fail(detector, error, f"the beginning of {session}")

    @property
    def has_ended(self) -> bool:
        """Whether no fold is left."""
        return not self._folds

    def wanted(self) -> set[str]:
        """Names of the events that some fold wants; empty: all."""
        wanted = [set(detector.reads) for detector, _ in self._folds]
        return set().union(*wanted) if all(wanted) else set()

    def take(self, record: Record) -> list[Finding]:
        """One more record: what shows now."""
        name = record.type
        folds = self._by_type.get(name)
        if folds is None:
            folds = [one for one in self._folds if not one[0].reads or name in one[0].reads]
            self._by_type[name] = folds
        found: list[Finding] = []
        for detector, fold in folds:
            try:
                for one in fold.take(record):
                    found.append(finding_of(detector, self._session, one))
            except BREAKS as error:
                self._fail(detector, error, record.place)
        return found

    def end(self) -> list[Finding]:
        """What shows only when no more records come."""
        found: list[Finding] = []
        for detector, fold in list(self._folds):
            try:
                for one in fold.end():
                    found.append(finding_of(detector, self._session, one))
            except BREAKS as error:
                self._fail(detector, error, f"the end of {self._session}")
        return found

    def _fail(self, detector: Detector, error: BaseException, place: str) -> None:
        told = f"{detector.place}: detector {detector.name} failed at {place}: {_shown(error)}"
        self.failures.append(Failure.of(detector, told))
        self._folds = [one for one in self._folds if one[0] is not detector]
        self._by_type.clear()


def _shown(error: BaseException) -> str:
    try:
        return repr(error)
    except BREAKS:  # how an error of others shows itself may be broken, too
        return type(error).__name__


def finding_of(detector: Detector, session: str, found: Found) -> Finding:
    """A suspicion with the names of its detector and its session. Raises TypeError, ValueError for what is none."""
    _check(found)
    return Finding(
        detector.name if found.part is None else f"{detector.name}.{found.part}",
        found.severity or detector.severity,
        session,
        found.seq,
        tuple(sorted({*found.witnesses, found.seq})),
        # half of a character that takes two, in a name of the record, is in no UTF-8
        found.message.encode("utf-8", "backslashreplace").decode(),
        found.elsewhere,
        found.level or detector.level,
        detector.digest,
        found.key,
    )


def _check(found: Found) -> None:
    """What a detector gives is used in many places: here it is what it says, or the detector is broken."""
    for seq in (found.seq, *found.witnesses):
        if type(seq) is not int or seq < 1:
            raise TypeError(f"expected the seq of a record, found {seq!r}")
    for told in (found.message, *found.elsewhere):
        if not isinstance(told, str):
            raise TypeError(f"expected a text, found {told!r}")
    if found.severity is not None and found.severity not in SEVERITIES:
        raise ValueError(f"{found.severity!r} is none of {', '.join(SEVERITIES)}")
    if found.level is not None and found.level not in _LEVELS:
        raise ValueError(f"{found.level!r} is none of {', '.join(_LEVELS)}")
    for name in (found.part, found.key):
        if name is not None and not isinstance(name, str | int):
            raise TypeError(f"expected a name, found {name!r}")
    for told in (str(found.part), *found.elsewhere):
        told.encode()  # half of a character cannot be kept


def fold_session(
    session: str, records: Iterable[Record], detectors: Iterable[Detector], reader: Reader
) -> list[Finding]:
    """What the folds find in a whole session. Raises DetectorFailedError for one that breaks."""
    folds = SessionFolds(session, detectors, reader)
    found: list[Finding] = []
    for record in records:
        found += folds.take(record)
    found += folds.end()
    for failure in folds.failures:
        raise DetectorFailedError(failure.error)
    return in_order(found)


def text_of(detector: Detector) -> str:
    """The query of a detector of SQL, without what ends it."""
    assert detector.sql is not None
    return detector.sql.rstrip().rstrip(";")


def events_read(detector: Detector) -> frozenset[str] | None:
    """Names of the events that the answer of a detector of SQL rests on, as its head says; None: any may change it."""
    named = {name for name in detector.reads if name in BY_NAME}
    if not named:
        return None
    for table in detector.reads:
        if table not in named:
            of_table = events_of(table)
            if of_table is None:
                return None
            named |= of_table
    return frozenset(named)


def query(
    connection: duckdb.DuckDBPyConnection, detector: Detector, sessions: Collection[str] | None = None
) -> list[Finding]:
    """What one detector of SQL finds, in these sessions or in all. Raises InputError for a query that cannot be run."""
    text = text_of(detector)
    try:
        statements = connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError(f"{detector.place}:1: a detector is one select, found something else")
        scoped = f"select * from (\n{text}\n) as found"  # noqa: S608 - a detector is SQL
        given: list[Any] = []
        if sessions is not None:
            among, given = _among(sorted(sessions))
            scoped = f"{scoped} where session in ({among})"
        cursor = connection.execute(scoped, given)
        return findings_of(detector, [column[0] for column in cursor.description], _rows(cursor))
    except duckdb.Error as error:
        told = str(error)
        line = _line_of(told)
        raise InputError(
            f"{detector.place}:{line}: the query cannot be run: {told.splitlines()[0]}"
        ) from error


def _among(sessions: list[str]) -> tuple[str, list[Any]]:
    """What stands in the brackets, and its values: named one by one, the engine passes by what is of other sessions."""
    if 0 < len(sessions) <= _NAMED_ONE_BY_ONE:
        return ", ".join(f"${number}" for number in range(1, len(sessions) + 1)), list(sessions)
    return "select unnest($1)", [sessions]


def _line_of(told: str) -> int:
    """The line that DuckDB names, in the file: the text stands one line lower in what was run."""
    _, mark, rest = told.partition("LINE ")
    number = rest.partition(":")[0]
    return max(1, int(number) - 1) if mark and number.isdigit() else 1


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while rows := cursor.fetchmany(_BATCH):
        yield from rows


def findings_of(detector: Detector, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Finding]:
    """The findings that the rows of a detector of SQL tell. Raises InputError where its columns are not as agreed."""
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(f"{detector.place}:1: the query gives no column {missing[0]!r}")
    if unknown := [name for name in names if name not in (*_NEEDED, *_OPTIONAL)]:
        raise InputError(f"{detector.place}:1: the query gives a column {unknown[0]!r} that nobody reads")
    return in_order(_finding(detector, dict(zip(names, row, strict=True))) for row in rows)


def _finding(detector: Detector, told: dict[str, Any]) -> Finding:
    found = Found(
        told["seq"],
        told["message"],
        _several(told.get("witnesses")),
        _several(told.get("elsewhere")),
        told.get("severity"),
        told.get("part"),
        told.get("key"),
    )
    try:
        if not isinstance(session := told["session"], str):
            raise TypeError(f"expected the id of a session, found {session!r}")
        return finding_of(detector, session, found)
    except (TypeError, ValueError) as error:
        raise InputError(f"{detector.place}:1: the query gives a row that is no finding: {error}") from error


def _several(value: Any) -> tuple[Any, ...]:
    """The values of a list but those that are NULL; what is none stands for itself, and is found to be wrong."""
    several = value if isinstance(value, list | tuple) else [value]
    return tuple(one for one in several if one is not None)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By session, place and detector; the same suspicion once, the last word on it."""
    by_id = {finding.id: finding for finding in findings}
    ranked = sorted((one.session, one.seq, one.detector, name) for name, one in by_id.items())
    return [by_id[name] for *_, name in ranked]
