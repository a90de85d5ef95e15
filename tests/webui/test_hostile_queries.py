"""Twenty hostile queries at once leave the pages of a session responsive."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from ledger.lake.sandbox import Limits, QueryHandle, SafeQueries, SafeResult
from tests.ledger.lake.sandbox.attacks import HUNGRY
from tests.webui.site import PLAIN, Site, served_site, site
from webui.settings import WebSettings

MANY = 20
ROUNDS = 3
WITHIN_S = 120
LONG_S = 900.0
PAGES = (
    "/sessions",
    f"/sessions/{PLAIN}",
    f"/sessions/{PLAIN}/events",
    f"/sessions/{PLAIN}/events/5",
    f"/sessions/{PLAIN}/rows",
    f"/sessions/{PLAIN}/state",
    f"/sessions/{PLAIN}/agents",
    f"/sessions/{PLAIN}/charts",
    "/search?q=shop",
)


class Watched(SafeQueries):
    """The sandbox itself; it only remembers its queries, so that a test can see and end them."""

    def __init__(self, home: Path, limits: Limits) -> None:
        super().__init__(home, limits)
        self.handles: list[QueryHandle] = []

    def run(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, handle: QueryHandle | None = None
    ) -> SafeResult:
        """As ever."""
        handle = handle or QueryHandle()
        self.handles.append(handle)
        return super().run(sql, parameters, handle=handle)

    def __enter__(self) -> Self:
        return self

    def running(self) -> int:
        """How many have a worker that told of its progress."""
        return sum(handle.progress is not None for handle in self.handles)


def fetch(shop: Site, address: str, path: str) -> int:
    """Status of an answer, read to its end."""
    cookie = shop.logins.redeem(shop.logins.new_code())
    port = address.rpartition(":")[2]
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        headers={"Cookie": f"loopledger={cookie}", "Sec-Fetch-Site": "same-origin"},
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_pages_are_answered_while_twenty_hostile_queries_are_held(tmp_path: Path) -> None:
    limits = Limits(seconds=LONG_S, wait_seconds=LONG_S, waiting=MANY)
    hostile = islice(cycle((HUNGRY["cross join"], HUNGRY["regular expression"])), MANY)
    with (
        site(tmp_path, settings=WebSettings(catches_up=False, queries=limits)) as shop,
        Watched(tmp_path, limits) as sandbox,
        served_site(shop) as address,
        ThreadPoolExecutor(MANY) as strangers,
    ):
        shop.parts.queries._sandbox = sandbox
        held = [strangers.submit(fetch, shop, address, f"/sql?q={quote(query)}") for query in hostile]
        try:
            deadline = time.monotonic() + WITHIN_S
            while sandbox.running() < limits.workers or len(sandbox.handles) < MANY:
                assert time.monotonic() < deadline and not any(one.done() for one in held)
                threading.Event().wait(0.05)
            statuses = [fetch(shop, address, page) for _ in range(ROUNDS) for page in PAGES]
            assert statuses == [200] * len(PAGES) * ROUNDS
            assert not any(one.done() for one in held)
        finally:
            for handle in sandbox.handles:
                handle.cancel()
        assert [one.result() for one in held] == [200] * MANY


def test_more_queries_than_may_wait_are_turned_away_at_once(tmp_path: Path) -> None:
    limits = Limits(seconds=LONG_S, wait_seconds=LONG_S)
    held_most = limits.workers + limits.waiting
    with (
        site(tmp_path, settings=WebSettings(catches_up=False, queries=limits)) as shop,
        Watched(tmp_path, limits) as sandbox,
        served_site(shop) as address,
        ThreadPoolExecutor(MANY) as strangers,
    ):
        shop.parts.queries._sandbox = sandbox
        path = f"/sql?q={quote(HUNGRY['cross join'])}"
        held = [strangers.submit(fetch, shop, address, path) for _ in range(MANY)]
        try:
            deadline = time.monotonic() + WITHIN_S
            while sum(one.done() for one in held) < MANY - held_most:
                assert time.monotonic() < deadline
                threading.Event().wait(0.05)
            assert fetch(shop, address, f"/sessions/{PLAIN}") == 200
            assert sum(not one.done() for one in held) == held_most
        finally:
            for handle in sandbox.handles:
                handle.cancel()
        statuses = [one.result() for one in held]
    assert sorted(statuses) == [200] * held_most + [429] * (MANY - held_most)
