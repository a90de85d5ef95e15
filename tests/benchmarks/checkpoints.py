"""Listing many checkpoints, against the bare SQL query for the same rows."""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ledger.events import ContentRef, Draft
from ledger.events.recovery import CheckpointTaken
from ledger.home import open_ledger
from ledger.views.checkpoints import SELECT
from replay.recovery.checkpoints import list_checkpoints
from tests.benchmarks.measure import Result, interleaved

_CHECKPOINTS = 10_000


def run() -> Iterator[Result]:
    """The lines of this part."""
    with tempfile.TemporaryDirectory() as folder, open_ledger(folder) as ledger:
        files = ContentRef(digest="ab" * 32, size=100, kind="json")
        for first in range(0, _CHECKPOINTS, 1000):
            taken = [
                CheckpointTaken(checkpoint_id=f"{at:032x}", files=files, taken_by="rule", label=f"every {at}")
                for at in range(first, first + 1000)
            ]
            drafts = [Draft(event) for event in taken]
            ledger.store.append({"long": drafts}, stamp=lambda: "2026-01-01T00:00:00Z")
        first_ms = _ms(lambda: list_checkpoints(ledger, "long"))
        with closing(sqlite3.connect(next(Path(folder, "views").glob("checkpoints-*.sqlite")))) as bare:
            ours, theirs, ratio = interleaved(
                lambda: _ms(lambda: list_checkpoints(ledger, "long")),
                lambda: _ms(lambda: bare.execute(SELECT, ("long",)).fetchall()),
            )
        yield Result(
            f"list {_CHECKPOINTS:,} checkpoints, against the bare SQL query for the same rows",
            f"{ours:.0f} ms, {ratio:.1f}x ({theirs:.0f} ms)",
            "< 200 ms",
            ours < 200,
        )
        yield Result("the same, the index made from the records", f"{first_ms:.0f} ms", "-", None)


def _ms(work: object) -> float:
    assert callable(work)
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
