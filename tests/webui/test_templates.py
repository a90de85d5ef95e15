"""What templates may not hold, whoever writes them. Messages say what to write instead."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import report
from webui.vendoring import VENDOR, missing, wanted

WEBUI = Path(__file__).parent.parent.parent / "webui"
TEMPLATES = sorted((WEBUI / "templates").glob("*.html"))
_TAG = re.compile(r"<[a-zA-Z][^<>]*(?:{[{%].*?[%}]}[^<>]*)*>", re.DOTALL)
_LARGEST_SCRIPT = 6 * 1024 + 512

FORBIDDEN = {
    r"\|\s*safe\b": "Text of a trace is never markup: leave it to the escaping.",
    r"\bMarkup\b": "Text of a trace is never markup: leave it to the escaping.",
    r"<script(?![^>]*\bsrc=)": "No script in a page: it goes into static/app.js.",
    r"<style\b": "No style in a page: it goes into static/app.css.",
    r"\sstyle=": "The content security policy stops style attributes: use a class, or attributes of SVG.",
    r"\son[a-z]+=": "The content security policy stops handlers in attributes: use data-key or static/app.js.",
    r"\bhx-on\b": "hx-on runs text as a script, which the policy stops: use static/app.js.",
    r"\bjs:": "js: runs text as a script, which the policy stops.",
    r'href="#"': "A link leads somewhere: give it an address that does the same without JavaScript.",
    r"\bhx-confirm\b": "What cannot be undone gets a page of its own, with a reason.",
    r"\{%-?\s*autoescape": "Escaping stays on.",
}


def lines_with(pattern: str) -> Iterator[str]:
    """Where a pattern stands in a template."""
    for path in TEMPLATES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                yield f"{path.name}:{number}: {line.strip()[:100]}"


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_template_holds(pattern: str) -> None:
    report(FORBIDDEN[pattern], lines_with(pattern))


def test_what_htmx_acts_on_carries_our_nonce() -> None:
    report(
        'An element with hx-* attributes carries hx-nonce="{{ shell.nonce }}", or hx-csp takes them away.',
        (
            f"{path.name}: {tag[:100]}"
            for path in TEMPLATES
            for tag in _TAG.findall(path.read_text(encoding="utf-8"))
            if re.search(r"\shx-(?!ignore\b|nonce\b|csp\b)", tag) and "hx-nonce=" not in tag
        ),
    )


def test_every_form_that_acts_carries_the_token_of_the_login() -> None:
    exempt = ("/login", "/logout", "/display")
    report(
        'A form with method="post" holds {% include "_token.html" %}.',
        (
            f"{path.name}: {form[:100]}"
            for path in TEMPLATES
            for form in re.findall(r"<form\b.*?</form>", path.read_text(encoding="utf-8"), re.DOTALL)
            if 'method="post"' in form
            and "_token.html" not in form
            and not any(f'action="{action}"' in form for action in exempt)
        ),
    )


def test_only_rendering_uses_jinja() -> None:
    report(
        "webui/rendering.py has the only Jinja environment: call its render().",
        (
            path.name
            for path in sorted(WEBUI.rglob("*.py"))
            if path.name != "rendering.py" and re.search(r"\bjinja2\b|HTMLResponse", path.read_text("utf-8"))
        ),
    )


def test_our_own_script_stays_small() -> None:
    assert (WEBUI / "static" / "app.js").stat().st_size < _LARGEST_SCRIPT


def test_htmx_is_there_with_our_digests() -> None:
    assert missing() == [], "run `make setup`, or `python -m webui.vendoring`"
    assert {path.name for path in VENDOR.iterdir()} == {one["name"] for one in wanted()["files"].values()}


# -- colours ---------------------------------------------------------------------------------------------------------


def tokens(theme: int) -> dict[str, str]:
    """The colours of a theme: 0 light, 1 dark."""
    css = (WEBUI / "static" / "app.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--([a-z]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", css)
    return {name: (light, dark)[theme] for name, light, dark in pairs}


def luminance(color: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast of two colours, as WCAG defines it."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["fg", "muted", "accent", "high", "medium", "ok", "info"])
@pytest.mark.parametrize("ground", ["bg", "panel", "selected"])
def test_text_can_be_read(theme: int, text: str, ground: str) -> None:
    colors = tokens(theme)
    assert contrast(colors[text], colors[ground]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_diffs_and_controls_can_be_seen(theme: int) -> None:
    colors = tokens(theme)
    assert contrast(colors["fg"], colors["added"]) >= 7
    assert contrast(colors["fg"], colors["removed"]) >= 7
    assert contrast(colors["control"], colors["bg"]) >= 3


def test_the_wheel_carries_pages_and_scripts() -> None:
    project = tomllib.loads((WEBUI.parent / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["setuptools"]["package-data"]["*"]
    assert {"templates/*.html", "static/*", "static/vendor/*", "vendor.toml"} <= set(carried)
