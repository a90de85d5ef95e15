"""One session that a tap writes: makes its drafts and appends them. Knows no protocol."""

from collections.abc import Sequence
from typing import Any

from ledger.events import Actor, Draft, Event, Source
from ledger.events.record import ActorKind, Grade
from ledger.events.session import SessionEnded, SessionResumed
from ledger.protocols.drafting import Place, short_word
from ledger.recorder import Keeper, Recorder


class TappedSession:
    """A session and the way to its records; a `Drafter`. For one thread at a time."""

    def __init__(
        self, recorder: Recorder, session: str, format_name: str, grade: Grade, run: str | None
    ) -> None:
        self._recorder = recorder
        self._keep = recorder.keeper()
        self._format = format_name
        self._grade = grade
        self.session = session
        """Its id."""
        self.correlation = run or session
        """Run that it belongs to."""
        self.agent: str | None = None
        """Name of the agent that acts."""
        self.depth = 0
        """Delegation depth."""

    @property
    def keep(self) -> Keeper:
        """Way in for content."""
        return self._keep

    def draft(
        self,
        place: Place,
        event: Event,
        actor: ActorKind = "system",
        *,
        name: str | None = None,
        rest: Any = None,
        grade: Grade | None = None,
    ) -> Draft:
        """A draft. `rest`: native fields that no event field carries."""
        kept = self._keep.json(rest, place.key).digest if rest else None
        return Draft(
            event,
            occurred_at=place.time or self._recorder.clock(),
            actor=Actor(actor, name or (self.agent if actor == "agent" else None)),
            correlation=self.correlation,
            agent=self.agent,
            depth=self.depth,
            source=Source(self._format, None, place.key, place.line, kept),
            grade=grade or self._grade,
        )

    def word(self, value: Any, where: str = "") -> str | None:
        """A short text that an event carries itself, or None: without secrets, cut to a bearable length."""
        return short_word(self._keep, value, where)

    def begin(self, place: Place, started: Event, how: str) -> None:
        """The first record; of a session that there is already, that it goes on."""
        is_known = bool(self._recorder.store.head(self.session).seq)
        self.append([self.draft(place, SessionResumed(how=how) if is_known else started)])

    def append(self, drafts: Sequence[Draft]) -> None:
        """Append facts; what returns is kept."""
        if drafts:
            self._recorder.append(self.session, drafts, self._keep)

    def end(self, place: Place, status: int | None, drafts: Sequence[Draft] = ()) -> None:
        """The program behind the tap ended, with an exit status, or below 0 by a signal; None: nobody knows."""
        if status is None:
            ended = SessionEnded(outcome="unknown")
        elif status < 0:
            ended = SessionEnded(outcome="aborted", reason=f"signal {-status}")
        else:
            reason = f"exit status {status}"
            ended = SessionEnded(outcome="failed" if status else "completed", reason=reason)
        self.append([*drafts, self.draft(place, ended)])
