"""The list of sessions: a full page of busy sessions stays small, an ended one says so, a verified one how far."""

from pathlib import Path

from ledger.events import Draft, Event
from ledger.events.review import FindingRaised
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested
from ledger.home import Ledger
from tests.webui.pages.test_importing import done
from tests.webui.site import PLAIN, form_token, site
from webui.pages.sessions import page

BUSY = 45


def fill(ledger: Ledger) -> None:
    """More sessions than a page holds, each with a long id, findings, and another level in each of its parts."""
    keeper = ledger.recorder.keeper()
    arguments, message = keeper.json({}), keeper.text("It was sent.")
    for number in range(BUSY):
        session = f"busy-{number:03}-{'0123456789abcdef' * 3}"
        events: list[Event] = [
            SessionStarted(harness="a-harness-with-a-name", name=f"Busy session {number} " + "and more " * 4)
        ]
        for call in range(24 * 16 - 3):
            effect = "irreversible" if call // 16 % 2 else "read"
            events.append(
                ToolCallRequested(call_id=str(call), tool="send", arguments=arguments, effect_class=effect)  # type: ignore[arg-type]
            )
        events.append(
            FindingRaised(
                finding_id=f"f-{number}",
                detector="d",
                severity="high",
                witnesses=(f"{session}#2",),
                message=message,
            )
        )
        events.append(SessionEnded(outcome="completed"))
        ledger.recorder.append(session, [Draft(event, agent="sender") for event in events], keeper)


def test_a_full_page_of_busy_sessions_stays_small(tmp_path: Path) -> None:
    assert page.entry is not None
    with site(tmp_path, fill=fill, lake=False) as made:
        client = made.client()
        html = client.get(page.entry.link)
        assert len(html.content) <= 40_000
        assert html.text.count("<tr>") == 33 and "Earlier sessions" in html.text
        assert "Riskiest first" in html.text


def test_a_note_after_a_verification_does_not_hide_how_far_it_went(tmp_path: Path) -> None:
    with site(tmp_path, lake=False) as made:
        client = made.client()
        place = f"/sessions/{PLAIN}/integrity"
        sent = client.post(
            place, data={"form_token": form_token(client.get(place).text)}, follow_redirects=False
        )
        assert done(client, sent.headers["location"])["state"] == "done"
        verified = made.ledger.store.head(PLAIN).seq
        form = {"form_token": form_token(client.get(f"/sessions/{PLAIN}/events/9").text), "text": "seen"}
        client.post(f"/sessions/{PLAIN}/events/9/notes", data=form)
        line = next(one for one in client.get("/api/v1/sessions").json()["lines"] if one["id"] == PLAIN)
        assert (line["integrity"], line["verified_seq"]) == ("unknown", verified)
        assert f"verified to #{verified}" in client.get("/sessions").text
        assert f"up to record {verified}; 1 record came since" in client.get(place).text
