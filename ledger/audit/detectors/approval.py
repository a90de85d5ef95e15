"""Approvals after the fact: see `ledger.audit.approvals`."""

from collections.abc import Iterable, Iterator

from ledger.audit.approvals import CANNOT_SEE, ApprovalCheck
from ledger.audit.detector import Given
from ledger.audit.finding import Finding, Found
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.policy import PolicyEvaluated
from ledger.events.session import SessionForked
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

TITLE = "Call that ran under no good answer"
SEVERITY = "high"
WHY = "An approval that was not given, had expired, or was given for something else protects nothing."
MISSES = " ".join(CANNOT_SEE)
READS = (
    SessionForked,
    ToolCallRequested,
    ToolCallStarted,
    ToolCallSettled,
    ApprovalAsked,
    ApprovalDecided,
    ApprovalUsed,
    PolicyEvaluated,
    ModeChanged,
    ArtifactChanged,
)
SOURCE = "Approval models of coding agents (decision, scope, arguments, expiry) and draft-sirkkavaara-vaara-receipt."


class Watch:
    """One session."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._check = ApprovalCheck(content=self._content)
        self._told = 0

    def _content(self, digest: str) -> bytes:
        return self._given.reader.content(digest) or b""

    def take(self, record: Record) -> Iterator[Found]:
        """One more record."""
        event = record.event
        if isinstance(event, SessionForked):
            origin = self._given.reader.records(event.origin, upto=event.origin_seq)
            self._check = ApprovalCheck(origin, content=self._content)
        self._check.take(record)
        new = self._check.news(self._told)
        self._told += len(new)
        yield from map(_found, new)

    def end(self) -> Iterable[Found]:
        """Modes that stayed relaxed."""
        return map(_found, self._check.findings())


def _found(finding: Finding) -> Found:
    return Found(
        finding.seq,
        finding.message,
        finding.witnesses,
        finding.elsewhere,
        finding.severity,
        finding.detector.removeprefix("approval."),
        str(finding.seq) if finding.detector == "approval.mode_relaxed" else None,
    )


start = Watch
