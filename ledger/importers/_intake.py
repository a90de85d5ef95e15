"""Drives an import: finds files, recognises formats, hands items to the recorder, writes the report."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError
from ledger.events import Draft, Record, Sibling
from ledger.events.credential import SecretRedacted
from ledger.events.keeping import Imported
from ledger.importers import Importer, Sniff, UrlImporter, discover, importer_named, reads_urls
from ledger.importers._desk import Desk, Item, Known
from ledger.importers._files import UNPACK_ERRORS, find_files, sniff, url_without_secrets
from ledger.recorder import Recorder
from ledger.store import KeyRow, KeysTakenError, SourceKey

_BATCH_ITEMS = 400
_BATCH_BYTES = 4 * 1024 * 1024
_SEQS_KEPT = 100_000
_SEEN_KEPT = 200_000

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
            return _no_trace(path, facts)
        return _Intake(recorder, importer, path, str(path), importer.read, progress).run()
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
                return _Intake(recorder, importer, place, name, read, progress).run()
    except LedgerError as error:
        return {"path": name, "format": None, "reason": str(error)}
    return {"path": name, "format": None, "reason": "no importer reads a database at such a URL"}


def _read_url(importer: UrlImporter, url: str, _: Path, desk: Desk) -> Iterator[Item]:
    return importer.read_url(url, desk)


def _no_trace(path: Path, facts: Sniff) -> FileReport:
    if facts.size == 0:
        reason = "empty file"
    elif not facts.start:
        reason = "damaged archive: nothing could be unpacked"
    else:
        reason = "no importer recognises it; `loopledger formats` lists those there are"
    return {"path": str(path), "format": None, "reason": reason}


@dataclass
class _Plan:
    """What one batch will write, made anew when another writer was first."""

    drafts: dict[str, list[Draft]] = field(default_factory=dict)
    """New drafts by session."""
    keys: list[SourceKey] = field(default_factory=list)
    """Identities of the source records that these come from, and claims."""
    placed: dict[bytes, SourceKey] = field(default_factory=dict)
    """Those of them that are no claims, by key."""
    counted: list[Item] = field(default_factory=list)
    """Items to count for the report."""
    seen: dict[bytes, None] = field(default_factory=dict)
    """Keys of these."""
    duplicates: int = 0
    """Items that the file held before."""
    dangling: list[tuple[int | None, str]] = field(default_factory=list)
    """Items whose cause was never seen."""


class _Intake:
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
        self._recorder = recorder
        self._importer = importer
        self._path = path
        self._name = name
        self._read = read
        self._progress = progress
        self._keeper = recorder.keeper()
        self._desk = Desk(
            self._keeper, name, path, lookup=self._lookup, recorded=self._recorded, claimed=self._claimed
        )
        self._batch: list[tuple[Item, bytes]] = []
        self._batch_bytes = 0
        self._findings: list[SecretRedacted] = []
        self._seqs: OrderedDict[bytes, int] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._added = 0

    def run(self) -> FileReport:
        """Read, record, report. A failure in the middle keeps what was read and says so."""
        failure: str | None = None
        try:
            for item in self._read(self._path, self._desk):
                self._take(item)
        except (LedgerError, *UNPACK_ERRORS) as error:
            failure = f"stopped after line {self._desk.tally.lines}: {error}"
            self._desk.tally.quarantined.append({"line": self._desk.tally.lines, "reason": failure})
        self._flush()
        report = self._report(failure)
        if self._added and report["sessions"]:
            self._keep_report(report)
        return report

    def _take(self, item: Item) -> None:
        item.session = self._desk.session_name(item.session)
        key = self._key(item.session, item.key)
        self._take_findings()
        if item.drafts and self._findings:
            item.drafts.extend(Draft(finding, grade=self._importer.GRADE) for finding in self._findings)
            self._findings = []
        self._batch.append((item, key))
        self._batch_bytes += len(item.check)
        if (
            len(self._batch) >= _BATCH_ITEMS
            or self._keeper.staged_bytes >= _BATCH_BYTES
            or self._batch_bytes >= 4 * _BATCH_BYTES
        ):
            self._flush()
            self._progress(self._path, self._desk.tally.lines)

    def _take_findings(self) -> None:
        for finding in self._keeper.take_findings():
            self._desk.tally.secrets[finding.kind] += finding.count
            self._findings.append(finding)

    def _lookup(self, session: str, key: str) -> Known | None:
        self._flush(between_items=False)
        name = self._key(session, key)
        row = self._recorder.store.known_keys([name]).get(name)
        return None if row is None else Known(row.seq, row.line)

    def _recorded(self, session: str, key: str) -> bool:
        return bool(self._recorder.store.known_keys([self._key(session, key)]))

    def _claimed(self, claim: str) -> str | None:
        if any(item.claim == claim for item, _ in self._batch):
            self._flush(between_items=False)
        name = self._claim_key(claim)
        row = self._recorder.store.known_keys([name]).get(name)
        if row is None:
            return None
        sessions = self._recorder.store.sessions()
        return next((session for session in sessions if self._desk.claim_of(session) == row.check), None)

    def _claim_key(self, claim: str) -> bytes:
        return hashlib.sha256(
            f"{self._importer.FORMAT}\0\0{claim}".encode("utf-8", "surrogatepass")
        ).digest()[:16]

    def _key(self, session: str, key: str) -> bytes:
        identity = f"{self._importer.FORMAT}\0{session}\0{key}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(identity).digest()[:16]

    def _flush(self, *, between_items: bool = True) -> None:
        while self._batch:
            plan = self._plan()
            try:
                records = self._write(plan, between_items)
            except KeysTakenError:
                continue  # another importer of the same file was first; look again at what is new
            self._batch, self._batch_bytes = [], 0
            self._settle(plan, records)

    def _write(self, plan: _Plan, between_items: bool) -> list[Record]:
        if not plan.keys:
            if between_items:  # an importer that looks something up may have staged half of its next item
                recorder = self._recorder.store.recorder
                self._keeper.known(lambda node: recorder.get_node(node) is not None)
            return []
        return self._recorder.append_many(plan.drafts, self._keeper, keys=plan.keys)

    def _plan(self) -> _Plan:
        plan = _Plan()
        known = self._recorder.store.known_keys([key for _, key in self._batch])
        for item, key in self._batch:
            check = _check(item.check)
            before = known.get(key) or plan.placed.get(key)
            if before is not None and before.check != check:
                # The same native id with other content is another record: nothing is dropped.
                key = self._key(item.session, f"{item.key}\0{check}")
                before = plan.placed.get(key) or self._recorder.store.known_keys([key]).get(key)
            if key in self._seen or key in plan.seen:
                plan.duplicates += 1
                continue
            plan.seen[key] = None
            plan.counted.append(item)
            if before is None:
                self._add(plan, item, key, check)
            elif isinstance(before, KeyRow):  # recorded by an earlier import, or from another file
                self._remember(key, before.seq)
                self._cause(plan, item)  # counts a dangling parent again
        return plan

    def _add(self, plan: _Plan, item: Item, key: bytes, check: int) -> None:
        group = plan.drafts.setdefault(item.session, [])
        index = len(group) if item.drafts else len(group) - 1
        cause = self._cause(plan, item)
        plan.placed[key] = SourceKey(item.session, index, key, item.line or 0, check)
        plan.keys.append(plan.placed[key])
        if item.claim is not None:
            claim = self._claim_key(item.claim)
            if all(row.key != claim for row in plan.keys) and not self._recorder.store.known_keys([claim]):
                plan.keys.append(SourceKey(item.session, index, claim, 0, self._desk.claim_of(item.session)))
        base = len(group)
        for draft in item.drafts:
            if isinstance(draft.cause, Sibling):
                draft = replace(draft, cause=Sibling(base + draft.cause.place))
            elif draft.cause is None and cause is not None:
                draft = replace(draft, cause=cause)
            group.append(draft)

    def _cause(self, plan: _Plan, item: Item) -> int | Sibling | None:
        if item.cause is None:
            return None
        key = self._key(item.session, item.cause)
        if key in plan.placed:
            return Sibling(plan.placed[key].place)
        if key not in self._seqs:
            found = self._recorder.store.known_keys([key])
            if key not in found:
                plan.dangling.append((item.line, item.cause))
                return None
            self._remember(key, found[key].seq)
        return self._seqs[key] or None

    def _settle(self, plan: _Plan, records: list[Record]) -> None:
        """What a batch that is written leaves to remember and to count."""
        self._added += len(records)
        first: dict[str, int] = {}
        for record in records:
            first.setdefault(record.session, record.seq)
        for row in plan.placed.values():
            if row.session in first:
                self._remember(row.key, first[row.session] + row.place)
        self._seen.update(plan.seen)
        while len(self._seen) > _SEEN_KEPT:
            self._seen.popitem(last=False)
        self._desk.tally.duplicates += plan.duplicates
        for line, parent in plan.dangling:
            self._desk.dangle(line, parent)
        for item in plan.counted:
            self._desk.count(item)

    def _remember(self, key: bytes, seq: int) -> None:
        self._seqs[key] = seq
        if len(self._seqs) > _SEQS_KEPT:
            self._seqs.popitem(last=False)

    def _keep_report(self, report: FileReport) -> None:
        event = Imported(
            file=self._name,
            format=self._importer.FORMAT,
            report=self._keeper.json(report, "import report"),
        )
        self._take_findings()
        drafts = [Draft(kept, grade=self._importer.GRADE) for kept in (event, *self._findings)]
        records = self._recorder.append(report["sessions"][0], drafts, self._keeper)
        report["records"] += len(records)

    def _report(self, failure: str | None) -> FileReport:
        tally = self._desk.tally
        counts = tally.counts
        report: FileReport = {
            "path": self._name,
            "format": self._importer.FORMAT,
            "grade": tally.grade or self._importer.GRADE,
            "sessions": list(tally.sessions),
            "lines": tally.lines,
            "records": self._added,
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


def _check(content: bytes) -> int:
    """63 bits of SHA-256, so that every database holds it as an integer."""
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1 if content else 0
