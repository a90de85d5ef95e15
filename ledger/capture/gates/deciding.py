"""Answers to questions, holds and releases, by a person in any process: written into the session that waits."""

import contextlib
import hashlib
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from ledger.capture.gates.questions import Question, SessionQuestions
from ledger.effects.covering import is_after
from ledger.effects.loop_policy import ApprovalRule, Scope
from ledger.errors import ConflictError, InputError
from ledger.events import Actor, Draft, Event
from ledger.events.approval import ApprovalDecided
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.policy import Held, Released
from ledger.events.recovery import BranchOpened
from ledger.events.session import SessionEnded, SessionForked, SessionStarted
from ledger.recorder import Keeper, Recorder

_MOST_HELD = 10_000


class Verdict(NamedTuple):
    """What a person says to a question."""

    outcome: Literal["approved", "denied"]
    """Yes or no."""

    by: str
    """Their name."""

    scope: Scope = "once"
    """How far it reaches."""

    rule: ApprovalRule | None = None
    """The full rule, with the scope `rule`."""

    reason: str | None = None
    """Why."""

    expires_at: str | None = None
    """RFC 3339 time after which it no longer counts."""


class Told(NamedTuple):
    """What came of an answer."""

    question: Question
    """The question, with the answer that counts."""

    counts: bool
    """Whether this answer is the one that counts."""

    branch: str | None = None
    """Session in which an answer is kept that came second and says something else."""


def decide(recorder: Recorder, session: str, approval_id: str, verdict: Verdict) -> Told:
    """Answer a question. The first answer counts; a second one that differs is kept in a branch of its own.

    Raises InputError when the person, the scope or the rule is not allowed, or there is no such question.
    """
    questions = SessionQuestions(recorder.store, session)
    while True:
        question, seq = questions.look(approval_id)
        if question is None:
            raise InputError(f"session {session} asks no question {approval_id!r}")
        _check(recorder, question, verdict)
        if question.decided is not None:
            return Told(question, False, _branch(recorder, question, verdict))
        late = is_after(recorder.clock(), question.asked.expires_at)
        try:
            if late:
                time_out(recorder, question, seq)
                continue
            keeper = recorder.keeper()
            draft = _draft(_decided(keeper, question, verdict), question, verdict.by)
            recorder.append(session, [draft], keeper, expect=seq, durable=True)
        except ConflictError:
            continue  # somebody wrote to the session since we looked: perhaps an answer
        decided, _ = questions.look(approval_id)
        return Told(decided or question, True)


def time_out(recorder: Recorder, question: Question, seq: int) -> None:
    """Nobody answered in time. Raises ConflictError when somebody wrote to the session after the seq."""
    event = ApprovalDecided(
        approval_id=question.asked.approval_id,
        call_id=question.asked.call_id,
        outcome="timed_out",
        decided_by="system",
        how="no answer in time",
        scope="once",
        arguments_digest=question.asked.arguments_digest,
        tool=question.asked.tool,
        target=question.asked.target,
        policy_version=question.asked.policy_version,
    )
    draft = Draft(event, actor=Actor("system"), cause=question.asked_seq, agent=question.agent)
    recorder.append(question.session, [draft], recorder.keeper(), expect=seq, durable=True)


def _check(recorder: Recorder, question: Question, verdict: Verdict) -> None:
    deciders, scopes = question.asked.deciders, question.asked.scopes
    if deciders and not any(fnmatchcase(verdict.by, name) for name in deciders):
        raise InputError(
            f"{verdict.by!r} may not decide {question.asked.approval_id}: expected {', '.join(deciders)}"
        )
    if verdict.outcome == "approved" and scopes and verdict.scope not in scopes:
        raise InputError(f"the question allows the scopes {', '.join(scopes)}, and not {verdict.scope!r}")
    if verdict.rule is not None and question.asked.context is not None:
        shown = decode_json(recorder.store.content(question.asked.context.digest))
        told = shown["tool"], shown["arguments"], shown.get("class"), shown.get("target")
        if not verdict.rule.fits(*told):
            raise InputError("the rule does not cover the very call that was asked about")


