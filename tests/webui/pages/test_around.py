"""What a page shows around a record: its call, its question, findings and notes; ranges, forks, names for ids."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ledger.events.recovery import BranchOpened
from ledger.events.review import NoteWritten
from tests.webui.asking import ASKING, OPEN
from tests.webui.site import PLAIN, Site, form_token, site

BASE = f"/sessions/{PLAIN}"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path) as one:
        yield one


def opened(client: TestClient, session: str, seq: int) -> dict[str, Any]:
    """An event, as the page shows it."""
    found: dict[str, Any] = client.get(f"/api/v1/sessions/{session}/events/{seq}").json()["opened"]
    return found


def named(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What belongs to an event: what it is, and where."""
    return [(link["name"], link["href"]) for link in found["links"]]


def test_a_question_on_the_timeline_leads_to_its_page_and_to_its_call(browser: TestClient) -> None:
    found = named(opened(browser, ASKING, 5))
    assert ("question", f"/approvals/{OPEN}?session={ASKING}") in found
    assert ("same call", f"/sessions/{ASKING}/events/4") in found
    for _, href in found:
        assert browser.get(href).status_code == 200
    html = browser.get(f"/sessions/{ASKING}/events/5").text
    assert "what was asked, and the answer" in html


def test_a_witness_leads_to_its_finding_and_a_checkpoint_to_its_rollback(browser: TestClient) -> None:
    assert ("finding", "/findings/finding-1") in named(opened(browser, PLAIN, 3))
    assert ("go back", f"{BASE}/rollback?to=4") in named(opened(browser, PLAIN, 4))
    compaction = next(
        seq for seq in range(100, 120) if opened(browser, PLAIN, seq)["type"] == "compaction.done"
    )
    name, href = named(opened(browser, PLAIN, compaction))[0]
    assert (name, href) == ("context", f"{BASE}/diff?a={compaction - 1}&b={compaction}&section=context")


def test_a_note_about_any_record_is_kept_under_a_name_and_shown(made: Site) -> None:
    client = made.client()
    token = form_token(client.get(f"{BASE}/events/9").text)
    sent = client.post(
        f"{BASE}/events/9/notes",
        data={"form_token": token, "text": "the shelf <b>was</b> empty"},
        follow_redirects=False,
    )
    assert sent.headers["location"] == f"{BASE}/events/9"
    (note,) = opened(client, PLAIN, 9)["notes"]
    assert (note["by"], note["text"]) == ("ana", "the shelf <b>was</b> empty")
    record = made.ledger.store.record(PLAIN, note["seq"])
    assert isinstance(record.event, NoteWritten) and record.event.about == f"{PLAIN}#9"
    html = client.get(f"{BASE}/events/9", headers={"hx-request-type": "partial"})
    assert "&lt;b&gt;was&lt;/b&gt;" in html.text and html.headers["cache-control"] == "no-store"
    assert client.post(f"{BASE}/events/9999/notes", data={"form_token": token, "text": "x"}).status_code in (
        404,
        409,
    )


def test_a_range_is_a_filter(browser: TestClient) -> None:
    found = browser.get(f"/api/v1{BASE}/events?since=40&upto=60").json()
    assert [row[0] for row in found["rows"]] == list(range(40, 61)) and found["shown"] == 21
    assert found["query"]["since"] == "40"
    assert browser.get(f"/api/v1{BASE}/bounds?since=40&upto=60").json()["bounds"] == [40]
    assert browser.get(f"{BASE}/events?since=&upto=60").status_code == 200
    wrong = browser.get(f"{BASE}/events?since=ten")
    assert wrong.status_code == 400 and "since" in wrong.text


def test_a_fork_runs_nothing_and_names_who_and_why(made: Site) -> None:
    client = made.client()
    page = client.get(f"{BASE}/fork?at=20")
    assert (
        "It shares the first 20 records" in page.text and "loopledger branch plain-0001 --at 20" in page.text
    )
    form = {"form_token": form_token(page.text), "at": "20", "message": "Look behind it.", "reason": "to see"}
    sent = client.post(f"{BASE}/fork", data=form, follow_redirects=False)
    branch = sent.headers["location"].split("/")[2]
    records = list(made.ledger.store.read(branch))
    assert [record.type for record in records] == [
        "session.started",
        "session.forked",
        "input.message_received",
        "review.note_written",
    ]
    assert [record.actor.id for record in records[2:] if record.actor] == ["ana", "ana"]
    assert [
        one.event.branch for one in made.ledger.store.read(PLAIN) if isinstance(one.event, BranchOpened)
    ] == [branch]
    assert client.get(sent.headers["location"]).status_code == 200
    assert client.get(f"{BASE}/fork?at=9999").status_code == 404
    assert client.post(f"{BASE}/fork", data={**form, "reason": ""}).status_code in (400, 422)


def test_a_state_goes_to_any_record_and_tells_rules_in_their_words(browser: TestClient) -> None:
    html = browser.get(f"{BASE}/state?at=30").text
    assert "State after" in html and "“Never delete orders.”" in html
    assert "before the work (start)" in html
    assert browser.get(f"{BASE}/state?at=9999").status_code == 404
    assert browser.get(f"{BASE}/state?at=").status_code == 200


def test_evidence_shows_what_its_record_says(browser: TestClient) -> None:
    (first, _) = browser.get("/api/v1/findings/finding-1").json()["witnesses"]
    assert (first["field"], first["text"], first["is_cut"]) == ("text", "Never delete orders.", False)
    assert "Never delete orders." in browser.get("/findings/finding-1").text


def test_the_navigation_of_a_session_is_there_only_where_there_is_one(browser: TestClient) -> None:
    assert 'aria-label="Session"' not in browser.get("/sessions/unknown/events").text
    html = browser.get("/sessions/plain/events").text  # the start of an id
    assert f'<a href="{BASE}/events" aria-current="page">' in html
    assert f'<a href="{BASE}/checkpoints" aria-current="page">' in browser.get(f"{BASE}/rollback?to=4").text


def test_an_ended_session_with_a_note_after_its_end_has_no_brake(made: Site) -> None:
    client = made.client()
    token = form_token(client.get(f"{BASE}/events/9").text)
    client.post(f"{BASE}/events/9/notes", data={"form_token": token, "text": "after the end"})
    assert f"{BASE}/hold" not in client.get(BASE).text


def test_a_rule_shows_how_it_did_beside_a_trivial_one(browser: TestClient) -> None:
    told = browser.get("/api/v1/rules/duplicated_effect").json()["rule"]["tried"]
    assert told and all(one["f1"] > one["baseline_f1"] for one in told)
    html = browser.get("/rules/duplicated_effect").text
    assert "On labelled sessions" in html
    assert told[0]["baseline"] in html
