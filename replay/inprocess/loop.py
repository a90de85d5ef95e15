"""A user's own loop, run again on what was recorded: the same function, given another recorder."""

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from ledger.capture import RecordedLoop
from ledger.capture.approvals import Approval, AskOptions, Question
from ledger.capture.calls import ToolCall, ToolOptions
from ledger.capture.delegation import Delegation
from ledger.capture.draws import DrawKind, Draws
from ledger.capture.gates.gate import Pending
from ledger.capture.gates.questions import Question as Asked
from ledger.effects.loop_policy import LoopPolicy
from ledger.events import Actor
from ledger.events.approval import ApprovalDecided
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.record import ActorKind
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallSettled
from ledger.protocols.plain import type_name
from replay.inprocess.answers import AsyncChunks, Chunks
from replay.inprocess.course import Report
from replay.inprocess.frozen import thawed
from replay.inprocess.journal import ReplayJournal
from replay.inprocess.order import PAUSE_S


class ReplayedLoop(RecordedLoop):
    """A loop whose models, tools, deciders and draws answer from the record. Made by `replay_loop`."""

    _journal: ReplayJournal

    def __init__(
        self,
        journal: ReplayJournal,
        started: SessionStarted,
        protocol: str,
        delegation: Delegation | None = None,
        policy: LoopPolicy | None = None,
    ) -> None:
        super().__init__(journal, started, protocol, delegation, policy=policy)
        self.draw = _ReplayedDraws(journal)

    @property
    def report(self) -> Report:
        """What the replay shows; final when the loop has ended."""
        return self._journal.course.report

    @property
    def session(self) -> str:
        """Id of the recorded session, as the loop saw it then."""
        return self._journal.origin or self._journal.session

    @property
    def replay_session(self) -> str:
        """Id of the session in which this replay is recorded."""
        return self._journal.session

    def _end(self, ended: SessionEnded) -> None:
        self._journal.finish(ended.reason)
        super()._end(ended)

    def checkpoint(self, label: str | None = None, *, workspace: str | Path | None = None) -> str:
        """The recorded checkpoint's id; files are not looked at again."""
        made = super().checkpoint(label)
        step = self._journal.step(made)
        return made if step is None else str(getattr(step.event, "checkpoint_id", made))

    def _pause(self, identity: str, *, was_given: bool = False) -> None:
        """Wait until the recorded answer to a call or question is due."""
        with thawed():
            for _ in self._journal.looks(identity, was_given=was_given):
                time.sleep(PAUSE_S)

    async def _apause(self, identity: str, *, was_given: bool = False) -> None:
        with thawed():
            for _ in self._journal.looks(identity, was_given=was_given):
                await asyncio.sleep(PAUSE_S)

    # -- model calls -------------------------------------------------------------------------------------------------

    def model(self, create: Callable[..., Any], *, call_id: str | None = None, **request: Any) -> Any:
        """The recorded answer, or what was raised; `create` is only called in the live part of a branch."""
        identity = call_id or self._journal.new_id()

        def answer(**sent: Any) -> Any:
            self._pause(identity)
            given = self._model_answer(identity, create, sent)
            if isinstance(given, Chunks):
                given.at_end = functools.partial(self._pause, identity, was_given=True)
            return given

        return super().model(answer, call_id=identity, **request)

    async def amodel(self, create: Callable[..., Any], *, call_id: str | None = None, **request: Any) -> Any:
        """As `model`."""
        identity = call_id or self._journal.new_id()

        async def answer(**sent: Any) -> Any:
            await self._apause(identity)
            given = self._model_answer(identity, create, sent)
            if isinstance(given, Chunks):
                return AsyncChunks(given, functools.partial(self._apause, identity, was_given=True))
            return await given if inspect.isawaitable(given) else given

        return await super().amodel(answer, call_id=identity, **request)

    def _model_answer(self, identity: str, create: Callable[..., Any], sent: dict[str, Any]) -> Any:
        journal = self._journal
        step = journal.step(identity)
        if step is not None and (substitute := journal.course.substitute(journal.origin, step)) is not None:
            return substitute()
        if step is None or not journal.counts(step):
            return journal.course.ask_model(create, sent)
        ended = journal.ending(step)
        assert isinstance(step.event, ModelCallRequested)
        if isinstance(ended, ModelCallFailed):
            raise journal.course.answers.model_failure(ended)
        assert isinstance(ended, ModelCallAnswered)
        return journal.course.answers.model_answer(ended, step.event.protocol, journal.place(step))

    # -- tools -------------------------------------------------------------------------------------------------------

    def tool(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], **options: Unpack[ToolOptions]
    ) -> Any:
        """The recorded result, or what was raised; `function` is only called where this tool is to run live."""
        named = self._named(function, options)
        answer = self._answering(function, named)

        def answer_in_order(**given: Any) -> Any:
            self._pause(str(named["call_id"]))
            return answer(**given)

        return super().tool(answer_in_order, arguments, **named)

    async def atool(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], **options: Unpack[ToolOptions]
    ) -> Any:
        """As `tool`."""
        named = self._named(function, options)
        answer = self._answering(function, named)

        async def answer_in_order(**given: Any) -> Any:
            await self._apause(str(named["call_id"]))
            result = answer(**given)
            return await result if inspect.isawaitable(result) else result

        return await super().atool(answer_in_order, arguments, **named)

    def _named(self, function: Callable[..., Any], options: ToolOptions) -> ToolOptions:
        """The options with a call id, and with the name that the tool has by itself."""
        named = options.copy()
        named["name"] = options.get("name") or getattr(function, "__name__", None) or type_name(function)
        named["call_id"] = options.get("call_id") or self._journal.new_id()
        return named

    def _answering(self, function: Callable[..., Any], named: ToolOptions) -> Callable[..., Any]:
        journal, tool, identity = self._journal, named["name"], str(named["call_id"])

        def answer(**given: Any) -> Any:
            step = journal.step(identity)
            if (
                step is not None
                and (substitute := journal.course.substitute(journal.origin, step)) is not None
            ):
                return substitute()
            is_recorded = step is not None and journal.counts(step)
            how = journal.course.treatment(tool, is_recorded=is_recorded)
            if how != "recorded" or step is None:
                return journal.course.run_tool(function, tool, given, how)
            ended = journal.ending(step)
            assert isinstance(ended, ToolCallSettled)
            return journal.course.answers.tool_result(ended, journal.place(step))

        return answer

    # -- approvals, hand-overs ---------------------------------------------------------------------------------------

    def approve(self, ask: Callable[[], Any], **options: Unpack[AskOptions]) -> Approval:
        """The recorded decision; somebody is only asked in the live part of a branch."""
        question = Question(self._journal, options)
        self._pause(question.approval_id)
        # Whether it had lapsed when it was used was judged then, by the time of then.
        return question.decided(self._decision(question, ask))._replace(expires_at=None)

    async def aapprove(self, ask: Callable[[], Any], **options: Unpack[AskOptions]) -> Approval:
        """As `approve`."""
        question = await self._turn(Question, self._journal, options)
        await self._apause(question.approval_id)
        answer = self._decision(question, ask)
        if inspect.isawaitable(answer):
            answer = await answer
        return (await self._turn(question.decided, answer))._replace(expires_at=None)

    def gate(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> Approval:
        """The recorded decision of a question in the ledger; in the live part of a branch, it waits for a new one."""
        with thawed():
            return super().gate(tool, arguments, **options)

    async def agate(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> Approval:
        """As `gate`."""
        with thawed():
            return await super().agate(tool, arguments, **options)

    def _begin_tool(self, function: Any, arguments: Mapping[str, Any], options: ToolOptions) -> ToolCall:
        with thawed():
            return super()._begin_tool(function, arguments, options)

    async def _abegin_tool(
        self, function: Any, arguments: Mapping[str, Any], options: ToolOptions
    ) -> ToolCall:
        with thawed():
            return await super()._abegin_tool(function, arguments, options)

    def _wait(self, pending: Pending) -> Asked:
        self._decide_again(pending.approval_id)
        return super()._wait(pending)

    async def _await(self, pending: Pending) -> Asked:
        await self._turn(self._decide_again, pending.approval_id)
        return await super()._await(pending)

    def _decide_again(self, approval_id: str) -> None:
        """Write the recorded decision where the gate looks for it."""
        journal = self._journal
        step = journal.step(approval_id)
        if step is None or not journal.counts(step):
            return
        ended = journal.ending(step)
        assert isinstance(ended, ApprovalDecided)
        again = ended.model_copy(update={"approval_id": approval_id, "expires_at": None})
        by: ActorKind = "system" if ended.decided_by == "unknown" else ended.decided_by
        with journal.fact("decision"):
            journal.append([journal.draft(again, actor=Actor(by, ended.decider))])

    def _decision(self, question: Question, ask: Callable[[], Any]) -> Any:
        step = self._journal.step(question.approval_id)
        if step is None or not self._journal.counts(step):
            return self._journal.course.ask_person(ask)
        ended = self._journal.ending(step)
        assert isinstance(ended, ApprovalDecided)
        return ended.outcome

    def _delegated(self, session: str, started: SessionStarted, delegation: Delegation) -> "ReplayedLoop":
        """A loop that is held against the recorded session of the same hand-over."""
        child = self._journal.child(session, started.agent)
        return ReplayedLoop(child, started, self._protocol, delegation, self._gate.policy)


class _ReplayedDraws(Draws):
    """Draws that give back what was read then."""

    _journal: ReplayJournal

    def _draw(self, kind: DrawKind, label: str, read: Callable[[], Any]) -> Any:
        journal = self._journal
        with journal.lock:  # what is given back is the draw that is recorded next
            return super()._draw(kind, label, lambda: journal.recorded_draw(kind, label, read))
