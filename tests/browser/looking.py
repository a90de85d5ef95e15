"""Looks at a page that only a journey reaches as every page is looked at: both themes, a narrow screen, axe."""

from typing import Literal

from tests.browser.conftest import SCREENSHOTS, Watched

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_AXE = (
    "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})"
    ".then(result => result.violations.map(one => one.id + ': ' + one.nodes[0].html))"
)


def look(tab: Watched, axe: str, name: str) -> None:
    """Keep pictures of the page that is open; fail where somebody is kept out or something sticks out."""
    page = tab.page
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    size = page.viewport_size
    page.evaluate(axe)
    themes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=SCREENSHOTS / f"{name}-{theme}.png", full_page=True)
        found = page.evaluate(_AXE, _TAGS)
        assert not found, f"{name}, {theme}: {found}"
    page.set_viewport_size({"width": 320, "height": 640})
    page.screenshot(path=SCREENSHOTS / f"{name}-320.png", full_page=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320, f"{name} sticks out"
    if size is not None:
        page.set_viewport_size(size)
