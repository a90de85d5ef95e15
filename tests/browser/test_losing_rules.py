"""The way of somebody who asks what compactions did to the rules: finding, constraints, a cell, the compaction."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from ledger.audit import chosen, discover
from ledger.cli.auditing import run
from ledger.home import Ledger
from ledger.views.findings import keep
from tests.browser.conftest import open_tab
from tests.browser.looking import look
from tests.webui.hostile.texts import CORPUS
from tests.webui.lost_rules import LOST, fill_lost_rules
from tests.webui.site import Site, served_site, site

WILD = "wild-rules-0001"
"""A session whose rules and summaries are hostile texts."""


def _fill(ledger: Ledger) -> None:
    fill_lost_rules(ledger)
    texts = [text[:2000].encode("utf-8", "replace").decode() for text in CORPUS.values()]
    rules = {f"wild-{number}": f"Never show {text}" for number, text in enumerate(texts)}
    summaries = tuple(f"Summary {number}: {text}" for number, text in enumerate(texts))
    fill_lost_rules(ledger, WILD, rules=rules, summaries=summaries)
    detectors = [
        one for one in chosen(discover(ledger.home), (), everything=False) if one.name == "governance_decay"
    ]
    keep(ledger.recorder, run(ledger, detectors, [LOST]).findings)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a session that lost rules."""
    with site(tmp_path_factory.mktemp("rules"), fill=_fill, lake=False) as one:
        yield one


@pytest.fixture(scope="module")
def lost_at(made: Site) -> Iterator[str]:
    """Where it is served."""
    with served_site(made) as url:
        yield url


@pytest.mark.parametrize("has_scripts", [True, False])
def test_from_a_finding_to_the_compaction_that_lost_the_rule(
    made: Site, lost_at: str, real_browser: Browser, has_scripts: bool
) -> None:
    context, tab = open_tab(real_browser, made, lost_at, java_script_enabled=has_scripts)
    page = tab.page
    page.goto(f"{lost_at}/findings?session={LOST}")
    page.get_by_role("link", name="tool_mail broke the rule").click()
    page.get_by_role("link", name="Constraints by compaction").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Constraints by compaction")
    row = page.get_by_role("row").filter(has_text="Never send email").first
    row.get_by_role("link", name="absent").first.click()
    expect(page.get_by_role("heading", name="In what the compaction")).to_contain_text("absent")
    expect(page.get_by_role("region", name="Evidence")).to_contain_text(
        "Deployments are forbidden on Fridays."
    )
    page.get_by_role("heading", name="In what the compaction").get_by_role("link").click()
    expect(page.locator("#detail h2")).to_contain_text("compaction.done")
    page.get_by_role("link", name="which of them it kept, and which it lost").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Constraints by compaction")
    page.get_by_role("region", name="Violations").get_by_role("row").filter(has_text="tool_mail").get_by_role(
        "link", name="#"
    ).first.click()
    expect(page.locator("#detail h2")).to_contain_text("tool_call.requested")
    context.close()
    assert tab.errors == []


def test_by_the_keyboard_alone(made: Site, lost_at: str, real_browser: Browser) -> None:
    context, tab = open_tab(real_browser, made, lost_at)
    page = tab.page
    page.goto(f"{lost_at}/sessions/{LOST}/constraints")
    page.get_by_role("link", name="absent").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Constraint ")
    page.get_by_role("region", name="Evidence").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Constraints by compaction")
    context.close()
    assert tab.errors == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("constraints-lost", f"/sessions/{LOST}/constraints"),
        ("constraints-lost-only", f"/sessions/{LOST}/constraints?only=lost"),
        ("constraint-lost", f"/sessions/{LOST}/constraints/4?at=18"),
        ("constraint-kept", f"/sessions/{LOST}/constraints/1?at=18"),
        ("constraints-wild", f"/sessions/{WILD}/constraints"),
        ("constraint-wild", f"/sessions/{WILD}/constraints/1"),
    ],
)
def test_it_keeps_nobody_out(
    made: Site, lost_at: str, real_browser: Browser, axe: str, name: str, path: str
) -> None:
    context, tab = open_tab(real_browser, made, lost_at)
    answer = tab.page.goto(f"{lost_at}{path}")
    assert answer is not None and answer.status == 200
    tab.page.locator("h1").wait_for()
    look(tab, axe, name)
    context.close()
    assert tab.errors == []
