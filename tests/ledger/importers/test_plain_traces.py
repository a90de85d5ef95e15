"""Plain traces as they lie about: cut, out of shape, hostile, real. No exception, nothing lost, nothing twice."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events.canonical import decode_json
from ledger.home import Ledger, open_ledger
from ledger.importers import discover
from ledger.importers._files import find_files, sniff
from ledger.importers._intake import import_paths
from ledger.store import verify
from tests.ledger.importers.fixtures import FIXTURES, case_folders, trace_files
from tests.ledger.importers.plain_traces import TRACES, imported, misshapen, shared
from tests.ledger.importers.remake_plain import PLAIN

FILES = [path for name in PLAIN for case in case_folders(name) for path in trace_files(case)]
NAMES = [str(path.relative_to(FIXTURES)) for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_file_cut_anywhere_is_read_up_to_the_cut(path: Path, ledger: Ledger, tmp_path: Path) -> None:
    whole = path.read_bytes()
    format_name = next(name for name, one in discover().items() if one.recognizes(sniff(path)))
    for part in (1, 3, 5, 7):
        cut = tmp_path / f"cut-{part}{path.suffix}"
        cut.write_bytes(whole[: len(whole) * part // 8])
        report = imported(ledger, cut, format_name=format_name)
        assert report["lines"] or report["quarantined"], part
    assert verify(ledger.store).problems == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_packed_file_gives_the_same_counts(path: Path, ledger: Ledger, tmp_path: Path) -> None:
    packed = tmp_path / path.name
    packed.write_bytes(gzip.compress(path.read_bytes()))
    counts = ("format", "lines", "model_calls", "tool_calls", "tool_results", "tokens", "quarantined")
    found, wanted = imported(ledger, packed), imported(ledger, path)
    assert {name: found[name] for name in counts} == {name: wanted[name] for name in counts}


def _parsed(path: Path) -> tuple[Any, bool] | None:
    text = path.read_bytes()
    try:
        return decode_json(text), False
    except ValueError:
        pass
    try:
        return [decode_json(line) for line in text.splitlines() if line.strip()], True
    except ValueError:
        return None


SHAPED = [path for path in FILES if _parsed(path) is not None]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("format_name", PLAIN)
def test_wrong_types_anywhere_never_stop_an_import(
    format_name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = [path for path in SHAPED if FIXTURES / format_name in path.parents]
    if not files:
        pytest.skip("no fixture of this format is JSON")
    path = data.draw(st.sampled_from(files))
    parsed = _parsed(path)
    assert parsed is not None
    value, is_lines = parsed
    value = data.draw(misshapen(value))
    folder = tmp_path_factory.mktemp("odd")
    odd = folder / path.name
    text = "\n".join(json.dumps(one) for one in value) if is_lines else json.dumps(value)
    odd.write_text(text, encoding="utf-8", errors="surrogatepass")
    with open_ledger(folder / "home") as ledger:
        report = import_paths(ledger.recorder, [odd], format_name=format_name)
        assert report.files[0]["format"] == format_name
        assert "reason" not in report.files[0]
        assert verify(ledger.store).problems == []


def test_every_real_trace_is_recognised_by_one_importer_at_most() -> None:
    shared("wild")
    importers = discover()
    for path in find_files([TRACES]):
        facts = sniff(path)
        found = [name for name, importer in importers.items() if importer.recognizes(facts)]
        assert len(found) <= 1, (path, found)


@pytest.mark.parametrize("format_name", PLAIN)
def test_every_real_trace_is_read_to_its_end_and_once(format_name: str, ledger: Ledger) -> None:
    shared("wild")
    importer = discover()[format_name]
    found = [path for path in find_files([TRACES]) if importer.recognizes(sniff(path))]
    reports = import_paths(ledger.recorder, found).files
    assert [(one["path"], one["reason"]) for one in reports if "reason" in one] == []
    assert [one["path"] for one in reports if one["quarantined"]] == []
    assert import_paths(ledger.recorder, found).records_added == 0
    assert verify(ledger.store).problems == []
