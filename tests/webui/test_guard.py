"""Who may call the server: its own pages with a login, exporters and harnesses as before, foreign pages never."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ledger.errors import InputError
from tests.webui.served import PROTOBUF, batch
from tests.webui.site import NAME, PLAIN, TOKEN, Site, site
from webui.logins import COOKIE, Logins, read_token

FOREIGN = (
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "same-origin, cross-site"},
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site."""
    home: Path = tmp_path_factory.mktemp("guarded")
    with site(home) as made:
        yield made


def bare(shop: Site) -> TestClient:
    """A program: no cookie, no word of where it comes from."""
    return TestClient(shop.app, base_url="http://127.0.0.1:4318")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4318", "127.0.0.1.evil.example", "", "localhost"]
)
@pytest.mark.parametrize(
    "path", ["/sessions", "/v1/traces", "/run/x/v1/messages", "/healthz", "/static/app.css"]
)
def test_a_foreign_name_of_the_server_is_refused(shop: Site, host: str, path: str) -> None:
    answer = shop.client().get(path, headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1/x",
        "127.0.0.1@evil.example",
        "[127.0.0.1]evil.example",
        "[127.0.0.1",
        "127.0.0.1 evil.example",
    ],
)
def test_a_name_with_more_than_a_port_is_none_of_its_own(shop: Site, host: str) -> None:
    assert bare(shop).get("/healthz", headers={"host": host}).status_code == 421


def test_of_two_names_none_is_its_own(shop: Site) -> None:
    answer = bare(shop).get("/healthz", headers=[("host", "evil.example"), ("host", "127.0.0.1")])
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:4318", f"{NAME}:4318", NAME.upper()])
def test_its_own_names_are_taken(shop: Site, host: str) -> None:
    assert bare(shop).get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/display", "/logout", "/login", f"/api/v1/sessions/{PLAIN}", "/nowhere"])
def test_a_foreign_page_cannot_post_even_with_the_cookie(
    shop: Site, headers: dict[str, str], path: str
) -> None:
    client = shop.client()
    client.headers.pop("sec-fetch-site")
    answer = client.post(path, data={"theme": "dark"}, headers=headers)
    assert answer.status_code == 403


def test_a_post_that_does_not_say_where_it_comes_from_needs_the_token(shop: Site) -> None:
    client = shop.client()
    client.headers.pop("sec-fetch-site")
    assert client.post("/display", data={"theme": "dark"}).status_code == 403
    assert client.post("/nowhere", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 404


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/run/x/v1/messages"])
def test_a_foreign_page_cannot_reach_the_machine_endpoints(
    shop: Site, headers: dict[str, str], path: str
) -> None:
    answer = bare(shop).post(path, content=b"{}", headers={"content-type": "text/plain", **headers})
    assert answer.status_code == 403


def test_an_exporter_needs_no_cookie(shop: Site) -> None:
    answer = bare(shop).post("/v1/traces", content=batch(0, 3), headers={"content-type": PROTOBUF})
    assert answer.status_code == 200


def test_a_harness_needs_no_cookie_and_keeps_its_own_authorization(shop: Site) -> None:
    answer = bare(shop).get("/run", headers={"authorization": "Bearer key-of-a-provider"})
    assert answer.status_code != 401


def test_a_program_asks_with_the_token(shop: Site) -> None:
    program = bare(shop)
    assert program.get("/api/v1/sessions").status_code == 401
    assert program.get("/api/v1/sessions", headers={"authorization": "Bearer wrong"}).status_code == 401
    answer = program.get("/api/v1/sessions", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert json.loads(answer.content)["lines"]


def test_the_cookie_is_for_this_site_alone(shop: Site) -> None:
    answer = bare(shop).get(f"/login?code={shop.logins.new_code()}")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie


def test_a_login_ends(shop: Site) -> None:
    client = shop.client()
    assert client.get("/sessions", follow_redirects=False).status_code == 200
    cookie = client.cookies[COOKIE]
    client.post("/logout")
    client.cookies.set(COOKIE, cookie)
    assert client.get("/sessions", follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    "there", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "/x\n"]
)
def test_a_login_leads_nowhere_else(shop: Site, there: str) -> None:
    answer = bare(shop).get("/login", params={"code": shop.logins.new_code(), "next": there})
    assert answer.status_code == 200
    assert answer.headers["refresh"] == "0;url=/sessions"


def test_a_code_works_once_and_not_for_long() -> None:
    now = [0.0]
    logins = Logins("ana", now=lambda: now[0])
    code, late = logins.new_code(), logins.new_code()
    cookie = logins.redeem(code)
    assert cookie is not None and logins.redeem(code) is None
    login = logins.by_cookie(cookie)
    assert login is not None and login.name == "ana"
    now[0] = 301
    assert logins.redeem(late) is None
    assert logins.with_token("anything", "") is None


def test_a_token_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "web.token"
    token = read_token(path, make=True)
    assert read_token(path, make=True) == token and len(token) >= 32
    assert path.stat().st_mode & 0o077 == 0
    path.write_text("short", encoding="ascii")
    with pytest.raises(InputError, match="expected at least 32"):
        read_token(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "absent")


def test_every_answer_has_the_walls(shop: Site) -> None:
    for path in ("/sessions", "/static/app.css", "/login", "/nowhere", "/api/v1/sessions"):
        headers = shop.client().get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


def test_a_nonce_is_used_once(shop: Site) -> None:
    client = shop.client()
    policies = {client.get("/help").headers["content-security-policy"] for _ in range(5)}
    assert len(policies) == 5


@pytest.mark.parametrize("path", ["/cases", "/api/v1/cases"])
def test_an_address_names_all_its_methods(shop: Site, path: str) -> None:
    for method in ("OPTIONS", "PUT", "DELETE"):
        answer = shop.client().request(method, path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_the_head_of_a_page_is_that_of_the_page(shop: Site) -> None:
    whole, head = shop.client().get("/sessions"), shop.client().head("/sessions")
    assert head.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert shop.client(logged_in=False).head("/sessions", follow_redirects=False).status_code == 303
