"""Pages of long sessions: bytes, CPU, memory; what an import and an export at the same time cost a reader."""

import contextlib
import os
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from starlette.testclient import TestClient

from ledger.home import Ledger
from ledger.lake.connection import FOLDER
from tests.benchmarks.measure import Result
from tests.webui.long_session import LARGE, LONG, fill_large, fill_long
from tests.webui.site import Site, site
from webui.jobs import end_process, start_process

_SIZES = (100_000, 300_000)
_PLACES = 200
_MOST_KB = 40
_BESIDE = 30_000
_PAGES, _IN_TURN = 600, 40
_ROOT = Path(__file__).parent.parent.parent


def run() -> Iterator[Result]:
    """The lines of this part."""
    for events in _SIZES:
        with (
            tempfile.TemporaryDirectory() as folder,
            site(Path(folder), fill=partial(_fill, events=events)) as shop,
        ):
            started = time.process_time()
            client = shop.client()
            client.get(f"/sessions/{LONG}/events")
            each_us = (time.process_time() - started) / events * 1e6
            name = f"{events:,} events"
            yield Result(f"{name}: list made from nothing", f"{each_us:.0f} us CPU an event", "-", None)
            yield from _pages(shop, client, events, name)
            if events == _SIZES[0]:
                yield from _large(client)
    yield from _beside()


def _fill(ledger: Ledger, events: int) -> None:
    fill_long(ledger, events)
    if events == _SIZES[0]:
        fill_large(ledger)


