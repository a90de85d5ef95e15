"""A ledger with the real clock, and a world of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.home import Ledger, open_ledger
from tests.replay.inprocess.agents import World


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger with the real clock."""
    with open_ledger(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the test's own."""
    return World(tmp_path)
