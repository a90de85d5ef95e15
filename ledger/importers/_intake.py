"""Drives an import: finds files, recognises formats, hands items to the recorder, writes the report."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError
from ledger.events import Draft
from ledger.events.keeping import Imported
from ledger.importers import Importer, UrlImporter, discover, importer_named, reads_urls
from ledger.importers._files import UNPACK_ERRORS, find_files, sniff, url_without_secrets
from ledger.importers._likely import reason_for
from ledger.intake import Desk, Intake, Item
from ledger.recorder import Recorder

FileReport = dict[str, Any]
"""One file's part of the import report; DESIGN.md section 7 names the fields."""


@dataclass
class ImportReport:
    """What an import did."""

    records_added: int = 0
    sessions: dict[str, None] = field(default_factory=dict)
    files: list[FileReport] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The documented JSON form."""
        return {"records_added": self.records_added, "sessions": list(self.sessions), "files": self.files}


def import_paths(
    recorder: Recorder,
    paths: Iterable[Path | str],
    *,
    format_name: str | None = None,
    progress: Callable[[Path, int], None] = lambda path, lines: None,
    survive: bool = False,
) -> ImportReport:
    """Import files, folders, and databases by URL. What no importer knows is named in the report, with the reason.

    `survive`: an importer's own fault ends the import of its file, with the reason in the report, not of the others.
    """
    report = ImportReport()
    chosen = importer_named(format_name) if format_name else None
    importers = [chosen] if chosen is not None else list(discover().values())
    for source in _sources(paths):
        try:
            if isinstance(source, str):
                entry = _import_url(recorder, importers, source, progress)
            else:
                entry = _import_file(recorder, importers, source, progress, is_chosen=chosen is not None)
        except Exception as error:
            if not survive or isinstance(error, LedgerError):
                raise
            fault = f"the importer failed, please report it: {type(error).__name__}: {error}"
            entry = {"path": str(source), "format": None, "reason": fault}
        report.files.append(entry)
        report.records_added += entry.get("records", 0)
        report.sessions.update(dict.fromkeys(entry.get("sessions", ())))
    return report


def _sources(paths: Iterable[Path | str]) -> Iterator[Path | str]:
    """Files and URLs, in the order given."""
    for path in paths:
        if isinstance(path, str) and "://" in path:
            yield path
        else:
            yield from find_files([Path(path)])


def _import_file(
    recorder: Recorder,
    importers: list[Importer],
    path: Path,
    progress: Callable[[Path, int], None],
    *,
    is_chosen: bool,
) -> FileReport:
    progress(path, 0)
    try:
        facts = sniff(path)
        importer = next((one for one in importers if is_chosen or one.recognizes(facts)), None)
        if importer is None:
            return {"path": str(path), "format": None, "reason": reason_for(facts)}
        return _FileIntake(recorder, importer, path, str(path), importer.read, progress).run()
    except OSError as error:
        return {"path": str(path), "format": None, "reason": f"cannot be read: {error.strerror}"}


def _import_url(
    recorder: Recorder, importers: list[Importer], url: str, progress: Callable[[Path, int], None]
) -> FileReport:
    name = url_without_secrets(url)
    progress(Path(name), 0)
    try:
        for importer in importers:
            if reads_urls(importer) and importer.reads_url(url):
                place, read = Path(name.partition("://")[2]), partial(_read_url, importer, url)
                return _FileIntake(recorder, importer, place, name, read, progress).run()
    except LedgerError as error:
        return {"path": name, "format": None, "reason": str(error)}
    return {"path": name, "format": None, "reason": "no importer reads a database at such a URL"}


def _read_url(importer: UrlImporter, url: str, _: Path, desk: Desk) -> Iterator[Item]:
    return importer.read_url(url, desk)


class _FileIntake:
    """The import of one file."""

    def __init__(
        self,
        recorder: Recorder,
        importer: Importer,
        path: Path,
        name: str,
        read: Callable[[Path, Desk], Iterator[Item]],
        progress: Callable[[Path, int], None],
    ) -> None:
        self._importer = importer
        self._path = path
        self._name = name
        self._read = read
        self._intake = Intake(
            recorder,
            importer.FORMAT,
            importer.GRADE,
            name=name,
            path=path,
            written=lambda: progress(path, self._desk.tally.lines),
        )
        self._desk = self._intake.desk

    def run(self) -> FileReport:
        """Read, record, report. A failure in the middle keeps what was read and says so."""
        failure: str | None = None
        try:
            for item in self._read(self._path, self._desk):
                self._intake.take(item)
        except (LedgerError, *UNPACK_ERRORS) as error:
            failure = f"stopped after line {self._desk.tally.lines}: {error}"
            self._desk.tally.quarantined.append({"line": self._desk.tally.lines, "reason": failure})
        self._intake.commit()
        report = self._report(failure)
        if self._intake.added and report["sessions"]:
            self._keep_report(report)
        return report

    def _keep_report(self, report: FileReport) -> None:
        kept = self._desk.keep.json(report, "import report")
        event = Imported(file=self._name, format=self._importer.FORMAT, report=kept)
        draft = Draft(event, grade=self._importer.GRADE)
        report["records"] += self._intake.close_with(report["sessions"][0], draft)

    def _report(self, failure: str | None) -> FileReport:
        tally = self._desk.tally
        counts = tally.counts
        report: FileReport = {
            "path": self._name,
            "format": self._importer.FORMAT,
            "grade": tally.grade or self._importer.GRADE,
            "sessions": list(tally.sessions),
            "lines": tally.lines,
            "records": self._intake.added,
            "model_calls": counts["model_calls"],
            "failed_calls": counts["failed_calls"],
            "tool_calls": counts["tool_calls"],
            "tool_results": counts["tool_results"],
            "error_results": counts["error_results"],
            "unanswered_calls": self._desk.unanswered,
            "orphan_results": counts["orphan_results"],
            "compactions": counts["compactions"],
            "quarantined": tally.quarantined,
            "quarantined_more": tally.quarantined_more,
            "repaired": tally.repaired,
            "repaired_more": tally.repaired_more,
            "duplicates": tally.duplicates,
            "dangling_parents": tally.dangling_parents,
            "dangling": tally.dangling,
            "unknown": dict(sorted(tally.unknown.items())),
            "native": dict(sorted(tally.native.items())),
            "tokens": {name: tally.tokens[name] for name in ("input", "output", "cache_read", "cache_write")},
            "redacted": sum(tally.secrets.values()),
            "redacted_kinds": dict(sorted(tally.secrets.items())),
            "notes": tally.notes,
            "cannot_show": list(self._importer.CANNOT_SHOW),
        }
        if failure is not None:
            report["reason"] = failure
        return report
