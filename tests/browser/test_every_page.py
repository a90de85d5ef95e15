"""Every page of webui/pages, in both themes: nobody is kept out, nothing sticks out, a picture is kept."""

import re

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import SCREENSHOTS, open_tab
from tests.webui.site import PLAIN, Site, addresses

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FRAGMENTS = ("/rows", "/bounds", "/contents/", "/news", "/sql/file")
PAGES = [path for path in addresses(PLAIN) if not any(part in path for part in FRAGMENTS)]
PAGES += ["/login", "/nowhere", "/sessions/unknown", f"/sessions/{PLAIN}/events?level=high&at=90"]


def name_of(path: str) -> str:
    """A file name for a page."""
    return re.sub(r"[^a-z0-9]+", "-", path.replace(PLAIN, "one")).strip("-") or "start"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_kept_out(
    real_browser: Browser, shop: Site, address: str, axe: str, path: str, theme: str
) -> None:
    context, tab = open_tab(real_browser, shop, address, color_scheme=theme)
    tab.page.goto(f"{address}{path}")
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
