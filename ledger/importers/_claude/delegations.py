"""Work that a session handed to sub-agents: which call, which prompt, and whether it came back."""

import re
from collections import OrderedDict
from typing import Any, Literal

from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.importers._claude.row import Row, first_text, name_of
from ledger.intake import Desk

_AGENT_TOOLS = ("Task", "Agent")
_KEPT = 1000
_NOTIFIED = re.compile(
    r"<tool-use-id>([^<]{1,200})</tool-use-id>.{0,4000}?<status>([a-z_]{1,40})</status>", re.DOTALL
)
_OUTCOMES: dict[str, Literal["returned", "failed", "aborted"]] = {
    "completed": "returned",
    "failed": "failed",
    "killed": "aborted",
}


class Delegations:
    """Calls of the delegating tool that have not come back yet."""

    def __init__(self, desk: Desk, root: str) -> None:
        self._desk = desk
        self._root = root
        self._open: OrderedDict[str, str | None] = OrderedDict()

    def expect(self, row: Row) -> None:
        """Note the calls in a part of an answer: a sub-agent's rows may come before it is complete."""
        for block in row.blocks:
            if block.get("type") == "tool_use" and block.get("name") in _AGENT_TOOLS:
                given = block.get("input")
                prompt = given.get("prompt") if isinstance(given, dict) else None
                self._open[row.call_id(block)] = prompt if isinstance(prompt, str) else None
                if len(self._open) > _KEPT:
                    self._open.popitem(last=False)

    def join(self, prompt: str) -> str | None:
        """The first call that handed over this prompt and is not joined to a sub-agent yet; now it is."""
        for call_id, given in self._open.items():
            if given == prompt:
                self._open[call_id] = None
                return call_id
        return None

    def started(self, row: Row, event: ToolCallRequested) -> DelegationStarted | None:
        """The delegation that a call begins, if it is one."""
        if event.call_id not in self._open:
            return None
        given = next(
            (block.get("input") for block in row.blocks if row.call_id(block) == event.call_id), None
        )
        return DelegationStarted(
            delegation_id=event.call_id,
            to_agent=name_of(given.get("subagent_type")) if isinstance(given, dict) else None,
            how="tool",
            call_id=event.call_id,
            payload=event.arguments,
        )

    def returned(self, row: Row, block: dict[str, Any]) -> DelegationReturned | None:
        """A result of the delegating tool names the sub-agent that did the work.

        One that works on in the background is told of later.
        """
        call_id = row.call_id(block, "tool_use_id")
        if call_id not in self._open:
            return None
        native = row.data.get("toolUseResult")
        told = native if isinstance(native, dict) else {}
        if told.get("status") == "async_launched":
            return None
        del self._open[call_id]
        return self._return(
            call_id, "failed" if block.get("is_error") is True else "returned", told.get("agentId")
        )

    def notified(self, row: Row) -> DelegationReturned | None:
        """The harness's note that a sub-agent in the background has finished."""
        text = first_text(row.content)
        found = _NOTIFIED.search(text, 0, 10_000) if text.startswith("<task-notification>") else None
        if found is None or found[1] not in self._open:
            return None
        del self._open[found[1]]
        agent = re.search(r"<task-id>([0-9a-z]{1,60})</task-id>", text[:1000])
        return self._return(found[1], _OUTCOMES.get(found[2], "unknown"), agent and agent[1])

    def _return(
        self, call_id: str, outcome: Literal["returned", "failed", "aborted", "unknown"], agent: Any
    ) -> DelegationReturned:
        name = name_of(agent)
        return DelegationReturned(
            delegation_id=call_id,
            outcome=outcome,
            from_session=None if name is None else self._desk.session_name(f"{self._root}.agent-{name}"),
            returned="result",
        )
