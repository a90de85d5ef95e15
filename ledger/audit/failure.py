"""A detector that broke: what is told of it while the others go on."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ledger.audit.detector import Detector
from ledger.errors import LedgerError

BREAKS = (Exception, SystemExit)
"""What code of others may raise that is its own affair: an exit, too, ends the detector and not the audit."""

_LONGEST = 500


class DetectorFailedError(LedgerError):
    """A detector broke while it looked at a session."""


class Failure(NamedTuple):
    """A detector that could not do, or did not end, its work: what it would have found is missing."""

    detector: str
    """Its name."""

    place: str
    """Its file."""

    error: str
    """What went wrong, the first time."""

    times: int = 1
    """In how many sessions; 1, too, for one that could not be used at all."""

    @classmethod
    def of(cls, detector: Detector, error: str) -> "Failure":
        """One time."""
        told = error.encode("utf-8", "backslashreplace").decode()
        return cls(detector.name, detector.place, told if len(told) <= _LONGEST else f"{told[:_LONGEST]}...")

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return self._asdict()


def together(failures: Iterable[Failure]) -> list[Failure]:
    """Each detector once, by name, with what went wrong first."""
    found: dict[str, Failure] = {}
    for one in failures:
        first = found.get(one.detector)
        found[one.detector] = one if first is None else first._replace(times=first.times + one.times)
    return [found[name] for name in sorted(found)]
