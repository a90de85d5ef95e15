"""Every page, found by itself: as a page, as a part for htmx, as JSON, and when it is asked wrongly."""

import json

import pytest
from starlette.testclient import TestClient

from tests.webui.site import PLAIN, Site, addresses
from webui.page import all_pages

MOST_BYTES = 40_000
_NOT_PAGES = ("/contents/",)
PAGES = [path for path in addresses(PLAIN) if not any(part in path for part in _NOT_PAGES)]
TWINS = addresses(PLAIN, api=True)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_small_and_says_what_caches_must_know(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200
    assert len(answer.content) <= MOST_BYTES
    assert answer.headers["vary"] == "HX-Request-Type"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", PAGES)
def test_what_htmx_gets_is_no_whole_page_when_there_is_a_part(browser: TestClient, path: str) -> None:
    whole = browser.get(path)
    part = browser.get(path, headers={"HX-Request-Type": "partial"})
    assert part.status_code == 200
    assert len(part.content) <= len(whole.content)


@pytest.mark.parametrize("path", TWINS)
def test_a_twin_is_json(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    json.loads(answer.content)


def test_every_twin_is_described(browser: TestClient) -> None:
    described = browser.get("/api/v1/openapi.json").json()
    paths = {route.path for page in all_pages() for route in page.api.routes}  # type: ignore[attr-defined]
    assert paths == set(described["paths"])
    undescribed = [
        f"{name}.{field}"
        for name, schema in described["components"]["schemas"].items()
        for field, told in schema.get("properties", {}).items()
        if name.endswith("Context") and "description" not in told
    ]
    assert undescribed == []


@pytest.mark.parametrize("path", addresses("no-such-session"))
def test_an_unknown_session_is_a_404_that_helps(browser: TestClient, path: str) -> None:
    if "/sessions/" not in path:
        return
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "no session has an id that starts with" in answer.text
    assert "/help" in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_a_page_without_a_login(shop: Site, path: str) -> None:
    stranger = shop.client(logged_in=False)
    answer = stranger.get(path, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=")
    twin = stranger.get(f"/api/v1{path}")
    assert twin.status_code == 401
    assert twin.headers["www-authenticate"] == "Bearer"


def test_titles_of_the_navigation_differ() -> None:
    for is_of_session in (True, False):
        titles = [
            page.entry.title
            for page in all_pages()
            if page.entry is not None and ("{session}" in page.entry.link) == is_of_session
        ]
        assert len(titles) == len(set(titles))


def test_an_id_may_be_given_by_its_beginning(browser: TestClient) -> None:
    assert browser.get("/sessions/plain").status_code == 200


def test_a_wrong_parameter_is_named(browser: TestClient) -> None:
    answer = browser.get(f"/sessions/{PLAIN}/events?at=x")
    assert answer.status_code == 400
    assert "&#39;at&#39;" in answer.text
    twin = browser.get(f"/api/v1/sessions/{PLAIN}/events?level=worst")
    assert twin.status_code == 400
    assert "'level'" in twin.json()["sentence"]


def test_a_fault_shows_nothing_of_the_inside(shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(shop.ledger.store, "resolve", fail)
    answer = shop.client(raises=False).get(f"/sessions/{PLAIN}")
    assert answer.status_code == 500
    assert "secret inside" not in answer.text and "Traceback" not in answer.text
    assert "about request" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
