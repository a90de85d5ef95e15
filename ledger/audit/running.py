"""Runs detectors: folds over the records of a session, queries over the tables of a lake. Findings come out sorted."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import duckdb

from ledger.audit.detector import Detector, Fold, Given
from ledger.audit.finding import SEVERITIES, Finding, Found
from ledger.audit.reader import Reader
from ledger.errors import InputError, LedgerError
from ledger.events import Record

_BATCH = 1000
_NEEDED = ("session", "seq", "message")
_OPTIONAL = ("witnesses", "elsewhere", "severity", "part", "key")


class DetectorFailedError(LedgerError):
    """A detector broke while it looked at a session."""


class SessionFolds:
    """All folds over one session, one pass over its records."""

    def __init__(self, session: str, detectors: Iterable[Detector], reader: Reader) -> None:
        self._session = session
        self._folds: list[tuple[Detector, Fold]] = []
        self._by_type: dict[str, list[tuple[Detector, Fold]]] = {}
        for detector in detectors:
            if detector.start is not None:
                self._folds.append((detector, detector.start(Given(session, reader))))

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
            except Exception as error:
                raise self._failed(detector, error, record.place) from error
        return found

    def end(self) -> list[Finding]:
        """What shows only when no more records come."""
        found: list[Finding] = []
        for detector, fold in self._folds:
            try:
                found += [self._finding(detector, one) for one in fold.end()]
            except Exception as error:
                raise self._failed(detector, error, f"the end of {self._session}") from error
        return found

    def _failed(self, detector: Detector, error: Exception, place: str) -> LedgerError:
        return DetectorFailedError(f"{detector.place}: detector {detector.name} failed at {place}: {error!r}")

    def _finding(self, detector: Detector, found: Found) -> Finding:
        return finding_of(detector, self._session, found)


def finding_of(detector: Detector, session: str, found: Found) -> Finding:
    """A suspicion with the names of its detector and its session."""
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


def fold_session(
    session: str, records: Iterable[Record], detectors: Iterable[Detector], reader: Reader
) -> list[Finding]:
    """What the folds find in a whole session."""
    folds = SessionFolds(session, detectors, reader)
    found: list[Finding] = []
    for record in records:
        found += folds.take(record)
    found += folds.end()
    return in_order(found)


def query(
    connection: duckdb.DuckDBPyConnection, detector: Detector, sessions: Collection[str] | None = None
) -> list[Finding]:
    """What one detector of SQL finds, in these sessions or in all. Raises InputError for a query that cannot be run."""
    assert detector.sql is not None
    text = detector.sql.rstrip().rstrip(";")
    try:
        statements = connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError(f"{detector.place}:1: a detector is one select, found something else")
        scoped = f"select * from (\n{text}\n) as found"  # noqa: S608 - a detector is SQL
        given: list[Any] = []
        if sessions is not None:
            scoped, given = f"{scoped} where session in (select unnest($1))", [sorted(sessions)]
        cursor = connection.execute(scoped, given)
        return findings_of(detector, [column[0] for column in cursor.description], _rows(cursor))
    except duckdb.Error as error:
        told = str(error)
        line = _line_of(told)
        raise InputError(
            f"{detector.place}:{line}: the query cannot be run: {told.splitlines()[0]}"
        ) from error


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
    severity = told.get("severity")
    if severity is not None and severity not in SEVERITIES:
        raise InputError(f"{detector.place}:1: {severity!r} is none of {', '.join(SEVERITIES)}")
    found = Found(
        told["seq"],
        told["message"],
        tuple(one for one in told.get("witnesses") or () if one is not None),
        tuple(told.get("elsewhere") or ()),
        severity,
        told.get("part"),
        told.get("key"),
    )
    return finding_of(detector, told["session"], found)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By session, place and detector; the same suspicion once, the last word on it."""
    by_id = {finding.id: finding for finding in findings}
    ranked = sorted((one.session, one.seq, one.detector, name) for name, one in by_id.items())
    return [by_id[name] for *_, name in ranked]
