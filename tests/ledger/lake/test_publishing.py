"""A lake published as Delta and Iceberg: the same files, the same rows, whatever was merged, erased or done at once."""

import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ledger.errors import InputError
from ledger.lake import Lake
from ledger.lake.columns import SCHEMA
from ledger.lake.publish import FORMATS, publish
from ledger.lake.publish.iceberg import TABLE, catalogue
from tests.commands import answer, record_session, run
from tests.ledger.lake.feeds import feed_of, files_on_disk, golden_rows
from tests.ledger.lake.golden import COUNT, FOLDER


def in_delta(lake: Lake) -> pa.Table:
    return pa.table(DeltaTable(str(lake.folder)).to_pyarrow_table())


def in_iceberg(lake: Lake) -> pa.Table:
    with closing(catalogue(lake.folder.resolve())) as opened:
        return opened.load_table(TABLE).scan().to_arrow()


READERS: dict[str, Callable[[Lake], pa.Table]] = {"delta": in_delta, "iceberg": in_iceberg}


def assert_shown(lake: Lake, name: str, rows: int) -> None:
    table = READERS[name](lake)
    assert sorted(table["position"].to_pylist()) == list(range(1, rows + 1))
    assert set(SCHEMA.names) <= set(table.column_names)


@pytest.mark.parametrize("name", FORMATS)
def test_a_published_lake_has_the_same_rows_and_no_copies(tmp_path: Path, name: str) -> None:
    rows, lake = golden_rows(900), Lake(tmp_path / "lake")
    lake.export(feed_of(rows[:300]), most_rows=50)
    publish(lake, name)
    assert_shown(lake, name, 300)
    lake.export(feed_of(rows), most_rows=100)
    lake.compact(many=2)
    lake.clear(grace_s=0, now=lambda: 1e12)
    publish(lake, name)
    assert_shown(lake, name, 900)
    before = {path.name for path in lake.folder.rglob("*.json")}
    publish(lake, name)
    assert {path.name for path in lake.folder.rglob("*.json")} == before, "nothing new, no new transaction"
    assert {path for path in files_on_disk(lake.folder) if not path.startswith("_")} == set(
        lake.manifest.read().files
    )


@pytest.mark.parametrize("name", FORMATS)
def test_a_lake_of_an_earlier_version_is_published_and_goes_on(tmp_path: Path, name: str) -> None:
    shutil.copytree(FOLDER / "v1", tmp_path / "lake")
    lake = Lake(tmp_path / "lake")
    publish(lake, name)
    assert_shown(lake, name, COUNT)
    rows = golden_rows(COUNT)
    lake.export(feed_of([*rows, *(row._replace(position=row.position + COUNT) for row in rows)]))
    publish(lake, name)
    assert_shown(lake, name, 2 * COUNT)
    table = READERS[name](lake)
    assert set(table["runs_again"].to_pylist()) >= {False, None}


@pytest.mark.parametrize("name", FORMATS)
def test_of_several_that_publish_at_once_nothing_is_doubled(tmp_path: Path, name: str) -> None:
    rows, lake = golden_rows(600), Lake(tmp_path / "lake")
    lake.export(feed_of(rows[:100]))
    publish(lake, name)
    gate = threading.Barrier(3)
    failed: list[Exception] = []

    def both(upto: int) -> None:
        gate.wait()
        try:
            own = Lake(lake.folder)
            own.export(feed_of(rows[:upto]), most_rows=30)
            publish(own, name)
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=both, args=(upto,)) for upto in (250, 400, 600)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:  # a lake that is further on is another history to who knows less of it
        assert isinstance(error, InputError)
    publish(lake, name)
    assert_shown(lake, name, lake.manifest.read().position)


def test_export_publishes_when_asked(tmp_path: Path) -> None:
    record_session(tmp_path)
    report = answer(tmp_path, "export", "--as", "delta", "--as", "iceberg")
    assert set(report["published"]) == {"delta", "iceberg"}
    lake = Lake(tmp_path / "lake")
    for name in FORMATS:
        assert_shown(lake, name, report["position"])
    wrong = run(tmp_path, "export", "--as", "parchment")
    assert (wrong.exit_code, "expected one of delta, iceberg" in wrong.stderr) == (2, True)


def test_a_format_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "delta", "no_such_library")
    with pytest.raises(InputError, match=r"pip install 'loopledger\[delta\]'"):
        publish(Lake(tmp_path), "delta")
