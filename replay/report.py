"""What a replay has shown: its verdict, request by request, and its first divergence."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ledger.events.replaying import AnswerSource, MatchGrade, ReplayEnded, Verdict
from replay.divergence import Divergence, Side
from replay.recordings import Recording

Level = Literal["state", "request", "rerun", "branch"]


class RequestMatch(NamedTuple):
    """A request of a replay."""

    seq: int | None
    """Recorded request that it fits, or that it is nearest to."""

    match: MatchGrade
    """How well it fits."""

    rules: tuple[str, ...] = ()
    """Rules that took differences away."""

    source: AnswerSource = "recorded"
    """Where its answer came from."""

    purpose: str = "main"
    """What it was for."""


class Unchecked(NamedTuple):
    """Something that could not be compared."""

    seq: int
    """Its record."""

    reason: str
    """Why."""


@dataclass
class Report:
    """The result of a replay."""

    session: str
    """Session that was replayed."""
    level: Level = "rerun"
    """What was to be proved."""
    requests: list[RequestMatch] = field(default_factory=list)
    """Every request, in order."""
    divergence: Divergence | None = None
    """The first difference."""
    unchecked: list[Unchecked] = field(default_factory=list)
    """What could not be compared."""
    unused: list[int] = field(default_factory=list)
    """Recorded requests that nobody made, and nobody had to: side calls, and lanes that were broken off."""
    others: int = 0
    """Answers from the record to what is no model call."""
    blocked: int = 0
    """Model requests that were refused."""
    outside_calls: int = 0
    """Attempts to reach something that was not recorded; all refused."""
    effects: int = 0
    """Effects outside that the replay caused itself."""
    tools: Counter[str] = field(default_factory=Counter)
    """How often each tool was called by answers that were given."""
    reason: str | None = None
    """Why it is incomplete although nothing differed."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What a level has to say beside: digests, counts."""

    @property
    def verdict(self) -> Verdict:
        """Equal, if nothing differed and it came to its end."""
        if self.divergence is not None:
            return "diverged"
        return "equal" if self.reason is None else "incomplete"

    def add(self, request: RequestMatch) -> None:
        """Take note of a request."""
        self.requests.append(request)

    def finish(self, stopped: Divergence | None, left: list[tuple[Recording, bool]]) -> None:
        """The end: what stopped the replay, and the recordings that nobody asked for."""
        self.divergence = stopped
        self.unused = [entry.seq for entry, was_due in left if not was_due]
        due = [entry for entry, was_due in left if was_due]
        if stopped is None and due:
            first = due[0]
            self.divergence = Divergence(
                "missing",
                self.session,
                first.seq,
                None,
                Side(first.session, first.seq, first.mark.hex()),
                cause=f"the replay ended before {len(due)} recorded request{'s' if len(due) > 1 else ''} came",
            )

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "verdict": self.verdict,
            "level": self.level,
            "session": self.session,
            "requests": [
                {**one._asdict(), "rules": list(one.rules)} for one in self.requests if one.seq is not None
            ],
            "divergence": None if self.divergence is None else self.divergence.as_json(),
            "reason": self.reason,
            "outside_calls": self.outside_calls,
            "effects": self.effects,
            "tools": dict(self.tools),
            "blocked": self.blocked,
            "unused": self.unused,
            "unchecked": [one._asdict() for one in self.unchecked],
            **self.facts,
        }

    def event(self) -> ReplayEnded:
        """The verdict as an event."""
        return ReplayEnded(
            verdict=self.verdict,
            level=self.level,
            checked=sum(one.match != "miss" for one in self.requests),
            unchecked=len(self.unchecked),
            recorded=sum(one.source == "recorded" for one in self.requests) + self.others,
            live=sum(one.source == "live" for one in self.requests),
            blocked=self.blocked,
            outside_calls=self.outside_calls,
            effects=self.effects,
        )
