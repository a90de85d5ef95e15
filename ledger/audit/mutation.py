"""A change of what governs an agent that nobody authorised: which way it goes, and what it let through afterwards."""

from dataclasses import dataclass, field
from typing import Any

from ledger.audit.bounding import short
from ledger.audit.finding import Found
from ledger.audit.weakening import Change, compare, lets_through
from ledger.effects.classes import classify
from ledger.events.review import Severity
from ledger.events.tool_call import ToolCallRequested

_SHOWN = 10
_RANKS = ("info", "low", "medium", "high", "critical")
_SEVERITY: dict[str, Severity] = {"weaker": "high", "unknown": "medium", "stronger": "low", "neutral": "info"}
_DIRECTIONS = {
    "weaker": "weaker now",
    "stronger": "stronger now",
    "neutral": "the same",
    "unknown": "not comparable",
}


@dataclass
class Mutation:
    """One change."""

    artifact: str
    """What changed."""

    seq: int
    """Where."""

    cause: str
    """By whose act, in words."""

    change: Change
    """Which way it goes."""

    seen: tuple[int | None, ...] = ()
    """Records that show it besides: the version before, the act behind it."""

    note: str = ""
    """What is to be said besides."""

    most: Severity = "critical"
    """It is no graver than that, whatever it let through."""

    call_id: str | None = None
    """The call in which it was seen; None where only digests show it."""

    through: list[tuple[int, str]] = field(default_factory=list)
    """Calls that were allowed only because of it: the first of them."""

    count: int = 0
    """How many there were."""

    def passes(self, call: ToolCallRequested, seq: int, arguments: Any, text: str) -> None:
        """A call ran: one that would have been asked about, or refused, before the change is counted."""
        if seq <= self.seq or not self.change.loosened or not self._lets(call, arguments, text):
            return
        self.count += 1
        if len(self.through) < _SHOWN:
            self.through.append((seq, call.tool))

    def _lets(self, call: ToolCallRequested, arguments: Any, text: str) -> bool:
        if any(one.startswith("mode ") for one in self.change.loosened):
            return classify(call.tool, arguments, declared=call.effect_class).effect_class != "read"
        return lets_through(self.change, call.tool, arguments, text) is not None

    def found(self) -> Found:
        """The finding, with all that is known of it by now."""
        message = (
            f"{self.artifact} changed without an authorising event, by {self.cause};"
            f" its rules are {_DIRECTIONS[self.change.direction]}"
        )
        if self.change.loosened:
            some = "; ".join(short(one, 80) for one in self.change.loosened[:3])
            message += f" ({some})"
        message += self.note
        if self.count:
            calls = ", ".join(f"seq {seq} {tool}" for seq, tool in self.through)
            were = "call was" if self.count == 1 else "calls were"
            message += f"; {self.count} later {were} allowed only because of it: {calls}"
        witnesses = tuple(one for one in (*self.seen, *(seq for seq, _ in self.through)) if one is not None)
        severity = _SEVERITY[self.change.direction]
        if self.count and severity == "high":
            severity = "critical"
        if self.call_id is not None and severity == "info":
            severity = "low"  # its own act, whatever it changed
        severity = min(severity, self.most, key=_RANKS.index)
        key = f"{self.artifact} {self.seq}"
        return Found(self.seq, message, witnesses, severity=severity, part="mutation", key=key)


def compared(old: Any, new: Any) -> Change:
    """Which way a change goes; what it takes away cannot be told where nobody knows what was there before."""
    if new is None:
        return Change("unknown")
    change = compare(old, new)
    return Change("unknown") if old is None and change.direction != "weaker" else change
