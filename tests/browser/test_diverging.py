"""A person runs replays, finds where one left the recording, and says what it is. And the tree of branches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Watched, open_tab
from tests.browser.looking import look
from tests.webui.asking import ASKING, DECIDED
from tests.webui.replayed import FORGED, ORIGIN, fill_replayed
from tests.webui.site import served_site, site


@pytest.fixture(scope="module")
def desk(real_browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, str]]:
    """A tab that is logged in to a site with a replay that diverged."""
    home: Path = tmp_path_factory.mktemp("replays")
    with site(home, fill=fill_replayed) as made, served_site(made) as url:
        context, tab = open_tab(real_browser, made, url)
        yield tab, url
        context.close()
    assert tab.errors == []


def test_from_a_replay_to_its_divergence_to_a_verdict(desk: tuple[Watched, str], axe: str) -> None:
    tab, url = desk
    page = tab.page
    page.goto(f"{url}/sessions/{ORIGIN}")
    page.get_by_role("link", name="Replays", exact=True).click()
    row = page.get_by_role("row").filter(has_text="DIVERGED")
    expect(row).to_contain_text("#8")
    look(tab, axe, "replays-some")
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Diverged at #8")
    difference = page.get_by_role("row").filter(has_text="/messages/2/content")
    expect(difference).to_contain_text("Never promise a date.")
    look(tab, axe, "divergence")
    page.get_by_label("Why").fill("a rule is gone")
    page.get_by_role("button", name="It is a defect").click()
    expect(page.get_by_role("heading", name="What was said")).to_be_visible()
    expect(page.get_by_text("a rule is gone")).to_be_visible()
    page.get_by_role("link", name="All its replays").click()
    expect(page.get_by_role("row").filter(has_text="DIVERGED")).to_contain_text("defect")


def test_a_replay_run_from_the_page_diverges(desk: tuple[Watched, str], axe: str) -> None:
    tab, url = desk
    page = tab.page
    page.goto(f"{url}/sessions/{FORGED}/replays")
    page.get_by_label("every model request can be rebuilt").check()
    page.get_by_label("Why").fill("it looks odd")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Diverged at #2")
    expect(page.locator("p", has_text="the rebuilt body does not have the digest")).to_be_visible()
    page.goto(f"{url}/sessions/{FORGED}/replays")
    page.get_by_label("every state comes out the same").check()
    page.get_by_label("Why").fill("and its states?")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Equal")
    look(tab, axe, "divergence-equal")


def test_from_the_tree_to_a_comparison(desk: tuple[Watched, str], axe: str) -> None:
    tab, url = desk
    page = tab.page
    page.goto(f"{url}/sessions/{ASKING}")
    page.get_by_role("link", name="Branches", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="forked")).to_have_count(1)
    look(tab, axe, "branches-some")
    page.get_by_role("button", name="Compare A with B").click()
    expect(page.get_by_role("heading", name="Where they part")).to_be_visible()
    look(tab, axe, "comparison-some")
    page.goto(f"{url}/approvals/{DECIDED}")
    look(tab, axe, "approval-decided")
