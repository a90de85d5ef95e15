"""A ledger's database as a person with a SQL shell sees it, and drafts and content to put into it."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from ledger.events import ContentRef, Draft
from ledger.events.review import NoteWritten
from ledger.events.tool_call import ToolCallStarted
from ledger.store import Attachments, EventStore
from ledger.store.content import NodeRow, chain_node, content_digest, pack_blob

STAMP = "2026-01-01T00:00:00.000000Z"
"""Time of recording where time does not matter."""


class Database(NamedTuple):
    """One database."""

    url: str
    """Address, as `open_store` takes it."""

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement past the store, committed; question marks are parameters."""
        if self.url.startswith("sqlite:"):
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)
            try:
                return connection.execute(statement, parameters).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.url, autocommit=True) as other:
            cursor = other.execute(statement.replace("?", "%s").encode(), parameters)
            return cursor.fetchall() if cursor.description else []


def stamp() -> str:
    """A clock that stands still."""
    return STAMP


def started(call_id: str) -> Draft:
    """The smallest draft there is."""
    return Draft(ToolCallStarted(call_id=call_id))


def call_ids(store: EventStore, session: str) -> list[str]:
    """Call ids of a session of `started` drafts, in order."""
    found = []
    for record in store.read(session):
        assert isinstance(record.event, ToolCallStarted)
        found.append(record.event.call_id)
    return found


def attach(store: EventStore, *contents: bytes, durable: bool = False) -> tuple[Attachments, list[NodeRow]]:
    """Blobs of these contents, and the context that has them as its messages."""
    blobs = [pack_blob(content_digest(store.salt, content), content) for content in contents]
    nodes: list[NodeRow] = []
    for blob in blobs:
        nodes.append(chain_node(store.salt, nodes[-1] if nodes else None, blob.digest))
    return Attachments(blobs, nodes, durable=durable), nodes


def note(store: EventStore, content: bytes) -> Draft:
    """A draft that refers to a blob of this content."""
    digest = content_digest(store.salt, content).hex()
    return Draft(NoteWritten(about="a", text=ContentRef(digest=digest, size=len(content), kind="text")))
