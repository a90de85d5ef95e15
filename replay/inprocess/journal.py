"""Writes the session of a replay, and holds every step of it against the recording before it is taken.

The steps of the replay are recorded by the same code as those of the original, with the same salt, so their digests
can be compared. The first step that differs ends the replay: its divergence is recorded, and whatever the loop tries
afterwards is refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ledger.capture.journal import Journal, Surroundings
from ledger.errors import NotRecordedError
from ledger.events import Actor, Draft, Event, Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.events.draw import Drawn
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import CheckpointTaken
from ledger.events.replaying import ReplayDiverged
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from replay.divergence import Divergence
from replay.inprocess.course import Course
from replay.inprocess.frozen import thawed
from replay.inprocess.judging import diverged
from replay.inprocess.script import Ending, Script, Step, kind_of

_SYSTEM = Actor("system")
_ENDING = ("model", "tool", "approval")


class ReplayDivergedError(NotRecordedError):
    """The loop did something else than the recording, so it was stopped."""


class ReplayJournal(Journal):
    """The journal of one session that is made again."""

    def __init__(
        self,
        surroundings: Surroundings,
        session: str,
        course: Course,
        family: dict[str, "ReplayJournal"],
        *,
        agent: str | None,
        correlation: str,
        depth: int,
    ) -> None:
        super().__init__(surroundings, session, agent=agent, correlation=correlation, depth=depth)
        self.course = course
        self.family = family
        """The journals of all sessions of this replay."""
        self.origin: str | None = None
        """The recorded session that this one makes again; None where it has left the recording."""
        self._script: Script | None = None
        self._matched: dict[str, Step] = {}
        family[session] = self

    def follow(self, origin: str) -> None:
        """From now on, this session is held against that one."""
        self.origin, self._script = origin, self.course.open_script(origin)
        self.course.order.follow(self.lock, self._script)

    def child(self, session: str, agent: str | None) -> "ReplayJournal":
        """The journal of a session that this one hands over to."""
        return ReplayJournal(
            self.surroundings,
            session,
            self.course,
            self.family,
            agent=agent,
            correlation=self.correlation,
            depth=self.depth + 1,
        )

    # -- what was recorded -------------------------------------------------------------------------------------------

    def step(self, name: str) -> Step | None:
        """The recorded step that a call, question or checkpoint of this replay makes again."""
        return self._matched.get(name)

    def counts(self, step: Step) -> bool:
        """Whether the answer to a step is taken from the record, too."""
        assert self._script is not None
        with self.lock, thawed():
            self._script.ended(step)
            return self.course.counts(step)

    def ending(self, step: Step) -> Ending:
        """How a step had ended. Raises ReplayDivergedError when the recording stops before that."""
        if step.end is None:
            self.course.stopped = f"the recording ends before {self.place(step)} was answered"
            self.course.report.reason = self.course.stopped
            raise ReplayDivergedError(self.course.stopped)
        return step.end

    def looks(self, name: str, *, was_given: bool = False) -> Iterator[None]:
        """As long as the recorded answer to a call or question is not due: pause, and look again.

        One that came in pieces is due at once, and its end when all `was_given`: the loop may go on before.
        """
        step = self.step(name)
        if step is None or not self.counts(step) or step.end is None:
            return iter(())
        if not was_given and isinstance(step.end, ModelCallAnswered) and step.end.first_byte_ms is not None:
            return iter(())
        return self.course.order.looks(step.end_position)

    def place(self, step: Step) -> str:
        """`SESSION#SEQ` of a recorded step."""
        return f"{self.origin}#{step.seq}"

    def recorded_draw(self, kind: str, label: str, read: Callable[[], Any]) -> Any:
        """What was read then. Call with the lock held, and record it under the same lock."""
        with thawed():
            if self._script is None or self.course.is_live(self._script):
                return read()
            step = self._script.next_draw(kind, label)
            if step is None:
                return None  # the append that follows finds that this draw was never recorded
            assert isinstance(step.event, Drawn)
            value = self.course.answers.value(step.event.value)
            return value.get(label) if kind == "environment" and isinstance(value, dict) else value

    # -- what is done now --------------------------------------------------------------------------------------------

    def append(
        self,
        drafts: Sequence[Draft],
        *,
        others: Mapping[str, Sequence[Draft]] | None = None,
        durable: bool = False,
        expect: int | None = None,
    ) -> list[Record]:
        """Hold against the recording, then append."""
        with thawed():
            if self.course.stopped is not None and any(kind_of(draft.event) for draft in drafts):
                raise ReplayDivergedError(f"the replay was stopped: {self.course.stopped}")
            notes: list[Draft] = []
            taken = {
                self.session: list(drafts),
                **{name: list(group) for name, group in (others or {}).items()},
            }
            stray = self._hold_against(taken, notes)
            own = taken.pop(self.session)
            records = super().append([*own, *notes], others=taken, durable=durable, expect=expect)
            if stray is not None:
                journal, event = stray
                seq = next(
                    record.seq
                    for record in records
                    if record.session == journal.session and type(record.event) is type(event)
                )
                journal.stop(event, seq)
            return records

    def _hold_against(
        self, taken: dict[str, list[Draft]], notes: list[Draft]
    ) -> "tuple[ReplayJournal, Event] | None":
        """The first step that is not in the recording, and its journal. What comes after it is not taken."""
        for session, group in taken.items():
            journal = self.family.get(session)
            for place, draft in enumerate(group):
                if journal is not None and not journal._take(draft.event, notes):
                    del group[place + 1 :]
                    return journal, draft.event
        return None

    def _take(self, event: Event, notes: list[Draft]) -> bool:
        """Whether the recording has this step next, or holds nothing against it."""
        if kind_of(event) is None:
            return True
        step: Step | None = None
        if self._script is not None and not self.course.is_live(self._script):
            step = self._script.take(event)
            if step is None and not self.course.may_leave():
                return False
        if step is not None:
            if self._script is not None and self.course.branch is not None and kind_of(event) in _ENDING:
                self._script.ended(
                    step
                )  # where a branch lies between beginning and end, the end is not recorded
            self.course.order.begins()
            if (name := _name(event)) is not None:
                self._matched[name] = step
            if isinstance(event, DelegationStarted) and isinstance(step.event, DelegationStarted):
                child = self.family.get(event.to_session or "")
                if child is not None and step.event.to_session is not None:
                    child.follow(step.event.to_session)
        notes.append(self.draft(self.course.answered(event, step, self.origin), actor=_SYSTEM))
        return True

    def stop(self, event: Event | None, seq: int | None, reason: str | None = None) -> None:
        """Record that the replay left its recording here: by a step, or by ending. A step raises."""
        assert self._script is not None and self.origin is not None
        course = self.course
        divergence = diverged(course.store, self._script, self.origin, self.session, event, seq, reason)
        course.report.divergence = course.report.divergence or divergence
        course.stopped = divergence.text()
        drafts = [self.draft(self._told(divergence), actor=_SYSTEM)]
        if (closing := _closing(event)) is not None:
            drafts.insert(0, self.draft(closing, actor=_SYSTEM, cause=seq))
        super().append(drafts)
        if event is not None:
            raise ReplayDivergedError(course.stopped)

    def finish(self, reason: str | None) -> None:
        """The loop of this session ended: whatever the recording still holds is missing."""
        with self.lock, thawed():
            script = self._script
            if script is None or self.course.stopped is not None or self.course.is_live(script):
                return
            if script.first() is not None:
                self.stop(None, None, reason)

    def _told(self, divergence: Divergence) -> ReplayDiverged:
        return ReplayDiverged(
            kind=divergence.kind,
            origin_seq=divergence.seq,
            pointer=divergence.pointer,
            recorded=divergence.recorded.digest,
            replayed=divergence.replayed.digest,
            cause=divergence.cause,
            detail=self.keep.json(divergence.as_json(), "divergence"),
        )


def _name(event: Event) -> str | None:
    """What a caller knows of its step."""
    match event:
        case ModelCallRequested() | ToolCallRequested():
            return event.call_id
        case ApprovalAsked():
            return event.approval_id
        case CheckpointTaken():
            return event.checkpoint_id
    return None


def _closing(event: Event | None) -> Event | None:
    """What ends a step that was stopped before it began."""
    match event:
        case ModelCallRequested():
            return ModelCallFailed(call_id=event.call_id, error="replay diverged", will_retry=False)
        case ToolCallRequested():
            return ToolCallSettled(call_id=event.call_id, outcome="not_started", error="replay diverged")
        case ApprovalAsked():
            return ApprovalDecided(
                approval_id=event.approval_id, outcome="cancelled", decided_by="system", how="replay diverged"
            )
    return None
