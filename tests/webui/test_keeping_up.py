"""The process beside a server: keeps lists, index and lake up, is replaced when it dies, ends with the server."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.lake.connection import connect
from tests.webui.site import PLAIN, Site, fill_plain, site
from webui.settings import WebSettings

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for children in /proc")


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found.update(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


def waited(until: Callable[[], bool], within_s: float = 400) -> bool:
    """Whether something came true in time."""
    deadline = time.monotonic() + within_s
    while not until():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _shown(made: Site, session: str) -> bool:
    answer = made.client().get(f"/api/v1/sessions/{session}/events")
    return answer.status_code == 200 and answer.json()["total"] == made.ledger.store.head(session).seq


def test_lists_index_and_lake_follow_what_is_recorded(tmp_path: Path) -> None:
    with site(tmp_path, lake=False, settings=WebSettings(lake=True)) as made, made.client() as client:
        fill_plain(made.ledger, "later-0001", turns=3)
        assert waited(lambda: _shown(made, "later-0001"))
        found = {"q": "shelf", "session": "later-0001"}
        assert waited(lambda: len(client.get("/api/v1/search", params=found).json()["lines"]) == 3)
        count = "select count(*) from events where session = 'later-0001'"

        def is_there() -> bool:
            if not (tmp_path / "lake" / "_manifest").is_dir():
                return False
            with connect(tmp_path) as lake:
                return lake.execute(count).fetchone() == (made.ledger.store.head("later-0001").seq,)

        assert waited(is_there)


def test_one_that_dies_is_replaced_and_the_last_ends_with_the_server(tmp_path: Path) -> None:
    before = children()
    with site(tmp_path, lake=False, catches_up=True) as made, made.client():
        assert waited(lambda: _shown(made, PLAIN))
        (first,) = children() - before
        os.kill(first, signal.SIGKILL)
        fill_plain(made.ledger, "later-0001", turns=1)
        assert waited(lambda: _shown(made, "later-0001"))
        assert children() - before != {first}
    assert children() <= before
