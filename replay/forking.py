"""Opens a branch of any session at any of its records, by a message. Runs nothing: whoever continues it does.

The branch shares its origin's records up to there; its state begins as that of the origin was then.
"""

from typing import Any

from ledger.errors import InputError
from ledger.events import Actor, Draft
from ledger.events.input import MessageReceived
from ledger.events.recovery import BranchOpened
from ledger.events.session import SessionForked, SessionStarted
from ledger.home import Ledger

_SYSTEM = Actor("system")


def fork_session(ledger: Ledger, name: str, at: int, message: Any, *, person: str | None = None) -> str:
    """Open a branch after the record `at`, durably; gives its session.

    `message` is what a person says there: a text, or a message in the shape of the session's protocol. A loop goes on
    from it with `record_loop(ledger, session=...)`.

    Raises SessionNotFoundError, AmbiguousSessionError, RecordNotFoundError; InputError where there is nothing to say.
    """
    store, recorder = ledger.store, ledger.recorder
    origin = store.resolve(name)
    store.record(origin, at)
    if not message:
        raise InputError("a branch begins with a message: expected one, found nothing")
    first = store.record(origin, 1).event
    started = first if isinstance(first, SessionStarted) else SessionStarted(harness="unknown")
    own = {"parent": None, "parent_call": None, "charter": (), "environment": None}
    branch, keeper = recorder.ids(), recorder.keeper()
    shaped = {"role": "user", "content": message} if isinstance(message, str) else message
    said = MessageReceived(origin="human", message=keeper.json(shaped, "message"), sender=person)
    drafts = {
        branch: [
            Draft(started.model_copy(update=own), actor=_SYSTEM, correlation=branch),
            Draft(SessionForked(origin=origin, origin_seq=at), actor=_SYSTEM, correlation=branch),
            Draft(said, actor=Actor("human", person), correlation=branch),
        ],
        origin: [Draft(BranchOpened(branch=branch, at_seq=at), actor=_SYSTEM)],
    }
    recorder.append_many(drafts, keeper, durable=True)
    return branch
