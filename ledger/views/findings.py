"""Findings in a ledger: what detectors find in its sessions, kept as events, and what people say of them."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from ledger.audit import Detector, Finding, Reader, Report, SessionFolds
from ledger.audit.actions import READS as OF_ACTIONS
from ledger.audit.actions import judge
from ledger.audit.failure import BREAKS, Failure, together
from ledger.audit.intervals import Share
from ledger.audit.report import flagged
from ledger.audit.running import in_order
from ledger.errors import ConflictError, InputError, LedgerError
from ledger.events import Actor, Draft, Record
from ledger.events.review import FindingRaised, NoteWritten, VerdictGiven
from ledger.recorder import Recorder
from ledger.store import EventStore

Verdict = Literal["confirmed", "dismissed", "accepted_risk", "duplicate"]
"""What a person says of a finding."""

Query = Callable[[Detector, Collection[str] | None], list[Finding]]
"""Runs one detector of SQL, over some sessions or over all."""

_MOST_AT_ONCE = 10
_MOST_SESSIONS = 1000
_ACTOR = "audit"


class Readable(Protocol):
    """Where an audit reads: a store, or records rebuilt from a lake."""

    def sessions(self) -> Iterator[str]:
        """Ids of all sessions, in order."""

    def read(
        self, session: str, *, after: int = 0, upto: int | None = None, names: Collection[str] = ()
    ) -> Iterator[Record]:
        """Records of a session, in order; with event names, only those."""

    def read_all(self, *, names: Sequence[str]) -> Iterator[Record]:
        """Records of these events in all sessions, in order."""

    def content(self, digest: str) -> bytes:
        """Content of a blob. Raises ContentMissingError."""

    def context(self, node: str) -> list[str]:
        """Digests of the messages of a context. Raises ContentMissingError."""


def reader_of(store: Readable) -> Reader:
    """What detectors may look up in a store, or in a lake."""
    return Reader(store.content, store.context, store.read)


def audit(
    store: Readable,
    detectors: Sequence[Detector],
    query: Query,
    sessions: Collection[str] | None = None,
) -> Report:
    """Run detectors over some sessions, or over all; `query` runs those of SQL on a lake that is up to the store.

    A detector that cannot be used or breaks is told in the report; what it found before, and what others find, stands.
    """
    report, reader = Report([one for one in detectors if one.broken is None]), reader_of(store)
    failures = broken(detectors)
    found: list[Finding] = []
    for session in sorted(sessions) if sessions is not None else store.sessions():
        report.sessions += 1
        found += _folded(store, session, detectors, reader, failures)
    for detector in detectors:
        if detector.sql is not None:
            try:
                found += query(detector, sessions)
            except LedgerError as error:
                failures.append(Failure.of(detector, str(error)))
            except BREAKS as error:
                failures.append(
                    Failure.of(detector, f"{detector.place}:1: the query cannot be run: {error!r}")
                )
    there = Places(store)
    last_first = sorted(
        found, key=lambda one: (one.session, -one.witnesses[-1])
    )  # one look for most sessions
    lost = [one for one in last_first if not there.has(one)]
    failures += [about_nothing(one, detectors) for one in lost]
    report.findings = in_order(one for one in found if one not in lost) if lost else in_order(found)
    report.failures = together(failures)
    for session in flagged(report.findings):
        report.actions[session] = judge(store.read(session, names=OF_ACTIONS), reader)
    report.verdicts = {one.id: one.verdict for one in kept(store, sessions) if one.verdict is not None}
    return report


def broken(detectors: Iterable[Detector]) -> list[Failure]:
    """What is told of those that cannot be used at all."""
    return [Failure.of(one, one.broken) for one in detectors if one.broken is not None]


def _folded(
    store: Readable, session: str, detectors: Sequence[Detector], reader: Reader, failures: list[Failure]
) -> Iterator[Finding]:
    folds = SessionFolds(session, detectors, reader)
    for record in () if folds.has_ended else store.read(session, names=folds.wanted()):
        yield from folds.take(record)
    yield from folds.end()
    failures += folds.failures


class Places:
    """Whether the records are there that findings name: a finding about nothing would begin a session of its own."""

    def __init__(self, store: Readable) -> None:
        self._store = store
        self._reached: OrderedDict[str, int] = OrderedDict()

    def has(self, finding: Finding) -> bool:
        """Whether the session has them."""
        last, session = finding.witnesses[-1], finding.session
        if last > self._reached.get(session, 0):
            if next(iter(self._store.read(session, after=last - 1, upto=last)), None) is None:
                return False
            self._reached[session] = last
            if len(self._reached) > _MOST_SESSIONS:
                self._reached.popitem(last=False)
        return True


def about_nothing(finding: Finding, detectors: Iterable[Detector]) -> Failure:
    """What is told of a detector that named a record which there is not."""
    by_name = {detector.name: detector for detector in detectors}
    detector = by_name.get(finding.detector) or by_name[finding.detector.partition(".")[0]]
    place = f"{finding.session}#{finding.witnesses[-1]}"
    return Failure.of(detector, f"{detector.place}: detector {detector.name} names {place}: no such record")


# -- kept ---------------------------------------------------------------------------------------------------


@dataclass
class Kept:
    """A finding in the ledger."""

    id: str
    """Its id."""

    session: str
    """Session that it is about."""

    detector: str
    """Who found it."""

    verdict: Verdict | None = None
    """The last that a person said of it."""


def kept(store: Readable, sessions: Collection[str] | None = None) -> list[Kept]:
    """The findings that were raised, each once, in the order in which they were."""
    names = (FindingRaised.TYPE, VerdictGiven.TYPE)
    if sessions is None:
        records = store.read_all(names=names)
    else:
        records = (record for session in sorted(sessions) for record in store.read(session, names=names))
    found: dict[str, Kept] = {}
    for record in records:
        event = record.event
        if isinstance(event, FindingRaised):
            found.setdefault(event.finding_id, Kept(event.finding_id, record.session, event.detector))
        elif isinstance(event, VerdictGiven) and event.finding_id in found:
            found[event.finding_id].verdict = event.verdict
    return list(found.values())


@dataclass
class _Raised:
    """What a session has of findings, as far as was looked."""

    seq: int = 0
    ids: set[str] = field(default_factory=set)


class Raising:
    """Raises findings as events of the sessions that they are about, each once, whoever raises beside it.

    It remembers what a session has: to raise one more costs the same in a session of any length. Threads may share it.
    """

    def __init__(self, recorder: Recorder, *, sessions: int = _MOST_SESSIONS) -> None:
        self._recorder = recorder
        self._most = sessions
        self._known: OrderedDict[str, _Raised] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, findings: Iterable[Finding]) -> list[Finding]:
        """Raise them; give those that are new."""
        by_session: dict[str, list[Finding]] = {}
        for finding in findings:
            by_session.setdefault(finding.session, []).append(finding)
        with self._lock:
            return [one for session, some in by_session.items() for one in self._keep(session, some)]

    def _keep(self, session: str, findings: list[Finding]) -> list[Finding]:
        recorder = self._recorder
        known = self._known.setdefault(session, _Raised())
        self._known.move_to_end(session)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        while new := {one.id: one for one in findings if one.id not in known.ids}:
            head = recorder.store.head(session).seq
            if head > known.seq:  # the loop, or another auditor, wrote to the session since we looked
                names = (FindingRaised.TYPE,)
                for record in recorder.store.read(session, after=known.seq, upto=head, names=names):
                    if isinstance(record.event, FindingRaised):
                        known.ids.add(record.event.finding_id)
                known.seq = head
                continue
            keeper = recorder.keeper()
            drafts = [
                Draft(
                    FindingRaised(
                        finding_id=finding.id,
                        detector=finding.detector,
                        severity=finding.severity,
                        witnesses=(*(f"{session}#{seq}" for seq in finding.witnesses), *finding.elsewhere),
                        message=keeper.text(finding.message, "finding"),
                        detector_version=finding.version,
                        level=finding.level,
                    ),
                    actor=Actor("system", _ACTOR),
                    cause=finding.seq,
                )
                for finding in new.values()
            ]
            try:
                recorder.append(session, drafts, keeper, expect=head)
            except ConflictError:
                continue
            known.ids.update(new)
            return list(new.values())
        return []


def keep(recorder: Recorder, findings: Iterable[Finding]) -> list[Finding]:
    """Raise findings as events of the sessions that they are about, each once; give those that are new."""
    return Raising(recorder).keep(findings)


# -- people -------------------------------------------------------------------------------------------------


def find(store: EventStore, name: str) -> Kept:
    """The finding whose id is `name` or starts with it. Raises InputError."""
    found = [one for one in kept(store) if name and one.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"no finding has an id that starts with {name!r}; `loopledger audit` lists them")
    some = ", ".join(one.id for one in found[:_MOST_AT_ONCE])
    raise InputError(f"{name!r} is the start of several findings: {some}; give more of it")


def give_verdict(recorder: Recorder, finding: Kept, verdict: Verdict, by: str, reason: str | None) -> str:
    """Keep what a person says of a finding; the last word counts. Gives the place of the record."""
    keeper = recorder.keeper()
    event = VerdictGiven(
        finding_id=finding.id,
        verdict=verdict,
        reason=None if reason is None else keeper.text(reason, "reason"),
    )
    draft = Draft(event, actor=Actor("human", by))
    return recorder.append(finding.session, [draft], keeper, durable=True)[0].place


def write_note(recorder: Recorder, session: str, seq: int | None, text: str, by: str) -> str:
    """Keep a person's note about a session, or one record of it; gives its place. Raises RecordNotFoundError."""
    about = session
    if seq is not None:
        about = recorder.store.record(session, seq).place
    keeper = recorder.keeper()
    event = NoteWritten(about=about, text=keeper.text(text, "note"))
    draft = Draft(event, actor=Actor("human", by), cause=seq)
    return recorder.append(session, [draft], keeper, durable=True)[0].place


