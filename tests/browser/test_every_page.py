"""Every page of webui/pages, in both themes: nobody is kept out, nothing sticks out, a picture is kept."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import SCREENSHOTS, Watched, open_tab
from tests.browser.looking import look
from tests.webui.site import NAME, PLAIN, Site, addresses, empty_site, served_site
from webui.page import all_pages

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FRAGMENTS = ("/rows", "/bounds", "/contents/", "/news", "/sql/file")
PAGES = [path for path in addresses(PLAIN) if not any(part in path for part in FRAGMENTS)]
PAGES += ["/login", "/nowhere", "/sessions/unknown", f"/sessions/{PLAIN}/events?level=high&at=90"]

STATUSES = {"/nowhere": 404, "/sessions/unknown": 404}
"""Pages that are not there."""

SELDOM = {
    "/sessions?q=nothing": 200,
    "/sessions?only=findings": 200,
    "/sessions?sort=severity": 200,
    "/findings?sort=open": 200,
    f"/sessions/{PLAIN}/events?q=nothing": 200,
    f"/sessions/{PLAIN}/events?since=40&upto=60": 200,
    f"/sessions/{PLAIN}/events?at=x": 400,
    f"/sessions/{PLAIN}/events/999": 404,
    f"/sessions/{PLAIN}/rollback?to=4": 200,
    f"/sessions/{PLAIN}/state/30?path=/constraints": 200,
    "/findings?state=dismissed": 200,
    "/findings/unknown": 404,
    "/approvals?state=all": 200,
    "/search?q=half": 200,
    "/search?q=nothingatall": 200,
    "/sql?q=selec": 200,
    "/sql?q=select+1+as+one": 200,
    "/login?code=wrong": 403,
}
"""Pages in states that a reader does not begin with, and their statuses."""


def name_of(path: str) -> str:
    """A file name for a page."""
    return re.sub(r"[^a-z0-9]+", "-", path.replace(PLAIN, "one")).strip("-") or "start"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_kept_out(
    real_browser: Browser, shop: Site, address: str, axe: str, path: str, theme: str
) -> None:
    context, tab = open_tab(real_browser, shop, address, color_scheme=theme)
    answer = tab.page.goto(f"{address}{path}")
    assert answer is not None and answer.status == STATUSES.get(path, 200)
    tab.page.locator("h1").wait_for()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=SCREENSHOTS / f"{name_of(path)}-{theme}.png")
    tab.page.evaluate(axe)
    found = tab.page.evaluate(
        "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})"
        ".then(result => result.violations.map(one => one.id + ': ' + one.nodes[0].html))",
        _TAGS,
    )
    context.close()
    assert found == []
    assert tab.errors == []


@pytest.mark.parametrize("path", PAGES)
def test_it_fits_a_narrow_screen(real_browser: Browser, shop: Site, address: str, path: str) -> None:
    context, tab = open_tab(real_browser, shop, address, viewport={"width": 320, "height": 640})
    tab.page.goto(f"{address}{path}")
    tab.page.locator("h1").wait_for()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=SCREENSHOTS / f"{name_of(path)}-320.png")
    wide = tab.page.evaluate("() => document.documentElement.scrollWidth")
    context.close()
    assert wide <= 320, f"{path} is {wide} pixels wide; let tables scroll in a div.table"


@pytest.mark.parametrize("path", SELDOM)
def test_what_is_seldom_seen_keeps_nobody_out(
    real_browser: Browser, shop: Site, address: str, axe: str, path: str
) -> None:
    context, tab = open_tab(real_browser, shop, address)
    answer = tab.page.goto(f"{address}{path}")
    assert answer is not None and answer.status == SELDOM[path]
    tab.page.locator("h1").wait_for()
    look(tab, axe, f"seldom-{name_of(path)}")
    context.close()
    assert tab.errors == []


def test_refusals_and_faults_keep_nobody_out(
    real_browser: Browser, shop: Site, address: str, axe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, tab = open_tab(real_browser, shop, address)
    page = tab.page
    answer = page.goto(f"{address.replace(NAME, 'other.localhost')}/sessions")
    assert answer is not None and answer.status == 421
    look(tab, axe, "refused-421")
    page.goto(f"{address}/sessions/{PLAIN}/checkpoints")
    page.locator("input[name=form_token]").evaluate_all("all => all.forEach(one => { one.value = 'x' })")
    page.get_by_label("What for").fill("with a form of somebody else")
    with page.expect_response("**/checkpoints") as answered:
        page.get_by_role("button", name="Take a checkpoint").click()
    assert answered.value.status == 403
    look(tab, axe, "refused-403")
    monkeypatch.setattr("webui.pages.help._KEYS", None)
    answer = page.goto(f"{address}/help")
    assert answer is not None and answer.status == 500
    look(tab, axe, "refused-500")
    context.close()
    with real_browser.new_context() as stranger:
        told = Watched(stranger.new_page())
        answer = told.page.goto(f"{address}/sessions")
        assert answer is not None and answer.status in (200, 401)
        expect(told.page.get_by_role("heading", level=1)).to_have_text("Log in")
        look(told, axe, "login-first")


def test_a_ledger_with_nothing_in_it_says_what_to_do(real_browser: Browser, axe: str, tmp_path: Path) -> None:
    with empty_site(tmp_path) as made, served_site(made) as address:
        context, tab = open_tab(real_browser, made, address)
        links = [page.entry.link for page in all_pages() if page.entry and "{" not in page.entry.link]
        for link in [*links, "/integrity", "/backtest", "/jobs/latest", "/search?q=x", "/sql?q=select+1"]:
            answer = tab.page.goto(f"{address}{link}")
            assert answer is not None and answer.status == 200, link
            look(tab, axe, f"empty-{name_of(link)}")
        tab.page.goto(f"{address}/sessions")
        tab.page.get_by_role("link", name="Import files").click()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("Import")
        context.close()
        assert tab.errors == []
