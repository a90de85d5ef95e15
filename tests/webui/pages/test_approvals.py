"""The queue of approvals and the hand brake, as pages and as JSON."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ledger.events import Draft, Event
from ledger.events.approval import ApprovalDecided
from ledger.events.policy import Held, Released
from ledger.events.session import SessionForked
from tests.webui.asking import ASKING, DECIDED, OPEN, question
from tests.webui.site import PLAIN, TOKEN, Site, form_token, site

BASE = f"/approvals/{OPEN}"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path) as one:
        yield one


def decide(client: TestClient, **fields: str) -> Any:
    """Send the form of the question that is open."""
    token = form_token(client.get(BASE).text)
    form = {"form_token": token, "reason": "I looked at it", **fields}
    return client.post(f"{BASE}/decision", data=form, follow_redirects=False)


def decisions(made: Site, session: str = ASKING) -> list[ApprovalDecided]:
    """What was decided, in order."""
    return events(made, session, ApprovalDecided)


def events(made: Site, session: str, kind: type[Event]) -> list[Any]:
    """The events of a kind."""
    return [record.event for record in made.ledger.store.read(session, names=(kind.TYPE,))]


def test_the_queue_lists_what_waits_and_what_was_decided(browser: TestClient) -> None:
    waiting = browser.get("/api/v1/approvals").json()
    assert [line["id"] for line in waiting["lines"]] == [OPEN]
    assert waiting["waiting"] == 1
    line = waiting["lines"][0]
    assert (line["tool"], line["target"], line["effect_class"]) == ("transfer", "acct-77", "irreversible")
    decided = browser.get("/api/v1/approvals", params={"state": "decided", "session": "asks"}).json()
    assert [(line["id"], line["status"], line["by"]) for line in decided["lines"]] == [
        (DECIDED, "denied", "bo")
    ]


def test_a_long_queue_is_paged(made: Site) -> None:
    keeper = made.ledger.recorder.keeper()
    drafts = [Draft(event) for number in range(70) for event in question(keeper, f"more-{number:02}")]
    made.ledger.recorder.append(ASKING, drafts, keeper)
    client = made.client()
    first = client.get("/api/v1/approvals").json()
    rest = client.get("/api/v1/approvals", params={"after": first["next_after"]}).json()
    assert (len(first["lines"]), len(rest["lines"]), rest["next_after"]) == (50, 21, None)
    assert {line["id"] for line in first["lines"]} & {line["id"] for line in rest["lines"]} == set()
    assert len(client.get("/approvals").content) < 40_000


def test_a_question_shows_what_binds_its_answer(browser: TestClient) -> None:
    asked = browser.get(f"/api/v1{BASE}").json()["asked"]
    assert asked["policy_version"] == "5e" * 32
    assert json.loads(asked["arguments"])["amount"] == "1200.00"
    html = browser.get(BASE).text
    for shown in ("1200.00", "acct-77", "irreversible", "5e" * 32, asked["arguments_digest"], "2099"):
        assert shown in html


def test_nobody_answers_two_questions_at_once(browser: TestClient) -> None:
    html = browser.get("/approvals?state=all").text
    assert 'method="post" action="/approvals' not in html
    assert "checkbox" not in html


def test_an_answer_is_recorded_with_who_and_why(made: Site) -> None:
    answer = decide(made.client(), outcome="approved")
    assert (answer.status_code, answer.headers["location"]) == (303, BASE)
    decided = decisions(made)[-1]
    assert (decided.approval_id, decided.outcome, decided.scope, decided.decider) == (
        OPEN,
        "approved",
        "once",
        "ana",
    )
    assert decided.reason is not None
    assert made.ledger.store.content(decided.reason.digest) == b"I looked at it"
    shown = made.client().get(f"/api/v1{BASE}").json()["asked"]["decided"]
    assert (shown["by"], shown["reason"]) == ("ana", "I looked at it")


def test_an_answer_needs_a_reason(made: Site) -> None:
    answer = decide(made.client(), outcome="denied", reason="")
    assert answer.status_code == 400
    assert "reason" in answer.text
    assert len(decisions(made)) == 1


def test_who_comes_second_is_told_and_their_answer_is_kept(made: Site) -> None:
    client = made.client()
    decide(client, outcome="denied")
    second = client.post(
        f"/api/v1{BASE}/decision",
        json={"outcome": "approved", "reason": "it is due"},
        headers={"Authorization": f"Bearer {TOKEN}"},
    ).json()
    assert (second["counts"], second["outcome"], second["by"]) == (False, "denied", "ana")
    assert events(made, second["branch"], SessionForked)
    html = client.get(second["to"]).text
    assert "Your answer does not count" in html
    assert "Came second" in html and "it is due" in html
    assert "Your answer does not count" not in client.get(BASE).text


def test_of_two_people_at_once_one_wins_and_the_other_is_told(made: Site) -> None:
    clients = [made.client(), made.client()]
    answers: list[Any] = []
    tokens = [form_token(client.get(BASE).text) for client in clients]
    start = threading.Barrier(2)

    def work(client: TestClient, token: str, outcome: str) -> None:
        start.wait()
        form = {"form_token": token, "reason": "now", "outcome": outcome}
        answers.append(client.post(f"{BASE}/decision", data=form, follow_redirects=False))

    threads = [
        threading.Thread(target=work, args=each)
        for each in zip(clients, tokens, ("approved", "denied"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.headers["location"] for answer in answers) == [BASE, f"{BASE}?second=1"]
    assert len(decisions(made)) == 2


def test_a_rule_is_shown_whole_with_its_digest_before_it_counts(made: Site) -> None:
    client = made.client()
    wanted = '{"tool": "transfer", "target": "acct-*", "when": {"/amount": "1200.00"}}'
    shown = client.get(f"/api/v1{BASE}/rule", params={"rule": wanted}).json()
    assert shown["problem"] is None
    parts = {line["name"]: (line["before"], line["after"]) for line in shown["lines"]}
    assert parts["target"] == ("null", '"acct-*"')
    html = client.get(f"{BASE}/rule", params={"rule": wanted}).text
    assert shown["digest"] in html
    swapped = decide(client, outcome="approved", scope="rule", rule='{"tool": "*"}', digest=shown["digest"])
    assert swapped.status_code == 409
    assert len(decisions(made)) == 1
    answer = decide(client, outcome="approved", scope="rule", rule=shown["full"], digest=shown["digest"])
    assert answer.status_code == 303
    decided = decisions(made)[-1]
    assert decided.rule is not None
    assert (decided.scope, decided.rule.digest) == ("rule", shown["digest"])


@pytest.mark.parametrize(
    "rule", ["{", "[]", '{"tool": 3}', '{"tool": "transfer", "unknown": 1}', '{"tool": "mail"}']
)
def test_a_rule_that_cannot_be_used_says_why(browser: TestClient, rule: str) -> None:
    answer = browser.get(f"{BASE}/rule", params={"rule": rule})
    assert answer.status_code == 200
    assert "It cannot be used." in answer.text
    assert "Approve by this rule" not in answer.text


def test_a_question_whose_time_is_over_counts_as_denied(made: Site) -> None:
    keeper = made.ledger.recorder.keeper()
    late = question(keeper, "late", expires_at="2020-01-01T00:00:00.000000Z")
    made.ledger.recorder.append(ASKING, [Draft(event) for event in late], keeper)
    client = made.client()
    assert "Its time is over" in client.get("/approvals/late").text
    form = {"form_token": form_token(client.get(BASE).text), "outcome": "approved", "reason": "ok"}
    answer = client.post("/approvals/late/decision", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/approvals/late?second=1"
    assert decisions(made)[-1].outcome == "timed_out"


def test_an_unknown_question_is_a_404(browser: TestClient) -> None:
    answer = browser.get("/approvals/nothing")
    assert answer.status_code == 404
    assert "/approvals lists them" in answer.text


def test_a_session_is_held_and_released_with_a_reason(made: Site) -> None:
    client = made.client()
    overview = f"/sessions/{ASKING}"
    token = form_token(client.get(overview).text)
    form = {"form_token": token, "reason": "it loops"}
    assert client.post(f"{overview}/hold", data=form, follow_redirects=False).status_code == 303
    html = client.get(overview).text
    assert "HELD." in html and "by ana" in html and "it loops" in html
    assert client.post(f"{overview}/release", data=form, follow_redirects=False).status_code == 303
    assert "HELD." not in client.get(overview).text
    assert len(events(made, ASKING, Held)) == len(events(made, ASKING, Released)) == 1
    again = client.post(f"{overview}/release", data=form, follow_redirects=False)
    assert again.status_code == 409
    assert "Nothing holds" in again.text


def test_an_ended_session_has_no_brake(browser: TestClient) -> None:
    assert f'action="/sessions/{PLAIN}/hold"' not in browser.get(f"/sessions/{PLAIN}").text
