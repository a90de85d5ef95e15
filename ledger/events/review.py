"""What people and detectors say about a session."""

from typing import Literal

from ledger.events.record import ContentRef, Event

Severity = Literal["info", "low", "medium", "high", "critical"]
"""How bad a finding is."""


class FindingRaised(Event, name="review.finding_raised"):
    """A detector found something."""

    finding_id: str
    """Joins finding and verdict."""

    detector: str
    """Name of the detector."""

    severity: Severity
    """How bad it is."""

    witnesses: tuple[str, ...]
    """The records that show it, as `SESSION#SEQ`."""

    message: ContentRef
    """What was found."""


class VerdictGiven(Event, name="review.verdict_given"):
    """A person judged a finding."""

    finding_id: str
    """The finding."""

    verdict: Literal["confirmed", "dismissed", "accepted_risk", "duplicate"]
    """The judgment."""

    reason: ContentRef | None = None
    """Why."""


class NoteWritten(Event, name="review.note_written"):
    """A person wrote a note about a record."""

    about: str
    """The record, as `SESSION#SEQ`, or the session."""

    text: ContentRef
    """The note."""


class CaseOpened(Event, name="review.case_opened"):
    """Findings were put together into a case."""

    case_id: str
    """The case."""

    findings: tuple[str, ...]
    """Its findings."""

    title: str
    """Its title."""


class CaseSignedOff(Event, name="review.case_signed_off"):
    """A person closed a case."""

    case_id: str
    """The case."""

    outcome: str
    """How it was closed."""


class EvidenceExported(Event, name="review.evidence_exported"):
    """Evidence left the ledger."""

    what: str
    """What was exported."""

    to: str
    """Where to."""

    digest: str | None = None
    """SHA-256 of what was exported."""
