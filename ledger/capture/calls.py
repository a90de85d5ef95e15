"""Calls of a live loop: intent before, answer or failure after. Runs nothing itself."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypedDict

from ledger.capture.approvals import Approval, check_approval
from ledger.capture.compensating import Compensate, registered
from ledger.capture.journal import Journal
from ledger.effects.loop_policy import ApprovalRule
from ledger.errors import HeldError, InputError
from ledger.events import Actor, ContentRef, Draft
from ledger.events.approval import ApprovalUsed
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
    Purpose,
    Usage,
)
from ledger.events.record import Grade
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.protocols.plain import plain, type_name
from ledger.protocols.requests import follow
from ledger.protocols.responses import facts_of, take_apart

_MODEL, _SYSTEM = Actor("agent"), Actor("system")

Settled = Literal["returned", "failed", "denied", "not_started", "unknown"]
"""How a call may end."""

Chunk = tuple[int, str]
"""Milliseconds since the request, and the chunk's text."""


class ToolOptions(TypedDict, total=False):
    """What may be told of a tool call."""

    name: str
    """Name of the tool; the function's own by default."""

    effect_class: EffectClass | None
    """What it may do outside. External, irreversible and credential calls are recorded durably before they run."""

    idempotency_key: str | None
    """Key under which a repeated call must act once."""

    call_id: str | None
    """The model's id of the call."""

    approval: Approval | None
    """The approval that it runs under."""

    server: str | None
    """MCP server or other host of the tool."""

    compensate: Compensate | None
    """What takes its effect back: a function, another tool, or a command."""

    is_denied: bool
    """It will not run: it is recorded as requested, not as started."""

    needs_approval: ApprovalRule | bool | None
    """It runs only after a person's yes, which the loop waits for; by default the policy says whether it needs one."""

    approval_key: str | None
    """The loop's own name of that question; by default the call's id, or its tool and arguments."""

    effect_declared: Literal["declared", "policy", "inferred"] | None
    """Who says what it may do outside, where that is not the tool itself."""


class AnswerFacts(TypedDict, total=False):
    """What is told of an answer beside its body; what stands here counts, whatever the body says."""

    model: str | None
    """Model that answered."""

    usage: Usage | None
    """Tokens."""

    response_id: str | None
    """Provider's id of the response."""

    request_id: str | None
    """Provider's id of the HTTP request."""

    stop_reason: str | None
    """Why it stopped, in the provider's words."""

    cost_usd: Decimal | None
    """Cost in US dollars."""


