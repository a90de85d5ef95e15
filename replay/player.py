"""Answers the requests of a harness that runs again with what was recorded. Speaks no HTTP: a front does that.

    player = open_player(ledger, "3f2a")                      # a recorded session and its sub-agents
    answer = await player.aanswer("POST", "/v1/messages", headers, body)      # `answer(...)` in a thread
    if answer.status is None:
        ...                                                   # no answer came when it was recorded: hang up
    for milliseconds, piece in answer.pieces:
        ...                                                   # write; hang up at the end unless `ended` is "complete"
    player.delivered(answer)                                  # also when the client has gone
    report = player.finish()                                  # verdict, requests, divergence

A request that fits nothing stops the replay: it and every later one get the same refusal. Nothing is ever sent on.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from ledger.errors import InputError, LedgerError
from ledger.events.replaying import AnswerSource, MatchGrade, ReplayAnswered, ReplayStarted
from ledger.home import Ledger
from ledger.protocols.http_bodies import pairs_of
from ledger.store.content import content_digest
from replay.clean import CleanRequests
from replay.divergence import Divergence, Side
from replay.explaining import Asked, explain
from replay.fresh_ids import IdsOfThisRun
from replay.gate import Gate
from replay.keeping import ReplayJournal
from replay.matching import Canonical, Folders, ModelRequest, canonical, read_request
from replay.recordings import (
    Piece,
    Recording,
    Recordings,
    model_mark,
    other_mark,
    sessions_of_run,
)
from replay.refusing import refusal_body
from replay.report import Report, RequestMatch

GATE_TIMEOUT_S = 8.0
"""Longest wait for an answer that ended earlier when it was recorded."""

SETTLE_S = 0.15
"""Time for a harness to take note that a sub-agent has ended, before another conversation goes on."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """What the front writes."""

    status: int | None
    """HTTP status; None: close the connection, as no answer had come."""
    headers: list[tuple[str, str]]
    """Headers, without those of the connection: length and encoding are the front's."""
    pieces: list[Piece]
    """The body as (milliseconds since the request, bytes)."""
    ended: str
    """`complete`; otherwise the front hangs up after the last piece."""
    source: AnswerSource
    """Where it comes from."""
    match: MatchGrade | None = None
    """How well the request fits its recording."""
    rules: tuple[str, ...] = ()
    """Rules that took differences away."""
    seq: int | None = None
    """Record of the request that was matched."""
    divergence: Divergence | None = None
    """Why it was refused; with the match `lane`, what differs although it was answered."""
    entry: Recording | None = field(default=None, repr=False)
    """The recording, for the player."""

    @property
    def body(self) -> bytes:
        """The body in one piece."""
        return b"".join(piece for _, piece in self.pieces)


def open_player(ledger: Ledger, name: str, **options: Any) -> "Player":
    """The player of a session (by id or prefix) with those of its sub-agents. Options are those of `Player`.

    Raises SessionNotFoundError; InputError when the session holds no request whole enough to be matched.
    """
    session = ledger.store.resolve(name)
    return Player(ledger, sessions_of_run(ledger.store, session), **options)


