"""Cases: findings put together, looked at, signed off once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ledger.events.review import CaseOpened, CaseSignedOff
from tests.webui.pages.test_findings import SHOPS, fill, send
from tests.webui.site import TOKEN, Site, site

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path, fill=fill) as one:
        yield one


def test_a_case_is_opened_looked_at_and_signed_off_once(made: Site) -> None:
    client = made.client()
    page = f"/findings?session={SHOPS}"
    opened = send(client, "/cases", page, title="The baker", findings="shop-0, shop-1\nfinding-1")
    assert opened.status_code == 303
    address = opened.headers["location"]
    told = client.get(f"/api/v1{address}").json()
    assert told["case"]["title"] == "The baker" and told["case"]["opened_by"] == "ana"
    assert [line["id"] for line in told["lines"]] == ["shop-0", "shop-1", "finding-1"]
    case = told["case"]["id"]
    assert send(client, f"/cases/{case}/sign-off", address, outcome="paid back").status_code == 303
    assert "paid back" in client.get(address).text
    again = client.post(f"/api/v1/cases/{case}/sign-off", json={"outcome": "again"}, headers=HEADERS)
    assert again.status_code == 409 and "closed already" in again.json()["sentence"]
    names = (CaseOpened.TYPE, CaseSignedOff.TYPE)
    records = list(made.ledger.store.read("loopledger-acts", names=names))
    assert [record.type for record in records] == list(names)
    assert all(record.actor is not None and record.actor.id == "ana" for record in records)
    assert [one["outcome"] for one in client.get("/api/v1/cases").json()["cases"]] == ["paid back"]


def test_a_case_of_unknown_findings_is_refused(made: Site) -> None:
    answer = send(made.client(), "/cases", "/cases", title="x", findings="nothing-such")
    assert answer.status_code == 404 and "no finding has an id" in answer.text
    answer = send(made.client(), "/cases", "/cases", title="x", findings=" , ")
    assert answer.status_code == 404


def test_an_unknown_case_is_a_404(browser: TestClient) -> None:
    answer = browser.get("/cases?case=nothing")
    assert answer.status_code == 404 and "/cases lists them" in answer.text
