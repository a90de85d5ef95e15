"""Checkpoints by hand and by rule, and what they cover."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import CheckpointRules, RecordedLoop, record_loop
from ledger.home import open_ledger
from ledger.views.checkpoints import CheckpointsView
from replay.inprocess import replay_loop
from tests.commands import FIXTURES, answer, record_session, run


def labels(home: Path, session: str = "s") -> list[tuple[str | None, str]]:
    """Label and taker of all checkpoints of a session."""
    return [(one["label"], one["taken_by"]) for one in answer(home, "checkpoints", session)]


def test_rules_take_checkpoints_before_what_cannot_be_taken_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="h", session="s", checkpoints=CheckpointRules(every=6)) as loop,
    ):
        loop.tool(lambda **_: "ok", {"id": 1}, name="delete_user")
        loop.tool(lambda **_: "ok", {"id": 1}, name="get_user")
        loop.message({"role": "user", "content": "go on"})
        loop.compacted([{"role": "user", "content": "short"}], summary="short")
    assert labels(home) == [
        ("before delete_user", "rule"),
        ("every 6 records", "rule"),
        ("before compaction", "rule"),
    ]
    rows = answer(home, "checkpoints", "s")
    types = {record["seq"]: record["type"] for record in events(home)}
    assert types[rows[0]["taken"] + 1] == "tool_call.requested"
    assert types[rows[2]["taken"] + 1] == "compaction.done"


def events(home: Path) -> list[dict[str, Any]]:
    """All events of session s."""
    with open_ledger(home) as ledger:
        return [{"seq": record.seq, "type": record.type} for record in ledger.store.read("s")]


def test_a_checkpoint_by_hand_keeps_files_and_a_second_one_vouches_for_what_changed(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("good")
    record_session(home, "s")
    taken = answer(home, "checkpoint", "s", "--workspace", work, "--label", "good")
    assert taken["files"] is not None
    (work / "a.txt").write_text("bad")
    assert run(home, "rollback", "s", "--to", "good", "--reason", "x").exit_code == 2
    again = answer(home, "checkpoint", "s", "--label", "bad")  # the same folder, without a word
    assert again["files"] not in (None, taken["files"])
    assert answer(home, "rollback", "s", "--to", "good", "--reason", "x")["clean"]
    assert (work / "a.txt").read_text() == "good"
    assert answer(home, "rollback", "s", "--to", "bad", "--reason", "back again")["clean"]
    assert (work / "a.txt").read_text() == "bad"  # the abandoned future is still there
    assert [one["label"] for one in answer(home, "checkpoints", "s")] == ["good", "bad"]


def test_a_checkpoint_of_an_earlier_record_has_no_files_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    record_session(home, "s")
    assert answer(home, "checkpoint", "s", "--at", 3)["seq"] == 3
    result = run(home, "checkpoint", "s", "--at", 3, "--workspace", tmp_path)
    assert (result.exit_code, "expected --at or --workspace" in result.stderr) == (2, True)
    assert run(home, "checkpoint", "s", "--at", 999).exit_code == 2
    assert "without files" in run(home, "checkpoint", "s").stdout
    result = run(home, "rollback", "s", "--to", "nonsense", "--plan")
    assert (result.exit_code, "has no checkpoint 'nonsense'" in result.stderr) == (2, True)
    assert run(home, "rollback", "s", "--to", "nonsense").exit_code == 2  # no reason given


def test_imported_checkpoints_are_listed_and_their_plan_claims_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answer(home, "import", FIXTURES / "langgraph" / "subgraphs")
    found = 0
    for row in answer(home, "sessions"):
        for checkpoint in answer(home, "checkpoints", row["id"])[-2:]:
            found += 1
            assert checkpoint["taken_by"] == "source"
            result = run(home, "rollback", row["id"], "--to", f"#{checkpoint['taken']}", "--plan")
            assert result.exit_code in (0, 1), result.output
    assert found


def test_the_list_follows_the_ledger_and_another_history_starts_it_anew(tmp_path: Path) -> None:
    home = tmp_path / "home"
    record_session(home, "s")
    for label in ("one", "two"):
        answer(home, "checkpoint", "s", "--label", label)
    assert [label for label, _ in labels(home)] == ["one", "two"]
    answer(home, "checkpoint", "s", "--label", "three")
    assert [label for label, _ in labels(home)] == ["one", "two", "three"]
    view = next((home / "views").glob("checkpoints-*.sqlite"))
    view.write_bytes(b"no database")
    assert [label for label, _ in labels(home)] == ["one", "two", "three"]
    other = tmp_path / "other"
    record_session(other, "s")
    answer(other, "checkpoint", "s", "--label", "other")
    (other / "views").mkdir(exist_ok=True)
    shutil.copy(view, other / "views" / view.name)
    assert [label for label, _ in labels(other)] == ["other"]
    with open_ledger(home) as ledger, CheckpointsView(home, ledger.store) as opened:
        opened.catch_up()
        assert opened.rows("nobody") == []


@pytest.mark.parametrize(
    "command", [("effects", "s"), ("checkpoints", "s"), ("rollback", "s", "--to", "x", "--plan")]
)
def test_hostile_words_do_not_touch_the_terminal(tmp_path: Path, command: tuple[str, ...]) -> None:
    home, hostile = tmp_path / "home", "x\x1b[31m\u202eevil\n\x07"
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("x")
        loop.checkpoint(hostile)
        loop.tool(lambda **_: "ok", {"url": hostile}, name=f"send {hostile}", effect_class="external")
    result = run(home, *command)
    assert result.exit_code in (0, 1)
    assert not {"\x1b", "\u202e", "\x07"} & set(result.output)


def test_the_same_on_postgresql(tmp_path: Path, postgres_database: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with (
        open_ledger(home, postgres_database) as ledger,
        record_loop(ledger, harness="h", session="s", workspace=work) as loop,
    ):
        loop.checkpoint("start")
        loop.tool(lambda: (work / "new.txt").write_text("n"), {}, name="write", effect_class="write")
    store = ("--store", postgres_database)
    assert answer(home, *store, "checkpoints", "s")[0]["label"] == "start"
    assert answer(home, *store, "rollback", "s", "--to", "start", "--reason", "x")["clean"]
    assert not list(work.iterdir())
    assert answer(home, *store, "verify")["ok"]


def test_a_loop_with_a_workspace_and_rules_replays_equal(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()

    def agent(run: RecordedLoop) -> None:
        run.checkpoint("start", workspace=work)
        undo = {"tool": "undo", "arguments": {}}
        run.tool(lambda: (work / "a").write_text("x"), {}, name="delete_all", compensate=undo)
        run.tool(lambda: "ok", {}, name="look")
        run.checkpoint("end")

    with open_ledger(home) as ledger:
        with record_loop(
            ledger, harness="h", session="s", workspace=work, checkpoints=CheckpointRules(every=3)
        ) as loop:
            agent(loop)
        (work / "a").unlink()
        with replay_loop(ledger, "s") as again:
            agent(again)
        assert (again.report.verdict, again.report.divergence) == ("equal", None)
    assert not (work / "a").exists()
