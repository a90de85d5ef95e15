"""What looks for findings: the detectors of a ledger by name. Renders nothing."""

from pathlib import Path

from ledger.audit import Detector, discover


def detectors_of(home: Path) -> dict[str, Detector]:
    """All detectors that an audit of this ledger may use. Raises InputError for one that cannot be read."""
    return discover(home)


def name_of_rule(detector: str) -> str:
    """The detector of a suspicion: of `file.part`, the file."""
    return detector.partition(".")[0]