def _decided(keeper: Keeper, question: Question, verdict: Verdict) -> ApprovalDecided:
    asked = question.asked
    rule = None
    if verdict.scope == "rule":
        rule = verdict.rule or ApprovalRule(tool=asked.tool or "*", target=asked.target, ask=False)
    return ApprovalDecided(
        approval_id=asked.approval_id,
        call_id=asked.call_id,
        outcome=verdict.outcome,
        decided_by="human",
        decider=verdict.by,
        how="loopledger",
        scope=verdict.scope,
        rule=None if rule is None else keeper.json(rule.model_dump(mode="json", by_alias=True), "rule"),
        arguments_digest=asked.arguments_digest,
        tool=asked.tool,
        target=asked.target,
        policy_version=asked.policy_version,
        expires_at=verdict.expires_at or (asked.expires_at if verdict.scope == "once" else None),
        reason=None if verdict.reason is None else keeper.text(verdict.reason, "reason"),
    )


def _branch(recorder: Recorder, question: Question, verdict: Verdict) -> str | None:
    """Keep a second answer that differs: the loop went on by the first, this is the way not taken."""
    first, asked = question.decided, question.asked
    assert first is not None
    if (first.outcome, first.scope) == (verdict.outcome, verdict.scope):
        return None
    told = [asked.approval_id, verdict.outcome, verdict.scope, verdict.by]
    mark = hashlib.sha256(canonical_json(told)).hexdigest()[:8]
    branch = f"{question.session}.fork-{mark}"
    started = recorder.store.record(question.session, 1).event
    assert isinstance(started, SessionStarted)
    keeper = recorder.keeper()
    second = _decided(keeper, question, verdict).model_copy(
        update={"approval_id": f"{asked.approval_id}/{mark}"}
    )
    cause = f"{question.session}#{question.asked_seq}"
    drafts: dict[str, list[Draft]] = {
        branch: [
            Draft(started.model_copy(update={"charter": (), "environment": None}), actor=Actor("system")),
            Draft(
                SessionForked(origin=question.session, origin_seq=question.asked_seq), actor=Actor("system")
            ),
            Draft(second, actor=Actor("human", verdict.by), cause=cause),
        ],
        question.session: [
            Draft(BranchOpened(branch=branch, at_seq=question.asked_seq), actor=Actor("human", verdict.by))
        ],
    }
    with contextlib.suppress(ConflictError):  # it is kept already
        recorder.append_many(drafts, keeper, expect={branch: 0}, durable=True)
    return branch


def _draft(event: Event, question: Question, by: str) -> Draft:
    return Draft(event, actor=Actor("human", by), cause=question.asked_seq, agent=question.agent)


# -- the hand brake --------------------------------------------------------------------------------------------------


def hold(recorder: Recorder, session: str, by: str, reason: str | None) -> list[str]:
    """Hold a session and those that it delegated to: each stops before its next call. Gives the sessions."""
    keeper = recorder.keeper()
    hold_id = recorder.ids()
    kept = None if reason is None else keeper.text(reason, "reason")
    drafts = {
        name: [Draft(Held(hold_id=hold_id, reason=kept), actor=Actor("human", by))]
        for name in _with_delegated(recorder, session)
    }
    recorder.append_many(drafts, keeper, durable=True)
    return list(drafts)


def release(recorder: Recorder, session: str, by: str, reason: str | None) -> list[str]:
    """Release what holds a session and those that it delegated to. Gives the sessions that were held."""
    keeper = recorder.keeper()
    kept = None if reason is None else keeper.text(reason, "reason")
    drafts: dict[str, list[Draft]] = {}
    for name in [session, *_below(recorder, session)]:
        open_holds: dict[str, Any] = {}
        for record in recorder.store.read(name, names=(Held.TYPE, Released.TYPE)):
            if isinstance(record.event, Held):
                open_holds[record.event.hold_id] = record.seq
            elif isinstance(record.event, Released):
                open_holds.pop(record.event.hold_id, None)
        if open_holds:
            drafts[name] = [
                Draft(Released(hold_id=hold_id, reason=kept), actor=Actor("human", by), cause=seq)
                for hold_id, seq in open_holds.items()
            ]
    if drafts:
        recorder.append_many(drafts, keeper, durable=True)
    return list(drafts)


def _with_delegated(recorder: Recorder, session: str) -> list[str]:
    """A session and those below it that have not ended."""
    return [session, *(name for name in _below(recorder, session) if not _has_ended(recorder, name))]


def _below(recorder: Recorder, session: str) -> list[str]:
    """Sessions that it delegated to: their ids extend its own."""
    return recorder.store.recorder.find_sessions(f"{session}.", _MOST_HELD)


def _has_ended(recorder: Recorder, session: str) -> bool:
    head = recorder.store.head(session).seq
    return isinstance(recorder.store.record(session, head).event, SessionEnded)
