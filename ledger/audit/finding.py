"""What a check found, with the records that show it."""

from typing import Any, NamedTuple

from ledger.events.review import Severity


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

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            **self._asdict(),
            "witnesses": list(self.witnesses),
            "elsewhere": list(self.elsewhere),
            "verdict": None,
        }
