"""A small part of the fuzzing of importers, with fixed numbers; `make fuzz` goes on where it ends."""

from pathlib import Path

import pytest

from ledger.importers import discover
from tests.ledger.importers import fuzzing
from tests.ledger.importers.fixtures import FIXTURES

FIRST, LAST, STEP = 0, 240, 20


@pytest.mark.parametrize("first", range(FIRST, LAST, STEP))
def test_damaged_files_end_in_a_report_that_adds_up(first: int, tmp_path: Path) -> None:
    for number in range(first, first + STEP):
        try:
            fuzzing.attempt(number, tmp_path / str(number))
        except Exception as error:
            error.add_note(
                f"attempt {number}; again: python -m tests.ledger.importers.fuzzing --first {number} --count 1"
            )
            raise


def test_files_of_every_importer_are_damaged() -> None:
    sources = {path.relative_to(FIXTURES).parts[0] for path in fuzzing.files()}
    assert sources == set(discover())
