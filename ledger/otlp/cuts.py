"""Whether a model's answer is all there, or was cut while it streamed."""

from typing import Literal

from ledger.otlp.calls import CallFacts
from ledger.otlp.messages import asks
from ledger.otlp.records import ERROR, Record, Span
from ledger.otlp.tools import exception_of
from ledger.otlp.values import text

_HANG_UPS = (
    *("GeneratorExit", "CancelledError", "KeyboardInterrupt", "ClientDisconnect"),
    *("AbortError", "APIUserAbortError", "Canceled", "Cancelled", "CANCELLED"),
)
_UNFINISHED = (None, "length", "max_tokens", "MAX_TOKENS", "error", "incomplete", "unknown")

Completeness = Literal["complete", "partial", "aborted"]
"""How much of an answer is there."""


def completeness_of(record: Record, facts: CallFacts) -> Completeness:
    """`aborted` where the client hung up, `partial` where something else cut it or a part was not captured."""
    if isinstance(record, Span):
        said = (exception_of(record) or {}).get("exception.type")
        kind = text(record.attributes.get("error.type")) or text(said) or ""
        if kind.rpartition(".")[2] in _HANG_UPS:
            return "aborted"
        if record.status == ERROR or not record.end:
            return "partial"
    if not facts.outputs or "answer" in facts.missing or _ends_inside_a_call(facts):
        return "partial"
    return "complete"


def _ends_inside_a_call(facts: CallFacts) -> bool:
    """Whether the arguments of a call are the beginning of a JSON value, and no reason to stop says otherwise."""
    return facts.stop_reason in _UNFINISHED and any(
        isinstance(ask.arguments, str) and ask.arguments.startswith(("{", "["))
        for message in facts.outputs or ()
        for ask in asks(message)
    )