class Player:
    """One replay. Threads and coroutines may share it.

    `recorded` and `replayed`: folders of the two runs, where they differ. `matching`: `lane` also serves a request that
    only stands at the same place of the same conversation, and says so. An answer that calls a tool which `is_blocked`
    stops the replay: it is the harness that would run it. `journal` keeps the replay as a session.
    `upto`: only what had ended at that place of the whole ledger is answered.
    """

    def __init__(
        self,
        ledger: Ledger,
        sessions: Sequence[str],
        *,
        recorded: Folders = Folders(),  # noqa: B008 - immutable
        replayed: Folders = Folders(),  # noqa: B008 - immutable
        matching: Literal["canonical", "lane"] = "canonical",
        is_blocked: Callable[[str], bool] = lambda tool: False,
        gate_timeout_s: float = GATE_TIMEOUT_S,
        started: ReplayStarted | None = None,
        upto: int | None = None,
    ) -> None:
        self._recordings = Recordings(ledger.store, sessions, recorded, upto)
        if not self._recordings.entries and upto is None:
            raise InputError(
                f"{sessions[0]} holds no model request whole enough to answer one like it: expected a session of the "
                "recording proxy, or an import of its recordings or of an HTTP archive"
            )
        self._salt = ledger.store.salt
        self._clean = CleanRequests(ledger.recorder.redactor)
        self._folders = Folders(tuple(dict.fromkeys((*replayed.names, *recorded.names))))
        self._matching = matching
        self._is_blocked = is_blocked
        self._timeout = gate_timeout_s
        self._gate = Gate(self._recordings.entries)
        self._lock = threading.Lock()
        self._marks: dict[bytes, list[Recording]] = {}
        self._lengths: dict[tuple[str, int], list[Recording]] = {}
        for entry in self._recordings.entries:
            self._marks.setdefault(entry.mark, []).append(entry)
            if entry.protocol is not None:
                self._lengths.setdefault((entry.protocol, entry.count), []).append(entry)
        self._ids = IdsOfThisRun()
        self._stopped: Divergence | None = None
        self._last_seq: int | None = None
        self.session = sessions[0]
        """The session that is replayed."""
        self.report = Report(self.session)
        """What happened so far."""
        self.journal = ReplayJournal(ledger, started) if started is not None else None
        """Keeps the replay as a session; None where it is not kept."""

    # -- the front's side ------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """The answer to a request, when its turn has come. Blocks until then."""
        answer = self.match(method, target, headers, body)
        turn = self.turn(answer)
        try:
            turn.result(self._timeout)
        except TimeoutError:
            return self.overdue(answer)
        if pause := self._pause(answer):
            time.sleep(pause)
        return self._unless_stopped(answer)

    async def aanswer(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """As `answer`, for a coroutine: holds no thread while it waits."""
        answer = await asyncio.to_thread(self.match, method, target, headers, body)
        turn = self.turn(answer)
        if not turn.done():
            try:
                await asyncio.wait_for(asyncio.wrap_future(turn), self._timeout)
            except TimeoutError:
                return await asyncio.to_thread(self.overdue, answer)
        if pause := self._pause(answer):
            await asyncio.sleep(pause)
        return self._unless_stopped(answer)

    def _pause(self, answer: Answer) -> float:
        """How long an answer is held back beyond its turn."""
        is_after = answer.entry is not None and self._gate.follows_an_end(answer.entry)
        return min(SETTLE_S, self._timeout) if is_after else 0.0

    def delivered(self, answer: Answer) -> None:
        """The answer is out, or its client has gone: those that waited for it may follow."""
        if answer.entry is not None:
            self._gate.out(answer.entry)

    def finish(self) -> Report:
        """No request comes any more: the verdict."""
        with self._lock:
            entries = self._recordings.entries if self._stopped is None else []
            unused = [one for one in entries if one.protocol is not None and not one.is_used]
            self.report.finish(self._stopped, [self._left(one) for one in unused])
            report = self.report
        if self.journal is not None:
            if report.divergence is not None and not self.journal.has_diverged:
                self.journal.diverged(report.divergence)
            self.journal.ended(report.event(), report.as_json())
        return report

    # -- in two steps, for who waits otherwise ---------------------------------------------------------------

    def match(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """Find the answer to a request and mark it as given; it may not go out before its `turn`."""
        pairs = pairs_of(list(headers))
        request = read_request(target, pairs, body)
        with self._lock:
            if request is None:
                return self._other(method, target, body)
            if self._stopped is not None:
                return self._refusal(self._stopped, request.protocol)
            return self._model_call(method, target, self._clean.request(request))

    def turn(self, answer: Answer) -> "Future[None]":
        """Done when the answer may go out."""
        if answer.entry is None or answer.source != "recorded":
            done: Future[None] = Future()
            done.set_result(None)
            return done
        return self._gate.turn(answer.entry)

    def overdue(self, answer: Answer) -> Answer:
        """Its turn did not come in time: another order, or a request that this run does not make."""
        entry = answer.entry
        assert entry is not None
        missing = self._gate.before(entry)
        with self._lock:
            early = next((one for one in missing if not one.is_used and self._comes_first(one, entry)), None)
            if early is not None and self._stopped is None:
                self._stop(
                    Divergence(
                        "order",
                        self.session,
                        early.seq,
                        None,
                        Side(early.session, early.seq, early.mark.hex()),
                        Side(entry.session, entry.seq, entry.mark.hex()),
                        f"request #{entry.seq} came, and #{early.seq} did not, whose answer had ended before "
                        f"#{entry.seq} was sent",
                    )
                )
        for one in missing:
            if not one.is_used:
                self._gate.out(one)
        return self._unless_stopped(answer)

    # -- matching --------------------------------------------------------------------------------------------

    def _model_call(self, method: str, target: str, request: ModelRequest) -> Answer:
        mark = model_mark(self._salt, request)
        form = canonical(request, self._folders)
        entry, grade = self._find(request, form, mark)
        if entry is None:
            asked = Asked(request, form, mark.hex())
            self._stop(explain(self._recordings, asked, self.session, self._last_seq))
            assert self._stopped is not None
            answer = self._refusal(self._stopped, request.protocol)
        else:
            answer = self._serve(entry, grade, form, request)
        told = ReplayAnswered(
            origin_session=entry.session if entry is not None and entry.session != self.session else None,
            origin_seq=answer.seq,
            source=answer.source,
            match=grade,
            rules=answer.rules,
            lane=f"{form.lane.purpose} {form.lane.key.hex()[:8]}",
        )
        if self.journal is not None:
            around = self._clean.around(method, target, request.headers)
            self.journal.answered(request, form, entry if answer.source == "recorded" else None, told, around)
            if entry is None and self._stopped is not None:
                self.journal.diverged(self._stopped)
        self.report.add(RequestMatch(answer.seq, grade, answer.rules, answer.source, form.lane.purpose))
        return answer

    def _find(
        self, request: ModelRequest, form: Canonical, mark: bytes
    ) -> tuple[Recording | None, MatchGrade]:
        for entry in self._marks.get(mark, ()):
            if (
                not entry.is_used
                and entry.protocol == request.protocol
                and self._same_address(entry, request)
            ):
                return entry, "raw"
        free = [one for one in self._lengths.get((request.protocol, form.lane.turn), ()) if not one.is_used]
        for entry in free:
            if self._recordings.form(entry).key == form.key:
                return entry, "canonical"
        if self._matching == "lane":
            for entry in free:
                if self._recordings.form(entry).lane == form.lane:
                    return entry, "lane"
        return None, "miss"

    def _same_address(self, entry: Recording, request: ModelRequest) -> bool:
        form = self._recordings.form(entry)
        return form.operation == request.operation and form.model == request.model

    def _serve(self, entry: Recording, grade: MatchGrade, form: Canonical, request: ModelRequest) -> Answer:
        try:
            recorded = self._recordings.answer(entry)
        except LedgerError as error:
            where = Side(entry.session, entry.seq, entry.mark.hex())
            self._stop(Divergence("damaged_range", self.session, entry.seq, None, where, cause=str(error)))
            assert self._stopped is not None
            return self._refusal(self._stopped, request.protocol)
        calls = self._recordings.calls(entry)
        if blocked := next(filter(self._is_blocked, calls), None):
            where = Side(entry.session, entry.answer_seq)
            cause = f"the answer calls tool {blocked!r}, which this replay blocks"
            self._stop(Divergence("effect_type", self.session, entry.answer_seq, None, where, cause=cause))
            assert self._stopped is not None
            return self._refusal(self._stopped, request.protocol)
        self.report.tools.update(calls)
        entry.is_used = True
        self._last_seq = entry.seq
        rules: tuple[str, ...] = ()
        difference = None
        if grade == "canonical":
            rules = tuple(dict.fromkeys((*self._recordings.form(entry).rules, *form.rules)))
            rules += self._ids.learn(self._recordings.form(entry).ids, form.ids)
        elif grade == "lane":
            asked = Asked(request, form, "")
            difference = explain(self._recordings, asked, self.session, entry.seq)
        return Answer(
            recorded.status,
            recorded.headers,
            self._ids.put_into(recorded.pieces),
            recorded.ended,
            "recorded",
            grade,
            rules,
            entry.seq,
            difference,
            entry,
        )

    def _other(self, method: str, target: str, body: bytes) -> Answer:
        """Traffic that is no model call: from the record if it is there, refused otherwise."""
        around = self._clean.around(method, target, [])
        digest = content_digest(self._salt, self._clean.raw(body)).hex() if body else ""
        found = self._marks.get(other_mark(method, around["target"], digest), [])
        entry = next((one for one in found if not one.is_used), None)
        if entry is None and method.upper() in ("GET", "HEAD") and found:
            entry = found[-1]  # asking twice changes nothing, so the last answer holds
        if entry is None or self._stopped is not None:
            self.report.outside_calls += 1
            if self.journal is not None:
                self.journal.step(ReplayAnswered(source="blocked", lane=f"{method} {around['target']}"[:200]))
            refused = [(0, b'{"error":"not recorded; a replay sends nothing on"}')]
            return Answer(404, [("content-type", "application/json")], refused, "complete", "blocked")
        entry.is_used = True
        recorded = self._recordings.answer(entry)
        if self.journal is not None:
            self.journal.step(ReplayAnswered(origin_seq=entry.seq, source="recorded"))
        self.report.others += 1
        answer = (recorded.status, recorded.headers, recorded.pieces, recorded.ended)
        return Answer(*answer, source="recorded", seq=entry.seq)

    # -- stopping --------------------------------------------------------------------------------------------

    def _stop(self, divergence: Divergence) -> None:
        self._stopped = divergence
        self._gate.open()

    def _unless_stopped(self, answer: Answer) -> Answer:
        """The answer, or the refusal where the replay stopped while it waited: nothing goes out after that."""
        if self._stopped is None or answer.entry is None or answer.entry.protocol is None:
            return answer
        return self._refusal(self._stopped, answer.entry.protocol)

    def _refusal(self, divergence: Divergence, protocol: str) -> Answer:
        self.report.blocked += 1
        headers = [
            ("content-type", "application/json"),
            ("x-should-retry", "false"),
            ("x-loopledger-replay", "diverged"),
        ]
        body = refusal_body(protocol, divergence)
        seq = divergence.seq
        return Answer(400, headers, [(0, body)], "complete", "blocked", "miss", (), seq, divergence)

    def _comes_first(self, early: Recording, late: Recording) -> bool:
        """Whether one conversation had its answer before the other request was sent."""
        if early.ended is None or early.ended > late.started or early.is_broken:
            return False
        lanes = [self._recordings.form(one).lane for one in (early, late)]
        both_main = all(lane.purpose == "main" for lane in lanes)
        return both_main or lanes[0].key == lanes[1].key

    def _left(self, entry: Recording) -> tuple[Recording, bool]:
        """A recording that nobody asked for, and whether it should have been."""
        if entry.is_broken or entry.answer_seq is None:
            return entry, False
        lane = self._recordings.form(entry).lane
        forms = [one.form for one in self._recordings.entries if one.is_broken]
        aborted = any(form is not None and form.lane.key == lane.key for form in forms)
        return entry, not (lane.is_side or aborted)
