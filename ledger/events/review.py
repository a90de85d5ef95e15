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

    detector_version: str | None = None
    """Digest of the detector's text, its first 16 digits: another text may find other things."""

    level: Literal["action", "trajectory"] | None = None
    """Whether one action alone shows it, or only several together."""


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


class QueryAsked(Event, name="review.query_asked"):
    """A person or a program asked the lake in SQL through the pages."""

    query: ContentRef
    """The SQL."""

    saved: str | None = None
    """Name of the saved query, where it was one."""

    parameters: ContentRef | None = None
    """What its parameters were, as a JSON object."""

    form: str = "page"
    """How the rows left: `page`, or the format of the file."""

    rows: int = 0
    """How many rows were given."""

    stopped: str | None = None
    """Why there were no more, or why it was refused."""
