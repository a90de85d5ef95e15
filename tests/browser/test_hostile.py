"""Hostile texts in a real browser: nothing runs, nothing is fetched, nothing sticks out, by either wall."""

import re

import pytest
from playwright.sync_api import Browser, Route

import webui.rendering
from tests.browser.conftest import Watched, open_tab
from tests.browser.test_every_page import FRAGMENTS
from tests.webui.hostile.texts import SESSION
from tests.webui.site import Site, addresses

PAGES = [path for path in addresses(SESSION) if not any(part in path for part in FRAGMENTS)]
_RUN = "() => window.__xss === undefined"


@pytest.mark.parametrize("path", PAGES)
def test_they_are_only_shown(tab: Watched, address: str, path: str) -> None:
    page = tab.page
    page.goto(f"{address}{path}")
    page.locator("h1").wait_for()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(_RUN)
    assert [url for url in tab.requests if "evil" in url] == []
    assert page.url == f"{address}{path}"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1440


def test_opening_every_kind_of_event_runs_nothing(tab: Watched, address: str) -> None:
    page = tab.page
    listed = next(path for path in PAGES if path.endswith("/events"))
    page.goto(f"{address}{listed}")
    page.locator(".placed").wait_for()
    for number in range(0, 50, 7):
        page.locator(".ev").nth(number).click()
        page.locator("#detail h2").wait_for()
    assert page.evaluate(_RUN)
    assert [url for url in tab.requests if "evil" in url] == []


@pytest.mark.parametrize("path", PAGES)
def test_without_escaping_the_second_wall_holds(
    real_browser: Browser, shop: Site, address: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    naked = webui.rendering._pages.overlay(
        autoescape=False, finalize=lambda value: "" if value is None else value
    )
    monkeypatch.setattr(webui.rendering, "_pages", naked)
    context, tab = open_tab(real_browser, shop, address)
    fetched: list[str] = []

    def stop(route: Route) -> None:
        fetched.append(route.request.url)  # what the policy has stopped does not come so far
        route.fulfill(status=204)

    context.route(re.compile("evil"), stop)
    tab.page.goto(f"{address}{path}", wait_until="commit")
    tab.page.wait_for_load_state()
    tab.page.wait_for_timeout(500)  # what would run or lead away does so at once
    assert tab.page.evaluate(_RUN)
    assert tab.page.url == f"{address}{path}"
    context.close()
    assert fetched == []
