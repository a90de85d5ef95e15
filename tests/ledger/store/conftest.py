"""An empty ledger on each database. What is true of one must be true of the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.store import EventStore, open_store
from tests.ledger.store.databases import Database
from tests.postgres import drop_database, fresh_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database, without tables yet: once SQLite, once PostgreSQL."""
    if request.param == "sqlite":
        yield Database(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
        return
    url = fresh_database(request.getfixturevalue("postgres_url"))
    yield Database(url)
    drop_database(url)


@pytest.fixture
def store(database: Database) -> Iterator[EventStore]:
    """An empty ledger."""
    with open_store(database.url) as opened:
        yield opened
