"""What an audit says: the findings, and beside each flagged run what its single actions would have told."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.audit.actions import CHECKS, Actions
from ledger.audit.detector import Detector
from ledger.audit.failure import Failure
from ledger.audit.finding import SEVERITIES, Finding
from ledger.audit.intervals import Share
from ledger.events.review import Severity

FLAGGED_FROM: Severity = "medium"
"""How bad a finding over a trajectory is that flags a run."""

_SETTLED_WELL = ("dismissed", "accepted_risk", "duplicate")


class MissingInput(NamedTuple):
    """What a detector asked for in vain, because no file of the lake carries it."""

    detector: str
    """Who asked: its findings in these sessions may be fewer, or others, than in the store."""

    sessions: tuple[str, ...]
    """The sessions that it looked at then."""

    times: int
    """How often."""

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        return {"detector": self.detector, "sessions": list(self.sessions), "times": self.times}


@dataclass
class Report:
    """The answer of one audit."""

    detectors: list[Detector]
    """Those that ran."""

    failures: list[Failure] = field(default_factory=list)
    """Those that could not be used, or broke: what they would have found is missing."""

    sessions: int = 0
    """Sessions looked at."""

    findings: list[Finding] = field(default_factory=list)
    """What they found, in order."""

    actions: dict[str, Actions] = field(default_factory=dict)
    """Of each flagged session, its actions by themselves."""

    verdicts: dict[str, str] = field(default_factory=dict)
    """What people said, by finding id."""

    missing: list[MissingInput] | None = None
    """Where a lake was audited, what it lacks, by detector; None: a store was, which lacks nothing."""

    def flagged(self) -> list[str]:
        """Sessions that a finding over their trajectory flags."""
        return flagged(self.open())

    def open(self) -> list[Finding]:
        """Findings that nobody has judged to be no cause for alarm."""
        return [one for one in self.findings if self.verdicts.get(one.id) not in _SETTLED_WELL]

    def worst(self) -> Severity | None:
        """The worst of the open findings."""
        ranks = [SEVERITIES.index(one.severity) for one in self.open()]
        return SEVERITIES[max(ranks)] if ranks else None

    def as_json(self, *, everything: bool = False) -> dict[str, Any]:
        """The documented form."""
        shown = self.findings if everything else self.open()
        told: dict[str, Any] = {
            "findings": [one.as_json(self.verdicts.get(one.id)) for one in shown],
            "failed": [one.as_json() for one in self.failures],
            "metrics": self.metrics(),
        }
        if self.missing is not None:
            told["missing_input"] = [one.as_json() for one in self.missing]
        return told

    def metrics(self) -> dict[str, Any]:
        """Counts, and the share of flagged runs whose every action passes its own check."""
        runs = self.flagged()
        passing = [session for session in runs if self._actions(session).passes()]
        by_severity = Counter(one.severity for one in self.open())
        return {
            "sessions": self.sessions,
            "detectors": [one.name for one in self.detectors],
            "by_severity": {severity: by_severity[severity] for severity in reversed(SEVERITIES)},
            "not_shown": len(self.findings) - len(self.open()),
            "flagged": len(runs),
            "flagged_by_no_action": Share(len(passing), len(runs)).as_json(),
            "action_checks": list(CHECKS),
            "runs": [
                {
                    "session": session,
                    "actions": self._actions(session).checked,
                    "failed": [
                        {"seq": seq, "why": why} for seq, why in sorted(self._actions(session).failed.items())
                    ],
                }
                for session in runs
            ],
        }

    def _actions(self, session: str) -> Actions:
        return self.actions.get(session) or Actions()


def flagged(findings: list[Finding]) -> list[str]:
    """Sessions that a finding over their trajectory flags, each once, in order."""
    return sorted(
        {one.session for one in findings if one.level == "trajectory" and one.is_at_least(FLAGGED_FROM)}
    )
