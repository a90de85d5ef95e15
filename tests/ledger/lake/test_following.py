"""A lake that follows its ledger while `serve` runs."""

import time
from pathlib import Path

import pytest

from ledger.home import open_ledger
from ledger.lake import Lake
from ledger.views.lake import LakeFollower
from tests.commands import record_session, run
from tests.ledger.lake.feeds import assert_exactly_once
from tests.webui.served import served


def wait_for(lake: Lake, position: int) -> None:
    deadline = time.monotonic() + 120
    while not lake.manifest.exists() or lake.manifest.read().position < position:
        assert time.monotonic() < deadline, "the lake did not follow"
        time.sleep(0.02)


def test_what_is_recorded_comes_into_the_lake_by_itself(tmp_path: Path) -> None:
    record_session(tmp_path, "one")
    with open_ledger(tmp_path) as ledger, LakeFollower(ledger.store, tmp_path / "lake", pause_s=0.01):
        lake = Lake(tmp_path / "lake")
        wait_for(lake, ledger.store.last_position())
        record_session(tmp_path, "two")  # by a connection of its own, as another process would
        wait_for(lake, ledger.store.last_position())
    assert assert_exactly_once(lake) > 0


def test_the_end_of_the_follower_takes_in_what_is_left(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        with LakeFollower(ledger.store, tmp_path / "lake", pause_s=3600):
            record_session(tmp_path)
        assert assert_exactly_once(Lake(tmp_path / "lake")) == ledger.store.last_position() > 0


def test_a_lake_in_the_way_is_told_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "lake").write_text("a file")
    with open_ledger(tmp_path) as ledger, LakeFollower(ledger.store, tmp_path / "lake", pause_s=3600):
        record_session(tmp_path)
    assert "the lake was not brought up to the ledger" in caplog.text


def test_a_session_imported_while_serve_runs_is_in_the_lake(tmp_path: Path) -> None:
    with served(tmp_path, "--lake"):
        record_session(tmp_path)
        with open_ledger(tmp_path) as ledger:
            position = ledger.store.last_position()
        wait_for(Lake(tmp_path / "lake"), position)
    rows = run(tmp_path, "sql", "select session from sessions", "--lake", tmp_path, "--format", "csv")
    assert rows.stdout.splitlines() == ["session", "live-1"]
