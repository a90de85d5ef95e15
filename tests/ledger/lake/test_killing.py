"""Whatever moment the exporter dies at, the lake has every record exactly once."""

import os
import subprocess
import sys
from pathlib import Path

from ledger.lake import Lake
from tests.ledger.lake.feeds import assert_exactly_once, feed_of, files_on_disk, golden_rows

KILLS = os.environ.get("LAKE_KILLS", "25")
SEED = os.environ.get("LAKE_SEED", "1")


def test_every_record_is_there_once_after_any_kill(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.ledger.lake.killing", str(tmp_path), SEED, KILLS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700, check=False)
    assert done.returncode == 0, done.stderr
    lake = Lake(tmp_path)
    position = assert_exactly_once(lake)
    assert lake.export(feed_of(golden_rows(position + 10))).events == 10
    lake.clear(grace_s=0)
    assert assert_exactly_once(lake) == position + 10
    assert files_on_disk(tmp_path) == set(lake.manifest.read().files)
    assert list(lake.manifest.scratch.iterdir()) == []
