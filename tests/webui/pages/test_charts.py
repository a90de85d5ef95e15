"""Charts of a session: what they count, what their SQL gives, what a long session costs."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ledger.events import Draft, Event
from ledger.events.governance import ConstraintDeclared
from ledger.events.model_call import ModelCallAnswered, Usage
from ledger.events.policy import BudgetCharged
from ledger.events.session import SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.events.visibility import ConstraintSeen
from ledger.home import Ledger
from ledger.lake import Lake, connect
from ledger.lake.connection import FOLDER
from ledger.views.lake import lake_feed
from tests.webui.site import HOSTILE, PLAIN, site
from webui.charting import WINDOWS


def fill(ledger: Ledger) -> None:
    """A session that changes its ways halfway, with a budget."""
    keeper = ledger.recorder.keeper()
    arguments, message = keeper.json({}), keeper.text("on")
    events: list[Event] = [
        SessionStarted(harness="own"),
        BudgetCharged(budget="run", amount=Decimal("0.5"), unit="usd", remaining=Decimal("9.5")),
        ConstraintDeclared(constraint="no-push", text=message, origin="user"),
    ]
    for turn in range(300):
        tool = "read" if turn < 150 or turn % 3 == 0 else "write"
        events += [
            ModelCallAnswered(
                call_id=f"m{turn}",
                message=message,
                usage=Usage(input_tokens=10, output_tokens=1),
                cost_usd=Decimal("0.01"),
            ),
            ToolCallRequested(call_id=f"t{turn}", tool=tool, arguments=arguments, effect_class="external"),
        ]
    first = ConstraintSeen(constraint="no-push", at_seq=4, call_id="m1", visibility="verbatim", text=message)
    events += [first, first.model_copy(update={"at_seq": 400, "visibility": "absent"})]
    ledger.recorder.append("drifts", [Draft(event) for event in events], keeper)


def charts(client: TestClient, session: str) -> dict[str, dict[str, Any]]:
    """The charts of a session by title."""
    found = client.get(f"/api/v1/sessions/{session}/charts").json()["charts"]
    return {chart["title"]: chart for chart in found}


def test_charts_count_what_the_records_tell(tmp_path: Path) -> None:
    with site(tmp_path, fill=fill) as made:
        found = charts(made.client(), "drifts")
    assert list(found) == [
        "Risk over steps",
        "Cost over steps",
        "Tokens over steps",
        "Share of the tool read",
        "Share of the tool write",
        "Rule survival",
    ]
    cost = found["Cost over steps"]
    assert cost["rows"][-1][-1] == "3"
    assert [one["look"] for one in cost["series"]] == ["line", "dashed"]
    assert "the budget of 10." in str(cost["caption"])
    assert found["Tokens over steps"]["rows"][-1][-1] == "3.3k"
    read = found["Share of the tool read"]["rows"]
    assert (read[0][3], read[-1][3]) != ("100%", "100%")
    survival = found["Rule survival"]["rows"]
    assert survival == [["no-push", "4", "400", "verbatim"], ["no-push", "400", "the last", "absent"]]


@pytest.mark.parametrize("session", [PLAIN, HOSTILE, "drifts"])
def test_the_sql_of_each_chart_runs_and_counts_the_same(tmp_path: Path, session: str) -> None:
    with site(tmp_path, fill=fill) as made:
        client = made.client()
        address = session if session != HOSTILE else "hostile"
        found = charts(client, address)
        folder = made.ledger.home / FOLDER
        Lake(folder).export(lake_feed(made.ledger.store))
        with connect(folder) as lake:
            for title, chart in found.items():
                rows = lake.execute(str(chart["sql"]), {"session": session}).fetchall()
                if title == "Risk over steps":
                    told = [(int(row[0]), int(row[1])) for row in chart["rows"]]
                    assert [row[:2] for row in rows] == told
                if title.startswith("Share of the tool "):
                    calls = {row[0]: row[1] for row in chart["rows"] if row[1] != "0"}
                    mine = title.removeprefix("Share of the tool ")
                    if session != HOSTILE:
                        assert {str(row[0]): str(row[2]) for row in rows if row[1] == mine} == calls


def test_a_chart_has_a_bounded_number_of_points(tmp_path: Path) -> None:
    with site(tmp_path, fill=fill) as made:
        client = made.client()
        for chart in charts(client, "drifts").values():
            assert len(chart["rows"]) <= WINDOWS
        assert len(client.get("/sessions/drifts/charts").content) < 40_000


def test_marks_lead_to_their_events(browser: TestClient) -> None:
    html = browser.get(f"/sessions/{PLAIN}/charts").text
    assert f'href="/sessions/{PLAIN}/events/110">compaction #110</a>' in html
