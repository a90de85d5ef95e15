"""Checkpoints and rollback as pages: the plan is shown before anything is touched, and says what stays."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import replay.recovery.rollback
from ledger.events import Draft
from ledger.events.recovery import CheckpointTaken, RolledBack
from tests.webui.going_back import LABEL, SHOP, act, fill_workspace
from tests.webui.hostile.texts import SESSION as HOSTILE
from tests.webui.site import PLAIN, Site, form_token, site
from webui.dependencies import segment

BASE = f"/sessions/{SHOP}"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    """A site with the loop that made a mess."""
    fill_workspace(tmp_path / "work")
    with site(tmp_path / "home", fill=lambda ledger: act(ledger, tmp_path / "work")) as one:
        yield one


def checkpoint(made: Site) -> dict[str, Any]:
    """The checkpoint of the loop."""
    rows = made.client().get(f"/api/v1{BASE}/checkpoints").json()["rows"]
    found: dict[str, Any] = next(row for row in rows if row["label"] == LABEL)
    return found


def roll_back(made: Site, **fields: Any) -> Any:
    """Send the form of the plan."""
    client = made.client()
    to = checkpoint(made)["taken"]
    html = client.get(f"{BASE}/rollback?to={to}").text
    head = made.ledger.store.head(SHOP).seq
    form = {"form_token": form_token(html), "to": to, "head": head, "reason": "it went wrong", **fields}
    return client.post(f"{BASE}/rollback", data=form, follow_redirects=False)


def test_a_plan_says_what_stays_and_touches_nothing(made: Site, tmp_path: Path) -> None:
    head = made.ledger.store.head(SHOP)
    taken = checkpoint(made)["taken"]
    plan = made.client().get(f"/api/v1{BASE}/rollback?to={taken}").json()["plan"]
    assert {one["path"]: one["told"] for one in plan["restores"]} == {
        "new.txt": "delete",
        "notes.txt": "edit",
    }
    assert (plan["is_clean"], plan["stays"], plan["total_effects"]) == (False, 1, 3)
    stays = plan["effects"][0]
    assert (stays["tool"], stays["disposition"]) == ("transfer", "not_undone")
    assert [one["how"] for one in stays["consumers"]] == ["message"]
    html = made.client().get(f"{BASE}/rollback?to={taken}").text
    assert "NOT CLEAN." in html and "NOT UNDONE" in html and "Roll back although it is not clean" in html
    assert made.ledger.store.head(SHOP) == head
    assert (tmp_path / "work" / "notes.txt").read_text() == "bad\n"


def test_a_rollback_puts_files_back_and_is_recorded_with_who_and_why(made: Site, tmp_path: Path) -> None:
    answer = roll_back(made)
    assert answer.status_code == 303
    assert (tmp_path / "work" / "notes.txt").read_text() == "good\n"
    assert not (tmp_path / "work" / "new.txt").exists()
    record = next(made.ledger.store.read(SHOP, names=(RolledBack.TYPE,)))
    assert isinstance(record.event, RolledBack)
    assert (record.event.reason, record.actor and record.actor.id) == ("it went wrong", "ana")
    html = made.client().get(answer.headers["location"]).text
    assert "By ana" in html and "it went wrong" in html and "NOT CLEAN." in html


def test_a_rollback_needs_a_reason(made: Site, tmp_path: Path) -> None:
    assert roll_back(made, reason="").status_code == 400
    assert (tmp_path / "work" / "notes.txt").read_text() == "bad\n"


def test_a_plan_that_is_out_of_date_is_not_carried_out(made: Site, tmp_path: Path) -> None:
    later = CheckpointTaken(checkpoint_id="later", taken_by="human")
    made.ledger.recorder.append(SHOP, [Draft(later)], made.ledger.recorder.keeper())
    answer = roll_back(made, head=made.ledger.store.head(SHOP).seq - 1)
    assert answer.status_code == 409
    assert "look at it again" in answer.text
    assert (tmp_path / "work" / "notes.txt").read_text() == "bad\n"


def test_a_conflict_is_shown_and_nothing_is_touched_unless_asked(made: Site, tmp_path: Path) -> None:
    notes = tmp_path / "work" / "notes.txt"
    notes.write_text("mine\n")
    taken = checkpoint(made)["taken"]
    html = made.client().get(f"{BASE}/rollback?to={taken}").text
    assert "Conflicts" in html and "put the files in conflict back all the same" in html
    refused = roll_back(made)
    assert refused.status_code == 409
    assert "nothing was touched" in refused.text
    assert notes.read_text() == "mine\n"
    assert roll_back(made, overwrite="true").status_code == 303
    assert notes.read_text() == "good\n"


def test_a_rollback_that_stopped_half_way_is_finished_from_the_page(
    made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(replay.recovery.rollback, "restore", fail)
        stopped = roll_back(made)
    assert stopped.status_code == 500
    assert "No space left on device" in stopped.text and "finish it there" in stopped.text
    taken = checkpoint(made)["taken"]
    html = made.client().get(f"{BASE}/rollback?to={taken}").text
    assert "was begun and did not end" in html
    assert roll_back(made).status_code == 303
    assert (tmp_path / "work" / "notes.txt").read_text() == "good\n"


def test_a_checkpoint_by_hand_keeps_the_files_and_who_took_it(made: Site) -> None:
    client = made.client()
    form = {"form_token": form_token(client.get(f"{BASE}/checkpoints").text), "label": "as it is"}
    assert client.post(f"{BASE}/checkpoints", data=form, follow_redirects=False).status_code == 303
    first = client.get(f"/api/v1{BASE}/checkpoints").json()["rows"][0]
    assert (first["label"], first["taken_by"]) == ("as it is", "human")
    assert first["files"] is not None
    record = made.ledger.store.record(SHOP, first["taken"])
    assert record.actor is not None and record.actor.id == "ana"
    wrong = client.post(f"{BASE}/checkpoints", data={**form, "at": "99999"})
    assert wrong.status_code == 404


def test_a_long_list_of_checkpoints_is_paged(made: Site) -> None:
    drafts = [Draft(CheckpointTaken(checkpoint_id=f"c{number}", taken_by="rule")) for number in range(150)]
    made.ledger.recorder.append(PLAIN, drafts, made.ledger.recorder.keeper())
    client = made.client()
    address, pages = f"/sessions/{PLAIN}/checkpoints", []
    while address:
        pages.append(client.get(f"/api/v1{address}").json())
        assert len(client.get(address).content) < 40_000
        earlier = pages[-1]["earlier"]
        address = f"/sessions/{PLAIN}/checkpoints?before={earlier}" if earlier else ""
    seen = {row["taken"] for page in pages for row in page["rows"]}
    assert (len(pages), len(seen), pages[0]["total"]) == (3, 151, 151)


def test_what_is_no_checkpoint_is_said_to_be_none(made: Site) -> None:
    answer = made.client().get(f"{BASE}/rollback?to=1")
    assert answer.status_code == 404 or "takes no checkpoint" in answer.text


def test_every_checkpoint_of_a_hostile_session_answers(made: Site) -> None:
    client = made.client(raises=False)
    base = f"/sessions/{segment(HOSTILE)}"
    rows = client.get(f"/api/v1{base}/checkpoints").json()["rows"]
    assert rows
    for row in rows[:4]:
        assert client.get(f"{base}/rollback?to={row['taken']}").status_code == 200
    for line in client.get(f"/api/v1{base}/rollback").json()["earlier"][:4]:
        assert client.get(f"{base}/rollback?done={line['seq']}").status_code == 200
