"""Findings: groups, one with its evidence, what people say of it, an audit from the page; and how rules have done."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ledger.events import Draft, Event
from ledger.events.review import FindingRaised, NoteWritten, VerdictGiven
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger
from tests.webui.site import HOSTILE, PLAIN, TOKEN, Site, form_token, site

SHOPS = "shops-2"


def fill(ledger: Ledger) -> None:
    """A session that pays twice, and findings of it and of others."""
    keeper = ledger.recorder.keeper()
    events: list[Event] = [SessionStarted(harness="own", name="Pay the baker")]
    for call in ("a", "b"):
        events.append(
            ToolCallRequested(
                call_id=call,
                tool="pay",
                arguments=keeper.json({"to": "baker", "amount": 5}),
                effect_class="irreversible",
            )
        )
        events.append(ToolCallSettled(call_id=call, outcome="returned", result=keeper.text("paid")))
    severities = ("critical", "medium", "low")
    for number, severity in enumerate(severities):
        events.append(
            FindingRaised(
                finding_id=f"shop-{number}",
                detector="rule_lost" if number else "duplicated_effect",
                severity=severity,  # type: ignore[arg-type]
                witnesses=(f"{SHOPS}#2", f"{PLAIN}#50", "nowhere#7"),
                message=keeper.text(f"Finding {number} of the shop."),
            )
        )
    ledger.recorder.append(SHOPS, [Draft(event) for event in events], keeper)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site to write into."""
    with site(tmp_path, fill=fill) as one:
        yield one


def events(made: Site, session: str, kind: type[Event]) -> list[Any]:
    """The events of a kind."""
    return [record.event for record in made.ledger.store.read(session, names=(kind.TYPE,))]


def send(client: TestClient, to: str, page: str, **fields: str) -> Any:
    """Send a form of a page."""
    token = form_token(client.get(page).text)
    return client.post(to, data={"form_token": token, **fields}, follow_redirects=False)


def test_findings_are_grouped_by_rule_and_severity_the_worst_first(made: Site) -> None:
    found = made.client().get("/api/v1/findings", params={"session": SHOPS}).json()
    assert [(one["severity"], one["detector"], one["open"]) for one in found["groups"]] == [
        ("critical", "duplicated_effect", 1),
        ("medium", "rule_lost", 1),
        ("low", "rule_lost", 1),
    ]
    assert [one["id"] for one in found["lines"]] == ["shop-0", "shop-1", "shop-2"]


def test_the_riskiest_session_stands_first(made: Site) -> None:
    risks = made.client().get("/api/v1/findings").json()["riskiest"]
    assert [one["session"] for one in risks][:2] == [SHOPS, PLAIN]
    assert (risks[0]["worst"], risks[0]["first"], risks[0]["name"]) == ("critical", "shop-0", "Pay the baker")


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"severity": "high", "session": PLAIN}, ["finding-1"]),
        ({"rule": "rule_lost", "session": SHOPS}, ["shop-1", "shop-2"]),
        ({"state": "judged", "session": SHOPS}, []),
        ({"state": "open", "rule": "duplicated_effect"}, ["shop-0"]),
    ],
)
def test_findings_are_filtered(made: Site, asked: dict[str, str], ids: list[str]) -> None:
    lines = made.client().get("/api/v1/findings", params=asked).json()["lines"]
    assert [line["id"] for line in lines] == ids


def test_a_long_list_is_paged_without_loss(made: Site) -> None:
    keeper = made.ledger.recorder.keeper()
    message = keeper.text("again")
    drafts = [
        Draft(
            FindingRaised(
                finding_id=f"more-{number:03}",
                detector="going_in_circles",
                severity="high" if number % 2 else "low",
                witnesses=(f"{SHOPS}#{number % 9 + 1}",),
                message=message,
            )
        )
        for number in range(100)
    ]
    made.ledger.recorder.append(SHOPS, drafts, keeper)
    client, seen, after = made.client(), [], ""
    while True:
        asked = {"rule": "going_in_circles", "after": after}
        found = client.get("/api/v1/findings", params=asked).json()
        seen += [(line["severity"], line["id"]) for line in found["lines"]]
        after = found["next_after"]
        if not after:
            break
    assert len(seen) == len(set(seen)) == 100
    assert [severity for severity, _ in seen] == ["high"] * 50 + ["low"] * 50
    assert len(client.get("/findings").content) < 40_000


def test_evidence_stands_in_its_place_also_of_other_sessions(made: Site) -> None:
    found = made.client().get("/api/v1/findings/shop-0").json()
    own, other, lost = found["witnesses"]
    assert [row[0] for row in own["rows"]] == [1, 2, 3, 4, 5, 6, 7]
    assert (other["is_elsewhere"], other["session"]) == (True, PLAIN)
    assert [row[0] for row in other["rows"]] == list(range(47, 54))
    assert lost["rows"] == []
    html = made.client().get("/findings/shop-0").text
    assert f'href="/sessions/{PLAIN}/events/50" aria-current="true"' in html
    assert "The ledger holds no record of that name." in html


def test_a_finding_tells_why_and_what_its_rule_misses_and_shows_its_query(made: Site) -> None:
    found = made.client().get("/api/v1/findings/shop-0").json()
    assert found["why"] and found["misses"] and "select" in found["sql"]
    unknown = made.client().get("/findings/shop-1").text
    assert "The rule is not installed here" in unknown


