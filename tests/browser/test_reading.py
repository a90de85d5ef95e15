"""A reader's ways through a session: timeline, state, diff, back and forward, keys, no JavaScript."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Watched, open_tab
from tests.browser.looking import look
from tests.webui.asking import ASKING
from tests.webui.site import PLAIN, Site, served_site, site

BASE = f"/sessions/{PLAIN}"


def test_from_the_timeline_to_a_state_to_a_diff(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}/sessions")
    page.get_by_role("link", name="Tidy the shop", exact=True).click()
    page.get_by_role("link", name="Timeline", exact=True).click()
    page.get_by_role("textbox", name="seq").fill("106")
    page.get_by_role("button", name="Go").click()
    page.locator(f'.ev[href="{BASE}/events/108"]').click()
    expect(page).to_have_url(f"{address}{BASE}/events/108")
    expect(page.locator("#detail h2")).to_contain_text("#108")
    page.get_by_role("link", name="State here").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("State after #108")
    page.get_by_role("link", name="Diff to the last").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Diff")
    expect(page.get_by_role("heading", name="Compactions between")).to_be_visible()
    expect(page.get_by_text("GONE")).to_be_visible()


def test_back_and_forward_keep_the_list_and_change_the_event(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}{BASE}/events")
    for seq in (3, 5):
        page.locator(f'.ev[href="{BASE}/events/{seq}"]').click()
        expect(page.locator("#detail h2")).to_contain_text(f"#{seq} ")
    page.evaluate("() => { document.querySelector('#timeline').dataset.mine = 'kept' }")
    page.go_back()
    expect(page.locator("#detail h2")).to_contain_text("#3 ")
    page.go_forward()
    expect(page.locator("#detail h2")).to_contain_text("#5 ")
    page.go_back()
    page.go_back()
    expect(page.locator("#detail")).to_contain_text("Open an event")
    assert page.locator("#timeline").get_attribute("data-mine") == "kept"


def test_by_keys_alone(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}/sessions")
    page.keyboard.press("/")
    page.keyboard.type("tidy")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=tidy"))
    page.get_by_role("link", name="Tidy the shop", exact=True).press("Enter")
    page.get_by_role("link", name="Timeline", exact=True).press("Enter")
    expect(page.locator(".placed")).to_be_visible()
    page.keyboard.press("G")
    expect(page.locator(".ev:focus")).to_contain_text("session.ended")
    page.keyboard.press("k")
    expect(page.locator(".ev:focus")).to_contain_text("review.finding_raised")
    page.keyboard.press("Enter")
    expect(page.locator("#detail h2")).to_be_focused()
    page.keyboard.press("[")
    expect(page.locator("#detail h2")).not_to_contain_text("review.finding_raised")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", level=1)).to_contain_text("State after")
    page.wait_for_load_state()  # keys are heard by then
    page.keyboard.press("d")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Diff")
    page.wait_for_load_state()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Help")


def test_a_range_is_a_link_and_leads_to_what_belongs_to_an_event(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}/sessions/{ASKING}/events")
    page.get_by_label("from").fill("4")
    page.get_by_label("to", exact=True).fill("6")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("status").first).to_contain_text("3 of ")
    link = page.url
    assert "since=4" in link and "upto=6" in link
    page.locator(".ev").nth(1).click()
    expect(page.locator("#detail h2")).to_contain_text("#5 approval.asked")
    page.get_by_role("link", name="#4 tool_call.requested").click()
    expect(page.locator("#detail h2")).to_contain_text("#4 ")
    page.go_back()
    expect(page.locator("#detail h2")).to_contain_text("#5 ")
    page.get_by_role("link", name="what was asked, and the answer").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("May transfer run?")
    page.goto(link)  # somebody else opens it
    expect(page.locator(".ev")).to_have_count(3)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_note_about_any_record_and_a_branch_from_it(
    real_browser: Browser, tmp_path: Path, axe: str, scripts: bool
) -> None:
    with site(tmp_path) as made, served_site(made) as url:
        context, tab = open_tab(
            real_browser, made, url, java_script_enabled=scripts, viewport={"width": 320, "height": 640}
        )
        page = tab.page
        page.goto(f"{url}{BASE}/events")
        page.locator(f'.ev[href="{BASE}/events/9"]').click()
        expect(page.locator("#detail h2")).to_contain_text("#9 ")
        if scripts:  # it opens above the list, and is not missed there
            expect(page.locator("#detail h2")).to_be_in_viewport()
        page.get_by_label("Note about #9").fill("the shelf was empty")
        page.get_by_role("button", name="Keep the note").click()
        expect(page.get_by_text("the shelf was empty")).to_be_visible()
        page.get_by_role("link", name="Fork here…").click()
        expect(page.get_by_text("It shares the first 9 records")).to_be_visible()
        if scripts:
            look(tab, axe, "fork-plan")
        page.get_by_label("What you say there").fill("Look behind the shelf.")
        page.get_by_label("Why").fill("it may be there")
        page.get_by_role("button", name="Open the branch").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("State after #")
        expect(page.locator(".messages li").last).to_contain_text("Look behind the shelf.")
        page.get_by_role("link", name="Branches", exact=True).click()
        expect(page.locator(".tree tbody tr")).to_have_count(2)
        context.close()
        assert tab.errors == []


def test_keys_can_be_switched_off(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}/help")
    page.get_by_label("Single keys").select_option("off")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("html")).to_have_attribute("data-keys", "off")
    page.goto(f"{address}{BASE}")
    page.keyboard.press("?")
    expect(page).to_have_url(f"{address}{BASE}")


def test_the_theme_is_a_button(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}{BASE}")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(f"{address}{BASE}")
    assert (
        page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor") == "rgb(20, 23, 28)"
    )


def test_without_javascript(real_browser: Browser, shop: Site, address: str) -> None:
    context, tab = open_tab(real_browser, shop, address, java_script_enabled=False)
    page = tab.page
    page.goto(f"{address}{BASE}/events")
    page.get_by_role("link", name="Later").click()
    expect(page.locator(".ev").first).to_contain_text("51")
    page.get_by_label("level").select_option("high")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text(re.compile("of 210 events|of 2.. events"))).to_be_visible()
    page.locator(".ev").first.click()
    expect(page.locator("#detail h2")).to_be_visible()
    page.get_by_role("link", name="State here").click()
    page.get_by_role("link", name="Diff from the record before").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Diff")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Log in")
    context.close()


def test_a_login_link_works_once_and_the_token_always(
    real_browser: Browser, shop: Site, address: str
) -> None:
    link = f"{address}/login?code={shop.logins.new_code()}"
    context = real_browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.wait_for_url("**/sessions")
    context.close()
    context = real_browser.new_context()
    page = context.new_page()
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("used already")
    page.goto(f"{address}{BASE}/state/20")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Log in")
    page.get_by_label("Token").fill("token-" + "t" * 40)
    page.get_by_label("Your name").fill("bo")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("State after #20")
    expect(page.locator(".who")).to_contain_text("bo")
    context.close()
