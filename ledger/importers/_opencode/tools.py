"""How the tool calls of an opencode session ended."""

from collections.abc import Iterator
from typing import Any

from ledger.events import Draft
from ledger.events.approval import ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.importers._harness.effects import written
from ledger.importers._harness.story import Story
from ledger.importers._harness.values import number, record, rest, words


def settled(
    story: Story, call_id: str, tool: str | None, status: str, state: dict[str, Any]
) -> Iterator[Draft]:
    """How a call ended: what it gave, who refused it, what it changed, whom it handed work to."""
    times = record(state.get("time"))
    start, end = number(times.get("start")), number(times.get("end"))
    shown = state.get("output") if status == "completed" else state.get("error")
    text = words(shown) or ""
    denied = status == "error" and ("rejected permission" in text or "prevents you from using" in text)
    if denied:
        human = "user rejected" in text
        decided = ApprovalDecided(
            approval_id=call_id,
            call_id=call_id,
            outcome="denied",
            decided_by="human" if human else "policy",
            how=text[:300],
            evidence="inferred",
        )
        yield story.draft(decided, "human" if human else "policy")
    code = record(state.get("metadata")).get("exit")
    failed = status == "error" or (isinstance(code, int) and code != 0) or tool == "invalid"
    yield story.settled(
        call_id,
        "denied" if denied else "failed" if failed else "returned",
        story.keep.json(shown, "result"),
        details=rest(state, "status", "input", "output", "error", "time"),
        error=f"exit code {code}" if isinstance(code, int) and code else "error" if failed else None,
        duration_ms=end - start if start is not None and end is not None and end >= start else None,
    )
    child = words(record(state.get("metadata")).get("sessionId"))
    if tool == "task" and child is not None:
        session = story.desk.session_name(child)
        handed = DelegationStarted(delegation_id=session, to_session=session, how="tool", call_id=call_id)
        yield story.draft(handed, "agent")
    effect = None if failed else written(call_id, tool, state.get("input"))
    if effect is not None:
        yield story.draft(effect, "agent")
