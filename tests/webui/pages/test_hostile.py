"""A session full of hostile texts through every page and every answer of the API: they are shown, and nothing more."""

import html.parser
import json
import unicodedata

import pytest
from starlette.testclient import TestClient

from ledger.cli.terminal import visible as escaped
from ledger.events.catalog import EVENTS
from tests.webui.hostile.texts import CORPUS, SESSION
from tests.webui.pages.test_every_page import MOST_BYTES
from tests.webui.site import Site, addresses
from webui.dependencies import segment
from webui.fitting import weight
from webui.visible import cut

_TAGS = frozenset(
    "html head meta title link script body a header nav ul ol li form span button main p b i em time input label select"
    " option section div h1 h2 h3 h4 dl dt dd table thead tbody tr th td small svg rect path figure figcaption pre code"
    " kbd br details summary textarea fieldset legend strong g text line circle polyline polygon desc marker"
    " defs img".split()
)
_SCRIPTS = ("/static/",)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Reader(html.parser.HTMLParser):
    """Notes what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        """What no page of ours may hold."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag."""
        if tag not in _TAGS:
            self.wrong.append(f"<{tag}>")
        given = {name: value or "" for name, value in attrs}
        if tag == "script" and not (given.get("src", "").startswith(_SCRIPTS) and given.get("nonce")):
            self.wrong.append("a script that is not ours")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.wrong.append(f"{tag}[{name}]")
            if name in ("href", "src", "action") and not value.startswith(("/", "#", "data:,")):
                self.wrong.append(f"{tag}[{name}={value[:60]}]")
            if name.startswith("hx-") and name not in ("hx-ignore", "hx-nonce") and not given.get("hx-nonce"):
                self.wrong.append(f"{tag}[{name}] without hx-nonce")


def hidden_in(text: str) -> set[str]:
    """Characters that nobody sees, but for line ends and tabs."""
    return {char for char in text if unicodedata.category(char) in _HIDDEN and char not in "\n\t"}


@pytest.mark.parametrize("path", addresses(SESSION))
def test_a_page_only_shows_them(shop: Site, path: str) -> None:
    browser = shop.client(raises=False)
    for part in ({}, {"HX-Request-Type": "partial"}):
        answer = browser.get(path, headers=part)
        if "/contents/" in path:
            assert answer.status_code in (200, 404)
            continue
        assert answer.status_code == 200
        reader = Reader()
        reader.feed(answer.text)
        assert reader.wrong == []
        assert hidden_in(answer.text) == set()


@pytest.mark.parametrize("path", addresses(SESSION, api=True))
def test_json_holds_nothing_that_a_terminal_obeys(shop: Site, path: str) -> None:
    answer = shop.client(raises=False).get(path)
    assert answer.status_code == 200
    json.loads(answer.content)
    assert answer.text.isprintable()


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_a_hostile_text_in_the_address_is_only_a_wrong_address(shop: Site, name: str) -> None:
    browser = shop.client(raises=False)
    text = CORPUS[name][:80].encode("utf-8", "replace").decode()
    for path in (
        f"/sessions/{segment(text)}",
        f"/api/v1/sessions/{segment(text)}",
        f"/sessions/plain-0001/state/20?path=%2F{segment(text)}",
    ):
        answer = browser.get(path)
        assert answer.status_code in (400, 404), path
        assert hidden_in(answer.text) == set()
    for field in ("q", "kind", "agent"):
        answer = browser.get("/sessions/plain-0001/events", params={field: text})
        assert answer.status_code == 200
        reader = Reader()
        reader.feed(answer.text)
        assert reader.wrong == []
        assert hidden_in(answer.text) == set()


def test_every_event_of_the_hostile_session_opens(browser: TestClient) -> None:
    texts = len(CORPUS)
    rows = browser.get(f"/api/v1/sessions/{segment(SESSION)}/events").json()
    assert rows["total"] > 60 * texts
    for seq in range(1, rows["total"], 61):
        answer = browser.get(f"/sessions/{segment(SESSION)}/events/{seq}")
        assert answer.status_code == 200, seq
        reader = Reader()
        reader.feed(answer.text)
        assert reader.wrong == []


HEAVY = sorted(CORPUS, key=lambda name: weight(cut(CORPUS[name], 1000)), reverse=True)[:3]
"""Texts that take the most bytes in a page."""
HALF = [name for name, text in CORPUS.items() if not text.isascii() and "\\ud" in ascii(text)][:1]
"""A text with half a character."""


@pytest.mark.parametrize("name", [*HEAVY, *HALF])
def test_a_record_whose_every_field_is_hostile_opens_small(shop: Site, name: str) -> None:
    browser = shop.client(raises=False)
    first = 1 + len(EVENTS) * list(CORPUS).index(name)
    for seq, kind in enumerate(EVENTS, first):
        answer = browser.get(f"/sessions/{segment(SESSION)}/events/{seq}")
        assert answer.status_code == 200, (seq, kind.TYPE)
        assert len(answer.content) <= MOST_BYTES, (seq, kind.TYPE)


def test_a_raw_content_is_a_file_and_never_a_page(browser: TestClient) -> None:
    session = segment(SESSION)
    seq = 2
    record = browser.get(f"/api/v1/sessions/{session}/events/{seq}").json()["opened"]
    while not record["contents"]:
        seq += 1
        record = browser.get(f"/api/v1/sessions/{session}/events/{seq}").json()["opened"]
    answer = browser.get(
        f"/sessions/{session}/contents/{seq}", params={"path": record["contents"][0]["path"]}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_problem_sentences_are_escaped() -> None:
    assert escaped("a\x1bb") == "a\\x1bb"
