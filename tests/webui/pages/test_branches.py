"""Branches as a tree, and two of them side by side."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from replay.recovery.plan import find_checkpoint
from replay.recovery.rollback import roll_back
from tests.webui.asking import ASKING, DECIDED
from tests.webui.going_back import LABEL, SHOP, act, fill_workspace
from tests.webui.hostile.texts import SESSION as HOSTILE
from tests.webui.site import PLAIN, Site, site


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site with a session that was rolled back."""
    fill_workspace(tmp_path / "work")
    with site(tmp_path / "home", fill=lambda ledger: act(ledger, tmp_path / "work")) as one:
        roll_back(one.ledger, SHOP, find_checkpoint(one.ledger, SHOP, LABEL).checkpoint_id, reason="wrong")
        yield one


def test_a_future_that_was_given_up_is_a_branch(made: Site) -> None:
    tree = made.client().get(f"/api/v1/sessions/{SHOP}/branches").json()["branches"]
    assert [(one["depth"], one["kind"]) for one in tree] == [(0, "root"), (1, "abandoned")]
    given_up = tree[1]
    assert given_up["model_calls"] == 1
    assert given_up["here"]["about"] == "edit"
    html = made.client().get(f"/sessions/{SHOP}/branches").text
    assert "given up by a rollback" in html


def test_a_second_answer_is_a_fork(browser: TestClient) -> None:
    tree = browser.get(f"/api/v1/sessions/{ASKING}/branches").json()["branches"]
    assert [one["kind"] for one in tree] == ["root", "fork"]
    assert tree[1]["parent"] == ASKING
    question = browser.get(f"/api/v1/approvals/{DECIDED}").json()
    assert question["second"][0]["session"] == tree[1]["session"]


def test_two_branches_side_by_side(made: Site) -> None:
    client = made.client()
    given_up = client.get(f"/api/v1/sessions/{SHOP}/branches").json()["branches"][1]["id"]
    told = client.get("/api/v1/comparison", params={"left": SHOP, "right": given_up}).json()
    assert told["shared_records"] > 5
    assert (told["divergence"]["kind"], told["divergence"]["left"]) == ("ended", None)
    assert {tool["name"]: (tool["left"], tool["right"]) for tool in told["tools"]} == {
        "edit": (0, 2),
        "transfer": (0, 1),
    }
    html = client.get("/comparison", params={"left": SHOP, "right": given_up}).text
    assert "Where they part" in html and "the left side has nothing more" in html
    assert len(html) < 40_000


def test_a_session_and_itself_do_the_same(browser: TestClient) -> None:
    html = browser.get("/comparison", params={"left": PLAIN, "right": PLAIN}).text
    assert "They do the same" in html


def test_hostile_sessions_are_compared(browser: TestClient) -> None:
    answer = browser.get("/comparison", params={"left": HOSTILE, "right": PLAIN})
    assert answer.status_code == 200
    assert len(answer.content) < 40_000


def test_what_is_no_branch_is_said_to_be_none(browser: TestClient) -> None:
    assert browser.get("/comparison", params={"left": PLAIN, "right": "nothing"}).status_code == 404
    answer = browser.get("/comparison", params={"left": PLAIN, "right": f"{PLAIN}~7"})
    assert answer.status_code == 400
    assert "is no rollback" in answer.text
