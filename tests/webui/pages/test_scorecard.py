"""The page Scorecard: six questions with their records, what tools add, and proofs that are stopped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import webui.pages.scorecard
from ledger.capture import record_loop
from ledger.home import Ledger
from replay.scorecard.answer import NO_EVIDENCE, QUESTIONS
from replay.scorecard.card import card_of
from tests.webui.pages.test_importing import done
from tests.webui.site import HOSTILE, PLAIN, Site, form_token, site
from webui.dependencies import segment

TOOLS = "tools-0001"
"""A loop whose requests carry the same schemas, and a result that grows."""

LOOK = {"type": "function", "function": {"name": "look", "description": "Looks at a shelf. " * 8}}


def fill(ledger: Ledger, turns: int = 3) -> None:
    """Record it."""
    with record_loop(ledger, harness="test-harness", session=TOOLS, name="Count the boxes") as run:
        messages: list[Any] = [{"role": "user", "content": "Count the boxes."}]
        run.message(messages[0])
        for turn in range(turns):
            call = {
                "id": f"c{turn}",
                "type": "function",
                "function": {"name": "look", "arguments": f'{{"row": {turn}}}'},
            }
            answer = {"role": "assistant", "content": None, "tool_calls": [call]}
            body = {"choices": [{"index": 0, "message": answer}]}
            run.model(lambda body=body, **_: body, model="scripted", messages=list(messages), tools=[LOOK])
            run.tool(lambda row: "box " * 50, {"row": turn}, name="look", effect_class="read")
            messages += [answer, {"role": "tool", "tool_call_id": f"c{turn}", "content": "box " * 50}]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site with that loop."""
    with site(tmp_path, fill=fill, lake=False) as one:
        yield one


def told(client: TestClient, session: str) -> dict[str, Any]:
    """What the page tells a program."""
    found = client.get(f"/api/v1/sessions/{session}/scorecard").json()
    assert isinstance(found, dict)
    return found


def start(client: TestClient, session: str) -> dict[str, object]:
    """Have it answered by work of its own; gives the work when it is over."""
    place = f"/sessions/{session}/scorecard"
    form = {"form_token": form_token(client.get(place).text)}
    answer = client.post(place, data=form, follow_redirects=False)
    assert answer.status_code == 303
    return done(client, answer.headers["location"])


def rebuilt(card: dict[str, Any]) -> dict[str, Any]:
    """The answer that rests on proofs."""
    return next(one for one in card["questions"] if one["question"] == "rebuild")


def test_six_questions_are_answered_as_the_command_does_with_links_to_records(made: Site) -> None:
    client = made.client()
    card = card_of(made.ledger.store, TOOLS).as_json()
    found = told(client, TOOLS)
    assert [one["question"] for one in found["questions"]] == list(QUESTIONS)
    for name in ("answer", "told"):
        assert [one[name] for one in found["questions"]] == [one[name] for one in card["answers"]]
    assert rebuilt(found)["answer"] == "whole"
    html = client.get(f"/sessions/{TOOLS}/scorecard").text
    for asks in QUESTIONS.values():
        assert asks in html
    for shown in (shown for one in found["questions"] for shown in one["evidence"]):
        assert shown["place"] == f"{TOOLS}#{shown['seq']}"
        assert f'href="/sessions/{TOOLS}/events/{shown["seq"]}">#{shown["seq"]}</a>' in html
    assert f"loopledger scorecard -- {TOOLS}\nloopledger scorecard</pre>" in html
    assert "Answer the six questions" not in html


def test_what_the_record_does_not_tell_is_no_evidence(made: Site) -> None:
    found = told(made.client(), PLAIN)
    answers = {one["question"]: one for one in found["questions"]}
    for question in ("sight", "capability", "rebuild"):
        assert (answers[question]["answer"], answers[question]["is_answered"]) == (NO_EVIDENCE, False)
    assert found["chart"] is None
    html = made.client().get(f"/sessions/{PLAIN}/scorecard").text
    assert "of 40 requests, no messages are on record" in html


def test_what_tools_add_to_each_request_is_drawn_and_told(made: Site) -> None:
    client = made.client()
    found = told(client, TOOLS)
    first, *_, last = found["turns"]
    assert (len(found["turns"]), found["requests"], found["every"]) == (3, 3, 1)
    assert first["schemas"] == last["schemas"] > 100
    assert (first["results"], first["calls"]) == (0, 0)
    assert last["results"] > 400 and last["calls"] > 0
    assert last["bytes"] > last["results"] + last["calls"] + last["schemas"]
    assert [one["look"] for one in found["chart"]["series"]] == ["bars", "line", "dashed"]
    html = client.get(f"/sessions/{TOOLS}/scorecard").text
    assert f'href="/sessions/{TOOLS}/events/{last["seq"]}">#{last["seq"]}</a>' in html


def test_proofs_that_are_stopped_say_so_and_leave_the_rest(
    made: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = made.client()
    whole = told(client, TOOLS)
    monkeypatch.setattr(webui.pages.scorecard, "SECONDS", -1.0)
    found = told(client, TOOLS)
    assert found["stopped_at"] == 1
    assert rebuilt(found)["answer"] == NO_EVIDENCE and "were stopped" in rebuilt(found)["told"]
    others = [one for one in whole["questions"] if one["question"] != "rebuild"]
    assert [one for one in found["questions"] if one["question"] != "rebuild"] == others
    assert "The proofs were stopped" in client.get(f"/sessions/{TOOLS}/scorecard").text

    work = start(client, TOOLS)
    assert (work["state"], work["to"]) == ("done", f"/sessions/{TOOLS}/scorecard")
    assert told(client, TOOLS) == whole


def test_a_long_session_is_answered_only_by_work_of_its_own(
    made: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webui.pages.scorecard, "MOST_RECORDS", 5)
    client = made.client()
    assert told(client, TOOLS)["questions"] == []
    assert "is not answered while you wait" in client.get(f"/sessions/{TOOLS}/scorecard").text
    assert start(client, TOOLS)["state"] == "done"
    assert rebuilt(told(client, TOOLS))["answer"] == "whole"

    with record_loop(made.ledger, harness="test-harness", session=TOOLS) as run:
        run.message({"role": "user", "content": "And again."})
    found = told(client, TOOLS)
    assert 0 < found["records"] < found["head"]
    assert "they are not in these answers" in client.get(f"/sessions/{TOOLS}/scorecard").text


def test_work_that_is_stopped_says_so_too(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webui.pages.scorecard, "SECONDS_OF_WORK", -1.0)
    monkeypatch.setattr(webui.pages.scorecard, "MOST_RECORDS", 5)
    client = made.client()
    assert start(client, TOOLS)["state"] == "done"
    found = told(client, TOOLS)
    assert found["stopped_at"] == 1 and len(found["questions"]) == 6


def test_many_turns_stay_a_small_page(tmp_path: Path) -> None:
    with site(tmp_path, fill=lambda ledger: fill(ledger, 90), lake=False) as made:
        found = told(made.client(), TOOLS)
        assert (len(found["turns"]), found["every"]) == (90, 3)
        html = made.client().get(f"/sessions/{TOOLS}/scorecard").text
    assert "One of every 3 that were measured" in html
    assert len(html) < 40_000


def test_a_hostile_session_is_answered(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webui.pages.scorecard, "MOST_RECORDS", 10_000)  # it grows with the corpus
    client = made.client(raises=False)
    found = told(client, segment(HOSTILE))
    assert len(found["questions"]) == 6 and found["failed"] == ""
    assert len(client.get(f"/sessions/{segment(HOSTILE)}/scorecard").text) < 40_000
