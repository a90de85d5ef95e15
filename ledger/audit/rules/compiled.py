"""A file of rules as one detector: its rules share one pass, and each expression is worked out once for a record."""

import hashlib
from functools import partial

from ledger.audit.detector import Detector
from ledger.audit.finding import SEVERITIES
from ledger.audit.rules.file import RuleSet
from ledger.audit.rules.matching import RuleFold
from ledger.audit.rules.plan import Plans
from ledger.events.input import MessageReceived
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted

_OF_TOOLS = (ToolCallRequested.TYPE, ToolCallStarted.TYPE, ToolCallSettled.TYPE)
MISSES = (
    "What its rules do not say; what a source does not show: `loopledger backtest` names it by rule and session."
    " A rule looks at one session: a sub-agent's is another."
)
"""What every rule misses."""


def reads(plans: Plans) -> tuple[str, ...]:
    """The events that rules have to see."""
    found = {*_OF_TOOLS, *(kind for kind in plans.kinds if "." in kind)}
    if plans.counts_turns or plans.follows_values:
        found.add(MessageReceived.TYPE)
    return tuple(sorted(found))


def rules_detector(rules: RuleSet, *, is_own: bool = False) -> Detector:
    """The rules of a file as a detector; each rule is one of its suspicions, `file.rule`."""
    plans = Plans(rules)
    file = rules.file
    worst = max((rule.severity for rule in file.rules), key=SEVERITIES.index)
    return Detector(
        rules.name,
        file.title or "; ".join(rule.title for rule in file.rules)[:200],
        worst,
        file.why or f"A rule of {rules.name} says so.",
        file.misses or MISSES,
        reads(plans),
        file.source or "A file of rules.",
        "trajectory",
        file.state == "experimental",
        hashlib.sha256(rules.text.encode()).hexdigest()[:16],
        rules.place,
        start=partial(RuleFold, plans),
        is_own=is_own,
    )
