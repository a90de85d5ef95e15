"""Calls of a live loop: intent before, answer or failure after. Runs nothing itself."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from ledger.capture.approvals import Approval
from ledger.capture.journal import Journal
from ledger.errors import InputError
from ledger.events import Actor, ContentRef
from ledger.events.approval import ApprovalUsed
from ledger.events.model_call import (
    ModelCallAnswered,
    ModelCallChunk,
    ModelCallFailed,
    ModelCallRequested,
    Purpose,
)
from ledger.events.tool_call import EffectClass, ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.protocols.plain import plain, type_name
from ledger.protocols.requests import follow
from ledger.protocols.responses import facts_of, take_apart

_MODEL = Actor("agent")

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
    ) -> None:
        self.journal = journal
        self.protocol = protocol
        self.call_id = call_id or journal.new_id()
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
                body_digest=parts.body_digest,
                completeness=parts.completeness,
                not_seen=parts.not_seen,
                artifacts=parts.artifacts,
                attempt=attempt,
            )
            self._cause = journal.append([journal.draft(event)])[0].seq
        self._began = journal.surroundings.monotonic()

    def elapsed_ms(self) -> int:
        """Milliseconds since the request was recorded."""
        return round((self.journal.surroundings.monotonic() - self._began) * 1000)

    def answered(self, response: Any) -> None:
        """The model answered at once."""
        elapsed = self.elapsed_ms()
        with self.journal.fact("answer of a model call"):
            facts = {"duration_ms": elapsed, "request_id": _request_id(response)}
            self._answer(plain(response), facts)

    def streamed(
        self,
        body: Any,
        chunks: list[Chunk] | None,
        first_byte_ms: int | None,
        completeness: Literal["complete", "partial", "aborted"],
        error: BaseException | None = None,
    ) -> None:
        """A streamed answer ended. `chunks` is None where they may not be kept."""
        elapsed = self.elapsed_ms()
        with self.journal.fact("streamed answer of a model call"):
            facts: dict[str, Any] = {
                "duration_ms": elapsed,
                "first_byte_ms": first_byte_ms,
                "completeness": completeness,
            }
            if chunks is not None:
                facts["stream"] = self.journal.keep.json([list(chunk) for chunk in chunks], "stream")
            self._answer(body, facts, error)

    def flush(self, chunks: list[Chunk]) -> None:
        """A part of a stream arrived."""
        with self.journal.fact("part of a streamed answer"):
            kept = self.journal.keep.json([list(chunk) for chunk in chunks], "stream")
            self._append(ModelCallChunk(call_id=self.call_id, chunks=kept))

    def failed(self, error: BaseException) -> None:
        """The call raised."""
        elapsed = self.elapsed_ms()
        with self.journal.fact("failure of a model call"):
            status = getattr(error, "status_code", None)
            event = ModelCallFailed(
                call_id=self.call_id,
                status=status if isinstance(status, int) else None,
                error=type_name(error),
                detail=self.journal.keep.text(str(error), "error") if str(error) else None,
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
            **facts_of(body),
            **facts,
        )
        self._append(event)

    def _append(self, event: ModelCallAnswered | ModelCallChunk | ModelCallFailed) -> None:
        journal = self.journal
        actor = Actor("system") if isinstance(event, ModelCallFailed) else _MODEL
        journal.append([journal.draft(event, actor=actor, cause=self._cause)])


class ToolCall:
    """One tool call, from its intent to its settlement."""

    def __init__(
        self,
        journal: Journal,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        options: ToolOptions,
    ) -> None:
        self._journal = journal
        tool = options.get("name") or getattr(function, "__name__", None) or type_name(function)
        approval, effect_class = options.get("approval"), options.get("effect_class")
        if approval is not None and not approval:
            raise InputError(
                f"tool {tool!r} was not run: its approval {approval.approval_id} is {approval.outcome}"
            )
        self.tool: str = tool
        self.call_id = options.get("call_id") or journal.new_id()
        with journal.intent(f"call of tool {tool!r}"):
            kept = journal.keep.json(plain(arguments), "arguments")
            requested = ToolCallRequested(
                call_id=self.call_id,
                tool=tool,
                arguments=kept,
                effect_class=effect_class,
                effect_declared=None if effect_class is None else "declared",
                idempotency_key=options.get("idempotency_key"),
                server=options.get("server"),
            )
            drafts = [journal.draft(requested)]
            if approval is not None:
                used = ApprovalUsed(
                    approval_id=approval.approval_id, call_id=self.call_id, arguments_digest=kept.digest
                )
                drafts.append(journal.draft(used))
            drafts.append(journal.draft(ToolCallStarted(call_id=self.call_id), actor=Actor("system")))
            self._cause = journal.append(drafts)[0].seq
        self._began = journal.surroundings.monotonic()

    def returned(self, result: Any) -> None:
        """The tool returned."""
        with self._journal.fact("result of a tool call"):
            self._settle("returned", result=_content(self._journal, plain(result), "result"))

    def failed(self, error: BaseException) -> None:
        """The tool raised; when it was interrupted from outside, nobody can say what it did."""
        with self._journal.fact("failure of a tool call"):
            details = self._journal.keep.json(_described(error), "error")
            outcome: Literal["failed", "unknown"] = "failed" if isinstance(error, Exception) else "unknown"
            self._settle(outcome, error=type_name(error), details=details)

    def _settle(self, outcome: Literal["returned", "failed", "unknown"], **fields: Any) -> None:
        elapsed = round((self._journal.surroundings.monotonic() - self._began) * 1000)
        event = ToolCallSettled(call_id=self.call_id, outcome=outcome, duration_ms=elapsed, **fields)
        draft = self._journal.draft(event, actor=Actor("system"), cause=self._cause)
        self._journal.append([draft])


def _content(journal: Journal, value: Any, where: str) -> ContentRef:
    return journal.keep.text(value, where) if isinstance(value, str) else journal.keep.json(value, where)


def _described(error: BaseException) -> dict[str, str]:
    return {"type": type_name(error), "message": str(error)}


def _request_id(response: Any) -> str | None:
    """The id of the HTTP request, which OpenAI's and Anthropic's objects carry beside the body."""
    found = getattr(response, "_request_id", None)
    return found if isinstance(found, str) else None
