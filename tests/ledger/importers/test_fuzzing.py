"""A small part of the fuzzing of importers, with fixed numbers; `make fuzz` goes on where it ends."""

from pathlib import Path

import pytest

from ledger.home import open_ledger
from ledger.importers import discover
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers import fuzzing
from tests.ledger.importers.fixtures import FIXTURES

FIRST, LAST, STEP = 0, 120, 20


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


@pytest.mark.parametrize("levels", [150, 190, 210, 300, 900, 990, 1100, 20_000])
def test_a_conversation_that_opens_with_a_deep_value_is_imported_once(levels: int, tmp_path: Path) -> None:
    """Its session is named after its opening: by the same name, however deep the caller stands."""
    trace = tmp_path / "chat.jsonl"
    deep = '{"a":' * levels + "1" + "}" * levels
    said = [f'{{"role":"user","content":"hi","more":{deep}}}', '{"role":"assistant","content":"hello"}']
    trace.write_text(f'{{"messages":[{",".join(said)}]}}\n')

    def import_it(frames: int = 0) -> int:
        if frames:
            return import_it(frames - 1)
        return import_paths(ledger.recorder, [trace]).records_added

    with open_ledger(tmp_path / "home") as ledger:
        assert import_it() > 0
        assert import_it(frames=300) == 0
        assert verify(ledger.store).ok


def test_files_of_every_importer_are_damaged() -> None:
    sources = {path.relative_to(FIXTURES).parts[0] for path in fuzzing.files()}
    assert sources == set(discover())