def _pages(shop: Site, client: TestClient, events: int, name: str) -> Iterator[Result]:
    base = f"/sessions/{LONG}"
    loaded = _contents_loaded(shop, lambda: client.get(f"{base}/events"))
    size = len(client.get(f"{base}/events").content) / 1000
    yield Result(f"{name}: timeline page", f"{size:.1f} kB HTML", f"<= {_MOST_KB} kB", size <= _MOST_KB)
    yield Result(f"{name}: contents loaded for the first window", str(loaded), "0", loaded == 0)
    for what, path in (
        ("timeline page at the middle", f"{base}/events?at={events // 2}"),
        ("timeline page, filtered by level", f"{base}/events?level=high&at={events // 2}"),
        ("timeline page, filtered by text", f"{base}/events?q=shelf_3&at={events // 2}"),
        ("rows of one window", f"{base}/rows?from={events // 2 // 50 * 50 + 1}"),
        ("one event", f"{base}/events/{events // 2}"),
        ("state at the middle, again", f"{base}/state/{events // 2}"),
    ):
        client.get(path)
        cost, size = _cost(client, path)
        yield Result(
            f"{name}: {what}", f"{cost:.1f} ms CPU, {size:.1f} kB", f"<= {_MOST_KB} kB", size <= _MOST_KB
        )
    cost, _ = _cost(client, f"{base}/state/{events * 2 // 5}", 1)
    yield Result(f"{name}: state at a place where nobody was", f"{cost:.0f} ms CPU", "-", None)
    cost, _ = _cost(client, f"{base}/state/{events * 2 // 5 + 1}", 1)
    yield Result(f"{name}: state at the next record", f"{cost:.0f} ms CPU", "-", None)
    jumps = [_cost(client, f"{base}/events?at={place}", 1)[0] for place in range(1, events, events // 20)]
    spread = max(jumps) / statistics.median(jumps)
    yield Result(f"{name}: jump anywhere, slowest against median", f"{spread:.1f}x", "<= 3x", spread <= 3)
    before = _resident_mb()
    for place in range(1, events, events // _PLACES):
        client.get(f"{base}/rows?from={place}")
        client.get(f"{base}/events/{place}")
    grown = _resident_mb() - before
    yield Result(f"{name}: memory added by {_PLACES} places", f"{grown:.1f} MB", "<= 10 MB", grown <= 10)


def _large(client: TestClient) -> Iterator[Result]:
    path = f"/sessions/{LARGE}/events/5"
    client.get(path)
    cost, size = _cost(client, path)
    yield Result(
        "a 12 MB result, opened", f"{cost:.0f} ms CPU, {size:.1f} kB", f"<= {_MOST_KB} kB", size <= _MOST_KB
    )
    cost, size = _cost(client, f"/sessions/{LARGE}/events")
    yield Result("its timeline", f"{cost:.1f} ms CPU, {size:.1f} kB", f"<= {_MOST_KB} kB", size <= _MOST_KB)


def _beside() -> Iterator[Result]:
    """The page of a session while an export and an import run in other processes, and while both are stopped.

    The two take turns every few pages, so that what else the machine does falls upon both alike.
    """
    path = f"/sessions/{LONG}"
    with (
        tempfile.TemporaryDirectory() as folder,
        site(Path(folder), fill=partial(fill_long, events=_BESIDE), catches_up=True, lake=False) as shop,
        shop.client() as client,
    ):
        while client.get(f"/api/v1{path}").json()["behind"]:
            time.sleep(0.2)
        with _Work(Path(folder)) as work:
            idle: list[_Time] = []
            busy: list[_Time] = []
            while len(busy) < _PAGES:
                work.stop()
                idle += _times(client, path)
                work.go_on()
                busy += _times(client, path)
        rounds = work.rounds
    load = " ".join(f"{one:.1f}" for one in os.getloadavg()[:2])
    what = "session page p95 while an export and an import run"
    for how, field in (("", 0), (", without the wait for a processor", 1)):
        fast, slow = (sorted(one[field] for one in times)[int(len(times) * 0.95)] for times in (idle, busy))
        told = f"{slow / fast:.1f}x ({slow:.0f} against {fast:.0f} ms; load {load}, {rounds} begun)"
        yield Result(f"{what}{how}", told, "<= 2x", slow <= 2 * fast)


class _Time(NamedTuple):
    """How long a page took, in milliseconds."""

    wall: float
    """By the clock."""
    own: float
    """Without the time in which no processor was free for the server: that depends on what else the machine does."""


class _Work:
    """An export of the whole ledger and an import of all fixtures, each begun again when it is done."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._children: list[subprocess.Popen[bytes] | None] = [None, None]
        self.rounds = 0
        """How many were begun."""

    def __enter__(self) -> "_Work":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for child in self._children:
            if child is not None:
                child.kill()
                end_process(child)

    def go_on(self) -> None:
        """Let both run."""
        for place, child in enumerate(self._children):
            if child is None or child.poll() is not None:
                if child is not None:
                    end_process(child)
                self._children[place] = self._begin(place)
            else:
                child.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Let neither run."""
        for child in self._children:
            if child is not None and child.poll() is None:
                child.send_signal(signal.SIGSTOP)

    def _begin(self, place: int) -> "subprocess.Popen[bytes]":
        """As the server begins what the page Import and the button of the page SQL ask for."""
        self.rounds += 1
        if place:
            given = self._home / f"given-{self.rounds}"
            shutil.copytree(_ROOT / "fixtures" / "importers", given)
            return start_process({"kind": "import", "home": str(self._home), "folder": str(given)}, None)
        shutil.rmtree(self._home / FOLDER, ignore_errors=True)
        return start_process({"kind": "export", "home": str(self._home)}, None)


def _times(client: TestClient, path: str) -> list[_Time]:
    times = []
    for _ in range(_IN_TURN):
        started, waited = time.perf_counter(), _waited_ms()
        client.get(path)
        wall = (time.perf_counter() - started) * 1000
        times.append(_Time(wall, max(0.0, wall - (_waited_ms() - waited))))
    return times


def _waited_ms() -> float:
    """How long the threads of this process have been ready to run and did not."""
    waited = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            waited += int((task / "schedstat").read_text(encoding="ascii").split()[1])
    return waited / 1e6


def _cost(client: TestClient, path: str, rounds: int = 5) -> tuple[float, float]:
    """CPU milliseconds of this process for an answer, and its kilobytes."""
    size, started = 0, time.process_time()
    for _ in range(rounds):
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        size = len(answer.content)
    return (time.process_time() - started) * 1000 / rounds, size / 1000


def _contents_loaded(shop: Site, work: Callable[[], object]) -> int:
    """How many contents were read from the store."""
    count = 0
    content = shop.ledger.store.content

    def counted(digest: str) -> bytes:
        nonlocal count
        count += 1
        return content(digest)

    shop.ledger.store.content = counted  # type: ignore[method-assign]
    work()
    shop.ledger.store.content = content  # type: ignore[method-assign]
    return count


def _resident_mb() -> float:
    """What this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6
