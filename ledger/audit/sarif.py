"""Findings as SARIF 2.1.0, the form in which code hosts take them. Says nothing that the findings do not say."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from ledger.audit.detector import Detector
from ledger.audit.failure import Failure
from ledger.audit.finding import Finding
from ledger.events.review import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""Where the schema of the form is found."""

_LEVELS: dict[Severity, str] = {
    "info": "note",
    "low": "note",
    "medium": "warning",
    "high": "error",
    "critical": "error",
}
_SCORES: dict[Severity, str] = {
    "info": "0.0",
    "low": "2.0",
    "medium": "5.0",
    "high": "8.0",
    "critical": "9.5",
}
_SUPPRESSED = ("dismissed", "accepted_risk", "duplicate")


class Place(NamedTuple):
    """Where a record was read."""

    file: str
    """File as named on import."""

    line: int | None
    """Line in it, from 1."""


def sarif(
    detectors: Iterable[Detector],
    findings: Iterable[Finding],
    verdicts: Mapping[str, str],
    place_of: Callable[[str, int], Place | None],
    version: str,
    failures: Iterable[Failure] = (),
) -> dict[str, Any]:
    """One run with a rule for each kind of suspicion and a result for each finding.

    `place_of` tells where a record of a session was read; a record that was in no file lies in `ledger/SESSION`, at the
    line of its seq. A finding that people judged to be no cause for alarm is there, suppressed. Detectors that failed
    are notifications of a run that was no success.
    """
    told = [{"level": "error", "message": {"text": f"{one.detector}: {one.error}"}} for one in failures]
    shown = list(findings)
    by_name = {detector.name: detector for detector in detectors}
    names = sorted({finding.detector for finding in shown} | set(by_name))
    rules = [_rule(name, by_name[name.partition(".")[0]]) for name in names]
    index = {name: number for number, name in enumerate(names)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "loopledger", "version": version, "rules": rules}},
                "invocations": [{"executionSuccessful": not told, "toolExecutionNotifications": told}],
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, index[finding.detector], verdicts.get(finding.id), place_of)
                    for finding in shown
                ],
            }
        ],
    }


def _rule(name: str, detector: Detector) -> dict[str, Any]:
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.replace(".", "_").split("_")),
        "shortDescription": {"text": detector.title},
        "fullDescription": {"text": detector.why},
        "help": {"text": f"{detector.why} It misses: {detector.misses} Source: {detector.source}"},
        "defaultConfiguration": {"level": _LEVELS[detector.severity]},
        "properties": {
            "tags": ["security", detector.level],
            "security-severity": _SCORES[detector.severity],
        },
    }


def _result(
    finding: Finding,
    rule: int,
    verdict: str | None,
    place_of: Callable[[str, int], Place | None],
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.detector,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [_location(finding.session, finding.seq, place_of)],
        "partialFingerprints": {"finding/v1": finding.id},
        "properties": {
            "severity": finding.severity,
            "level": finding.level,
            "detectorVersion": finding.version,
            "verdict": verdict,
        },
    }
    others = [(finding.session, seq) for seq in finding.witnesses if seq != finding.seq]
    for place in finding.elsewhere:
        session, _, seq = place.rpartition("#")
        if seq.isdigit():
            others.append((session, int(seq)))
    if others:
        result["relatedLocations"] = [
            {"id": number, **_location(session, seq, place_of)}
            for number, (session, seq) in enumerate(others, 1)
        ]
    if verdict in _SUPPRESSED:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": verdict}]
    return result


def _location(session: str, seq: int, place_of: Callable[[str, int], Place | None]) -> dict[str, Any]:
    place = place_of(session, seq)
    physical: dict[str, Any] = {"artifactLocation": {"uri": f"ledger/{quote(session)}"}}
    if place is not None:
        physical = {"artifactLocation": {"uri": _uri(place.file)}}
    line = seq if place is None else place.line
    if line is not None and line > 0:
        physical["region"] = {"startLine": line}
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": f"{session}#{seq}", "name": str(seq), "kind": "record"}],
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
