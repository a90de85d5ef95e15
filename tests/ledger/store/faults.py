"""A process whose writes to SQLite fail, or which dies, at a chosen step: `FaultyConnection`, and a main to kill.

`python -m tests.ledger.store.faults URL STEP WHEN` appends to session `a`, prints `kept SEQ`, then appends again and
dies by SIGKILL at the step.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from typing import Any, cast

from ledger.store import EventStore, SourceKey, open_store
from ledger.store.sqlite_recorder import SQLiteRecorder
from tests.ledger.store.databases import attach, note, stamp, started

STEPS = ("BEGIN IMMEDIATE", "blobs", "context_nodes", "source_keys", "INTO stored_events", "COMMIT")
"""What one append does to the database, by a part of each statement's text."""


class FaultyConnection:
    """A connection that does something else, once, before or after the statement that has a text in it."""

    def __init__(
        self, connection: sqlite3.Connection, step: str, when: str, fault: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._step = step
        self._when = when
        self._fault = fault

    def _run(self, method: str, statement: str, *arguments: Any) -> Any:
        is_hit = self._step in statement
        if is_hit and self._when == "before":
            self._fault_once()
        result = getattr(self._connection, method)(statement, *arguments)
        if is_hit and self._when == "after":
            self._fault_once()
        return result

    def _fault_once(self) -> None:
        self._step = "\0"
        self._fault()

    def execute(self, statement: str, *arguments: Any) -> Any:
        """Run one statement."""
        return self._run("execute", statement, *arguments)

    def executemany(self, statement: str, *arguments: Any) -> Any:
        """Run one statement for many rows."""
        return self._run("executemany", statement, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def put_fault(store: EventStore, step: str, when: str, fault: Callable[[], None]) -> None:
    """Let the store's next write meet the fault."""
    recorder = store.recorder
    assert isinstance(recorder, SQLiteRecorder)
    recorder._writer = cast("sqlite3.Connection", FaultyConnection(recorder._writing(), step, when, fault))


def first_append(store: EventStore) -> int:
    """What is acknowledged before the fault; its last seq."""
    attachments, _ = attach(store, b"first", b"content")
    return store.append({"a": [started("1"), note(store, b"first")]}, stamp=stamp, attachments=attachments)[
        -1
    ].seq


def second_append(store: EventStore) -> None:
    """What meets the fault: records of two sessions, blobs, nodes and a source key."""
    attachments, _ = attach(store, b"second", b"third")
    store.append(
        {"a": [started("2"), note(store, b"second")], "b": [note(store, b"third")]},
        stamp=stamp,
        attachments=attachments,
        keys=[SourceKey("a", 0, b"k" * 16, 1, 1)],
    )


def _main(url: str, step: str, when: str) -> None:
    store = open_store(url)
    print("kept", first_append(store), flush=True)
    put_fault(store, step, when, lambda: os.kill(os.getpid(), signal.SIGKILL))
    second_append(store)
    raise SystemExit(f"no statement with {step!r} was run")


if __name__ == "__main__":
    _main(*sys.argv[1:])
