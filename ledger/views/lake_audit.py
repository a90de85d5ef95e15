"""Findings in a lake alone: the same as in its store, wherever the files carry what a detector asks for."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ledger.audit import Detector, Fold, Found, Given, Report
from ledger.audit.detector import Start
from ledger.audit.report import MissingInput
from ledger.events import Record
from ledger.lake.records import LakeRecords
from ledger.views.findings import Query, audit


def audit_lake(
    records: LakeRecords,
    detectors: Sequence[Detector],
    query: Query,
    sessions: Collection[str] | None = None,
) -> Report:
    """Run detectors over some sessions of a lake, or over all; what they asked for in vain is in the report."""
    watched = [_watched(detector, records) for detector in detectors]
    report = audit(records, watched, query, sessions)
    report.detectors = [one for one in detectors if one.broken is None]
    by_detector: dict[str, dict[str, int]] = {}
    for (name, session), times in records.missing.items():
        by_detector.setdefault(name, {})[session] = times
    report.missing = [
        MissingInput(name, tuple(sorted(told)), sum(told.values()))
        for name, told in sorted(by_detector.items())
    ]
    return report


def _watched(detector: Detector, records: LakeRecords) -> Detector:
    """The detector, whose name the records know while it looks."""
    start = detector.start
    return detector if start is None else replace(detector, start=_starting(detector.name, start, records))


def _starting(name: str, start: Start, records: LakeRecords) -> Start:
    def begin(given: Given) -> Fold:
        with _asking(records, name, given.session):
            return _Watched(start(given), records, name, given.session)

    return begin


class _Watched:
    """A fold that is known by name while it looks."""

    def __init__(self, fold: Fold, records: LakeRecords, name: str, session: str) -> None:
        self._fold = fold
        self._asked = records, name, session

    def take(self, record: Record) -> Iterable[Found]:
        """One more record: what shows now."""
        with _asking(*self._asked):
            return list(self._fold.take(record))

    def end(self) -> Iterable[Found]:
        """What shows only when no more records come."""
        with _asking(*self._asked):
            return list(self._fold.end())


@contextmanager
def _asking(records: LakeRecords, name: str, session: str) -> Iterator[None]:
    records.asking = name, session
    try:
        yield
    finally:
        records.asking = None
