"""Hours in which nothing happened are said in the list, also where they lie between two windows."""

from pathlib import Path

from ledger.events import Draft
from ledger.events.input import MessageReceived
from ledger.home import Ledger
from tests.webui.site import site
from webui.windows import ROWS

SESSION = "idle-0001"


def _fill(ledger: Ledger) -> None:
    keeper = ledger.recorder.keeper()
    hours = [0] * 10 + [3] * (ROWS - 10) + [9] * 5  # a gap inside the first window, one before the second
    drafts = [
        Draft(
            MessageReceived(origin="human", message=keeper.json(place)),
            occurred_at=f"2026-01-01T{hour:02}:00:{place:02}Z",
        )
        for place, hour in enumerate(hours)
    ]
    ledger.recorder.append(SESSION, drafts, keeper)


def test_a_gap_is_said_where_it_is(tmp_path: Path) -> None:
    with site(tmp_path, fill=_fill, lake=False) as made:
        client = made.client()
        first = client.get(f"/sessions/{SESSION}/events").text
        assert first.count("without events") == 1 and "3 h without events" in first
        second = client.get(
            f"/sessions/{SESSION}/rows?from={ROWS + 1}", headers={"HX-Request-Type": "partial"}
        ).text
        assert second.count("without events") == 1 and "6 h without events" in second
        filtered = client.get(f"/sessions/{SESSION}/events?kind=input").text
        assert "without events" not in filtered
