"""An auditor's way: the riskiest session, its evidence, a note, a verdict; by keys alone and without JavaScript too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from ledger.home import Ledger
from tests.browser.conftest import SCREENSHOTS, Watched, open_tab
from tests.webui.pages.test_findings import SHOPS, fill
from tests.webui.site import Site, served_site, site
from tests.webui.team import BOSS, fill_team


def _fill(ledger: Ledger) -> None:
    fill(ledger)
    fill_team(ledger)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path, fill=_fill) as one:
        yield one


@pytest.mark.parametrize("has_scripts", [True, False])
def test_from_the_riskiest_session_to_a_verdict(made: Site, real_browser: Browser, has_scripts: bool) -> None:
    with served_site(made) as address:
        context, tab = open_tab(real_browser, made, address, java_script_enabled=has_scripts)
        page = tab.page
        page.goto(f"{address}/sessions")
        page.get_by_role("link", name="Findings", exact=True).click()
        riskiest = page.get_by_role("region", name="Riskiest sessions").get_by_role("row").nth(1)
        expect(riskiest).to_contain_text("Pay the baker")
        riskiest.get_by_role("link", name="Pay the baker").click()
        expect(page.get_by_role("region", name="Findings", exact=True).get_by_role("row")).to_have_count(4)
        page.get_by_role("link", name="Finding 0 of the shop.").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("CRITICAL")
        witness = page.get_by_role("region", name="Evidence 1")
        witness.get_by_role("link", name="#2", exact=True).click()
        expect(page.locator("#detail h2")).to_contain_text("#2 tool_call.requested")
        page.go_back()
        page.get_by_label("Note").fill("The baker asked for both.")
        page.get_by_role("button", name="Keep the note").click()
        expect(page.get_by_text("The baker asked for both.")).to_be_visible()
        page.get_by_role("radio", name="dismissed: a false alarm").check()
        page.get_by_label("Reason").fill("Two orders, two payments.")
        page.get_by_role("button", name="Record the verdict").click()
        expect(page.get_by_text("dismissed by ana")).to_be_visible()
        page.get_by_role("link", name="All of this session").click()
        expect(page.get_by_role("row").filter(has_text="Finding 0 of the shop.")).to_contain_text("dismissed")
        context.close()
        assert tab.errors == []


def test_by_keys_alone(made: Site, real_browser: Browser) -> None:
    with served_site(made) as address:
        context, tab = open_tab(real_browser, made, address)
        page = tab.page
        page.goto(f"{address}/findings/shop-1")
        page.keyboard.press("}")
        expect(page).to_have_url(f"{address}/findings/shop-2")
        page.wait_for_load_state()  # keys are heard by then
        page.keyboard.press("{")
        expect(page).to_have_url(f"{address}/findings/shop-1")
        page.wait_for_load_state()
        page.keyboard.press("n")
        page.keyboard.type("seen")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("about shops-2#2: seen")).to_be_visible()
        _choose_by_keys(page)
        expect(page.get_by_text("accepted risk by ana")).to_be_visible()
        context.close()
        assert tab.errors == []


def _choose_by_keys(page: Page) -> None:
    page.get_by_role("radio", name="confirmed").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("may stay")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def test_a_run_of_several_agents_is_kept_as_a_picture_and_keeps_nobody_out(
    made: Site, real_browser: Browser, axe: str
) -> None:
    with served_site(made) as address:
        for theme in ("light", "dark"):
            context, tab = open_tab(real_browser, made, address, color_scheme=theme)
            _look(tab, f"{address}/sessions/{BOSS}/agents", f"team-agents-{theme}", axe)
            _look(tab, f"{address}/findings/shop-0", f"finding-shop-{theme}", axe)
            _look(tab, f"{address}/findings?session={SHOPS}", f"findings-shop-{theme}", axe)
            context.close()
            assert tab.errors == []


def test_a_finding_prints_without_navigation_and_forms(made: Site, real_browser: Browser) -> None:
    with served_site(made) as address:
        context, tab = open_tab(real_browser, made, address)
        tab.page.goto(f"{address}/findings/shop-0")
        tab.page.emulate_media(media="print")
        expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
        expect(tab.page.locator(".witness").first).to_be_visible()
        for hidden in (".top", "form.stack >> nth=0"):
            expect(tab.page.locator(hidden)).to_be_hidden()
        tab.page.screenshot(path=SCREENSHOTS / "finding-print.png", full_page=True)
        context.close()


def _look(tab: Watched, address: str, name: str, axe: str) -> None:
    tab.page.goto(address)
    tab.page.locator("h1").wait_for()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
    tab.page.evaluate(axe)
    found = tab.page.evaluate(
        "() => axe.run(document).then(result => result.violations.map(one => one.id + ': ' + one.nodes[0].html))"
    )
    assert found == []
