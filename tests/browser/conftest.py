"""One served site and one browser for all tests here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.chromium import ROOT, axe_source, chromium
from tests.webui.site import Site, served_site, site
from webui.logins import COOKIE

SCREENSHOTS = ROOT / "build" / "screenshots"
"""Where pictures of all pages are put, for people to look at."""

PATIENCE_MS = 300_000
"""How long to wait for what must come, on a machine that is busy with other things."""

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a plain and a hostile session."""
    home: Path = tmp_path_factory.mktemp("shop")
    with site(home) as made:
        yield made


@pytest.fixture(scope="session")
def address(shop: Site) -> Iterator[str]:
    """Where the site is served."""
    with served_site(shop) as url:
        yield url


@pytest.fixture(scope="session")
def real_browser() -> Iterator[Browser]:
    """A real Chromium. Root has no sandbox; what it opens is ours."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    return axe_source()


class Watched:
    """A tab, and what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        """Errors of scripts, and what the content security policy stopped."""
        self.requests: list[str] = []
        """Everything that was fetched."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)
        page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)


def open_tab(browser: Browser, shop: Site, address: str, **options: object) -> tuple[BrowserContext, Watched]:
    """A browser of its own that is logged in, and a tab in it."""
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    cookie = shop.logins.redeem(shop.logins.new_code())
    context.add_cookies([{"name": COOKIE, "value": cookie or "", "url": address, "httpOnly": True}])
    return context, Watched(context.new_page())


@pytest.fixture
def tab(real_browser: Browser, shop: Site, address: str) -> Iterator[Watched]:
    """A tab of 1440 by 900 that is logged in. Fails when anything in it went wrong."""
    context, watched = open_tab(real_browser, shop, address)
    yield watched
    context.close()
    assert watched.errors == []
