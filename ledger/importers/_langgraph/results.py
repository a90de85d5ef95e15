"""The result of a tool call as events, with the answer under which the call ran."""

from typing import NamedTuple

from ledger.events import Draft
from ledger.events.approval import ApprovalUsed
from ledger.events.tool_call import ToolCallSettled
from ledger.importers._langgraph.messages import Message
from ledger.importers._langgraph.scribe import Scribe, Step
from ledger.protocols.interrupts import Outcome


class Grant(NamedTuple):
    """An answer under which a call may run."""

    approval_id: str
    """The answer."""
    outcome: Outcome
    """What it was."""
    how: str
    """In the source's words."""
    task: str
    """Task that took it."""
    session: str
    """Session that holds it."""
    key: str
    """Item that holds it."""


def used(scribe: Scribe, step: Step, grant: Grant, call_id: str) -> Draft:
    """That a call ran under an answer; the cause names the very record of the answer."""
    found = scribe.desk.lookup(grant.session, grant.key)
    cause: int | str | None = None
    if found is not None:
        cause = found.seq if grant.session == scribe.session else f"{grant.session}#{found.seq}"
    event = ApprovalUsed(approval_id=grant.approval_id, call_id=call_id)
    return scribe.draft(event, step.id, time=step.time, actor="system", cause=cause)


def result_drafts(
    scribe: Scribe,
    step: Step,
    message: Message,
    call_id: str,
    *,
    grant: Grant | None,
    author: str | None,
    orphan: bool,
) -> list[Draft]:
    """How a call ended. `author` is the task that wrote the result.

    The task that took a refusal writes a result in the tool's place; any other task that writes one ran the tool.
    """
    content, artifact, keep = message.data.get("content"), message.data.get("artifact"), scribe.desk.keep
    outcome, error = "returned", None
    stood_in = grant is not None and grant.outcome == "denied" and author == grant.task
    if stood_in and grant is not None:
        outcome, error = "denied", f"answered with {grant.how!r}: the tool did not run"
    elif step.source == "update":
        outcome, error = "unknown", "the result was written by an update of the state"
    elif message.data.get("status") == "error":
        outcome, error = "failed", "status error"
    event = ToolCallSettled.model_validate(
        {
            "call_id": call_id,
            "outcome": outcome,
            "result": keep.text(content, "result")
            if isinstance(content, str)
            else keep.json(content, "result"),
            "details": None if artifact is None else keep.json(artifact, "artifact"),
            "error": error,
            "orphan": orphan,
        }
    )
    drafts: list[Draft] = []
    if grant is not None and outcome in ("returned", "failed"):
        drafts.append(used(scribe, step, grant, call_id))
    drafts.append(scribe.draft(event, step.id, time=step.time, actor="system"))
    return drafts
