"""A broken detector stops neither the pages nor an audit that is asked for there; both say what is wrong with it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.audit.test_broken import GOOD
from tests.ledger.audit.test_running import HEAD, own
from tests.webui.site import PLAIN, TOKEN, Site, site

DEADLINE_S = 120


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site whose home holds a detector that works and two that do not."""
    with site(tmp_path) as one:
        home = one.ledger.home
        own(home, "good.sql", HEAD + GOOD)
        own(home, "bad_head.sql", GOOD)
        own(home, "bad_query.sql", HEAD + "select nothing from tool_calls")
        yield one


def test_rules_lists_a_broken_one_with_what_is_wrong(made: Site) -> None:
    client = made.client()
    lines = {one["name"]: one for one in client.get("/api/v1/rules").json()["rules"]}
    assert (lines["bad_head"]["state"], lines["good"]["state"]) == ("broken", "on")
    assert "the head lacks a line" in client.get("/rules/bad_head").text
    assert client.get("/rules").status_code == 200
    assert client.get("/findings/finding-1").status_code == 200


def test_an_audit_from_the_page_says_which_detectors_failed(made: Site) -> None:
    client = made.client()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    client.post("/api/v1/findings", json={"session": PLAIN}, headers=headers)
    deadline = time.monotonic() + DEADLINE_S
    while not (running := client.get("/api/v1/findings").json()["running"]).startswith("The last audit"):
        assert time.monotonic() < deadline, running
        time.sleep(0.1)
    assert "looked at 1 sessions" in running
    assert "A detector failed: bad_head: " in running and "A detector failed: bad_query: " in running
