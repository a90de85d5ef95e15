"""A replay by wire as a session of its own, linked to its origin: it can be looked at, compared and replayed.

Answers from the record are named by the digests that the origin has: they cost no second copy.
"""

import threading
from typing import Any

from ledger.errors import ContentMissingError
from ledger.events import Actor, Draft, Event, Source
from ledger.events.canonical import decode_json
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.recovery import BranchOpened
from ledger.events.replaying import ReplayAnswered, ReplayDiverged, ReplayEnded, ReplayStarted
from ledger.events.session import SessionEnded, SessionForked, SessionStarted
from ledger.home import Ledger
from ledger.protocols.requests import RequestTaker, follow
from ledger.recorder import ContextChain
from replay.divergence import Divergence
from replay.matching import Canonical, ModelRequest
from replay.recordings import Recording
from replay.report import Report

FORMAT = "replay"
"""Source format of the records that a replay writes."""


class ReplayJournal:
    """Writes one replay. Threads may share it.

    `started`: the first event, with origin, level and how tools are treated. The session exists from then on.
    """

    def __init__(self, ledger: Ledger, started: ReplayStarted) -> None:
        self._recorder = ledger.recorder
        self._store = ledger.store
        self._keep = ledger.recorder.keeper()
        self._taker = RequestTaker(self._keep)
        self._chains: dict[bytes, ContextChain] = {}
        self._lock = threading.Lock()
        self._calls = 0
        self.has_diverged = False
        """Whether a divergence was written."""
        self.session = ledger.recorder.ids()
        """Id of the replay's session."""
        self.origin = started.origin
        """Session that is replayed."""
        self._begin(started)

    def answered(
        self,
        request: ModelRequest,
        form: Canonical,
        entry: Recording | None,
        told: ReplayAnswered,
        around: dict[str, Any],
    ) -> int:
        """A model request, and the answer that it got from the record, or the refusal. Gives the seq of the request."""
        with self._lock:
            self._calls += 1
            call_id = f"replayed-{self._calls}"
            requested = self._requested(request, form, call_id, around)
            told = told.model_copy(update={"call_id": call_id})
            ended, rest = self._ended(entry, call_id)
            records = self._recorder.append(
                self.session,
                [
                    self._draft(requested, "agent"),
                    self._draft(told),
                    self._draft(ended, "agent", rest=rest),
                ],
                self._keep,
            )
            return records[0].seq

    def step(self, told: ReplayAnswered) -> None:
        """An answer to something that is no model request."""
        self._append(told)

    def diverged(self, divergence: Divergence) -> None:
        """The replay stopped being equal."""
        sides = (divergence.recorded.digest, divergence.replayed.digest)
        recorded, replayed = (
            digest if digest is not None and len(digest) == 64 else None for digest in sides
        )
        with self._lock:
            self.has_diverged = True
            event = ReplayDiverged(
                kind=divergence.kind,
                origin_seq=divergence.seq,
                pointer=divergence.pointer,
                recorded=recorded,
                replayed=replayed,
                cause=divergence.cause,
                detail=self._keep.json(divergence.as_json(), "divergence"),
            )
            self._recorder.append(self.session, [self._draft(event)], self._keep)

    def ended(self, event: ReplayEnded, report: Any = None) -> None:
        """The verdict. Ends the session."""
        with self._lock:
            if report is not None:
                event = event.model_copy(update={"detail": self._keep.json(report, "report")})
            outcome = SessionEnded(
                outcome="completed" if event.verdict == "equal" else "failed", reason=event.verdict
            )
            drafts = [self._draft(event), self._draft(outcome)]
            self._recorder.append(self.session, drafts, self._keep, durable=True)

    def _begin(self, started: ReplayStarted) -> None:
        name = f"{'branch' if started.level == 'branch' else 'replay'} of {started.origin}"[:200]
        drafts = [self._draft(SessionStarted(harness=FORMAT, name=name))]
        others: dict[str, list[Draft]] = {}
        if started.level == "branch":
            at = started.origin_seq or 0
            drafts.append(self._draft(SessionForked(origin=started.origin, origin_seq=at, runs_again=True)))
            opened = BranchOpened(branch=self.session, at_seq=at)
            others[started.origin] = [Draft(opened, actor=Actor("system"))]
        drafts.append(self._draft(started))
        self._recorder.append_many({self.session: drafts, **others}, self._keep)

    def _append(self, *events: Event) -> None:
        with self._lock:
            self._recorder.append(self.session, [self._draft(event) for event in events], self._keep)

    def _draft(self, event: Event, actor: Any = "system", *, rest: str | None = None) -> Draft:
        source = Source(FORMAT, item=self.origin, rest=rest) if rest is not None else None
        return Draft(event, actor=Actor(actor), source=source)

    def _requested(
        self, request: ModelRequest, form: Canonical, call_id: str, around: dict[str, Any]
    ) -> ModelCallRequested:
        parts = self._taker.take(request.protocol, request.body)
        chain = self._chains.setdefault(form.lane.key, ContextChain(self._keep))
        return ModelCallRequested(
            call_id=call_id,
            purpose=form.lane.purpose,
            protocol=request.protocol,
            model=parts.model or request.model,
            **follow(chain, parts.messages),
            system=parts.system,
            tools=parts.tools,
            parameters=parts.parameters,
            layout=parts.layout,
            body_digest=parts.body_digest,
            completeness=parts.completeness,
            not_seen=parts.not_seen,
            artifacts=parts.artifacts,
            http=self._keep.json(around, "http"),
        )

    def _ended(self, entry: Recording | None, call_id: str) -> tuple[Event, str | None]:
        """The origin's own answer under the id of this call."""
        if entry is not None and entry.answer_seq is not None:
            record = self._store.record(entry.session, entry.answer_seq)
            event = record.event
            if isinstance(event, ModelCallAnswered | ModelCallFailed):
                changes: dict[str, Any] = {"call_id": call_id, "revision": 0}
                changes |= {"first_byte_at_us": None, "ended_at_us": None}
                rest = record.source.rest if record.source is not None else None
                return event.model_copy(update=changes), rest
        error = "no answer recorded" if entry is not None else "refused: the replay diverged"
        return ModelCallFailed(call_id=call_id, error=error), None


def keep_verdict(ledger: Ledger, report: Report) -> str:
    """Write the verdict of a level that is proved from the ledger alone as a replay; gives the session."""
    last = ledger.store.record(report.session, ledger.store.head(report.session).seq)
    journal = ReplayJournal(
        ledger,
        ReplayStarted(
            origin=report.session,
            origin_seq=last.seq,
            origin_hash=last.hash,
            level=report.level,
            mode="check",
        ),
    )
    if report.divergence is not None:
        journal.diverged(report.divergence)
    journal.ended(report.event(), report.as_json())
    return journal.session


def divergence_of(ledger: Ledger, event: ReplayDiverged) -> dict[str, Any] | None:
    """The divergence that an event keeps, whole; None when its content was erased."""
    if event.detail is None:
        return None
    try:
        found = decode_json(ledger.store.content(event.detail.digest))
    except ContentMissingError:
        return None
    return found if isinstance(found, dict) else None
