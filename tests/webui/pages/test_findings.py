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
    client, after = made.client(), ""
    seen: list[Any] = []
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
    deadline = time.monotonic() + 400
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


def raise_many(made: Site, count: int) -> None:
    """Findings of so many rules in so many sessions; of every third, one has been judged."""
    keeper = made.ledger.recorder.keeper()
    message = keeper.text("again")
    for number in range(count):
        raised = [
            FindingRaised(
                finding_id=f"rank-{number:03}-{again}",
                detector=f"own_rule_{number:03}",
                severity="high" if number % 2 else "low",
                witnesses=("nowhere#1",),
                message=message,
            )
            for again in range(1 + number % 4)
        ]
        drafts: list[Event] = [SessionStarted(harness="own", name=f"Ranked {number:03}"), *raised]
        if number % 3 == 0:
            drafts.append(VerdictGiven(finding_id=raised[0].finding_id, verdict="dismissed"))
        made.ledger.recorder.append(f"rank-{number:03}", [Draft(event) for event in drafts], keeper)


def test_groups_beyond_the_first_are_counted_and_one_step_away(made: Site) -> None:
    raise_many(made, 90)
    client, group = made.client(), 0
    seen: list[tuple[str, str]] = []
    total = client.get("/api/v1/findings").json()["total_groups"]
    while len(seen) < total:
        found = client.get("/api/v1/findings", params={"group": group}).json()
        assert found["groups"]
        seen += [(one["detector"], one["severity"]) for one in found["groups"]]
        group = len(seen)
        html = client.get("/findings", params={"group": found["first_group"]})
        assert len(html.content) <= 40_000
        left = total - group
        assert (f"{left} more group" in html.text) == (left > 0)
    assert len(seen) == len(set(seen)) == total >= 92


@pytest.mark.parametrize("sort", ["severity", "open", "new"])
def test_findings_come_in_the_order_that_is_asked_for_page_by_page(made: Site, sort: str) -> None:
    raise_many(made, 40)
    client, after = made.client(), ""
    seen: list[Any] = []
    while True:
        found = client.get("/api/v1/findings", params={"sort": sort, "after": after}).json()
        seen += found["lines"]
        after = found["next_after"]
        if not after:
            break
    assert len({line["id"] for line in seen}) == len(seen) == found["total"]
    ranks = {name: rank for rank, name in enumerate(("info", "low", "medium", "high", "critical"))}
    if sort == "severity":
        keys = [ranks[line["severity"]] for line in seen]
    elif sort == "open":
        keys = [10 * (not line["verdict"]) + ranks[line["severity"]] for line in seen]
    else:
        keys = [int(line["id"].split("-")[1]) for line in seen if line["id"].startswith("rank-")]
    assert keys == sorted(keys, reverse=True)
    groups = client.get("/api/v1/findings", params={"sort": sort}).json()["groups"]
    counts = [one["open"] if sort == "open" else ranks[one["severity"]] for one in groups]
    assert counts == sorted(counts, reverse=True)


def test_a_place_of_another_order_is_refused(made: Site) -> None:
    answer = made.client().get("/findings", params={"sort": "new", "after": "4,5"})
    assert answer.status_code == 400 and "&#39;after&#39;" in answer.text


def test_sessions_come_by_their_worst_finding_or_by_how_many_are_open(made: Site) -> None:
    raise_many(made, 60)
    client = made.client()
    assert 'href="/sessions?sort=severity"' in client.get("/sessions").text
    for sort, key in (("severity", "worst"), ("open", "open")):
        seen: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            asked = {"sort": sort, "after": after}
            found = client.get("/api/v1/sessions", params=asked).json()
            assert len(client.get("/sessions", params=asked).content) <= 40_000
            seen += found["lines"]
            after = found["next_after"]
        newest: list[dict[str, Any]] = []
        after = ""
        while after is not None:
            found = client.get("/api/v1/sessions", params={"after": after}).json()
            newest += found["lines"]
            after = found["next_after"]
        assert sorted(line["id"] for line in seen) == sorted(line["id"] for line in newest)
        ranks = ("", "info", "low", "medium", "high", "critical")
        values = [ranks.index(line["worst"]) if key == "worst" else line["open"] for line in seen]
        assert values == sorted(values, reverse=True)
        assert seen[0]["id"] == (SHOPS if sort == "severity" else "rank-007")
        only = client.get("/api/v1/sessions", params={"sort": sort, "q": "Ranked 00"}).json()["lines"]
        assert {line["id"] for line in only} == {f"rank-00{number}" for number in range(10)}
