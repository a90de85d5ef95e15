"""What a check found, with the records that show it."""

import hashlib
from typing import Any, Literal, NamedTuple, get_args

from ledger.events.canonical import canonical_json
from ledger.events.review import Severity

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least to the worst."""

Level = Literal["action", "trajectory"]
"""Whether one action alone shows it, or only several together."""


class Found(NamedTuple):
    """What a fold says: a suspicion, before its detector's name and session are put to it."""

    seq: int
    """Where it shows first."""

    message: str
    """What was found. For people; no digests, no times: the same input gives the same text in every ledger."""

    witnesses: tuple[int, ...] = ()
    """Records of the session that show it; `seq` is one of them in any case."""

    elsewhere: tuple[str, ...] = ()
    """Records of other sessions that show it, as `SESSION#SEQ`."""

    severity: Severity | None = None
    """How bad it is; None: as bad as the detector's head says."""

    part: str | None = None
    """Which of the detector's suspicions it is, where it has several: the finding is named `detector.part`."""

    key: str | None = None
    """What tells it from others of the same detector and session, where its witnesses may still grow in number."""

    level: Level | None = None
    """Whether one action alone shows it; None: what the detector's head says."""


class Finding(NamedTuple):
    """One suspicion."""

    detector: str
    """Name of the check."""

    severity: Severity
    """How bad it is."""

    session: str
    """Session it is about."""

    seq: int
    """Where it shows first."""

    witnesses: tuple[int, ...]
    """Records of the session that show it."""

    message: str
    """What was found."""

    elsewhere: tuple[str, ...] = ()
    """Records of other sessions that show it, as `SESSION#SEQ`."""

    level: Level = "trajectory"
    """Whether one action alone shows it, or only several together."""

    version: str = ""
    """Digest of the detector's text, its first 16 digits."""

    key: str | None = None
    """What tells it from others of the same detector and session; None: its witnesses do."""

    @property
    def id(self) -> str:
        """The same for the same suspicion, whenever and in whatever ledger it is raised."""
        told = self.key if self.key is not None else [list(self.witnesses), list(self.elsewhere)]
        return hashlib.sha256(canonical_json([self.detector, self.session, told])).hexdigest()[:16]

    @property
    def order(self) -> tuple[str, int, str, str]:
        """By what findings are sorted."""
        return self.session, self.seq, self.detector, self.id

    def is_at_least(self, severity: Severity) -> bool:
        """Whether it is as bad as that, or worse."""
        return SEVERITIES.index(self.severity) >= SEVERITIES.index(severity)

    def as_json(self, verdict: str | None = None) -> dict[str, Any]:
        """The documented form."""
        return {
            "id": self.id,
            "detector": self.detector,
            "version": self.version,
            "severity": self.severity,
            "level": self.level,
            "session": self.session,
            "seq": self.seq,
            "witnesses": list(self.witnesses),
            "elsewhere": list(self.elsewhere),
            "message": self.message,
            "verdict": verdict,
        }
