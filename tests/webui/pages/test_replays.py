"""Replays as pages: run one, see where it left the recording, and say what it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import webui.pages.replays
from ledger.events import Event
from ledger.events.replaying import ReplayEnded, ReplayJudged
from ledger.events.review import NoteWritten
from tests.webui.hostile.texts import SESSION as HOSTILE
from tests.webui.replayed import FORGED, ORIGIN, fill_replayed
from tests.webui.site import PLAIN, Site, form_token, site
from webui.dependencies import segment


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site with a replay that diverged."""
    with site(tmp_path, fill=fill_replayed) as one:
        yield one


def replay(client: TestClient, session: str, level: str = "request") -> Any:
    """Run one from the page."""
    address = f"/sessions/{session}/replays"
    form = {"form_token": form_token(client.get(address).text), "level": level, "reason": "before the audit"}
    return client.post(address, data=form, follow_redirects=False)


def events(made: Site, session: str, kind: type[Event]) -> list[Any]:
    """The events of a kind."""
    return [record.event for record in made.ledger.store.read(session, names=(kind.TYPE,))]


@pytest.mark.parametrize("level", ["state", "request"])
def test_a_replay_from_the_page_is_kept_with_who_and_why(made: Site, level: str) -> None:
    client = made.client()
    answer = replay(client, PLAIN, level)
    assert answer.status_code == 303
    kept = answer.headers["location"].split("/")[2]
    assert [one.verdict for one in events(made, kept, ReplayEnded)] == ["equal"]
    note = next(made.ledger.store.read(kept, names=(NoteWritten.TYPE,)))
    assert note.actor is not None and note.actor.id == "ana"
    html = client.get(answer.headers["location"]).text
    # The plain session does not show its requests: nothing of them can be proved, and the page says so.
    assert ("Equal." if level == "state" else "Nothing could be compared.") in html
    assert "before the audit" in html
    rows = client.get(f"/api/v1/sessions/{PLAIN}/replays").json()["rows"]
    assert [(row["session"], row["level"], row["verdict"]) for row in rows] == [(kept, level, "equal")]


def test_a_request_that_is_not_what_its_digest_says_diverges(made: Site) -> None:
    client = made.client()
    told = client.get(f"/api/v1{replay(client, FORGED).headers['location']}").json()
    assert (told["verdict"], told["divergence"]["at_seq"], told["divergence"]["kind"]) == (
        "diverged",
        2,
        "request",
    )
    assert "does not have the digest" in told["divergence"]["cause"]


def test_both_sides_stand_side_by_side(made: Site) -> None:
    client = made.client()
    (row,) = client.get(f"/api/v1/sessions/{ORIGIN}/replays").json()["rows"]
    assert (row["verdict"], row["level"], row["at_seq"]) == ("diverged", "rerun", 8)
    told = client.get(f"/api/v1/sessions/{row['session']}/divergence").json()
    found = told["divergence"]
    assert found["pointer"] == "/messages/2/content"
    (place,) = found["differences"]
    assert "Never promise a date." in place["recorded"] and "Never" not in place["replayed"]
    assert found["cause"] == "the conversation changed"
    html = client.get(f"/sessions/{row['session']}/divergence").text
    assert "DIVERGED." in html and "Never promise a date." in html
    assert len(html) < 40_000


def test_a_verdict_is_recorded_with_who_and_why(made: Site) -> None:
    client = made.client()
    (row,) = client.get(f"/api/v1/sessions/{ORIGIN}/replays").json()["rows"]
    address = f"/sessions/{row['session']}/divergence"
    form = {
        "form_token": form_token(client.get(address).text),
        "verdict": "drift",
        "reason": "the rule was dropped",
    }
    assert client.post(address, data=form, follow_redirects=False).status_code == 303
    (judged,) = events(made, row["session"], ReplayJudged)
    assert (judged.verdict, judged.diverged_seq) == ("drift", 14)
    record = next(made.ledger.store.read(row["session"], names=(ReplayJudged.TYPE,)))
    assert record.actor is not None and record.actor.id == "ana"
    html = client.get(address).text
    assert "accepted drift" in html and "the rule was dropped" in html
    assert "accepted drift" in client.get(f"/sessions/{ORIGIN}/replays").text
    assert client.post(address, data={**form, "reason": ""}).status_code == 400


def test_what_did_not_diverge_is_not_judged(made: Site) -> None:
    client = made.client()
    form = {
        "form_token": form_token(client.get("/sessions/asks-0001").text),
        "verdict": "defect",
        "reason": "no",
    }
    assert client.post(f"/sessions/{PLAIN}/divergence", data=form).status_code == 409
    assert "is no replay" in client.get(f"/sessions/{PLAIN}/divergence").text


def test_a_replay_that_takes_too_long_is_stopped_and_says_so(
    made: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webui.pages.replays, "LONGEST_S", -1.0)
    answer = replay(made.client(), PLAIN)
    assert answer.status_code == 503
    assert "nothing was kept" in answer.text and "has no limit" in answer.text
    assert made.client().get(f"/api/v1/sessions/{PLAIN}/replays").json()["rows"] == []


def test_a_hostile_session_is_replayed(made: Site) -> None:
    client = made.client(raises=False)
    session = segment(HOSTILE)
    for level in ("state", "request"):
        answer = replay(client, session, level)
        assert answer.status_code == 303
        assert client.get(answer.headers["location"]).status_code == 200
