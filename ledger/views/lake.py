"""What the lake is fed with from a store: its records by position, and their contents."""

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ledger.errors import LedgerError
from ledger.lake import Feed, Lake, Stored
from ledger.lake.feed import StoredRow
from ledger.lake.lake import GRACE_S
from ledger.store import EventStore
from ledger.store.mapper import record_hash

_CHUNK = 300  # two of them are fewer than the 700 objects after which Python looks for garbage
_log = logging.getLogger(__name__)


def lake_feed(store: EventStore) -> Feed:
    """A store as the lake sees it."""

    def rows(after: int) -> Iterator[StoredRow]:
        while found := store.recorder.select_rows(after, _CHUNK):
            yield from found
            if found[-1][0] <= after:
                return
            after = found[-1][0]

    def hash_of(row: Stored) -> str:
        return record_hash(row.session, row.seq, row.type, row.state).hex()

    return Feed(hashlib.sha256(store.salt).hexdigest(), rows, store.contents, hash_of)


class LakeFollower:
    """Keeps a lake up with its ledger while a program runs, in a thread of its own. Use as a context manager."""

    def __init__(self, store: EventStore, folder: Path, *, pause_s: float = 0.5) -> None:
        self._store = store
        self._lake = Lake(folder)
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="lake", daemon=True)

    def __enter__(self) -> "LakeFollower":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        feed, reached = lake_feed(self._store), -1
        cleared = time.monotonic()
        while True:
            is_last = self._stop.wait(self._pause_s)
            try:
                if self._store.last_position() > reached:
                    reached = self._lake.export(feed).position
                if time.monotonic() - cleared > GRACE_S:
                    self._lake.clear()
                    cleared = time.monotonic()
            except (LedgerError, OSError):
                _log.exception("the lake was not brought up to the ledger; it is tried again")
            if is_last:
                return
