"""States of long sessions are kept before anybody looks, and change nothing but the time."""

from ledger.events.input import MessageReceived
from ledger.home import Ledger
from ledger.views.snapshots import SnapshotFile
from replay.ahead import LEAST, Ahead
from replay.state import FOLD_VERSION
from replay.timeline import session_timeline
from webui.states import States

from .histories import SESSION, Writer


def test_a_long_session_is_folded_once_and_then_looked_at_from_near(ledger: Ledger, writer: Writer) -> None:
    message = writer.keep.json({"role": "user", "content": "again"})
    for _ in range(LEAST + 700):
        writer.add(MessageReceived(origin="human", message=message))
    writer.flush()
    head = ledger.store.head(SESSION).seq
    pauses: list[int] = []
    ahead = Ahead(ledger)
    for _ in range(2):
        ahead.catch_up([(SESSION, head), ("short", 3)], pauses.append)
    assert pauses == sorted(set(pauses)) and len(pauses) == head // 500
    with SnapshotFile(ledger.home / "views" / "snapshots.sqlite", ledger.store.salt) as file:
        kept = file.nearest(SESSION, FOLD_VERSION, head)
    assert kept is not None and head - kept.seq <= 500
    found = States(ledger).at(SESSION, head)
    assert found.digest == session_timeline(ledger.store, SESSION).at().digest()
    assert len(found.messages) == head


def test_a_session_that_cannot_be_folded_hinders_no_other(ledger: Ledger) -> None:
    Ahead(ledger).catch_up([("no such session", LEAST)], lambda position: None)
