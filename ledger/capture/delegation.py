"""Work handed to another agent: a session of its own, tied to the one that handed it over in one append each way."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from ledger.capture.journal import Journal
from ledger.events import ContentRef, Draft
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.session import SessionEnded
from ledger.protocols.plain import plain

How = Literal["tool", "handoff", "message", "spawn", "unknown"]
"""Way of handing over."""


class Delegation:
    """One handing over, seen from the session that hands over."""

    def __init__(
        self,
        parent: Journal,
        agent: str | None,
        payload: Any,
        how: How,
        call_id: str | None,
        budget_usd: Decimal | None,
        *,
        delegation_id: str | None = None,
    ) -> None:
        self.parent = parent
        """Journal of the session that hands over."""
        self._agent = agent
        self._payload = payload
        self._how = how
        self._call_id = call_id
        self.budget_usd = budget_usd
        """What it may spend."""
        self.delegation_id = delegation_id or parent.new_id()
        """Joins start and return."""
        self._result: Any = None
        self._returned: Literal["result", "transcript", "unknown"] = "unknown"

    def returns(self, result: Any, returned: Literal["result", "transcript", "unknown"]) -> None:
        """What will be told to have come back."""
        self._result, self._returned = result, returned

    def start(self, child: Journal, started: Draft) -> None:
        """Record both sides of the start."""
        event = DelegationStarted(
            delegation_id=self.delegation_id,
            to_session=child.session,
            to_agent=self._agent,
            how=self._how,
            call_id=self._call_id,
            payload=_kept(child, self._payload, "payload"),
            budget_usd=self.budget_usd,
        )
        self._append(child, [started], event)

    def end(self, child: Journal, drafts: Sequence[Draft], ended: SessionEnded) -> None:
        """Record both sides of the end."""
        outcomes: dict[str, Literal["returned", "failed"]] = {"completed": "returned", "failed": "failed"}
        event = DelegationReturned(
            delegation_id=self.delegation_id,
            outcome=outcomes.get(ended.outcome, "aborted"),
            from_session=child.session,
            result=_kept(child, self._result, "result"),
            returned=self._returned,
        )
        self._append(child, drafts, event)

    def _append(
        self, child: Journal, drafts: Sequence[Draft], event: DelegationStarted | DelegationReturned
    ) -> None:
        with self.parent.lock:
            self.parent.catch_up()
            records = child.append(drafts, others={self.parent.session: [self.parent.draft(event)]})
            ours = [record for record in records if record.session == self.parent.session]
            self.parent.wrote(ours)


def _kept(journal: Journal, value: Any, where: str) -> ContentRef | None:
    if value is None:
        return None
    return (
        journal.keep.text(value, where) if isinstance(value, str) else journal.keep.json(plain(value), where)
    )
