"""What the intake promises whatever the importer does."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.errors import InputError
from ledger.events import Draft, Source
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from ledger.importers import Desk, Item, Sniff, _intake
from ledger.importers._files import in_one_order
from ledger.importers._intake import import_paths
from ledger.store import verify


def _read(path: Path, desk: Desk) -> Iterator[Item]:
    source = Source("faulty", desk.file)
    yield Item(path.stem, "start", [Draft(SessionStarted(harness="h"), source=source)], line=1)
    if path.stem == "bad":
        raise ZeroDivisionError("a fault of the importer's own")


def _recognizes(sniff: Sniff) -> bool:
    return sniff.path.suffix == ".faulty"


FAULTY: Any = SimpleNamespace(
    FORMAT="faulty", TITLE="t", GRADE="semantic", CANNOT_SHOW=("much",), recognizes=_recognizes, read=_read
)


def test_a_fault_of_an_importer_ends_its_file_and_no_other(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_intake, "discover", lambda: {"faulty": FAULTY})
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("bad.faulty", "good.faulty"):
        (folder / name).write_bytes(b"x")
    with pytest.raises(ZeroDivisionError):
        import_paths(ledger.recorder, [folder])
    report = import_paths(ledger.recorder, [folder], survive=True).as_json()
    bad, good = report["files"]
    assert bad["format"] is None
    assert "ZeroDivisionError" in bad["reason"]
    assert good["sessions"] == ["good"]
    assert verify(ledger.store).ok


def test_the_command_takes_files_in_one_order_however_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/one", "a/two", "b/three"):
        path = Path(f"{name}.jsonl")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    url = "postgresql://here/langgraph"
    for asked in (
        ["a", "b", url],
        [url, "b", "a/two.jsonl", "a", "b"],
        [f"{tmp_path}/b/three.jsonl", url, "a/two.jsonl", f"{tmp_path}/a/one.jsonl"],
    ):
        *files, last = in_one_order(asked)
        assert [Path(file).stem for file in files] == ["one", "two", "three"]
        assert last == url
    with pytest.raises(InputError, match="none does not exist"):
        in_one_order(["a", "none"])
