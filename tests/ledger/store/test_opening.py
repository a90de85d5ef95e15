"""Opening: what is no ledger is refused with its reason; processes that start at once make one ledger."""

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from ledger.errors import InputError, StoreUnavailableError
from ledger.store import EventStore, open_store, verify
from tests.ledger.store.cut_wire import CutWire
from tests.ledger.store.databases import Database, stamp, started
from tests.postgres import drop_database


def test_a_ledger_keeps_its_salt_and_its_records(database: Database) -> None:
    with open_store(database.url) as store:
        salt = store.salt
        kept = store.append({"a": [started("1")]}, stamp=stamp)
    with open_store(database.url) as store:
        assert len(salt) == 32
        assert store.salt == salt
        assert list(store.read_all()) == kept


def test_a_closed_store_stays_closed(database: Database) -> None:
    store = open_store(database.url)
    (record,) = store.append({"a": [started("1")]}, stamp=stamp)
    reading = store.read("a")
    store.close()
    store.close()
    for use in (
        lambda: store.append({"a": [started("2")]}, stamp=stamp),
        lambda: store.append({"a": [started("2")]}, stamp=stamp, expect={"a": 1}),
        lambda: next(reading),
        lambda: next(store.read_all()),
        lambda: store.record("a", 1),
        lambda: store.head("a"),
        lambda: store.content("00" * 32),
        lambda: store.resolve("a"),
        lambda: next(store.follow()),
    ):
        with pytest.raises(StoreUnavailableError, match="the store is closed"):
            use()
    with open_store(database.url) as again:
        assert list(again.read_all()) == [record]


def test_an_append_that_loses_the_race_against_the_close_is_refused(database: Database) -> None:
    store = open_store(database.url)
    begun, appended = threading.Event(), 0

    def append() -> None:
        nonlocal appended
        with contextlib.suppress(StoreUnavailableError):
            while True:
                store.append({"a": [started("1")]}, stamp=stamp)
                appended += 1
                begun.set()

    thread = threading.Thread(target=append)
    thread.start()
    assert begun.wait(120)
    store.close()
    thread.join(120)
    assert not thread.is_alive()
    with open_store(database.url) as again:
        assert again.last_position() == appended
        assert verify(again).ok


def test_a_newer_schema_is_refused(store: EventStore, database: Database) -> None:
    database.execute("update ledger_meta set value = ? where name = 'schema'", (b"2",))
    with pytest.raises(InputError, match="the store has schema 2, this version reads 1"):
        open_store(database.url)


def test_processes_that_open_an_empty_database_at_once_make_one_ledger(database: Database) -> None:
    program = (
        "import sys; from ledger.store import open_store\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with open_store(sys.argv[1]) as store: print(store.salt.hex())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, database.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    salts = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert len(set(salts)) == 1


@pytest.mark.parametrize("url", ["ledger.sqlite", "mysql://host/x", "sqlite://relative", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="expected sqlite:///PATH or postgresql://"):
        open_store(url)


def test_sqlite_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("this is not a database, and long enough to be read as the head of one" * 20)
    for path in (text, tmp_path, text / "below" / "ledger.sqlite"):
        with pytest.raises(StoreUnavailableError, match=str(path.parent)):
            open_store(f"sqlite:///{path}")
    assert text.read_text().startswith("this is not")


def test_sqlite_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (a)")
        connection.commit()
    with pytest.raises(StoreUnavailableError, match="found other tables"):
        open_store(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("theirs",)]


def test_sqlite_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "a b%20ü?#&'.sqlite"
    with open_store(f"sqlite:///{path}") as store:
        store.append({"a": [started("1")]}, stamp=stamp)
    assert path.is_file()


def test_postgresql_what_is_no_ledger_is_refused(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("create table stored_events (somebody_elses integer)")
    with pytest.raises(StoreUnavailableError, match='"stored_events" already exists'):
        open_store(postgres_database)


def test_postgresql_a_server_that_is_not_there_is_an_error_without_the_password() -> None:
    with pytest.raises(StoreUnavailableError, match="refused") as caught:
        open_store("postgresql://somebody:open-sesame@127.0.0.1:1/ledger?password=open-sesame")
    assert "open-sesame" not in str(caught.value)


def test_postgresql_another_encoding_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("drop database if exists loopledger_test_latin1")
        connection.execute(
            "create database loopledger_test_latin1 encoding 'LATIN1' locale 'C' template template0"
        )
    url = f"{postgres_url.rpartition('/')[0]}/loopledger_test_latin1"
    try:
        with pytest.raises(StoreUnavailableError, match="encoding LATIN1: a ledger needs UTF8"):
            open_store(url)
    finally:
        drop_database(url)


def test_postgresql_through_a_unix_socket(postgres_database: str) -> None:
    parts = urlsplit(postgres_database)
    assert parts.hostname is not None
    user = parts.netloc.rpartition("@")[0]
    with (
        tempfile.TemporaryDirectory(prefix="ledger", dir="/tmp") as folder,  # the name of a socket is short
        CutWire(parts.hostname, parts.port or 5432, path=f"{folder}/.s.PGSQL.5432"),
        open_store(f"postgresql://{user}@{parts.path}?host={folder}") as store,
    ):
        store.append({"a": [started("1")]}, stamp=stamp)
        assert store.last_position() == 1


def test_postgresql_several_ledgers_share_a_database_in_schemas_of_their_own(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("create schema one; create schema other")
    urls = [f"{postgres_database}?options=-csearch_path%3D{schema}" for schema in ("one", "other")]
    with open_store(urls[0]) as one, open_store(urls[1]) as other:
        one.append({"a": [started("1")]}, stamp=stamp)
        assert other.last_position() == 0
        assert one.salt != other.salt
