"""Files that `sql --output` writes: whole or not at all."""

from pathlib import Path

import pyarrow.parquet as pq

from tests.commands import record_session, run


def test_an_answer_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    record_session(tmp_path)
    file = tmp_path / "rows.parquet"
    good = run(
        tmp_path, "sql", "select seq from events order by seq", "--format", "parquet", "--output", file
    )
    assert good.exit_code == 0
    before = file.read_bytes()
    late = "select 1 / (1 - range // 2000000) as n, cast('x' || n as integer) from range(3000000)"
    bad = run(tmp_path, "sql", late, "--format", "parquet", "--output", file, "--limit", 0)
    assert bad.exit_code == 2
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    cut = run(tmp_path, "sql", "from range(9)", "--format", "parquet", "--output", file, "--limit", 4)
    assert cut.exit_code == 1
    assert pq.read_metadata(file).metadata[b"truncated"] == b"true"
    assert pq.read_table(file).num_rows == 4


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    record_session(tmp_path)
    wrong = run(tmp_path, "sql", "select 1", "--format", "arrow", "--output", tmp_path / "no" / "rows.arrow")
    assert (wrong.exit_code, "cannot be written" in wrong.stderr) == (2, True)
