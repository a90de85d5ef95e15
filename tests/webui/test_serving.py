"""`loopledger serve` as a user starts it: its link, what it refuses, its tail."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from ledger.events import Draft
from ledger.events.draw import Drawn
from ledger.home import Ledger
from tests.webui.site import PLAIN, Site, served_site, site


def served_words(*options: str) -> "subprocess.Popen[str]":
    """The command, whose words are read."""
    return subprocess.Popen(
        [sys.executable, "-m", "webui", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def opened(browser: urllib.request.OpenerDirector, address: str) -> bytes:
    """The page at an address of a server that may not answer yet."""
    for _ in range(300):
        try:
            with browser.open(address) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("the server never answered")


def test_serve_prints_a_link_that_logs_in(tmp_path: Path) -> None:
    with served_words("--home", str(tmp_path), "serve", "--port", "0") as child:
        assert child.stdout is not None
        try:
            link = child.stdout.readline().split()[1]
            told = child.stdout.readline()
            assert ".localhost:" in link and "/login?code=" in link
            assert str(tmp_path / "keys" / "web.token") in told
            host, _, path = link.removeprefix("http://").partition("/")
            address = f"http://127.0.0.1:{host.rpartition(':')[2]}"
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            first = opened(browser, f"{address}/{path}")
            assert b"You are in" in first
            assert b"<h1>Sessions</h1>" in browser.open(f"{address}/sessions").read()
            token = (tmp_path / "keys" / "web.token").read_text(encoding="ascii").strip()
            asked = urllib.request.Request(
                f"{address}/api/v1/sessions", headers={"Authorization": f"Bearer {token}"}
            )
            assert urllib.request.urlopen(asked).status == 200
        finally:
            child.kill()


def test_serve_lets_no_other_machine_in_without_a_token_file(tmp_path: Path) -> None:
    with served_words("--home", str(tmp_path), "serve", "--host", "192.0.2.1", "--port", "0") as child:
        _, words = child.communicate(timeout=120)
    assert child.returncode == 2
    assert "--token-file" in words and "Traceback" not in words


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """A served site of its own."""
    with site(tmp_path) as made, served_site(made) as address:
        yield made, address


def grow(ledger: Ledger, count: int) -> None:
    """More events in the plain session."""
    keeper = ledger.recorder.keeper()
    drafts = [
        Draft(Drawn(kind="random", label=f"draw {number}", value=keeper.json(number)))
        for number in range(count)
    ]
    ledger.recorder.append(PLAIN, drafts, keeper)


def read_ids(shop: Site, address: str, path: str, upto: int, last: int | None = None) -> list[int]:
    """Ids of the messages of a tail, until one is as large as wanted."""
    cookie = shop.logins.redeem(shop.logins.new_code())
    headers = {"Cookie": f"loopledger={cookie}"} | ({} if last is None else {"Last-Event-ID": str(last)})
    host = address.removeprefix("http://")
    port = host.rpartition(":")[2]
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    ids: list[int] = []
    with urllib.request.urlopen(asked, timeout=120) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer:
            if line.startswith(b"id: "):
                ids.append(int(line[4:]))
                if ids[-1] >= upto:
                    break
    return ids


def test_a_tail_gives_what_came_since_in_few_messages(live: tuple[Site, str]) -> None:
    shop, address = live
    head = shop.ledger.store.head(PLAIN).seq
    grow(shop.ledger, 120)
    ids = read_ids(shop, address, f"/sessions/{PLAIN}/tail?after={head}", head + 120)
    assert ids == [head + 50, head + 100, head + 120]


def test_a_reader_that_was_cut_off_says_what_it_had(live: tuple[Site, str]) -> None:
    shop, address = live
    head = shop.ledger.store.head(PLAIN).seq
    grow(shop.ledger, 30)
    ids = read_ids(shop, address, f"/sessions/{PLAIN}/tail?after=0", head + 30, last=head + 10)
    assert ids == [head + 30]


def test_a_thread_keeps_the_lists_up(tmp_path: Path) -> None:
    with site(tmp_path, catches_up=True) as shop, shop.client() as browser:
        grow(shop.ledger, 7)
        head = shop.ledger.store.head(PLAIN).seq
        deadline = time.monotonic() + 400
        while browser.get(f"/api/v1/sessions/{PLAIN}/events").json()["total"] != head:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert browser.get("/api/v1/sessions").json()["behind"] == 0
