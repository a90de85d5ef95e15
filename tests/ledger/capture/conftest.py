"""A ledger of the test's own, and models and tools that stand for a user's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.home import Ledger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str], ids: Callable[[], str]) -> Iterator[Ledger]:
    """An empty ledger, with a clock and ids that count."""
    with open_ledger(tmp_path / "home", clock=clock, ids=ids) as opened:
        yield opened
