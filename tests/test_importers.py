"""Every importer against its fixtures: the report and the events that each case promises, once and no more."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.home import open_ledger
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, case_folders, import_case, promise, trace_files

CASES = case_folders()
NAMES = [str(case.relative_to(FIXTURES)) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_case_gives_the_report_and_the_events_that_it_promises(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    found = promise(case, tmp_path / "home")
    for file, counts in expected["files"].items():
        assert {name: found["files"][file][name] for name in counts} == counts, file
    assert found["files"].keys() == expected["files"].keys()
    assert found["events"] == expected["events"]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_second_import_adds_nothing_and_the_ledger_verifies(
    case: Path, tmp_path: Path, clock: Callable[[], str]
) -> None:
    with open_ledger(tmp_path / "home", clock=clock) as ledger:
        assert import_case(ledger, case).records_added > 0
        head = ledger.store.last_position()
        assert import_case(ledger, case).records_added == 0
        assert ledger.store.last_position() == head
        assert verify(ledger.store).problems == []


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_case_is_small_enough_to_be_read(case: Path) -> None:
    assert sum(path.stat().st_size for path in trace_files(case)) < 90_000