class Measured(NamedTuple):
    """How a detector has done in this ledger."""

    detector: str
    """The detector, or one of its suspicions."""

    runs: int
    """Sessions in which it found something."""

    findings: int
    """What it found."""

    precision: Share
    """Findings that people confirmed, or whose risk they accepted, of those that they judged."""

    def is_of(self, detector: str) -> bool:
        """Whether it is one suspicion of a detector that has several."""
        return self.detector.startswith(f"{detector}.")

    @classmethod
    def of(cls, detector: str, parts: Sequence["Measured"]) -> "Measured":
        """Its suspicions together; a run that several flag counts for each."""
        shares = [part.precision for part in parts]
        return cls(
            detector,
            sum(part.runs for part in parts),
            sum(part.findings for part in parts),
            Share(sum(share.hits for share in shares), sum(share.of for share in shares)),
        )


def measured(found: Iterable[Kept]) -> dict[str, Measured]:
    """Precision by detector, from what people said. A duplicate counts neither way."""
    by_detector: dict[str, list[Kept]] = {}
    for one in found:
        by_detector.setdefault(one.detector, []).append(one)
    table = {}
    for detector, some in sorted(by_detector.items()):
        judged = [one for one in some if one.verdict not in (None, "duplicate")]
        right = [one for one in judged if one.verdict != "dismissed"]
        runs = len({one.session for one in some})
        table[detector] = Measured(detector, runs, len(some), Share(len(right), len(judged)))
    return table
