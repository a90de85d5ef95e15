"""A long session: the list is always whole where one looks, and never large."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Watched, open_tab
from tests.webui.long_session import LONG, fill_long
from tests.webui.site import Site, served_site, site

EVENTS = 5_000


@pytest.fixture(scope="module")
def long_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """A site with a long session."""
    home: Path = tmp_path_factory.mktemp("long")
    with site(home, fill=lambda ledger: fill_long(ledger, EVENTS)) as made, served_site(made) as url:
        assert made.client().get(f"/api/v1/sessions/{LONG}/events").json()["total"] == EVENTS
        yield made, url


@pytest.fixture
def long_tab(real_browser: Browser, long_shop: tuple[Site, str]) -> Iterator[Watched]:
    """A tab on the timeline of the long session."""
    made, url = long_shop
    context, tab = open_tab(real_browser, made, url)
    tab.page.goto(f"{url}/sessions/{LONG}/events")
    expect(tab.page.locator(".placed")).to_be_visible()
    yield tab
    context.close()
    assert tab.errors == []


def test_any_place_is_reached_and_no_more_than_eight_windows_are_kept(long_tab: Watched) -> None:
    page = long_tab.page
    for part in (0.5, 0.1, 0.9, 0.3, 1.0, 0.0, 0.7):
        page.evaluate(
            "part => { const box = document.querySelector('#timeline');"
            " box.scrollTop = part * (box.scrollHeight - box.clientHeight) }",
            part,
        )
        seq = max(1, min(EVENTS, round(part * EVENTS)))
        expect(page.locator(f'.ev[href="/sessions/{LONG}/events/{seq}"]')).to_be_attached()
        assert page.locator(".canvas ol").count() <= 9
    assert page.evaluate("() => document.querySelectorAll('*').length") < 4_000


def test_a_filtered_list_scrolls_as_well(long_tab: Watched) -> None:
    page = long_tab.page
    page.get_by_label("level").select_option("medium")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".placed")).to_be_visible()
    page.keyboard.press("G")
    expect(page.locator(".ev:focus")).to_contain_text("medium")
    first = page.locator(".canvas ol").first
    assert first.locator("li").count() <= 50


def test_a_click_on_the_overview_goes_there(long_tab: Watched) -> None:
    page = long_tab.page
    box = page.locator("[data-map]").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 10)
    expect(page.locator(f'.ev[href="/sessions/{LONG}/events/{EVENTS // 2}"]')).to_be_attached()


def test_rows_come_while_one_scrolls_and_not_only_when_one_stops(long_tab: Watched) -> None:
    came = long_tab.page.evaluate(
        """() => new Promise((done) => {
          const box = document.querySelector("#timeline"), start = performance.now();
          const count = () => document.querySelectorAll(".canvas ol[data-window='4'] li").length;
          const step = (now) => {
            box.scrollTop += 4;
            if (box.scrollTop > 4 * 50 * 28) box.scrollTop = 3 * 50 * 28;
            if (count()) done(true); else if (now - start > 20000) done(false); else requestAnimationFrame(step);
          };
          requestAnimationFrame(step);
        })"""
    )
    assert came
