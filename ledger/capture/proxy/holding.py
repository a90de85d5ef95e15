"""Holds answers of models that contain tool calls which need a person's yes, until there is one or a no."""

import asyncio
from typing import Any, NamedTuple

from ledger.capture.gates.gate import Demand, Gate, Pending
from ledger.capture.gates.questions import Question
from ledger.capture.journal import Journal, Surroundings
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import ConflictError
from ledger.events import Actor
from ledger.events.policy import PolicyEvaluated
from ledger.events.tool_call import ToolCallSettled
from ledger.protocols.refusing import without_calls
from ledger.protocols.responses import take_apart
from ledger.protocols.tool_use import ToolUse, calls_in
from ledger.recorder import Recorder

_POLL_S = 0.2
_SYSTEM = Actor("system")


class _Asked(NamedTuple):
    use: ToolUse
    call_id: str
    demand: Demand
    pending: Pending


class AnswerGate:
    """That of one run. Its methods that write are called from threads, one answer each."""

    def __init__(self, recorder: Recorder, run: str, policy: LoopPolicy) -> None:
        self._journal = Journal(Surroundings(recorder), run, agent=None, correlation=run, depth=0)
        self._gate = Gate(self._journal, policy)

    async def let_through(self, exchange: str, protocol: str, body: Any) -> Any:
        """The body as the client may have it: the same object when all its calls may run. Waits for people.

        `exchange` names the answer, for calls that have no id of their own.
        """
        body = self._without_others(body)
        asked = await asyncio.to_thread(self._ask, exchange, protocol, body)
        if not asked:
            return body
        refused: list[tuple[_Asked, str]] = []
        for one in asked:
            while (question := await asyncio.to_thread(self._gate.look, one.pending)) is None:
                await asyncio.sleep(_POLL_S)
            text = await asyncio.to_thread(self._admit, one, question)
            if text is not None:
                refused.append((one, text))
        if not refused:
            return body
        texts = [(one.use, text) for one, text in refused]
        changed = without_calls(protocol, body, lambda use: _text_for(use, texts))
        await asyncio.to_thread(self._tell, refused, changed)
        return changed

    def _without_others(self, body: Any) -> Any:
        """Of several choices the first is asked about; the others go where one of their calls would need a yes."""
        for name, inner in (("choices", "message"), ("candidates", "content")):
            listed = body.get(name) if isinstance(body, dict) else None
            if not isinstance(listed, list) or len(listed) < 2:
                continue
            messages = [one.get(inner) for one in listed[1:] if isinstance(one, dict)]
            if any(self._demand(use) for message in messages for use in calls_in(message)):
                return {**body, name: listed[:1]}
        return body

    def _demand(self, use: ToolUse) -> Demand | None:
        """Whether a call needs a yes."""
        arguments = use.arguments if isinstance(use.arguments, dict) else {"input": use.arguments}
        return None if use.provider_executed else self._gate.demand(use.tool, arguments, None)

    def _ask(self, exchange: str, protocol: str, body: Any) -> list[_Asked]:
        asked: list[_Asked] = []
        for index, use in enumerate(calls_in(take_apart(protocol, body).message)):
            demand = self._demand(use)
            if demand is not None:
                call_id = use.call_id or f"{exchange}:{index}"
                pending = self._gate.pose(demand._replace(call_id=call_id))
                asked.append(_Asked(use, call_id, demand, pending))
        return asked

    def _admit(self, asked: _Asked, question: Question) -> str | None:
        """Note that the call goes on to the client under its answer; the text for the model when it may not."""
        journal = self._journal
        while True:
            judged = self._gate.judge(asked.pending)
            if judged.short:
                decided = (judged.question or question).decided
                why = ", ".join(judged.short).replace("_", " ")
                if decided is not None and "not_approved" in judged.short:
                    why = decided.outcome.replace("_", " ")
                return f"[The call of the tool {asked.use.tool} was not allowed: {why}. It was not run.]"
            event = self._gate.use(asked.pending, asked.call_id)
            try:
                with journal.intent("use of an approval"):
                    journal.append([journal.draft(event, actor=_SYSTEM)], expect=judged.seq, durable=True)
                return None
            except ConflictError:
                continue  # somebody wrote to the session: perhaps another use of the same answer

    def _tell(self, refused: list[tuple[_Asked, str]], changed: Any) -> None:
        """What the client gets instead, and that the refused calls did not run."""
        journal = self._journal
        with journal.fact("refusal of a tool call"):
            kept = journal.keep.json(changed, "answer")
            drafts = []
            for asked, text in refused:
                evaluated = PolicyEvaluated(
                    rule="proxy",
                    verdict="deny",
                    call_id=asked.call_id,
                    policy_version=self._gate.policy_version,
                    detail=kept,
                )
                settled = ToolCallSettled(
                    call_id=asked.call_id, outcome="denied", result=journal.keep.text(text, "result")
                )
                drafts += [journal.draft(event, actor=Actor("policy")) for event in (evaluated, settled)]
            journal.append(drafts)


def _text_for(use: ToolUse, texts: list[tuple[ToolUse, str]]) -> str | None:
    """The text in the place of a call; one without an id is known by what it is."""
    return next(
        (text for other, text in texts if (use.call_id == other.call_id if use.call_id else use == other)),
        None,
    )
