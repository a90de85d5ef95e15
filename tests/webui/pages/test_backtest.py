"""Backtests from the page: rules against the past, kept, compared, refused with the line that is wrong."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ledger.events.review import EvidenceExported, NoteWritten
from tests.webui.pages.test_findings import SHOPS, fill
from tests.webui.site import Site, form_token, site

RULES = """rules:
  - name: pays_twice
    title: A payment after a payment
    severity: high
    action: deny
    steps:
      - call: pay
      - call: pay
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path, fill=fill) as one:
        yield one


def ask(client: TestClient, **fields: str) -> Any:
    """Send the form."""
    token = form_token(client.get("/backtest").text)
    return client.post("/backtest", data={"form_token": token, **fields}, follow_redirects=False)


def done(client: TestClient) -> str:
    """Wait until it is kept; gives its file."""
    deadline = time.monotonic() + 400
    while True:
        told = client.get("/api/v1/backtest").json()
        if told["latest"]:
            return str(told["latest"])
        assert "failed" not in told["running"], told["running"]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_rules_are_held_against_the_past_and_the_answer_is_kept(made: Site) -> None:
    client = made.client()
    assert ask(client, name="payments", rules=RULES).status_code == 303
    kept = done(client)
    answer = client.get("/api/v1/backtest", params={"kept": kept}).json()["answer"]
    (tally,) = answer["tallies"]
    assert (tally["rule"], tally["matched"], tally["would_block"]) == ("pays_twice", 1, 1)
    assert [(one["session"], one["seq"]) for one in tally["examples"]] == [(SHOPS, 4)]
    html = client.get("/backtest", params={"kept": kept}).text
    assert f'href="/sessions/{SHOPS}/events/4"' in html and "pays_twice" in html
    records = made.ledger.store.read("backtests", names=(EvidenceExported.TYPE,))
    assert [record.event.to for record in records if isinstance(record.event, EvidenceExported)] == [
        f"backtests/{kept}"
    ]
    asked = list(made.ledger.store.read("loopledger-acts", names=(NoteWritten.TYPE,)))
    assert len(asked) == 1 and asked[0].actor is not None and asked[0].actor.id == "ana"


def test_two_versions_are_compared(made: Site) -> None:
    client = made.client()
    older = RULES.replace("call: pay", "call: sell")
    assert ask(client, name="payments", rules=RULES, against=older).status_code == 303
    answer = client.get("/api/v1/backtest", params={"kept": done(client)}).json()["answer"]
    assert (answer["has_difference"], answer["newly"], answer["no_longer"]) == (True, 1, 0)


def test_wrong_rules_are_refused_with_their_line(made: Site) -> None:
    answer = ask(made.client(), name="payments", rules=RULES.replace("call: pay", "calls: pay", 1))
    assert answer.status_code == 409
    assert "rules:7" in answer.text


def test_what_was_not_kept_is_a_404_and_a_path_is_no_name(browser: TestClient) -> None:
    missing = browser.get("/backtest", params={"kept": f"payments-{'0' * 16}.json"})
    assert missing.status_code == 404
    assert browser.get("/backtest", params={"kept": "../ledger.sqlite"}).status_code == 400
