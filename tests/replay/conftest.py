"""A ledger of the test's own, and a writer of its session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.home import Ledger

from .histories import Writer, fresh_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger of the test's own, with a clock that counts."""
    with fresh_ledger(tmp_path) as opened:
        yield opened


@pytest.fixture
def writer(ledger: Ledger) -> Writer:
    """Writes to its session."""
    return Writer(ledger)
