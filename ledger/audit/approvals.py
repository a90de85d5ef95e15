"""Approvals after the fact: what ran unasked, under no good answer, after a no, or under a rule changed on the way.

A fold over the records of one session, in order; holds what it knows of calls and answers, never their content.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ledger.audit.finding import Finding
from ledger.audit.modes import Relaxed, relaxes, tightens
from ledger.effects.classes import classify
from ledger.effects.covering import Shortfall, Use, shortfalls
from ledger.effects.loop_policy import LoopPolicy
from ledger.events import Record
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.canonical import decode_json
from ledger.events.governance import ArtifactChanged, ModeChanged
from ledger.events.policy import PolicyEvaluated
from ledger.events.record import ContentRef
from ledger.events.review import Severity
from ledger.events.session import SessionForked
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted

CANNOT_SEE = (
    "Calls that a mode or a rule of the source would have asked about, unless the source logs that it evaluated one.",
    "Answers that a source does not log: a call that ran is not held against a question that it never shows.",
    "Who changed a mode, where the source does not say; and a change of a rule file by a shell command.",
    "Whether a call fits the rule that an answer of scope `rule` added: rules are content.",
    "What ran outside the recorded tools.",
)
"""What this check misses."""

_RAN = ("returned", "failed", "unknown")
_REFUSED = ("denied", "timed_out", "cancelled")
_FIRST = 5
_MODE_SEVERITY: dict[str, Severity] = {"agent": "critical", "human": "low"}
_WORDS: dict[Shortfall, str] = {
    "not_approved": "that was no yes",
    "expired": "that had expired",
    "reused": "that was good for one call and had been used",
    "other_arguments": "that was given for other arguments",
    "other_tool": "that was given for another tool",
    "other_target": "that was given for another target",
    "other_policy": "that was given under another version of the policy",
}


@dataclass
class _Call:
    """What is known of a tool call."""

    tool: str | None = None
    arguments: ContentRef | None = None
    effect_class: EffectClass | None = None
    requested: int | None = None
    asked: int | None = None
    answer: tuple[ApprovalDecided, int] | None = None
    verdict: tuple[PolicyEvaluated, int] | None = None
    used: int | None = None
    has_run: bool = False


@dataclass
class _Answers:
    """Questions and answers, by approval id."""

    asked: dict[str, ApprovalAsked] = field(default_factory=dict)
    decided: dict[str, tuple[ApprovalDecided, int]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)


class ApprovalCheck:
    """Give it the records of a session in order with `take`, then ask for `findings`.

    `origin` are the records of the session that this one was forked from, up to the fork. `content` gives the bytes
    of a blob by digest: with it, a policy that the loop recorded is held against the calls that ran without a yes.
    """

    def __init__(
        self, origin: Iterable[Record] = (), *, content: Callable[[str], bytes] | None = None
    ) -> None:
        self._content = content
        self._calls: dict[str, _Call] = {}
        self._answers = _Answers()
        self._refused: dict[tuple[str, str], tuple[ApprovalDecided, int]] = {}
        self._policy: LoopPolicy | None = None
        self._relaxed: list[Relaxed] = []
        self._found: list[Finding] = []
        self._session = ""
        self._is_fork = False
        for record in origin:
            self.take(record)
        self._found.clear()  # those are the origin's own
        self._relaxed.clear()
        for call in self._calls.values():
            call.answer, call.used = None, None  # a fork asks and answers for itself

    def take(self, record: Record) -> None:
        """One more record."""
        self._session = record.session
        event = record.event
        match event:
            case SessionForked():
                self._is_fork = True
            case ToolCallRequested():
                call = self._call(event.call_id)
                call.tool, call.arguments, call.effect_class = event.tool, event.arguments, event.effect_class
                call.requested, call.has_run, call.used = record.seq, False, None
            case ToolCallStarted():
                self._ran(event.call_id, record)
            case ToolCallSettled() if event.outcome in _RAN:
                self._ran(event.call_id, record)
            case ApprovalAsked():
                self._answers.asked[event.approval_id] = event
                if event.call_id is not None:
                    self._call(event.call_id).asked = record.seq
            case ApprovalDecided():
                self._answers.decided.setdefault(event.approval_id, (event, record.seq))
                if event.call_id is not None:
                    self._call(event.call_id).answer = (event, record.seq)
                else:
                    self._of_no_call(event, record.seq)
            case ApprovalUsed():
                self._used(event, record)
            case PolicyEvaluated() if event.call_id is not None:
                self._call(event.call_id).verdict = (event, record.seq)
            case ModeChanged():
                self._mode(event, record)
            case ArtifactChanged():
                self._artifact(event, record)

    def news(self, since: int) -> list[Finding]:
        """What was found beyond the first so many, as it came; modes that are still relaxed are not among it."""
        return self._found[since:]

    def findings(self) -> list[Finding]:
        """What was found, in order."""
        found = [*self._found, *(self._of_mode(relaxed) for relaxed in self._relaxed)]
        return sorted(found, key=lambda finding: (finding.seq, finding.detector))

    def _call(self, call_id: str) -> _Call:
        return self._calls.setdefault(call_id, _Call())

    def _find(
        self,
        detector: str,
        severity: Severity,
        seq: int,
        seen: Iterable[int | None],
        message: str,
        *more: str,
    ) -> None:
        witnesses = tuple(sorted({one for one in (*seen, seq) if one is not None}))
        finding = Finding(f"approval.{detector}", severity, self._session, seq, witnesses, message, more)
        self._found.append(finding)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _ran(self, call_id: str, record: Record) -> None:
        call = self._call(call_id)
        if call.has_run:
            return
        call.has_run = True
        for relaxed in self._relaxed:
            relaxed.ran += 1
            if len(relaxed.first) < _FIRST:
                relaxed.first.append(record.seq)
        tool, seq = call.tool or call_id, record.seq
        if call.answer is not None and call.answer[0].outcome in _REFUSED:
            answer, at = call.answer
            by = answer.decider or answer.decided_by
            message = f"{tool} ran although it was {answer.outcome.replace('_', ' ')} (by {by}) at seq {at}"
            self._find("ran_after_denial", "critical", seq, (at, call.used), message)
            return
        is_answered = call.used is not None or (call.answer is not None)
        if is_answered:
            return
        if (refused := self._refusal(call)) is not None:
            answer, at = refused
            message = f"{tool} ran with arguments that were {answer.outcome.replace('_', ' ')} at seq {at}"
            self._find("ran_after_denial", "critical", seq, (call.requested, at), message)
            return
        if call.verdict is not None and call.verdict[0].verdict in ("ask", "deny"):
            evaluated, at = call.verdict
            message = f"{tool} ran without an approval; rule {evaluated.rule!r} said {evaluated.verdict}"
            self._find("ran_without", "high", seq, (call.requested, at), message)
        elif call.asked is not None:
            message = f"{tool} ran while the question about it was not answered"
            self._find("ran_unanswered", "high", seq, (call.requested, call.asked), message)
        elif (rule := self._demanding(call)) is not None:
            message = f"{tool} ran without an approval that the policy demands (rule on {rule!r})"
            self._find("ran_without", "high", seq, (call.requested,), message)

    def _of_no_call(self, answer: ApprovalDecided, seq: int) -> None:
        """Note an answer to a question that a loop asked before there was a call: the last one counts."""
        question = self._answers.asked.get(answer.approval_id)
        if question is None or question.tool is None or question.arguments_digest is None:
            return
        about = (question.tool, question.arguments_digest)
        if answer.outcome in _REFUSED:
            self._refused[about] = (answer, seq)
        else:
            self._refused.pop(about, None)

    def _refusal(self, call: _Call) -> tuple[ApprovalDecided, int] | None:
        """The no to the very tool and arguments of a call, asked before there was the call."""
        if call.tool is None or call.arguments is None:
            return None
        return self._refused.get((call.tool, call.arguments.digest))

    def _demanding(self, call: _Call) -> str | None:
        """The rule of the loop's own policy by which the call needed a yes."""
        if self._policy is None or call.tool is None:
            return None
        arguments = self._value(call.arguments)
        effect = classify(call.tool, arguments, declared=call.effect_class, policy=self._policy)
        fields = arguments if isinstance(arguments, dict) else {}
        rule = self._policy.approval_for(call.tool, fields, effect.effect_class, effect.target)
        return None if rule is None else rule.tool

    def _value(self, reference: ContentRef | None) -> Any:
        """Content as JSON; None where it cannot be had."""
        if reference is None or self._content is None or reference.kind != "json":
            return None
        try:
            return decode_json(self._content(reference.digest))
        except Exception:  # noqa: BLE001 - erased or damaged content is no reason to stop a check
            return None

    # -- answers -----------------------------------------------------------------------------------------------------

    def _used(self, event: ApprovalUsed, record: Record) -> None:
        answers, call = self._answers, self._call(event.call_id)
        call.used = record.seq
        tool = event.tool or call.tool or event.call_id
        question = answers.asked.get(event.approval_id)
        found = answers.decided.get(event.approval_id)
        if found is None:
            elsewhere = (record.cause,) if isinstance(record.cause, str) else ()
            where = "another branch" if self._is_fork else "no record of this session"
            message = f"{tool} ran under an answer that stands in {where}: it is stale here"
            self._find("stale", "high", record.seq, (), message, *elsewhere)
            return
        answer, at = found
        digest = event.arguments_digest
        if digest is None and call.arguments is not None:
            edited = question is not None and answer.arguments_digest not in (None, question.arguments_digest)
            digest = None if edited else call.arguments.digest
        time = record.occurred_at or (record.recorded_at if record.source is None else None)
        before = answers.used.get(event.approval_id, 0)
        use = Use(event.tool or call.tool, digest, event.target, event.policy_version, time, before)
        answers.used[event.approval_id] = before + 1
        for short in shortfalls(answer, question, use):
            message = f"{tool} ran under an answer {_WORDS[short]} (seq {at})"
            self._find(short, "high", record.seq, (at,), message)

    # -- what the answers rest on --------------------------------------------------------------------------------------

    def _mode(self, event: ModeChanged, record: Record) -> None:
        for relaxed in [one for one in self._relaxed if tightens(event, one.event)]:
            self._found.append(self._of_mode(relaxed))
            self._relaxed.remove(relaxed)
        if relaxes(event) and event.cause != "startup":
            self._relaxed.append(Relaxed(event, record.seq, record.correlation))

    def _of_mode(self, relaxed: Relaxed) -> Finding:
        event = relaxed.event
        turn = "" if relaxed.turn is None else f" with turn {relaxed.turn}"
        message = (
            f"{event.mode} mode was relaxed from {event.old} to {event.new}{turn}, by {event.cause};"
            f" {relaxed.ran} tool call{'' if relaxed.ran == 1 else 's'} ran under it"
        )
        severity = _MODE_SEVERITY.get(event.cause, "medium")
        witnesses = (relaxed.seq, *relaxed.first)
        return Finding("approval.mode_relaxed", severity, self._session, relaxed.seq, witnesses, message)

    def _artifact(self, event: ArtifactChanged, record: Record) -> None:
        if event.artifact == "policy:loop":
            try:
                self._policy = LoopPolicy.model_validate(self._value(event.content))
            except ValidationError:  # it cannot be had, or another version wrote it
                self._policy = None
        if event.kind in ("policy", "hook", "mode") and event.cause == "agent":
            message = f"the agent itself changed {event.artifact}, which governs what it may do"
            self._find("rule_changed_by_agent", "critical", record.seq, (), message)
