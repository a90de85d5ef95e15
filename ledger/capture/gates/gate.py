"""The gate before a tool call: finds or asks its question, looks for the answer, says whether that covers the call."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ledger.capture.gates.deciding import time_out
from ledger.capture.gates.questions import Question, SessionQuestions
from ledger.capture.journal import Journal
from ledger.effects.classes import Effect, classify
from ledger.effects.covering import Shortfall, Use, is_after, shortfalls
from ledger.effects.loop_policy import ApprovalRule, LoopPolicy
from ledger.errors import ConflictError
from ledger.events.approval import ApprovalAsked, ApprovalUsed
from ledger.events.canonical import canonical_json, decode_json
from ledger.events.tool_call import EffectClass
from ledger.protocols.plain import plain


class Demand(NamedTuple):
    """A call that needs a person's yes, and why."""

    tool: str
    """The tool."""

    arguments: Mapping[str, Any]
    """Its arguments."""

    effect: Effect
    """What it does."""

    rule: ApprovalRule
    """The rule that demands it."""

    policy_version: str
    """Digest of the policy that the rule stands in."""

    key: str | None = None
    """The loop's own name of the question."""

    call_id: str | None = None
    """The call."""

    context: Any = None
    """What the decider is shown beside the arguments."""


class Pending(NamedTuple):
    """A question that may have an answer."""

    approval_id: str
    """The question."""

    use: Use
    """What it is asked for."""


class Judged(NamedTuple):
    """How a question stands at a seq."""

    question: Question | None
    """The question."""

    short: list[Shortfall]
    """Why its answer does not cover the use; nothing when it does."""

    seq: int
    """Seq of the session at which this is true: the use is written only if nobody wrote since."""