def test_occurrences_and_other_sessions_are_one_step_away(made: Site) -> None:
    found = made.client().get("/api/v1/findings/shop-1").json()
    assert (found["number"], found["of"], found["earlier"], found["later"]) == (1, 2, "", "shop-2")
    others = {(one["session"], one["finding"]) for one in found["others"]}
    assert (PLAIN, "finding-1") in others and SHOPS not in {session for session, _ in others}


def test_a_verdict_is_recorded_with_who_and_why(made: Site) -> None:
    client = made.client()
    answer = send(
        client, "/findings/shop-0/verdict", "/findings/shop-0", verdict="dismissed", reason="one was undone"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/findings/shop-0")
    (given,) = events(made, SHOPS, VerdictGiven)
    assert (given.finding_id, given.verdict) == ("shop-0", "dismissed")
    found = client.get("/api/v1/findings/shop-0").json()
    assert found["finding"]["verdict"] == "dismissed"
    assert [(one["actor"], one["text"]) for one in found["verdicts"]] == [("ana", "one was undone")]
    assert client.get("/api/v1/findings").json()["riskiest"][0]["by_severity"]["critical"] == 0


def test_the_last_verdict_counts(made: Site) -> None:
    client = made.client()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for verdict in ("dismissed", "confirmed"):
        body = {"verdict": verdict, "reason": "looked again"}
        done = client.post("/api/v1/findings/shop-0/verdict", json=body, headers=headers).json()
        assert done["recorded"][0].startswith(f"{SHOPS}#")
    assert client.get("/api/v1/findings/shop-0").json()["finding"]["verdict"] == "confirmed"


def test_a_verdict_needs_a_reason(made: Site) -> None:
    answer = send(
        made.client(), "/findings/shop-0/verdict", "/findings/shop-0", verdict="confirmed", reason=""
    )
    assert answer.status_code == 400 and "reason" in answer.text
    assert events(made, SHOPS, VerdictGiven) == []


def test_a_note_is_about_a_witness_where_that_lies(made: Site) -> None:
    client = made.client()
    address = "/findings/shop-0"
    answer = send(client, f"{address}/notes", address, text="see the summary", about=f"{PLAIN}#50")
    assert answer.status_code == 303
    (written,) = events(made, PLAIN, NoteWritten)
    assert written.about == f"{PLAIN}#50"
    notes = client.get(f"/api/v1{address}").json()["notes"]
    assert [(one["actor"], one["text"], one["about"]) for one in notes] == [
        ("ana", "see the summary", f"{PLAIN}#50")
    ]
    wrong = send(client, f"{address}/notes", address, text="x", about=f"{PLAIN}#51")
    assert wrong.status_code == 409 and "no witness" in wrong.text


def test_an_audit_from_the_page_raises_what_is_new(made: Site) -> None:
    client = made.client()
    assert send(client, "/findings", "/findings", session=SHOPS).status_code == 303
    deadline = time.monotonic() + 60
    while True:
        running = client.get("/api/v1/findings").json()["running"]
        if running.startswith("The last audit"):
            break
        assert time.monotonic() < deadline, running
        time.sleep(0.1)
    assert "looked at 1 sessions" in running
    raised = [one.detector for one in events(made, SHOPS, FindingRaised)]
    assert raised.count("duplicated_effect") == 2
    asked = events(made, "loopledger-acts", NoteWritten)
    assert [one.about for one in asked] == [SHOPS]


def test_an_unknown_finding_or_rule_is_a_404(browser: TestClient) -> None:
    assert "/findings lists them" in browser.get("/findings/nothing-such").text
    assert browser.get("/findings/nothing-such").status_code == 404
    answer = browser.get("/rules/nothing-such")
    assert answer.status_code == 404 and "/rules lists them" in answer.text


def test_an_id_may_be_given_by_its_beginning_unless_several_begin_so(made: Site) -> None:
    client = made.client()
    assert client.get("/findings/findi").status_code == 200
    answer = client.get("/findings/shop-")
    assert answer.status_code == 404 and "several findings" in answer.text


def test_rules_show_how_often_they_were_right(made: Site) -> None:
    client = made.client()
    for finding, verdict in (("shop-1", "confirmed"), ("shop-2", "dismissed"), ("finding-1", "duplicate")):
        body = {"verdict": verdict, "reason": "seen"}
        client.post(
            f"/api/v1/findings/{finding}/verdict", json=body, headers={"Authorization": f"Bearer {TOKEN}"}
        )
    lines = {one["name"]: one for one in client.get("/api/v1/rules").json()["rules"]}
    lost = lines["rule_lost"]
    assert (lost["state"], lost["findings"], lost["sessions"]) == ("not installed", 3, 2)
    assert (lost["precision"]["right"], lost["precision"]["judged"]) == (1, 2)
    assert 0.09 < lost["precision"]["low"] < 0.1 and 0.9 < lost["precision"]["high"] < 0.91
    assert lines["duplicated_effect"]["language"] == "SQL"
    assert lines["duplicated_effect"]["precision"]["share"] is None


def test_a_rule_shows_its_text(browser: TestClient) -> None:
    sql = browser.get("/api/v1/rules/duplicated_effect").json()
    assert "-- title:" in sql["text"] and sql["version"]
    python = browser.get("/api/v1/rules/going_in_circles").json()
    assert "def start" in python["text"] or "start =" in python["text"]


def test_hostile_findings_can_be_opened(browser: TestClient) -> None:
    lines = browser.get("/api/v1/findings", params={"session": HOSTILE}).json()["lines"]
    assert lines
    for line in lines:
        assert browser.get(f"/api/v1/findings?rule={line['detector'][:20]!r}").status_code in (200, 400)
