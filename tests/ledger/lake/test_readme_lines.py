"""The lines that README shows for a copy of a lake, run as they stand there, elsewhere and without this program."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ledger.lake import Lake, connect
from ledger.lake.connection import tables
from tests.commands import run
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.ledger.lake.golden import COUNT, FOLDER

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
_CHECK = """
import sys
rows = int(sys.argv[1])
assert "ledger" not in sys.modules
assert in_duckdb.aggregate("count(*)").fetchall() == [(rows,)]
assert in_polars.select(polars.len()).collect().item() == rows
assert len(in_pandas) == rows and in_pandas["position"].is_unique
assert set(in_duckdb.columns) == set(in_pandas.columns) >= {"session", "seq", "type", "payload"}
assert in_polars.filter(polars.col("tool").is_not_null()).collect().height == in_pandas["tool"].notna().sum() > 0
"""

_TABLES = """
import json, sys
assert "ledger" not in sys.modules
counts = {}
for name in json.loads(sys.argv[1]):
    counts[name] = in_duckdb.execute(f"select count(*), count(distinct cast(t as varchar)) from {name} as t").fetchone()
counts["events_on"] = in_duckdb.execute("select count(*), 1 from events_on('session-0')").fetchone()
print(json.dumps(counts))
"""


def block(language: str, after: str) -> str:
    """The first code block of a language that follows a text of README."""
    found = re.search(rf"{re.escape(after)}.*?```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A lake with files of two schema versions, copied elsewhere."""
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    shutil.copytree(FOLDER / "v1", made)
    rows = golden_rows(COUNT)
    late = [row._replace(position=COUNT + place, seq=COUNT + place) for place, row in enumerate(rows[:60], 1)]
    lake = Lake(made)
    lake.export(feed_of([*rows, *late]), most_rows=20)
    assert {file.schema for file in lake.manifest.read().files.values()} == {1, 2}
    elsewhere.mkdir()
    shutil.move(made, elsewhere / "lake")
    return elsewhere


def test_duckdb_polars_and_pandas_open_a_copy_by_the_lines_of_the_readme(copied: Path) -> None:
    code = block("python", "with DuckDB, Polars or pandas alone:") + _CHECK
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(COUNT + 60)],
        cwd=copied,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_duckdb_opens_a_copy_by_the_sql_of_the_readme(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copied)
    with duckdb.connect() as connection:
        rows = connection.execute(block("sql", "Without this program")).fetchall()
    assert sum(count for _, count in rows) == COUNT + 60


def test_duckdb_alone_has_all_tables_of_a_copy_by_the_file_that_is_printed(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied / "lake"
    (lake / "tables.sql").write_text(run(copied, "queries", "--tables").stdout, encoding="utf-8")
    code = "import duckdb\n" + block("python", "writes them down;") + _TABLES
    names = ["events", *(table.name for table in tables())]
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, json.dumps(names)],
        cwd=copied,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(copied)
    with connect(lake) as ours:
        counts = {
            name: ours.execute(
                f"select count(*), count(distinct cast(t as varchar)) from {name} as t"
            ).fetchone()
            for name in names
        }
        counts["events_on"] = ours.execute("select count(*), 1 from events_on('session-0')").fetchone()
    assert json.loads(done.stdout) == {name: list(row or ()) for name, row in counts.items()}
