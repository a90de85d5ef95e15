"""A person rolls a session back: plan, reason, files as they were; and is stopped where somebody else changed one."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import open_tab
from tests.browser.looking import look
from tests.webui.going_back import LABEL, SHOP, act, fill_workspace
from tests.webui.site import served_site, site


def test_roll_back_with_a_reason(real_browser: Browser, axe: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    fill_workspace(work)
    with site(tmp_path / "home", fill=lambda ledger: act(ledger, work)) as made, served_site(made) as url:
        context, tab = open_tab(real_browser, made, url)
        page = tab.page
        page.goto(f"{url}/sessions/{SHOP}")
        page.get_by_role("link", name="Checkpoints", exact=True).click()
        row = page.get_by_role("row").filter(has_text=LABEL)
        expect(row).to_contain_text("kept")
        row.get_by_role("link", name="Roll back to it…").click()
        expect(page.get_by_role("alert")).to_contain_text("NOT CLEAN.")
        expect(page.get_by_role("row").filter(has_text="transfer")).to_contain_text("NOT UNDONE")
        look(tab, axe, "rollback-plan")

        (work / "notes.txt").write_text("mine\n")
        page.get_by_label("Why").fill("the order was wrong")
        page.get_by_role("button", name="Roll back although it is not clean").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Conflict")
        expect(page.get_by_text("nothing was touched")).to_be_visible()
        assert (work / "notes.txt").read_text() == "mine\n"

        page.go_back()
        page.reload()
        expect(page.get_by_role("heading", name="Conflicts")).to_be_visible()
        look(tab, axe, "rollback-conflict")
        page.get_by_label("Why").fill("the order was wrong")
        page.get_by_label("put the files in conflict back").check()
        page.get_by_role("button", name="Roll back although it is not clean").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Rolled back to #")
        expect(page.get_by_text("the order was wrong")).to_be_visible()
        look(tab, axe, "rollback-done")
        assert (work / "notes.txt").read_text() == "good\n"
        assert not (work / "new.txt").exists()

        page.get_by_role("link", name="On the timeline").click()
        expect(page.locator("#detail h2")).to_contain_text("recovery.rolled_back")
        context.close()
    assert tab.errors == []


def test_a_checkpoint_by_hand_without_javascript(real_browser: Browser, tmp_path: Path) -> None:
    work = tmp_path / "work"
    fill_workspace(work)
    with site(tmp_path / "home", fill=lambda ledger: act(ledger, work)) as made, served_site(made) as url:
        context, tab = open_tab(real_browser, made, url, java_script_enabled=False)
        page = tab.page
        page.goto(f"{url}/sessions/{SHOP}/checkpoints")
        page.get_by_label("What for").fill("before I look")
        page.get_by_role("button", name="Take a checkpoint").click()
        row = page.get_by_role("row").filter(has_text="before I look")
        expect(row).to_contain_text("human")
        row.get_by_role("link", name="Roll back to it…").click()
        expect(page.get_by_text("Clean.", exact=True)).to_be_visible()
        context.close()
