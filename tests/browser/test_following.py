"""The live tail in a browser whose connection is cut: it goes on by itself, without a gap and without a double."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from ledger.events import Draft
from ledger.events.draw import Drawn
from ledger.events.session import SessionStarted
from ledger.home import Ledger
from tests.browser.cable import Cable, cable
from tests.browser.conftest import open_tab
from tests.webui.site import NAME, Site, served_site, site

SESSION = "live-0001"
BATCHES = 12
EACH = 10


def begin(ledger: Ledger) -> None:
    """The session, as it is when the page is opened."""
    keeper = ledger.recorder.keeper()
    ledger.recorder.append(SESSION, [Draft(SessionStarted(harness="live", name="Live"))], keeper)


def grow(ledger: Ledger, first: int) -> None:
    """Some more events."""
    keeper = ledger.recorder.keeper()
    drafts = [
        Draft(Drawn(kind="random", label=f"draw {first + number}", value=keeper.json(number)))
        for number in range(EACH)
    ]
    ledger.recorder.append(SESSION, drafts, keeper)


@contextmanager
def followed_through_a_cable(browser: Browser, home: Path) -> Iterator[tuple[Site, Cable, Page]]:
    """The tail of the session in a tab, whose connection can be cut."""
    with (
        site(home, fill=begin) as shop,
        served_site(shop) as address,
        cable(int(address.rpartition(":")[2])) as line,
    ):
        through = f"http://{NAME}:{line.port}"
        context, tab = open_tab(browser, shop, through)
        tab.page.goto(f"{through}/sessions/{SESSION}/events?follow=1")
        expect(tab.page.locator("#live")).to_be_attached()
        yield shop, line, tab.page
        context.close()


def test_a_cut_tail_goes_on_without_a_gap(real_browser: Browser, tmp_path: Path) -> None:
    with followed_through_a_cable(real_browser, tmp_path) as (shop, line, page):
        cut = 0
        for number in range(BATCHES):
            grow(shop.ledger, number * EACH)
            expect(page.locator("#live li")).to_have_count((number + 1) * EACH)
            if number % 3 == 2:
                cut += line.cut()
        grow(shop.ledger, BATCHES * EACH)
        assert cut > 0
        expect(page.locator("#live li")).to_have_count((BATCHES + 1) * EACH)
        seqs = page.locator("#live li b").all_inner_texts()
        assert seqs == [str(seq) for seq in range(2, 2 + (BATCHES + 1) * EACH)]
        expect(page.locator("#news")).to_contain_text("new events")


def test_a_tail_that_is_cut_in_the_middle_of_a_message_goes_on(real_browser: Browser, tmp_path: Path) -> None:
    with followed_through_a_cable(real_browser, tmp_path) as (shop, line, page):
        grow(shop.ledger, 0)
        expect(page.locator("#live li")).to_have_count(EACH)
        for number, byte in enumerate((1, 9, 40, 333, 1500), start=1):  # a message of ten rows has more bytes
            line.cut_after(byte)
            grow(shop.ledger, number * EACH)
            expect(page.locator("#live li")).to_have_count((number + 1) * EACH)
            assert line.is_whole
        seqs = page.locator("#live li b").all_inner_texts()
        assert seqs == [str(seq) for seq in range(2, 2 + 6 * EACH)]


def test_a_list_that_does_not_follow_says_how_many_came(real_browser: Browser, tmp_path: Path) -> None:
    with site(tmp_path, fill=begin) as shop, served_site(shop) as address:
        context, tab = open_tab(real_browser, shop, address)
        page = tab.page
        page.goto(f"{address}/sessions/{SESSION}/events")
        expect(page.locator("#timeline .ev")).to_have_count(1)
        grow(shop.ledger, 0)
        button = page.get_by_role("link", name=f"{EACH} new events")
        expect(button).to_be_visible()
        button.click()
        expect(page.locator("#timeline .ev")).to_have_count(EACH + 1)
        context.close()
        assert tab.errors == []