class Gate:
    """That of one session. Threads may share it."""

    def __init__(self, journal: Journal, policy: LoopPolicy | None = None) -> None:
        self._journal = journal
        self._store = journal.surroundings.recorder.store
        self._questions = SessionQuestions(self._store, journal.session)
        self._refused: set[str] = set()
        self.policy = policy
        """The policy in force."""
        self.policy_version = None if policy is None else _version(policy.canonical())
        """Its digest."""

    def demand(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        needed: ApprovalRule | bool | None,
        *,
        effect_class: EffectClass | None = None,
    ) -> Demand | None:
        """Whether a call needs a yes: by what the loop says, or else by the policy."""
        policy = self.policy
        fields = plain(arguments)
        effect = classify(tool, fields, declared=effect_class, policy=policy)
        rule = needed if isinstance(needed, ApprovalRule) else None
        if rule is None and policy is not None:
            rule = policy.approval_for(tool, fields, effect.effect_class, effect.target)
        if rule is None and needed is True:
            rule = ApprovalRule(tool=tool)
        if rule is None:
            return None
        version = self.policy_version or _version(canonical_json(rule.model_dump(mode="json", by_alias=True)))
        return Demand(tool, fields, effect, rule, version)

    def pose(self, demand: Demand) -> Pending:
        """The question of a demand: one that stands already, or a new one."""
        journal = self._journal
        with journal.intent("question for approval"):
            key, use = self._key_and_use(demand)
            self._questions.catch_up()
            found = self._standing(demand, use, key)
            if found is not None:
                return Pending(found.asked.approval_id, use)
            approval_id = journal.new_id()
            event = ApprovalAsked(
                approval_id=approval_id,
                call_id=demand.call_id,
                tool=demand.tool,
                arguments_digest=use.arguments_digest,
                context=journal.keep.json(_shown(demand), "question"),
                policy_version=demand.policy_version,
                expires_at=_later(journal.surroundings.recorder.clock(), demand.rule.timeout),
                key=key,
                target=demand.effect.target,
                rule=journal.keep.json(demand.rule.model_dump(mode="json", by_alias=True), "rule"),
                scopes=demand.rule.scopes,
                deciders=demand.rule.deciders,
            )
            journal.append([journal.draft(event)], durable=True)
        return Pending(approval_id, use)

    def found(self, demand: Demand) -> Question | None:
        """The question of this very call, where it was asked before and its answer was not used yet."""
        with self._journal.lock:
            key, use = self._key_and_use(demand)
            self._questions.catch_up()
            found = self._standing(demand, use, key)
        if found is None or found.asked.key != key or found.used or not (found.is_open or found.is_approved):
            return None
        return found

    def pending(self, approval_id: str, demand: Demand) -> Pending:
        """A question that the loop asked before, for a call to run under."""
        with self._journal.lock:
            return Pending(approval_id, self._key_and_use(demand)[1])

    def _key_and_use(self, demand: Demand) -> tuple[str, Use]:
        digest = self._journal.keep.json(demand.arguments, "arguments").digest
        use = Use(demand.tool, digest, demand.effect.target, demand.policy_version)
        return demand.key or f"{demand.tool}:{digest[:16]}", use

    def look(self, pending: Pending) -> Question | None:
        """The question once it is decided; None while nobody did. What took too long is decided here: as timed out."""
        recorder = self._journal.surroundings.recorder
        while True:
            question, seq = self._questions.look(pending.approval_id)
            assert question is not None, "we asked it"
            if question.decided is not None:
                if question.decided.outcome != "approved":
                    self._refused.add(pending.approval_id)
                return question
            if not is_after(recorder.clock(), question.asked.expires_at):
                return None
            try:
                time_out(recorder, question, seq)
            except ConflictError:
                continue  # somebody wrote to the session: perhaps the answer

    def wait(self, timeout_s: float) -> None:
        """Wait until somebody writes to the session, or the time is over."""
        self._store.wait(self._journal.session, self._questions.seq, timeout_s)

    def judge(self, pending: Pending) -> Judged:
        """The question as it stands now, and whether its answer covers the use."""
        question, seq = self._questions.look(pending.approval_id)
        if question is None or question.decided is None:
            return Judged(question, ["not_approved"], seq)
        now = self._journal.surroundings.recorder.clock()
        use = pending.use._replace(at=now, used_before=question.used)
        return Judged(question, shortfalls(question.decided, question.asked, use), seq)

    @staticmethod
    def use(pending: Pending, call_id: str) -> ApprovalUsed:
        """The fact that a call runs under the answer."""
        use = pending.use
        return ApprovalUsed(
            approval_id=pending.approval_id,
            call_id=call_id,
            arguments_digest=use.arguments_digest,
            tool=use.tool,
            target=use.target,
            policy_version=use.policy_version,
        )

    def _standing(self, demand: Demand, use: Use, key: str) -> Question | None:
        now = self._journal.surroundings.recorder.clock()
        for question in self._questions.all():
            decided = question.decided
            if decided is None:
                if question.asked.key == key and not _differ(question.asked, use):
                    return question
                continue
            covers = not shortfalls(decided, question.asked, use._replace(at=now, used_before=question.used))
            if decided.outcome == "approved":
                wide = decided.scope == "session" or (
                    decided.scope == "rule" and self._fits(question, demand)
                )
                if (
                    question.is_queued
                    and covers
                    and (wide or (question.asked.key == key and not question.used))
                ):
                    return question
                continue
            is_told = question.asked.approval_id in self._refused  # a no that was told is asked anew
            if question.asked.key == key and not is_told and not _differ(question.asked, use):
                return question
        return None

    def _fits(self, question: Question, demand: Demand) -> bool:
        """Whether the rule that an answer added is about a call."""
        assert question.decided is not None
        if question.decided.rule is None:
            return False
        rule = ApprovalRule.model_validate(decode_json(self._store.content(question.decided.rule.digest)))
        return rule.fits(demand.tool, demand.arguments, demand.effect.effect_class, demand.effect.target)


def _differ(asked: ApprovalAsked, use: Use) -> bool:
    return (asked.tool, asked.arguments_digest, asked.target, asked.policy_version) != (
        use.tool,
        use.arguments_digest,
        use.target,
        use.policy_version,
    )


def _shown(demand: Demand) -> dict[str, Any]:
    """What the decider sees."""
    effect = demand.effect
    shown = {
        "tool": demand.tool,
        "arguments": demand.arguments,
        "class": effect.effect_class,
        "said_by": effect.said_by,
        "target": effect.target,
        "why": effect.why,
        "context": None if demand.context is None else plain(demand.context),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _later(now: str, seconds: float) -> str:
    moment = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _version(policy: bytes) -> str:
    return hashlib.sha256(policy).hexdigest()