class ModelCall:
    """One model call, from its intent to its end."""

    def __init__(
        self,
        journal: Journal,
        protocol: str,
        request: Mapping[str, Any],
        *,
        purpose: Purpose,
        call_id: str | None,
        provider: str | None,
        attempt: int,
        grade: Grade | None = None,
        not_seen: tuple[str, ...] = (),
    ) -> None:
        self.journal = journal
        self._grade: Grade | None = grade
        self.protocol = protocol
        self.call_id = call_id or journal.new_id()
        self.usage: Usage | None = None
        """Tokens of the answer, once it is there."""
        self._returned_type: str | None = None
        with journal.intent("model call"):
            parts = journal.requests.take(protocol, request)
            event = ModelCallRequested(
                call_id=self.call_id,
                purpose=purpose,
                protocol=protocol,
                model=parts.model,
                provider=provider,
                **follow(journal.chain(purpose), parts.messages),
                system=parts.system,
                tools=parts.tools,
                parameters=parts.parameters,
                layout=parts.layout,
                body_digest=None if not_seen else parts.body_digest,
                completeness="messages" if not_seen and parts.completeness == "body" else parts.completeness,
                not_seen=(*parts.not_seen, *not_seen),
                artifacts=parts.artifacts,
                attempt=attempt,
            )
            self._cause = journal.append([journal.draft(event, grade=grade)])[0].seq
        self._began = journal.surroundings.monotonic()

    def elapsed_ms(self) -> int:
        """Milliseconds since the request was recorded."""
        return round((self.journal.surroundings.monotonic() - self._began) * 1000)

    def given(self, response: Any) -> None:
        """The loop was given this object, or this first chunk of a stream."""
        if self._returned_type is None and type(response) not in (dict, str):
            self._returned_type = type_name(response)

    def answered(self, response: Any, told: AnswerFacts | None = None) -> None:
        """The model answered at once."""
        elapsed = self.elapsed_ms()
        self.given(response)
        with self.journal.fact("answer of a model call"):
            facts = {"duration_ms": elapsed, "request_id": _request_id(response), **(told or {})}
            self._answer(plain(response), facts)

    def streamed(
        self,
        body: Any,
        chunks: list[Chunk] | None,
        first_byte_ms: int | None,
        completeness: Literal["complete", "partial", "aborted"],
        error: BaseException | None = None,
        told: AnswerFacts | None = None,
    ) -> None:
        """A streamed answer ended. `chunks` is None where they may not be kept."""
        elapsed = self.elapsed_ms()
        with self.journal.fact("streamed answer of a model call"):
            facts: dict[str, Any] = {
                "duration_ms": elapsed,
                "first_byte_ms": first_byte_ms,
                "completeness": completeness,
                **(told or {}),
            }
            if chunks is not None:
                facts["stream"] = self.journal.keep.json([list(chunk) for chunk in chunks], "stream")
            self._answer(body, facts, error)

    def flush(self, chunks: list[Chunk]) -> None:
        """A part of a stream arrived."""
        with self.journal.fact("part of a streamed answer"):
            kept = self.journal.keep.json([list(chunk) for chunk in chunks], "stream")
            self._append(ModelCallChunk(call_id=self.call_id, chunks=kept))

    def failed(
        self, error: BaseException | str, *, kind: str | None = None, will_retry: bool | None = None
    ) -> None:
        """The call raised, or ended without an answer, which a text describes."""
        elapsed = self.elapsed_ms()
        with self.journal.fact("failure of a model call"):
            status = getattr(error, "status_code", None)
            event = ModelCallFailed(
                call_id=self.call_id,
                status=status if isinstance(status, int) else None,
                error=kind or ("error" if isinstance(error, str) else type_name(error)),
                detail=self.journal.keep.text(str(error), "error") if str(error) else None,
                will_retry=will_retry,
                duration_ms=elapsed,
            )
            self._append(event)

    def _answer(self, body: Any, facts: dict[str, Any], error: BaseException | None = None) -> None:
        keep = self.journal.keep
        taken = take_apart(self.protocol, body)
        envelope = taken.envelope
        if error is not None:
            envelope = {**(envelope or {}), "client_error": _described(error)}
        event = ModelCallAnswered(
            call_id=self.call_id,
            message=_content(self.journal, taken.message, "answer"),
            envelope=None if envelope is None else keep.json(envelope, "answer"),
            returned_type=self._returned_type,
            **{**facts_of(body), **facts},
        )
        self.usage = event.usage
        self._append(event)

    def _append(self, event: ModelCallAnswered | ModelCallChunk | ModelCallFailed) -> None:
        journal = self.journal
        actor = _SYSTEM if isinstance(event, ModelCallFailed) else _MODEL
        journal.append([journal.draft(event, actor=actor, cause=self._cause, grade=self._grade)])


