"""What is written for Google ADK: the events of a source, made again. Real sessions: tests/frameworks."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.commands import FIXTURES, answer, run

ADK = FIXTURES / "google-adk"


def native_events(path: Path, session: str) -> list[dict[str, Any]]:
    """The events of a session as ADK wrote them."""
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "select event_data from events where session_id = ? order by rowid", (session,)
        )
        found = [json.loads(row[0]) for row in rows]
    database.close()
    return found


def told(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says, without what is empty or names it."""
    left = {name: value for name, value in event.items() if name not in ("id", "timestamp", "usage_metadata")}
    return {name: value for name, value in left.items() if value not in (None, [], {})}


def test_all_events_of_a_database_come_back_as_they_were(tmp_path: Path) -> None:
    home, source = tmp_path / "home", ADK / "sqlite" / "session.sqlite"
    imported = answer(home, "import", source)["sessions"]
    session = next(name for name in imported if name == "quotes:dev:rfq-2031")
    native = native_events(source, "rfq-2031")
    rewinds = [event for event in native if event["actions"].get("rewind_before_invocation_id")]
    first = native.index(rewinds[0]) if rewinds else len(native)
    lines = run(home, "events", session, "--json").stdout.splitlines()
    rolled_back = [one["seq"] for one in map(json.loads, lines) if one["type"] == "recovery.rolled_back"]
    end = rolled_back[0] - 2 if rolled_back else len(lines)  # its checkpoint stands between
    answer(home, "checkpoint", session, "--at", end, "--label", "end")
    into = tmp_path / "back"
    result = run(home, "rollback", session, "--to", "end", "--reason", "x", "--into", into)
    assert result.exit_code in (0, 1), result.output
    file = json.loads((into / "session.json").read_text())
    assert (file["app_name"], file["user_id"]) == ("quotes", "dev")
    assert [told(event) for event in file["events"]] == [told(event) for event in native[:first]]
    times = [event["timestamp"] for event in file["events"]]
    assert all(abs(one - other["timestamp"]) < 1e-3 for one, other in zip(times, native, strict=False))


def test_the_place_that_a_rewind_went_back_to_is_a_checkpoint(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answer(home, "import", ADK / "sqlite")
    found = 0
    for row in answer(home, "sessions"):
        lines = map(json.loads, run(home, "events", row["id"], "--json").stdout.splitlines())
        for event in lines:
            if event["type"] != "recovery.rolled_back" or event["data"].get("to_seq") is None:
                continue
            found += 1
            data = event["data"]
            plan = run(home, "rollback", row["id"], "--to", data["checkpoint_id"], "--plan", "--json")
            assert json.loads(plan.stdout)["to_seq"] == data["to_seq"]
    assert found
