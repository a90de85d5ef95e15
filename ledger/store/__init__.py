"""Keeps records, blobs and context nodes, on SQLite or PostgreSQL. Only home of `eventsourcing` and the drivers."""

from ledger.store.event_store import EventStore, Head, SourceKey
from ledger.store.opening import open_store
from ledger.store.rows import Attachments, KeyRow, KeysTakenError
from ledger.store.verify import Problem, Verification, verify

__all__ = [
    "Attachments",
    "EventStore",
    "Head",
    "KeyRow",
    "KeysTakenError",
    "Problem",
    "SourceKey",
    "Verification",
    "open_store",
    "verify",
]
