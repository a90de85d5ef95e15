"""What goes past the recorder is stopped and named, however it was imported; what is no outside input is not."""

import datetime
import logging
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime as imported_by_name
from pathlib import Path
from random import choice as imported_choice
from time import strftime as imported_strftime
from time import time as imported_time
from typing import Any

import pytest

from replay.inprocess.frozen import Frozen, FrozenError, thawed

READERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "time.time": ("clock", time.time),
    "time.time, imported by name": ("clock", imported_time),
    "time.monotonic": ("clock", time.monotonic),
    "time.perf_counter_ns": ("clock", time.perf_counter_ns),
    "time.strftime": ("clock", lambda: time.strftime("%Y-%m-%d")),
    "time.strftime, imported by name": ("clock", lambda: imported_strftime("%Y-%m-%d")),
    "time.localtime": ("clock", time.localtime),
    "datetime.now": ("clock", lambda: datetime.datetime.now(datetime.UTC)),
    "datetime.now, imported by name": ("clock", imported_by_name.now),
    "date.today": ("clock", datetime.date.today),
    "random.random": ("random", random.random),
    "random.choice": ("random", lambda: random.choice([1, 2])),
    "random.choice, imported by name": ("random", lambda: imported_choice([1, 2])),
    "random.Random without a seed": ("random", lambda: random.Random().random()),
    "os.urandom": ("random", lambda: os.urandom(4)),
    "secrets": ("random", lambda: secrets.token_hex(4)),
    "uuid4": ("random", uuid.uuid4),
    "uuid1": ("clock", uuid.uuid1),
}


def stopped(act: Callable[[], Any], **options: Any) -> FrozenError:
    """The error with which an act is stopped."""
    told: list[FrozenError] = []
    with Frozen(told.append, **options), pytest.raises(FrozenError) as caught:
        act()
    assert told == [caught.value]
    return caught.value


@pytest.mark.parametrize("name", READERS)
def test_a_clock_or_randomness_is_stopped_and_named(name: str) -> None:
    kind, read = READERS[name]

    def agent() -> None:
        read()

    error = stopped(agent)
    assert error.kind in (kind, "random")  # uuid1 may read either first
    assert Path(__file__).name in error.where


def test_the_place_is_that_of_the_loop_not_of_the_library() -> None:
    def agent() -> None:
        uuid.uuid4()

    line = agent.__code__.co_firstlineno + 1
    assert stopped(agent).where == f"{agent.__code__.co_filename}:{line}"


def test_a_connection_is_stopped_before_it_leaves() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def agent() -> None:
            with socket.socket() as client:
                client.connect(address)

        error = stopped(agent)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert error.kind == "network"
    assert "socket.connect" in error.what


def test_a_name_is_not_even_looked_up() -> None:
    assert stopped(lambda: socket.getaddrinfo("localhost", 80)).kind == "network"


def test_a_process_is_not_started(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    error = stopped(lambda: subprocess.run(["touch", str(mark)], check=True))
    assert error.kind in ("process", "file")
    assert not mark.exists()
    assert stopped(lambda: os.system("true")).kind == "process"  # noqa: S605


@pytest.mark.parametrize("mode", ["w", "a", "x", "r+"])
def test_a_file_is_not_written(tmp_path: Path, mode: str) -> None:
    counter = tmp_path / "counter"
    counter.write_text("1")

    def agent() -> None:
        with counter.open(mode) as file:
            file.write("2")

    assert stopped(agent).kind == "file"
    assert counter.read_text() == "1"
    assert stopped(counter.unlink).kind == "file"
    assert counter.exists()


def test_what_is_no_outside_input_passes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[FrozenError] = []
    seeded = random.Random(42)
    with Frozen(told.append), caplog.at_level(logging.INFO):
        logging.getLogger("agent").info("a log line has a time of its own")
        assert seeded.random() == random.Random(42).random()
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        assert datetime.datetime.fromtimestamp(0, datetime.UTC).year == 1970
        assert Path(__file__).read_text(encoding="utf-8")
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            nowhere.write("x")
        threading.Event().wait(0.001)
    assert told == []


def test_what_is_allowed_by_name_passes() -> None:
    told: list[FrozenError] = []
    with Frozen(told.append, allow=["time.monotonic"]):
        time.monotonic()
    with Frozen(told.append, allow=[__name__]):
        time.time()
        random.random()
    with Frozen(told.append), thawed():
        time.time()
    assert told == []


def test_threads_that_the_loop_starts_are_watched_too() -> None:
    told: list[FrozenError] = []

    def work() -> None:
        with pytest.raises(FrozenError):
            time.time()

    with Frozen(told.append):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [error.kind for error in told] == ["clock"]


def test_after_it_everything_is_as_before() -> None:
    profile = sys.getprofile()
    with Frozen(lambda _: None):
        assert sys.dont_write_bytecode
    assert sys.getprofile() is profile
    time.time()
    random.random()
