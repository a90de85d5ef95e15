"""What the tests of importers share: a fresh ledger whose clock counts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.home import Ledger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path, clock: Callable[[], str]) -> Iterator[Ledger]:
    """A ledger of its own for each test, under `home` in the test's folder."""
    with open_ledger(tmp_path / "home", clock=clock) as opened:
        yield opened
