"""The scorecard of a session where the proofs have a limit of time: a proof that was stopped is said to be so."""

import time
from typing import Any

from ledger.store import EventStore
from replay.proving import Tell
from replay.scorecard.answer import Answer, nothing
from replay.scorecard.card import card_of
from replay.scorecard.rebuilding import rebuilding


class _OverError(Exception):
    """The time for the proofs is over."""


def score(store: EventStore, session: str, seconds: float, tell: Tell = lambda seq: None) -> dict[str, Any]:
    """The card of a session in its documented form, up to which record, and at which one the proofs were stopped."""
    head = store.head(session).seq
    stopped_at: int | None = None

    def prove(store: EventStore, session: str, tell: Tell) -> Answer:
        nonlocal stopped_at
        ends_at = time.monotonic() + seconds
        reached = 0

        def watch(seq: int) -> None:
            nonlocal reached
            reached = seq
            if time.monotonic() > ends_at:
                raise _OverError
            tell(seq)

        try:
            return rebuilding(store, session, watch)
        except _OverError:
            stopped_at = reached
            told = f"the proofs were stopped after {seconds:g} s at record {reached} of {head}; they show nothing"
            return nothing("rebuild", told)

    card = card_of(store, session, tell, prove)
    return {**card.as_json(), "records": head, "stopped_at": stopped_at}
