"""A run that leaves its recording: a recorded beginning, other answers where they are given, then life."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ledger.errors import InputError, RecordNotFoundError
from ledger.events.model_call import ModelCallRequested
from ledger.events.replaying import ReplayAnswered, ReplayStarted, ToolTreatment
from ledger.home import Ledger
from replay.divergence import Divergence, Side
from replay.matching import Canonical, ModelRequest, canonical
from replay.player import Answer, Player
from replay.recordings import Recording, model_mark, sessions_of_run
from replay.refusing import refusal_body
from replay.report import RequestMatch


@dataclass(frozen=True)
class Branch:
    """Where a run leaves its recording, and how."""

    at: int
    """Last record of the session that counts."""

    answers: Mapping[int, bytes]
    """Seq of a model request -> body that is given in the place of the recorded answer."""

    models: Literal["live", "blocked"]
    """Whether models are asked after it."""


class BranchPlayer(Player):
    """Answers up to the branch from the record. `live` is the source of an answer that a model is to give.

    A request belongs to the recorded part as long as a recording of its conversation is left there; one that fits none
    of these stops the branch, unless another answer was given before it: then this is what it was given for.
    """

    def __init__(self, ledger: Ledger, session: str, branch: Branch, **options: Any) -> None:
        origin = ledger.store.resolve(session)
        record = ledger.store.record(origin, branch.at)
        for seq in branch.answers:
            _check_answer(ledger, origin, seq, branch.at)
        started = ReplayStarted(
            origin=origin,
            origin_seq=branch.at,
            origin_hash=record.hash,
            level="branch",
            mode="wire",
            tools=(ToolTreatment(tool="*", treatment="live"),),
            frozen=False,
        )
        super().__init__(
            ledger,
            sessions_of_run(ledger.store, origin),
            upto=record.position,
            started=started,
            **options,
        )
        self.report.level = "branch"
        self._branch = branch
        self._has_substituted = False

    def _model_call(self, method: str, target: str, request: ModelRequest) -> Answer:
        form = canonical(request, self._folders)
        entry, _ = self._find(request, form, model_mark(self._salt, request))
        if entry is not None and entry.session == self.session and entry.seq in self._branch.answers:
            return self._substitute(entry, form)
        if entry is None and self._has_left(form):
            return self._live(request, form)
        return super()._model_call(method, target, request)

    def _has_left(self, form: Canonical) -> bool:
        """Whether a conversation has no recording left that it has to follow."""
        if self._has_substituted:
            return True
        entries = [one for one in self._recordings.entries if one.protocol is not None and not one.is_broken]
        lanes = [(self._recordings.form(one).lane, one.is_used) for one in entries]
        own = [is_used for lane, is_used in lanes if lane.key == form.lane.key]
        return all(own) if own else all(is_used for lane, is_used in lanes if not lane.is_side)

    def _substitute(self, entry: Recording, form: Canonical) -> Answer:
        """The answer that was given for this request; it is the front that records it."""
        entry.is_used = True
        self._has_substituted = True
        body = self._branch.answers[entry.seq]
        kind = "application/json" if body.lstrip()[:1] in (b"{", b"[") else "text/event-stream"
        self._tell(form, entry.seq)
        return Answer(
            200, [("content-type", kind)], [(0, body)], "complete", "live", seq=entry.seq, entry=entry
        )

    def _live(self, request: ModelRequest, form: Canonical) -> Answer:
        if self._branch.models == "live":
            self._tell(form, None)
            self.report.outside_calls += 1
            return Answer(None, [], [], "complete", "live", "miss")
        cause = "the branch has left its recording, and models are blocked"
        blocked = Divergence("extra", self.session, None, replayed=Side(), cause=cause)
        self.report.blocked += 1
        self.report.add(RequestMatch(None, "miss", (), "blocked", form.lane.purpose))
        if self.journal is not None:
            self.journal.step(ReplayAnswered(source="blocked", match="miss", lane=_named(form)))
        body = refusal_body(request.protocol, blocked)
        headers = [("content-type", "application/json"), ("x-should-retry", "false")]
        return Answer(400, headers, [(0, body)], "complete", "blocked", "miss", divergence=blocked)

    def _tell(self, form: Canonical, seq: int | None) -> None:
        self.report.add(RequestMatch(seq, "miss", (), "live", form.lane.purpose))
        if self.journal is not None:
            self.journal.step(ReplayAnswered(origin_seq=seq, source="live", match="miss", lane=_named(form)))

    def _left(self, entry: Recording) -> tuple[Recording, bool]:
        found, was_due = super()._left(entry)
        return found, was_due and not self._has_substituted


def _check_answer(ledger: Ledger, origin: str, seq: int, at: int) -> None:
    if seq > at:
        raise InputError(
            f"{origin}#{seq} comes after the branch at {at}, where nothing is answered from the record: branch at "
            f"{seq} or later to give this request another answer"
        )
    try:
        event = ledger.store.record(origin, seq).event
    except RecordNotFoundError as error:
        raise InputError(str(error)) from error
    if not isinstance(event, ModelCallRequested):
        raise InputError(
            f"{origin}#{seq} is {event.TYPE}: expected a model request to give another answer to"
        )


def _named(form: Canonical) -> str:
    return f"{form.lane.purpose} {form.lane.key.hex()[:8]}"
