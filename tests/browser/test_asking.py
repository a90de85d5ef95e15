"""What people ask and give: SQL as a link, words, files by drop, a verification; in Chromium, also without scripts."""

import base64
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SCREENSHOTS, Watched, open_tab
from tests.webui.site import PLAIN, Site, served_site, site

QUERY = (
    "select session, seq, tool, outcome from events"
    " where type = 'tool_call.settled' and session = $session order by seq"
)
CHAT = (
    '[{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "Under the mat."}]'
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """A site of its own, and where it is served."""
    with site(tmp_path) as made, served_site(made) as url:
        yield made, url


def keep(page: Page, name: str) -> None:
    """A picture of a page as it is now, in both themes."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=SCREENSHOTS / f"{name}-{theme}.png")


def drop_files(page: Page, paths: list[Path], field: int = 0) -> None:
    """Drop files onto a field as a person does with a mouse: scripts cannot do this."""
    box = page.locator("input[type=file]").nth(field).bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})


@pytest.mark.parametrize("scripts", [True, False])
def test_a_question_in_sql(real_browser: Browser, desk: tuple[Site, str], scripts: bool) -> None:
    made, url = desk
    context, tab = open_tab(real_browser, made, url, java_script_enabled=scripts, accept_downloads=True)
    page = tab.page
    page.goto(f"{url}/sql")
    page.get_by_label("SQL, in DuckDB's dialect").fill(QUERY)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("parameter session is not given")
    page.get_by_label("session", exact=False).last.fill(PLAIN)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("status").first).to_contain_text("40 rows")
    keep(page, f"asked-sql{'' if scripts else '-plain'}")
    link = page.url
    with page.expect_download() as waiting:
        page.get_by_role("link", name="csv").click()
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    assert len(rows) == 41 and rows[1][:2] == [PLAIN, "9"]
    page.get_by_role("link", name="9", exact=True).click()
    expect(page.get_by_role("heading", name="tool_call.settled")).to_be_visible()
    page.goto(link)  # somebody else opens the link
    expect(page.get_by_role("status").first).to_contain_text("40 rows")
    page.get_by_role("link", name="Slowest calls").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Slowest calls")
    keep(page, f"asked-saved{'' if scripts else '-plain'}")
    context.close()
    assert tab.errors == []


def test_words_lead_to_the_record(tab: Watched, address: str) -> None:
    page = tab.page
    page.goto(f"{address}/search")
    page.keyboard.press("/")
    page.keyboard.type("half tidy")
    page.keyboard.press("Enter")
    hit = page.locator(".hits li").first
    expect(hit.locator("b").first).to_have_text("half")
    keep(page, "asked-search")
    hit.get_by_role("link").click()
    expect(page.get_by_role("heading", name="compaction.done")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_files_are_imported_by_drop(
    real_browser: Browser, desk: tuple[Site, str], tmp_path: Path, scripts: bool
) -> None:
    made, url = desk
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "chat <b>.json").write_text(CHAT, encoding="utf-8")
    (folder / "picture.png").write_bytes(base64.b64decode("iVBORw0KGgo="))
    context, tab = open_tab(real_browser, made, url, java_script_enabled=scripts)
    page = tab.page
    page.goto(f"{url}/import")
    drop_files(page, sorted(folder.iterdir()))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Import")
    report = page.get_by_role("region", name="Files")
    if scripts:
        expect(report).to_be_visible()
    else:
        for _ in range(600):
            if report.is_visible():
                break
            page.get_by_role("link", name="Look again").click()
    expect(report).to_contain_text("chat _b_.json")
    expect(report).to_contain_text("not imported")
    keep(page, f"asked-import{'' if scripts else '-plain'}")
    report.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Last events")).to_be_visible()
    context.close()
    assert tab.errors == []


def test_a_folder_is_imported_by_drop_onto_its_field(
    real_browser: Browser, desk: tuple[Site, str], tmp_path: Path
) -> None:
    made, url = desk
    folder = tmp_path / "traces"
    (folder / "deep").mkdir(parents=True)
    (folder / "first.json").write_text(CHAT, encoding="utf-8")
    (folder / "deep" / "second.json").write_text(CHAT.replace("key", "cat"), encoding="utf-8")
    context, tab = open_tab(real_browser, made, url)
    page = tab.page
    page.goto(f"{url}/import")
    drop_files(page, [folder])
    sentence = "This is a folder, or a file that cannot be read: folders go into the other field."
    expect(page.locator("input[type=file]").first).to_have_js_property("validationMessage", sentence)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page).to_have_url(f"{url}/import")  # nothing was sent
    drop_files(page, [folder], field=1)
    page.get_by_role("button", name="Import the folder").click()
    report = page.get_by_role("region", name="Files")
    expect(report).to_be_visible()
    expect(report).to_contain_text("traces/first.json")
    expect(report).to_contain_text("traces/deep/second.json")
    expect(page.get_by_role("status").first).to_contain_text("2 sessions")
    context.close()
    assert tab.errors == []


def test_a_session_is_verified(real_browser: Browser, desk: tuple[Site, str]) -> None:
    made, url = desk
    context, tab = open_tab(real_browser, made, url)
    page = tab.page
    page.goto(f"{url}/sessions/{PLAIN}/integrity")
    page.get_by_role("button", name="Verify now").click()
    page.get_by_role("link", name="Look at what came of it").click()
    expect(page.get_by_text("Nothing is wrong")).to_be_visible()
    keep(page, "asked-integrity")
    context.close()
    assert tab.errors == []
