"""The part of a recorded loop that can stop: for a person's yes, for the hand brake, for a breaker."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from ledger.capture.approvals import Approval
from ledger.capture.calls import ToolCall, ToolOptions
from ledger.capture.gates.gate import Demand, Gate, Pending
from ledger.capture.gates.holds import Holds
from ledger.capture.gates.pinning import PURPOSES, Pins
from ledger.capture.gates.questions import Question
from ledger.capture.journal import Journal, beside
from ledger.capture.notes import Notes
from ledger.constraints.finding import Hardness, Modality
from ledger.effects.constraints import Constraint, Origin
from ledger.effects.loop_policy import ApprovalRule, LoopPolicy
from ledger.errors import ConflictError, HeldError, NotApprovedError
from ledger.events import Actor, ContentRef, Event
from ledger.events.canonical import decode_json
from ledger.events.governance import ArtifactChanged
from ledger.events.tool_call import EffectClass

_LONGEST_WAIT_S = 1.0
_POLL_S = 0.2

WhenHeld = Literal["wait", "raise"]
"""What a loop does at a gate while it is held: wait until it is released, or raise HeldError."""


class Gated(Notes):
    """Questions and stops; runs nothing."""

    def __init__(
        self, journal: Journal, protocol: str, policy: LoopPolicy | None, when_held: WhenHeld
    ) -> None:
        super().__init__(journal, protocol)
        self._gate = Gate(journal, policy)
        self._pins = Pins.of(policy)
        self._when_held: WhenHeld = when_held
        self._turn = journal.surroundings.turns.take
        journal.holds.is_watched = True

    def _tell_policy(self) -> None:
        """What governs the loop from here on, for those who check it later."""
        policy = self._gate.policy
        if policy is not None:
            kept = self._journal.keep.json(policy.model_dump(mode="json", by_alias=True), "policy")
            event = ArtifactChanged(artifact="policy:loop", kind="policy", content=kept, cause="harness")
            told: list[Event] = [event, *(self._pins.declared(self._journal.keep) if self._pins else ())]
            self._journal.append([self._journal.draft(one, actor=Actor("system")) for one in told])

    # -- rules ---------------------------------------------------------------------------------------------------------

    def constraint(
        self,
        name: str,
        text: str,
        *,
        modality: Modality = "unknown",
        hardness: Hardness = "unknown",
        origin: Origin = "unknown",
        scope: str | None = None,
    ) -> None:
        """A rule that the agent must keep is in force from now on; a policy with constraints watches it, too."""
        super().constraint(name, text, modality=modality, hardness=hardness, origin=origin, scope=scope)
        if self._pins is not None:
            self._pins.declare(Constraint(name=name, text=text, origin=origin))

    def withdraw(self, name: str, reason: str | None = None) -> None:
        """A rule is no longer in force, by somebody's act."""
        super().withdraw(name, reason)
        if self._pins is not None:
            self._pins.withdraw(name)

    def _in_sight(
        self, protocol: str | None, request: Mapping[str, Any], purpose: str, call_id: str | None
    ) -> tuple[dict[str, Any], str | None]:
        """The request as it may leave, with the rules put back that the model could not see; and the call's id."""
        if self._pins is None or purpose not in PURPOSES:
            return dict(request), call_id
        journal = self._journal
        with journal.intent("look at a model request"):
            sight = self._pins.look(protocol or self._protocol, request)
            if sight is None:
                return dict(request), call_id
            call_id = call_id or journal.new_id()
            told = self._pins.events(sight, journal.keep, journal.new_id(), call_id)
            journal.holds.wrote(told)
            journal.append([journal.draft(event, actor=Actor("system")) for event in told])
        return sight.request, call_id

    # -- questions ---------------------------------------------------------------------------------------------------

    def gate(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        rule: ApprovalRule | None = None,
        key: str | None = None,
        call_id: str | None = None,
        context: Any = None,
        effect_class: EffectClass | None = None,
    ) -> Approval:
        """Ask on record, then wait until a person answers in any process (`loopledger approve`), or time is over.

        `rule` says who may decide and how long it waits; by default the policy's, or anybody and 15 minutes. A loop
        that was restarted finds its question by `key` (by default the call, or tool and arguments) and goes on.
        """
        pending = self._gate.pose(self._asked(tool, arguments, rule, key, call_id, context, effect_class))
        return _approval(self._wait(pending))

    async def agate(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        rule: ApprovalRule | None = None,
        key: str | None = None,
        call_id: str | None = None,
        context: Any = None,
        effect_class: EffectClass | None = None,
    ) -> Approval:
        """As `gate`; no thread waits."""
        demand = self._asked(tool, arguments, rule, key, call_id, context, effect_class)
        return _approval(await self._await(await self._turn(self._gate.pose, demand)))

    def _asked(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        rule: ApprovalRule | None,
        key: str | None,
        call_id: str | None,
        context: Any,
        effect_class: EffectClass | None,
    ) -> Demand:
        demand = self._gate.demand(tool, arguments, rule or True, effect_class=effect_class)
        assert demand is not None, "it was asked for"
        return demand._replace(key=key or call_id, call_id=call_id, context=context)

    def _wait(self, pending: Pending) -> Question:
        while (question := self._gate.look(pending)) is None:
            self._gate.wait(_LONGEST_WAIT_S)
        return question

    async def _await(self, pending: Pending) -> Question:
        while (question := await asyncio.to_thread(self._gate.look, pending)) is None:
            await asyncio.sleep(_POLL_S)
        return question

    # -- tool calls --------------------------------------------------------------------------------------------------

    def _begin_tool(self, function: Any, arguments: Mapping[str, Any], options: ToolOptions) -> ToolCall:
        """A tool call that may run now: recorded as started, under an approval where it needs one."""
        demand = self._demanded(function, arguments, options)
        if demand is None:
            return ToolCall(self._journal, function, arguments, options)
        call, pending = self._posed(function, arguments, options, demand)
        question = self._wait(pending)
        self._admit(call, pending, question, arguments)
        return call

    async def _abegin_tool(
        self, function: Any, arguments: Mapping[str, Any], options: ToolOptions
    ) -> ToolCall:
        demand = self._demanded(function, arguments, options)
        if demand is None:
            return await self._turn(ToolCall, self._journal, function, arguments, options)
        call, pending = await self._turn(self._posed, function, arguments, options, demand)
        question = await self._await(pending)
        await self._turn(self._admit, call, pending, question, arguments)
        return call

    def _demanded(self, function: Any, arguments: Mapping[str, Any], options: ToolOptions) -> Demand | None:
        """What a call needs; nothing without a policy, for the loop that wants none pays nothing."""
        needed, approval = options.get("needs_approval"), options.get("approval")
        if self._gate.policy is None and not needed and (approval is None or not approval.is_queued):
            return None
        if needed is None and approval is not None:
            needed = True
        tool = ToolCall.name_of(function, options)
        demand = self._gate.demand(tool, arguments, needed, effect_class=options.get("effect_class"))
        if demand is None:
            return None
        call_id = options.get("call_id")
        return demand._replace(key=options.get("approval_key") or call_id, call_id=call_id)

    def _posed(
        self, function: Any, arguments: Mapping[str, Any], options: ToolOptions, demand: Demand
    ) -> tuple[ToolCall, Pending]:
        """The call as requested, and its question. After a restart both may be there already."""
        journal, gate, approval = self._journal, self._gate, options.get("approval")
        known = gate.found(demand) if approval is None else None
        if known is not None and known.asked.call_id is not None:
            call = ToolCall.recorded_before(journal, demand.tool, known.asked.call_id, known.asked_seq)
            return call, gate.pending(known.asked.approval_id, demand)
        requested: ToolOptions = {**options, "is_denied": True}
        requested.pop("approval", None)
        if options.get("effect_class") is None:
            requested["effect_class"] = demand.effect.effect_class
            requested["effect_declared"] = demand.effect.said_by
        call = ToolCall(journal, function, arguments, requested)
        if approval is not None:
            return call, gate.pending(approval.approval_id, demand)
        return call, gate.pose(demand._replace(call_id=call.call_id))

    def _admit(
        self, call: ToolCall, pending: Pending, question: Question, arguments: Mapping[str, Any]
    ) -> None:
        """Start the call under its answer, once. Raises NotApprovedError, after that was recorded."""
        while True:
            judged = self._gate.judge(pending)
            if judged.short:
                reason = self._reason(judged.question or question, list(judged.short))
                call.denied(reason)
                raise NotApprovedError(call.tool, pending.approval_id, list(judged.short), reason)
            try:
                call.start(arguments, self._gate.use(pending, call.call_id), expect=judged.seq)
                return
            except ConflictError:
                continue  # somebody wrote to the session: perhaps another use of the same answer

    def _reason(self, question: Question, short: list[str]) -> str:
        decided = question.decided
        if decided is None or "not_approved" not in short:
            return f"approval {question.asked.approval_id}: {', '.join(short).replace('_', ' ')}"
        if decided.outcome == "timed_out":
            return "nobody answered in time"
        words = "" if decided.reason is None else f": {self._text(decided.reason)}"
        return f"{decided.decider or decided.decided_by} {decided.outcome} it{words}"

    def _text(self, reference: ContentRef) -> str:
        content = self._journal.surroundings.recorder.store.content(reference.digest)
        return content.decode("utf-8", "replace") if reference.kind == "text" else str(decode_json(content))

    async def _failed(self, call: "_Failing", error: BaseException) -> None:
        """Record a failure beside the loop's own error."""
        with beside(error):
            if isinstance(error, Exception):
                await self._turn(call.failed, error)
            else:
                call.failed(error)  # a task that is being cancelled may not get to run again

    # -- stops -------------------------------------------------------------------------------------------------------

    def _stop(self, journal: Journal | None = None) -> None:
        """Wait while the session is held, or raise HeldError; that of another journal where one is given."""
        holds = (journal or self._journal).holds
        while holds.open:
            self._check_held(holds)
            holds.wait(_LONGEST_WAIT_S)

    async def _astop(self, journal: Journal | None = None) -> None:
        holds = (journal or self._journal).holds
        while holds.open:
            self._check_held(holds)
            await asyncio.sleep(_POLL_S)
            await asyncio.to_thread(holds.hear)

    def _check_held(self, holds: Holds) -> None:
        if self._when_held == "raise":
            held = next(iter(holds.open.values()))
            reason = None if held.reason is None else self._text(held.reason)
            raise HeldError(holds.session, held.breaker, reason)


class _Failing(Protocol):
    def failed(self, error: BaseException) -> None: ...


def _approval(question: Question) -> Approval:
    assert question.decided is not None
    asked, decided = question.asked, question.decided
    return Approval(
        asked.approval_id,
        decided.outcome,
        is_queued=True,
        tool=asked.tool,
        arguments_digest=asked.arguments_digest,
        expires_at=decided.expires_at,
    )
