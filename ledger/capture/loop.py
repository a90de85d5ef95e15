"""What a user's own agent loop calls: it runs the loop's functions and records them. Adds no behaviour of its own.

    with open_ledger() as ledger, record_loop(ledger, harness="my-loop") as run:
        answer = run.model(client.messages.create, protocol="anthropic.messages", model=..., messages=...)
        result = run.tool(send_mail, {"to": "a@example.org"}, effect_class="external")

Threads may share a loop; in an asyncio loop use `async with`, `await run.amodel(...)`, `await run.atool(...)`, and
`await asyncio.to_thread(run.message, ...)` for what only writes.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol, Self, Unpack

from ledger.capture.approvals import Approval, AskOptions, Question
from ledger.capture.calls import ModelCall, ToolOptions
from ledger.capture.delegation import Delegation, How
from ledger.capture.draws import Draws
from ledger.capture.gates.gated import Gated, WhenHeld
from ledger.capture.gates.meter import edge_of, meter_of
from ledger.capture.journal import Journal, Surroundings, beside
from ledger.capture.streams import AsyncRecordedStream, RecordedStream
from ledger.capture.watching import CheckpointRules, FilesWatch, Watch
from ledger.effects import EffectPolicy
from ledger.effects.loop_policy import LoopPolicy
from ledger.errors import InputError
from ledger.events import Actor
from ledger.events.input import MessageReceived
from ledger.events.model_call import Purpose
from ledger.events.session import SessionEnded, SessionResumed, SessionStarted
from ledger.protocols.plain import type_name
from ledger.recorder import Recorder
from ledger.workspace import Workspace

_ENDED_BY: dict[str, Literal["aborted", "cancelled"]] = {"CancelledError": "cancelled"}


class HasRecorder(Protocol):
    """An open ledger, as far as a loop needs it."""

    @property
    def recorder(self) -> Recorder:
        """Writes."""


def record_loop(
    ledger: HasRecorder,
    *,
    harness: str,
    agent: str | None = None,
    name: str | None = None,
    session: str | None = None,
    model: str | None = None,
    harness_version: str | None = None,
    cwd: str | None = None,
    protocol: str = "openai.chat",
    monotonic: Callable[[], float] = time.monotonic,
    random: Callable[[], float] | None = None,
    workspace: str | Path | Workspace | None = None,
    checkpoints: CheckpointRules | None = None,
    policy: EffectPolicy | None = None,
    when_held: WhenHeld = "wait",
) -> "RecordedLoop":
    """A loop to be used as a context manager: its start is recorded when it is entered, its end when it is left.

    `session` continues a session that exists, or names a new one. `protocol` is that of model calls which name none.
    `workspace` is the folder whose files the tools change (a `Workspace` says which of them are looked at);
    `checkpoints` says when to take some by rule, `policy` what tools do; a LoopPolicy also which calls need a person's
    yes, and budgets. `when_held` is what happens at the next call when the hand brake or a breaker holds the loop.
    """
    recorder = ledger.recorder
    loop_policy = policy if isinstance(policy, LoopPolicy) else None
    surroundings = Surroundings(recorder, monotonic, random, meter_of(policy, monotonic, recorder))
    identity = session or recorder.ids()
    if "#" in identity or not identity.isprintable() or " " in identity:
        raise InputError(
            f"{identity!r} cannot name a session: expected printable text without blanks and '#'"
        )
    started = SessionStarted(
        harness=harness, harness_version=harness_version, name=name, agent=agent, model=model, cwd=cwd
    )
    journal = Journal(surroundings, identity, agent=agent, correlation=identity, depth=0)
    if workspace is not None or checkpoints is not None:
        folder = workspace if workspace is None or isinstance(workspace, Workspace) else Workspace(workspace)
        files = None if folder is None else FilesWatch(folder)
        rules = checkpoints or CheckpointRules(before_irreversible=False, before_compaction=False)
        journal.watch = Watch(journal, files, rules, policy)
    return RecordedLoop(journal, started, protocol, policy=loop_policy, when_held=when_held)


class RecordedLoop(Gated):
    """One session that is being recorded."""

    def __init__(
        self,
        journal: Journal,
        started: SessionStarted,
        protocol: str,
        delegation: Delegation | None = None,
        *,
        policy: LoopPolicy | None = None,
        when_held: WhenHeld = "wait",
    ) -> None:
        super().__init__(journal, protocol, policy, when_held)
        self._started = started
        self._delegation = delegation
        self.draw = Draws(journal)
        """Outside inputs: clock, randomness, identifiers, environment."""

    @property
    def session(self) -> str:
        """Id of the session."""
        return self._journal.session

    # -- life --------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._open()
        if self._delegation is not None and self._delegation.parent.holds.open:
            try:
                self._stop(self._delegation.parent)
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        return self

    def _open(self) -> None:
        journal = self._journal
        with journal.intent("start"):
            if self._delegation is not None:
                self._delegation.start(journal, self._telling(self._started))
            elif journal.surroundings.recorder.store.head(journal.session).seq:
                journal.append([self._telling(SessionResumed(how="record_loop"))])
            else:
                journal.append([self._telling(self._started)])
            if isinstance(journal.watch, Watch) and (first := journal.watch.begin()):
                journal.append(first)
            self._tell_policy()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._end(SessionEnded(outcome="completed"))
            return
        name = type_name(error)
        outcome: Literal["failed", "aborted", "cancelled"] = "failed"
        if not isinstance(error, Exception):
            outcome = _ENDED_BY.get(type(error).__name__, "aborted")
        with beside(error):
            self._end(SessionEnded(outcome=outcome, reason=name))

    async def __aenter__(self) -> Self:
        await self._turn(self._open)
        if self._delegation is not None and self._delegation.parent.holds.open:
            try:
                await self._astop(self._delegation.parent)
            except BaseException as error:
                await self.__aexit__(type(error), error, None)
                raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, Exception):
            await self._turn(self.__exit__, kind, error, trace)
        else:
            self.__exit__(kind, error, trace)  # a task that is being cancelled may not get to run again

    def _end(self, ended: SessionEnded) -> None:
        journal = self._journal
        with journal.fact("end"):
            journal.catch_up(is_last=True)
            drafts = [*self._check_usage(), self._telling(ended)]
            if self._delegation is not None:
                self._delegation.end(journal, drafts, ended)
            else:
                journal.append(drafts, durable=True)

    # -- messages ----------------------------------------------------------------------------------------------------

    def message(
        self,
        message: Any,
        *,
        origin: Literal["human", "agent", "schedule", "file", "unknown"] = "human",
        trust: Literal["trusted", "untrusted", "unknown"] = "unknown",
        sender: str | None = None,
    ) -> None:
        """A message entered the loop: a text, or a message in the protocol's own shape."""
        shaped = {"role": "user", "content": message} if isinstance(message, str) else message
        actor = (
            Actor("human", sender)
            if origin == "human"
            else Actor("agent" if origin == "agent" else "system", sender)
        )
        with self._journal.fact("message"):
            kept = self._journal.requests.message(shaped)
            event = MessageReceived(origin=origin, trust=trust, message=kept, sender=sender)
            self._journal.append([self._journal.draft(event, actor=actor)])

    # -- model calls -------------------------------------------------------------------------------------------------

    def model(
        self,
        create: Callable[..., Any],
        *,
        protocol: str | None = None,
        purpose: Purpose = "main",
        provider: str | None = None,
        call_id: str | None = None,
        attempt: int = 1,
        **request: Any,
    ) -> Any:
        """Call `create(**request)` and give what it gives; its request is recorded before, its answer after.

        A stream comes back as a stream of the same chunks. Raises what `create` raises, or NotRecordedError before it.
        """
        request, call = self._begin_model(protocol, request, purpose, provider, call_id, attempt)
        try:
            if self._journal.holds.open:
                self._stop()
            response = create(**request)
            if inspect.isawaitable(response):
                _discard(response)
                raise TypeError("the model function is asynchronous: use `await run.amodel(...)`")
        except BaseException as error:
            with beside(error):
                call.failed(error)
            raise
        if hasattr(response, "__next__"):
            return RecordedStream(response, call)
        call.answered(response)
        return response

    async def amodel(
        self,
        create: Callable[..., Any],
        *,
        protocol: str | None = None,
        purpose: Purpose = "main",
        provider: str | None = None,
        call_id: str | None = None,
        attempt: int = 1,
        **request: Any,
    ) -> Any:
        """As `model`, for an asynchronous function; the event loop is not held up by the ledger."""
        request, call = await self._turn(
            self._begin_model, protocol, request, purpose, provider, call_id, attempt
        )
        try:
            if self._journal.holds.open:
                await self._astop()
            response = create(**request)
            if inspect.isawaitable(response):
                response = await response
        except BaseException as error:
            await self._failed(call, error)
            raise
        if hasattr(response, "__anext__"):
            return AsyncRecordedStream(response, call)
        if hasattr(response, "__next__"):
            return RecordedStream(response, call)
        await self._turn(call.answered, response)
        return response

    def _begin_model(
        self,
        protocol: str | None,
        request: Mapping[str, Any],
        purpose: Purpose,
        provider: str | None,
        call_id: str | None,
        attempt: int,
    ) -> tuple[dict[str, Any], ModelCall]:
        """The request as it may leave, and its call, which is recorded."""
        request, call_id = self._in_sight(protocol, request, purpose, call_id)
        call = ModelCall(
            self._journal,
            protocol or self._protocol,
            request,
            purpose=purpose,
            call_id=call_id,
            provider=provider,
            attempt=attempt,
        )
        self._model_calls += 1
        return request, call

    # -- tools, approvals, delegations -------------------------------------------------------------------------------

    def tool(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], **options: Unpack[ToolOptions]
    ) -> Any:
        """Call `function(**arguments)` and give what it gives; recorded as started before, as settled after.

        Raises what the function raises, or NotRecordedError: then the function was not called.
        """
        call = self._begin_tool(function, arguments, options)
        try:
            if self._journal.holds.open:
                self._stop()
            result = function(**arguments)
            if inspect.isawaitable(result):
                _discard(result)
                raise TypeError(f"tool {call.tool!r} is asynchronous: use `await run.atool(...)`")
        except BaseException as error:
            with beside(error):
                call.failed(error)
            raise
        call.returned(result)
        return result

    async def atool(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], **options: Unpack[ToolOptions]
    ) -> Any:
        """As `tool`, for an asynchronous function."""
        call = await self._abegin_tool(function, arguments, options)
        try:
            if self._journal.holds.open:
                await self._astop()
            result = function(**arguments)
            if inspect.isawaitable(result):
                result = await result
        except BaseException as error:
            await self._failed(call, error)
            raise
        await self._turn(call.returned, result)
        return result

    def approve(self, ask: Callable[[], Any], **options: Unpack[AskOptions]) -> Approval:
        """Ask by calling `ask()`, which gives True, False or an outcome's name; both sides are kept durably."""
        question = Question(self._journal, options)
        try:
            answer = ask()
        except BaseException as error:
            with beside(error):
                question.failed(error)
            raise
        return question.decided(answer)

    async def aapprove(self, ask: Callable[[], Any], **options: Unpack[AskOptions]) -> Approval:
        """As `approve`, for an asynchronous function."""
        question = await self._turn(Question, self._journal, options)
        try:
            answer = ask()
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            await self._failed(question, error)
            raise
        return await self._turn(question.decided, answer)

    def delegate(
        self,
        *,
        agent: str | None = None,
        payload: Any = None,
        name: str | None = None,
        how: How = "spawn",
        call_id: str | None = None,
        budget_usd: Decimal | None = None,
    ) -> "RecordedLoop":
        """A loop of its own for work that is handed over: `with run.delegate(agent="reader", payload=...) as child`."""
        parent = self._journal
        session = f"{parent.session}.{parent.new_id()[-12:]}"
        delegation = Delegation(parent, agent, payload, how, call_id, budget_usd)
        started = self._started.model_copy(
            update={"agent": agent, "name": name, "parent": parent.session, "parent_call": call_id}
        )
        return self._delegated(session, started, delegation)

    def _delegated(self, session: str, started: SessionStarted, delegation: Delegation) -> "RecordedLoop":
        parent, agent = self._journal, started.agent
        surroundings = parent.surroundings.limited(session, delegation.budget_usd)
        journal = Journal(
            surroundings, session, agent=agent, correlation=parent.correlation, depth=parent.depth + 1
        )
        if isinstance(parent.watch, Watch):
            journal.watch = parent.watch.for_child(journal)
        journal.edge = edge_of(parent.agent, agent)
        policy, when_held = self._gate.policy, self._when_held
        return RecordedLoop(journal, started, self._protocol, delegation, policy=policy, when_held=when_held)

    def returns(self, result: Any, returned: Literal["result", "transcript", "unknown"] = "result") -> None:
        """In a delegated loop: what goes back to the loop that handed over."""
        if self._delegation is None:
            raise InputError(f"session {self.session} was not delegated: there is nobody to return to")
        self._delegation.returns(result, returned)


def _discard(awaitable: Any) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn of it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
