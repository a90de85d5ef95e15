"""What a list of findings tells: of one, of a group, of a session. Holds no content."""

from typing import Any, Literal, NamedTuple

from ledger.audit import SEVERITIES
from ledger.views.view_file import column

Order = Literal["severity", "open", "new"]
"""What comes first: the worst, what nobody has judged (or what has most of that), or what was raised last."""


class FindingRow(NamedTuple):
    """One finding."""

    number: int
    """Its place in the list: findings that were raised later have greater numbers."""

    id: str
    """Its id."""

    session: str
    """Session that it is about."""

    seq: int
    """Record that raised it."""

    detector: str
    """Who found it."""

    severity: str
    """How bad it is."""

    level: str | None
    """Whether one action alone shows it, or only several together; None where it does not say."""

    version: str | None
    """Digest of the detector's text."""

    message: str
    """Digest of what it says."""

    witnesses: tuple[str, ...]
    """The records that show it, as `SESSION#SEQ`."""

    at: str
    """When it was raised."""

    verdict: str
    """The last that a person said of it; empty while nobody has."""

    def key(self, by: Order) -> tuple[int, ...]:
        """Where it stands in a list in that order; the greatest comes first."""
        rank = SEVERITIES.index(self.severity)
        if by == "new":
            return (self.number,)
        return (int(not self.verdict), rank, self.number) if by == "open" else (rank, self.number)


class VerdictRow(NamedTuple):
    """What a person said of a finding."""

    session: str
    """Session that holds the verdict."""

    seq: int
    """Its record."""

    verdict: str
    """The judgment."""

    actor: str | None
    """Who."""

    reason: str | None
    """Digest of why."""

    at: str
    """When."""


class NoteRow(NamedTuple):
    """A note."""

    about: str
    """What it is about, as `SESSION#SEQ` or a session."""

    session: str
    """Session that holds the note."""

    seq: int
    """Its record."""

    actor: str | None
    """Who wrote it."""

    message: str
    """Digest of its text."""

    at: str
    """When."""


class FindingGroup(NamedTuple):
    """The findings of one detector and severity."""

    detector: str
    """The detector."""

    severity: str
    """How bad they are."""

    open: int
    """Findings that nobody has judged."""

    confirmed: int
    """Those that people found right, or whose risk they accepted."""

    dismissed: int
    """Those that people found wrong."""

    total: int
    """All of them."""

    sessions: int
    """Sessions that they are about."""


class SessionRisk(NamedTuple):
    """The findings of one session that nobody has judged to be no cause for alarm."""

    session: str
    """The session."""

    by_severity: dict[str, int]
    """How many there are of each severity, the worst first."""

    open: int
    """Those that nobody has judged."""

    @property
    def worst(self) -> str:
        """The worst severity that occurs."""
        return next((name for name, count in self.by_severity.items() if count), SEVERITIES[0])


class Sought(NamedTuple):
    """Which findings are wanted; the defaults want all."""

    detector: str = ""
    """A detector, or one of its suspicions."""

    severity: str = ""
    """The severity."""

    session: str = ""
    """Session that they are about."""

    state: str = ""
    """`open`: nobody has judged them; `judged`; or a verdict."""

    def condition(self) -> tuple[str, list[Any]]:
        """As SQL after `where`, and its values."""
        parts, values = ["1"], []
        if self.detector:
            parts.append("(detector = ? or substr(detector, 1, ?) = ?)")
            values += [column(self.detector), len(column(self.detector)) + 1, f"{column(self.detector)}."]
        if self.severity:
            parts.append("severity = ?")
            values.append(SEVERITIES.index(self.severity))
        if self.session:
            parts.append("session = ?")
            values.append(column(self.session))
        if self.state in ("open", "judged"):
            parts.append("verdict = ''" if self.state == "open" else "verdict <> ''")
        elif self.state:
            parts.append("verdict = ?")
            values.append(self.state)
        return " and ".join(parts), values
