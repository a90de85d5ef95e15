"""Findings in a ledger: what detectors find in its sessions, kept as events, and what people say of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from ledger.audit import Detector, Finding, Reader, Report, SessionFolds
from ledger.audit.actions import READS as OF_ACTIONS
from ledger.audit.actions import judge
from ledger.audit.intervals import Share
from ledger.audit.report import flagged
from ledger.audit.running import in_order
from ledger.errors import ConflictError, InputError
from ledger.events import Actor, Draft, Record
from ledger.events.review import FindingRaised, NoteWritten, VerdictGiven
from ledger.recorder import Recorder
from ledger.store import EventStore

Verdict = Literal["confirmed", "dismissed", "accepted_risk", "duplicate"]
"""What a person says of a finding."""

Query = Callable[[Detector, Collection[str] | None], list[Finding]]
"""Runs one detector of SQL, over some sessions or over all."""

_MOST_AT_ONCE = 10
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
    """Run detectors over some sessions, or over all; `query` runs those of SQL on a lake that is up to the store."""
    report, reader = Report(list(detectors)), reader_of(store)
    found: list[Finding] = []
    for session in sorted(sessions) if sessions is not None else store.sessions():
        report.sessions += 1
        found += _folded(store, session, detectors, reader)
    for detector in detectors:
        if detector.sql is not None:
            found += query(detector, sessions)
    report.findings = in_order(found)
    for session in flagged(report.findings):
        report.actions[session] = judge(store.read(session, names=OF_ACTIONS), reader)
    report.verdicts = {one.id: one.verdict for one in kept(store, sessions) if one.verdict is not None}
    return report


def _folded(
    store: Readable, session: str, detectors: Sequence[Detector], reader: Reader
) -> Iterator[Finding]:
    folds = SessionFolds(session, detectors, reader)
    for record in store.read(session, names=folds.wanted()):
        yield from folds.take(record)
    yield from folds.end()


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


def raised_in(store: EventStore, session: str) -> set[str]:
    """Ids of the findings that were raised in a session."""
    names = (FindingRaised.TYPE,)
    return {
        record.event.finding_id
        for record in store.read(session, names=names)
        if isinstance(record.event, FindingRaised)
    }


def keep(recorder: Recorder, findings: Iterable[Finding]) -> list[Finding]:
    """Raise findings as events of the sessions that they are about, each once; give those that are new."""
    by_session: dict[str, list[Finding]] = {}
    for finding in findings:
        by_session.setdefault(finding.session, []).append(finding)
    return [one for session, some in by_session.items() for one in _keep(recorder, session, some)]


def _keep(recorder: Recorder, session: str, findings: list[Finding]) -> list[Finding]:
    while True:
        head = recorder.store.head(session).seq
        known = raised_in(recorder.store, session)
        new = [finding for finding in findings if finding.id not in known]
        if not new:
            return []
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
            for finding in new
        ]
        try:
            recorder.append(session, drafts, keeper, expect=head)
        except ConflictError:
            continue  # the loop, or another auditor, wrote to the session since we looked
        return new


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
