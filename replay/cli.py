"""What the commands `state`, `diff` and `request` show, as plain data. Prints nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ledger.errors import ContentMissingError
from ledger.home import Ledger
from ledger.views.snapshots import SnapshotFile
from replay.context import rebuild_request
from replay.conversation import conversation, decode_content, load_message, tool_names
from replay.difference import difference
from replay.snapshots import StateSnapshots
from replay.state import FOLD_VERSION
from replay.timeline import Timeline, session_timeline


def state_json(ledger: Ledger, name: str, seq: int | None = None) -> dict[str, Any]:
    """The state of a session (by id or prefix) after a seq, or after its last record, with its messages.

    Raises SessionNotFoundError, AmbiguousSessionError or RecordNotFoundError.
    """
    store = ledger.store
    with open_timeline(ledger, store.resolve(name)) as timeline:
        state = timeline.at(seq)
    messages = [load_message(store, mention) for mention in conversation(store, state).mentions]
    head = {
        "session": state.session,
        "seq": state.seq,
        "digest": state.digest(),
        "fold_version": FOLD_VERSION,
    }
    parts = state.parts()
    offered = parts["tools"]["offered"]
    tools = {"offered_names": _offered_names(ledger, offered), **parts["tools"]}
    return {**head, "context": messages, **parts, "tools": tools}


def diff_json(ledger: Ledger, name: str, first: int, second: int) -> list[dict[str, Any]]:
    """The changes that lead from the state at one seq to that at another, earlier or later one."""
    session = ledger.store.resolve(name)
    with open_timeline(ledger, session) as timeline:
        return [change.as_json() for change in difference(timeline, ledger.store, first, second)]


def request_json(ledger: Ledger, name: str, seq: int) -> dict[str, Any]:
    """The model request at a seq, or the one that the record there belongs to, rebuilt."""
    return rebuild_request(ledger.store, ledger.store.resolve(name), seq).as_json()


@contextmanager
def open_timeline(ledger: Ledger, session: str) -> Iterator[Timeline]:
    """The timeline of a session, made fast by the snapshots in the ledger's home."""
    with SnapshotFile(ledger.home / "views" / "snapshots.sqlite", ledger.store.salt) as file:
        yield session_timeline(ledger.store, session, StateSnapshots(file, ledger.store, session))


def _offered_names(ledger: Ledger, digest: str | None) -> list[str] | None:
    """Names of the tools that the last request offered; None when there are none, or they were erased."""
    if digest is None:
        return None
    try:
        return tool_names(decode_content(ledger.store.content(digest)))
    except ContentMissingError:
        return None
