"""What is written for the OpenAI Agents SDK: saved states as they were, and items. Real runs: tests/frameworks."""

import json
from pathlib import Path

import pytest

from tests.commands import FIXTURES, answer, run

STATES = FIXTURES / "openai-agents" / "states"


@pytest.mark.parametrize("state", sorted(STATES.glob("state-[123]*.json")), ids=lambda path: path.stem)
def test_a_saved_state_comes_back_as_it_was(tmp_path: Path, state: Path) -> None:
    home = tmp_path / "home"
    (session,) = answer(home, "import", state)["sessions"]
    (checkpoint,) = answer(home, "checkpoints", session)
    into = tmp_path / "back"
    result = run(
        home, "rollback", session, "--to", checkpoint["checkpoint_id"], "--reason", "x", "--into", into
    )
    assert result.exit_code in (0, 1), result.output
    assert json.loads((into / "state.json").read_text()) == json.loads(state.read_text())
    assert "RunState.from_json" in result.stdout


def test_states_of_one_run_are_places_of_one_session_and_none_is_given_for_another_point(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    answer(home, "import", *sorted(STATES.glob("state-[123]*.json")))
    (session,) = [row["id"] for row in answer(home, "sessions")]
    places = answer(home, "checkpoints", session)
    assert len(places) == 3
    answer(home, "checkpoint", session, "--at", places[0]["seq"] - 3, "--label", "before")
    into = tmp_path / "back"
    assert run(home, "rollback", session, "--to", "before", "--reason", "x", "--into", into).exit_code in (
        0,
        1,
    )
    assert [path.name for path in into.iterdir()] == ["items.json"]
    items = json.loads((into / "items.json").read_text())
    calls = {item["call_id"] for item in items if item["type"] == "function_call"}
    assert calls == {item["call_id"] for item in items if item["type"] == "function_call_output"}
