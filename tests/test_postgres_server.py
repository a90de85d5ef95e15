"""The PostgreSQL server that other tests stand on: real, private, and gone without a trace."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests import postgres


def test_the_server_is_a_supported_postgresql_with_its_durable_defaults(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        (version,) = connection.execute("select version()").fetchone() or ("",)
        assert version.startswith("PostgreSQL ")
        assert connection.info.server_version >= 140_000
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"show {setting}").fetchone() == ("on",)


def test_a_fresh_database_is_empty_and_apart_from_others(postgres_url: str) -> None:
    one, other = postgres.fresh_database(postgres_url), postgres.fresh_database(postgres_url)
    try:
        with psycopg.connect(one) as connection:
            connection.execute("create table kept (number integer)")
        with psycopg.connect(other) as connection:
            assert connection.execute("select to_regclass('kept')").fetchone() == (None,)
    finally:
        postgres.drop_database(one)
        postgres.drop_database(other)


def test_a_database_is_dropped_under_an_open_connection(postgres_url: str) -> None:
    url = postgres.fresh_database(postgres_url)
    with psycopg.connect(url) as connection:
        postgres.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_only_databases_made_here_are_dropped(postgres_url: str) -> None:
    with pytest.raises(AssertionError, match="was not made by fresh_database"):
        postgres.drop_database(postgres_url)


def test_a_named_server_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(postgres.SERVER_VARIABLE, "postgresql://somebody@127.0.0.1/somewhere")
    with postgres.running_server() as url:
        assert url == "postgresql://somebody@127.0.0.1/somewhere"


def test_a_killed_run_leaves_no_server_and_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(postgres.SERVER_VARIABLE, raising=False)
    program = (
        "import signal\n"
        "from tests.postgres import running_server\n"
        "with running_server() as url:\n"
        "    print(url, flush=True)\n"
        "    signal.pause()\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert run.stdout is not None
    url = run.stdout.readline().strip()
    with psycopg.connect(url) as connection:
        (data,) = connection.execute("show data_directory").fetchone() or ("",)
    folder = Path(data).parent
    assert folder.name.startswith("loopledger-postgres-")

    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()

    deadline = time.monotonic() + 120
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)
