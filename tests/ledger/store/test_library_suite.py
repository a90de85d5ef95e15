"""The suite that the library ships for its recorders, run on both of ours: text ids, sessions from seq 1."""

from collections.abc import Callable, Iterator
from typing import cast
from uuid import uuid4

import pytest
from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.tests import persistence

from ledger.store import open_store
from tests.ledger.store.databases import Database

_CASES = [
    name
    for name in dir(persistence.ApplicationRecorderTestCase)
    # `optional_…` are those of recorders that can subscribe, as ours can. Nothing here judges speed.
    if name.startswith(("test_", "optional_test_")) and name != "test_performance"
]


class _Suite(persistence.ApplicationRecorderTestCase[ApplicationRecorder]):
    __test__ = False  # its cases are run below, once for each database

    open_recorder: Callable[[], ApplicationRecorder]

    def new_originator_id(self) -> str:
        return f"session-{uuid4()}"

    def create_recorder(self) -> ApplicationRecorder:
        return self.open_recorder()


@pytest.fixture
def open_recorder(database: Database) -> Iterator[Callable[[], ApplicationRecorder]]:
    """Opens the recorder of an empty ledger."""
    stores = []

    def opens() -> ApplicationRecorder:
        stores.append(open_store(database.url))
        return cast("ApplicationRecorder", stores[-1].recorder)

    yield opens
    for store in stores:
        store.close()


def test_the_suite_has_the_cases_that_it_had() -> None:
    assert len(_CASES) >= 4


@pytest.mark.parametrize("case", _CASES)
def test_library(case: str, open_recorder: Callable[[], ApplicationRecorder]) -> None:
    suite = _Suite(case)
    suite.open_recorder = open_recorder
    suite.setUp()
    getattr(suite, case)()
    suite.tearDown()
