"""Going back for real: files, mail, rows and an API that cannot be taken back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import CheckpointRules, record_loop
from ledger.home import Ledger, open_ledger
from replay.cli import open_timeline
from replay.recovery.compensations import Compensator
from replay.recovery.plan import digest_of_what_goes_back, make_plan
from replay.recovery.rollback import roll_back
from tests.commands import answer, run
from tests.replay.recovery.world import World, fill_workspace, picture, running_world


@pytest.fixture
def world(tmp_path: Path, postgres_database: str) -> Iterator[World]:
    fill_workspace(tmp_path / "work")
    with running_world(tmp_path / "work", postgres_database) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def model(call: dict[str, Any]) -> Any:
    """A model that says what it is told to."""
    return lambda **request: {"choices": [{"index": 0, "message": {"role": "assistant", **call}}]}


def act(ledger: Ledger, world: World) -> str:
    """A loop that works, takes a checkpoint, and does what it should not have done. Gives the checkpoint."""
    with record_loop(
        ledger, harness="shop", session="shop-1", workspace=world.workspace, checkpoints=CheckpointRules()
    ) as loop:
        messages: list[Any] = [{"role": "user", "content": "tidy up"}]
        loop.message(messages[0])
        loop.tool(world.edit_file, {"path": "notes.txt", "content": "good\n"}, effect_class="write")
        loop.model(model({"content": "done"}), model="scripted", messages=messages)
        point = loop.checkpoint("good")
        loop.tool(
            world.edit_file, {"path": "notes.txt", "content": "bad\n"}, effect_class="write", call_id="e1"
        )
        loop.tool(
            world.bash,
            {"command": "rm old.txt; chmod 600 src/run.sh; mkdir new; echo more > new/more.txt; rmdir empty"},
            call_id="s1",
        )
        loop.tool(
            world.send_mail, {"to": "ada@example.org", "text": "paid"}, effect_class="external", call_id="m1"
        )
        rows = loop.tool(
            world.insert_rows,
            {"names": ["Ada", "Bert"]},
            effect_class="external",
            call_id="r1",
            compensate={"tool": "delete_rows", "arguments": {"ids": "/result/ids"}},
        )
        loop.tool(
            world.transfer,
            {"amount": 100, "reference": f"customer {rows['ids'][0]}"},
            effect_class="irreversible",
            call_id="t1",
            idempotency_key="order-1",
        )
        messages.append({"role": "tool", "tool_call_id": "m1", "content": "queued as 8F3A21"})
        loop.model(model({"content": "sent as 8F3A21"}), model="scripted", messages=messages)
        loop.tool(world.bash, {"command": "cat notes.txt"}, call_id="s2")
        return point


def test_the_plan_is_exact_and_the_rollback_does_what_it_says(world: World, home: Path) -> None:
    with open_ledger(home) as ledger:
        fresh = picture(world.workspace)
        (world.workspace / "notes.txt").write_text("good\n")
        wanted = picture(world.workspace)
        (world.workspace / "notes.txt").write_text(fresh["notes.txt"][1].decode())
        point = act(ledger, world)
        assert world.customers() == ["Ada", "Bert"]
        compensator = Compensator({"delete_rows": world.delete_rows})
        plan = make_plan(ledger, "shop-1", point, compensator, ledger.recorder.keeper())
        told = {one.call.call_id: one.judgement.disposition for one in plan.effects}
        assert told == {
            "e1": "restored",
            "s1": "restored",
            "m1": "not_undone",
            "r1": "compensated",
            "t1": "not_undone",
        }
        form = plan.as_json()
        assert {(one["path"], one["operation"]) for one in form["restores"]} == {
            ("notes.txt", "edit"),
            ("old.txt", "create"),
            ("src/run.sh", "edit"),
            ("new", "delete"),
            ("new/more.txt", "delete"),
            ("empty", "create"),
        }
        assert (form["clean"], form["conflicts"], form["uncovered_files"]) == (False, [], [])
        mail = next(one for one in form["effects"] if one["call_id"] == "m1")
        shown = [
            record.seq for record in ledger.store.read("shop-1") if record.type == "model_call.requested"
        ]
        assert mail["consumers"] == [shown[1]]
        with open_timeline(ledger, "shop-1") as timeline:
            before = digest_of_what_goes_back(timeline.at(plan.checkpoint.seq))
        head = ledger.store.head("shop-1").seq

        done = roll_back(ledger, "shop-1", "good", reason="wrong customer", compensator=compensator)

        assert picture(world.workspace) == wanted
        assert world.customers() == []
        assert world.compensated == 1
        assert (len(world.mail.mails), len(world.bank.transfers)) == (1, 1)
        assert done.state_digest == before == plan.state_digest
        assert done.files_digest == form["files_digest"]
        assert not done.plan.clean
        assert done.as_json()["restores"] == form["restores"]
        assert done.as_json()["abandons"] == {"from": plan.checkpoint.seq + 1, "to": head}
        records = list(ledger.store.read("shop-1"))
        assert records[:head] == list(ledger.store.read("shop-1", upto=head))
        types = [record.type for record in records[head:]]
        assert types == [
            "recovery.files_seen",
            "recovery.rollback_started",
            "effect.compensation_started",
            "effect.compensated",
            "recovery.files_seen",
            *["effect.compensated"] * 4,  # one for each file
            "effect.not_undone",
            "effect.not_undone",
            "recovery.rolled_back",
        ]

        again = roll_back(ledger, "shop-1", "good", reason="once more", compensator=compensator)
        assert (again.seq, world.compensated) == (done.seq, 1)
    assert answer(home, "verify")["ok"]
    listed = answer(home, "checkpoints", "shop-1")
    assert [(one["label"], one["taken_by"]) for one in listed] == [
        ("good", "loop"),
        ("before bash", "rule"),  # it removes a file
        ("before transfer", "rule"),
    ]
    state = answer(home, "state", "shop-1")
    assert [message["content"] for message in state["context"]] == ["tidy up", "done"]
    notes = state["files"][str(world.workspace / "notes.txt")]
    assert (notes["status"], state["effects"]["not_undone"]) == ("compensated", 2)


def test_a_file_that_somebody_else_changed_is_a_conflict_and_nothing_is_touched(
    world: World, home: Path
) -> None:
    with open_ledger(home) as ledger:
        act(ledger, world)
    (world.workspace / "notes.txt").write_text("by hand\n")
    before = picture(world.workspace)
    result = run(home, "rollback", "shop-1", "--to", "good", "--reason", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "notes.txt: it is not as it was seen last" in result.stderr
    assert picture(world.workspace) == before
    plan = json.loads(run(home, "rollback", "shop-1", "--to", "good", "--plan", "--json").stdout)
    assert [one["path"] for one in plan["conflicts"]] == ["notes.txt"]
    assert not plan["clean"]
    result = run(home, "rollback", "shop-1", "--to", "good", "--reason", "x", "--overwrite")
    assert result.exit_code == 1  # what is not undone is bad news
    assert (world.workspace / "notes.txt").read_text() == "good\n"


def test_a_change_between_two_calls_is_nobodys_and_not_undone_unasked(world: World, home: Path) -> None:
    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="shop", session="shop-1", workspace=world.workspace) as loop,
    ):
        loop.checkpoint("start")
        loop.tool(world.edit_file, {"path": "a.txt", "content": "a"}, effect_class="write")
        (world.workspace / "b.txt").write_text("by a person")
        loop.tool(world.edit_file, {"path": "c.txt", "content": "c"}, effect_class="write")
    plan = json.loads(run(home, "rollback", "shop-1", "--to", "start", "--plan", "--json").stdout)
    assert [one["path"] for one in plan["conflicts"]] == ["b.txt"]
    assert run(home, "rollback", "shop-1", "--to", "start", "--reason", "x").exit_code == 2
    assert (world.workspace / "a.txt").exists()


def test_a_rollback_of_files_alone_is_clean(world: World, home: Path) -> None:
    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="shop", session="shop-1", workspace=world.workspace) as loop,
    ):
        loop.checkpoint("start")
        before = picture(world.workspace)
        loop.tool(world.bash, {"command": "sed -i s/first/second/ notes.txt && ln -sf photo.bin link"})
    assert run(home, "rollback", "shop-1", "--to", "start", "--plan").exit_code == 0
    result = answer(home, "rollback", "shop-1", "--to", "start", "--reason", "no good")
    assert result["clean"]
    assert result["state_digest_now"] == result["state_digest"]
    assert picture(world.workspace) == before
    assert answer(home, "verify")["ok"]
    assert answer(home, "replay", "shop-1", "--level", "state")["verdict"] == "equal"
