"""What the tests of the hooks' seam share: a request, a store that breaks, looks at what was recorded."""

import contextlib
import sqlite3
from typing import Any

from ledger.events import Event
from ledger.home import Ledger
from tests.ledger.capture.loops import records

ASKED = {"model": "scripted-1", "messages": [{"role": "user", "content": "hello"}]}


def sessions(ledger: Ledger) -> list[str]:
    """The sessions of a ledger in order of their first record."""
    return list(dict.fromkeys(record.session for record in ledger.store.read_all()))


def break_store(ledger: Ledger) -> None:
    """From now on nothing can be written."""
    with contextlib.closing(sqlite3.connect(ledger.home / "ledger.sqlite")) as connection:
        connection.execute("alter table stored_events rename to gone")
        connection.commit()


def events(ledger: Ledger, session: str, *kinds: type[Event]) -> list[Any]:
    """The events of these kinds in order."""
    return [record.event for record in records(ledger, session) if isinstance(record.event, kinds)]