class ToolCall:
    """One tool call, from its intent to its settlement."""

    def __init__(
        self,
        journal: Journal,
        function: Callable[..., Any] | None,
        arguments: Any,
        options: ToolOptions,
    ) -> None:
        self._journal = journal
        tool = self.name_of(function, options)
        approval, effect_class = options.get("approval"), options.get("effect_class")
        if approval is not None and not approval:
            raise InputError(
                f"tool {tool!r} was not run: its approval {approval.approval_id} is {approval.outcome}"
            )
        self.tool: str = tool
        self._effect_class = effect_class
        self.call_id = options.get("call_id") or journal.new_id()
        with journal.intent(f"call of tool {tool!r}"):
            kept = journal.keep.json(plain(arguments), "arguments")
            if approval is not None:
                check_approval(journal, approval, tool, kept.digest)
            requested = ToolCallRequested(
                call_id=self.call_id,
                tool=tool,
                arguments=kept,
                effect_class=effect_class,
                effect_declared=None
                if effect_class is None
                else options.get("effect_declared") or "declared",
                idempotency_key=options.get("idempotency_key"),
                server=options.get("server"),
            )
            # The first draft of the append may be a look at the files, or a checkpoint before the call.
            first = (
                []
                if journal.watch is None or options.get("is_denied")
                else journal.watch.before(self.call_id, tool, arguments, effect_class)
            )
            drafts = [journal.draft(requested)]
            if (compensate := options.get("compensate")) is not None:
                drafts.append(registered(journal, self.call_id, tool, compensate))
            if approval is not None:
                drafts.append(journal.draft(self._use(approval, kept)))
            if not options.get("is_denied"):
                drafts.append(self._start())
            self._cause = journal.append([*first, *drafts])[len(first)].seq
        self._began: float | None = journal.surroundings.monotonic()

    @staticmethod
    def name_of(function: Any, options: ToolOptions) -> str:
        """Name of the tool: as told, or the function's own."""
        return options.get("name") or getattr(function, "__name__", None) or type_name(function)

    def start(self, arguments: Any, use: ApprovalUsed, *, expect: int) -> None:
        """It was requested before and may start, under an answer. Raises ConflictError when the session has moved."""
        journal = self._journal
        with journal.intent(f"call of tool {self.tool!r}"):
            first = (
                []
                if journal.watch is None
                else journal.watch.before(self.call_id, self.tool, arguments, self._effect_class)
            )
            drafts = [*first, journal.draft(use), self._start()]
            journal.append(drafts, expect=expect, durable=True)
        self._began = journal.surroundings.monotonic()

    @classmethod
    def recorded_before(cls, journal: Journal, tool: str, call_id: str, seq: int) -> "ToolCall":
        """A call whose request stands in the session at that seq, by another process; it has not ended."""
        call = cls.__new__(cls)
        call._journal, call.tool, call.call_id, call._cause = journal, tool, call_id, seq
        call._began, call._effect_class = None, None
        return call

    def again(self, arguments: Any = None, approval: Approval | None = None) -> None:
        """It starts once more before it has ended: the loop was stopped inside it, and goes on."""
        journal = self._journal
        with journal.intent(f"call of tool {self.tool!r}"):
            drafts = [self._start()]
            if approval is not None:
                kept = journal.keep.json(plain(arguments), "arguments")
                drafts.insert(0, journal.draft(self._use(approval, kept)))
            journal.append(drafts)

    def returned(self, result: Any, details: Any = None) -> None:
        """The tool returned."""
        with self._journal.fact("result of a tool call"):
            more = None if details is None else self._journal.keep.json(plain(details), "details")
            kept = _content(self._journal, plain(result), "result")
            self._settle("returned", result=kept, details=more)

    def failed(self, error: BaseException | str, *, kind: str = "error", shown: Any = None) -> None:
        """The tool raised; when it was interrupted from outside, nobody can say what it did.

        `shown` is what the model was told of it. Where only a text is known of the error, `kind` names its class.
        """
        with self._journal.fact("failure of a tool call"):
            known = {"type": kind, "message": error} if isinstance(error, str) else _described(error)
            self._settle(
                _ended_by(error),
                error=known["type"],
                details=self._journal.keep.json(known, "error"),
                result=None if shown is None else _content(self._journal, plain(shown), "result"),
            )

    def denied(self, reason: str | None = None, shown: Any = None) -> None:
        """It was refused; `shown` is what the model was told in the place of a result."""
        with self._journal.fact("refusal of a tool call"):
            kept = None if shown is None else _content(self._journal, plain(shown), "result")
            self._settle("denied", error=reason, result=kept)

    def lost(self, reason: str) -> None:
        """Nobody can say how it ended."""
        with self._journal.fact("end of a tool call"):
            self._settle("unknown", error=reason)

    def _use(self, approval: Approval, arguments: ContentRef) -> ApprovalUsed:
        return ApprovalUsed(
            approval_id=approval.approval_id, call_id=self.call_id, arguments_digest=arguments.digest
        )

    def _start(self) -> Draft:
        return self._journal.draft(ToolCallStarted(call_id=self.call_id), actor=_SYSTEM)

    def _settle(self, outcome: Settled, **fields: Any) -> None:
        elapsed = None
        if self._began is not None:
            elapsed = round((self._journal.surroundings.monotonic() - self._began) * 1000)
        event = ToolCallSettled(call_id=self.call_id, outcome=outcome, duration_ms=elapsed, **fields)
        watch = self._journal.watch
        changed = [] if watch is None or outcome in ("denied", "not_started") else watch.after(self.call_id)
        draft = self._journal.draft(event, actor=_SYSTEM, cause=self._cause)
        self._journal.append([*changed, draft])


def _content(journal: Journal, value: Any, where: str) -> ContentRef:
    return journal.keep.text(value, where) if isinstance(value, str) else journal.keep.json(value, where)


def _ended_by(error: BaseException | str) -> Settled:
    if isinstance(error, HeldError):
        return "not_started"
    return "failed" if isinstance(error, str | Exception) else "unknown"


def _described(error: BaseException) -> dict[str, str]:
    return {"type": type_name(error), "message": str(error)}


def _request_id(response: Any) -> str | None:
    """The id of the HTTP request, which OpenAI's and Anthropic's objects carry beside the body."""
    found = getattr(response, "_request_id", None)
    return found if isinstance(found, str) else None
