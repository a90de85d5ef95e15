"""What calls did outside, who used it, and what takes it back."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.errors import InputError
from ledger.home import open_ledger
from replay.recovery.compensations import Compensator
from replay.recovery.plan import make_plan
from replay.recovery.rollback import roll_back
from tests.commands import answer, run

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def done(**_: Any) -> str:
    """A tool that says it did something."""
    return "done"


def plan_of(home: Path, to: str = "start", *options: str) -> dict[str, Any]:
    """The plan of a rollback of session s."""
    result = run(home, "rollback", "s", "--to", to, "--plan", "--json", *options)
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["clean"] == (result.exit_code == 0)
    return found


def test_the_class_is_declared_by_policy_or_inferred_from_arguments_and_says_which(tmp_path: Path) -> None:
    home, policy = tmp_path / "home", tmp_path / "effects.yaml"
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.tool(done, {"action": "delete", "path": "/srv/a"}, name="manage_file")
        loop.tool(done, {"action": "list", "path": "/srv/a"}, name="manage_file")
        loop.tool(done, {"order": "17"}, name="ship", effect_class="external")
        loop.tool(done, {"key": "k-1", "what": 1}, name="notify")
        loop.tool(done, {"key": "k-1", "what": 2}, name="notify")
        loop.tool(done, {"order": "17"}, name="ship", effect_class="external")
        loop.tool(done, {"order": "17"}, name="ship", effect_class="external", is_denied=True)
    policy.write_text(
        "effects:\n- {tool: notify, class: external, idempotency_key: /key}\n- {tool: ship, class: irreversible}\n"
    )
    plain = answer(home, "effects", "s")
    assert [(one["class"], one["said_by"]) for one in plain[:3]] == [
        ("irreversible", "inferred"),
        ("read", "inferred"),
        ("external", "declared"),
    ]
    assert plain[0]["target"] == "/srv/a"
    assert plain[5]["duplicate_of"] == plain[2]["seq"]
    judged = answer(home, "effects", "s", "--policy", policy)
    assert [(one["class"], one["said_by"]) for one in judged[2:4]] == [
        ("irreversible", "policy"),
        ("external", "policy"),
    ]
    assert [one["idempotency_key"] for one in judged[3:5]] == ["k-1", "k-1"]
    assert judged[4]["duplicate_of"] == judged[3]["seq"]
    assert "the same as #" in run(home, "effects", "s").stdout


def test_consumers_are_found_by_id_by_value_and_by_delegation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("start")
        loop.tool(
            lambda **_: {"ticket": "TCK-90817"}, {"text": "x"}, name="open_ticket", effect_class="external"
        )
        loop.tool(done, {"about": "see TCK-90817 please"}, name="post_note", effect_class="external")
        loop.tool(done, {"about": "something else"}, name="post_note", effect_class="external")
        approval = loop.approve(lambda: True, tool="close", arguments={"id": "TCK-90817"}, call_id="c-1")
        loop.tool(
            done, {"id": "TCK-90817"}, name="close", effect_class="external", call_id="c-1", approval=approval
        )
        with loop.delegate(agent="helper", payload={"read": "TCK-90817"}) as child:
            child.tool(done, {"id": "TCK-90817"}, name="send_sms", effect_class="irreversible")
    plan = plan_of(home)
    ticket = plan["effects"][0]
    hows = [(one["session"] == "s", one["how"]) for one in ticket["consumed_by"]]
    assert (True, "call") in hows
    assert (True, "session") in hows
    assert (False, "call") in hows
    assert (True, "approval") in hows
    assert len(ticket["consumers"]) == 4
    listed = answer(home, "effects", "s")
    assert listed[0]["consumers"] == ticket["consumers"]
    sms = next(one for one in plan["effects"] if one["tool"] == "send_sms")
    assert (sms["disposition"], sms["session"] == "s") == ("not_undone", False)


def test_an_open_question_lapses_and_one_answered_since_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("start")
        loop.approve(lambda: True, tool="pay", arguments={"amount": 1})
    (approval,) = plan_of(home)["approvals"]
    assert (approval["becomes"], approval["status"], approval["tool"]) == ("lapsed", "approved", "pay")


def test_a_call_without_an_end_is_unknown_and_its_compensation_is_not_run(tmp_path: Path) -> None:
    home = tmp_path / "home"

    def dies(**_: Any) -> None:
        raise KeyboardInterrupt

    with open_ledger(home) as ledger:
        loop = record_loop(ledger, harness="h", session="s").__enter__()
        loop.checkpoint("start")
        undo = {"tool": "unbook", "arguments": {}}
        with pytest.raises(KeyboardInterrupt):
            loop.tool(dies, {"n": 1}, name="book", effect_class="external", compensate=undo)
        plan = make_plan(ledger, "s", "start", Compensator({"unbook": done}), ledger.recorder.keeper())
    assert [one.judgement.disposition for one in plan.effects] == ["unknown"]
    assert not plan.clean


def test_a_compensation_that_needs_what_was_redacted_is_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("start")
        undo = {"tool": "revoke", "arguments": {"key": "/arguments/key"}}
        loop.tool(done, {"key": SECRET}, name="issue", effect_class="credential", compensate=undo)
        undo = {"tool": "revoke", "arguments": {"key": "/result/nothing"}}
        loop.tool(done, {"key": "plain"}, name="issue", effect_class="credential", compensate=undo)
    with open_ledger(home) as ledger:
        plan = make_plan(ledger, "s", "start", Compensator({"revoke": done}), ledger.recorder.keeper())
    assert [(one.judgement.disposition, one.judgement.why) for one in plan.effects] == [
        ("not_undone", "its compensation needs /arguments/key, of which a secret was taken out"),
        ("not_undone", "its compensation needs /result/nothing, which is not on record"),
    ]


def test_functions_and_commands_come_from_the_users_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, policy, ran = tmp_path / "home", tmp_path / "effects.yaml", tmp_path / "ran"
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "undoing_things.py").write_text(
        f"def unbook(room, result):\n    with open({str(ran)!r}, 'a') as file:\n"
        "        file.write(f'{room} {result}\\n')\n"
    )
    script = f"import sys; open({str(ran)!r}, 'a').write(sys.argv[1] + chr(10))"
    policy.write_text(
        json.dumps(
            {
                "tools": {"unbook": "undoing_things:unbook"},
                "effects": [
                    {
                        "tool": "book",
                        "compensation": {
                            "tool": "unbook",
                            "arguments": {"room": "/arguments/room", "result": "/result"},
                        },
                    },
                    {
                        "tool": "upload",
                        "compensation": {"command": [sys.executable, "-c", script, "/arguments/name"]},
                    },
                ],
            }
        )
    )
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("start")
        loop.tool(done, {"room": "room 17; rm -rf /"}, name="book", effect_class="external")
        loop.tool(done, {"name": "$(touch bad) report.pdf"}, name="upload", effect_class="external")
    assert {one["disposition"] for one in plan_of(home)["effects"]} == {"not_undone"}
    assert plan_of(home, "start", "--policy", str(policy))["clean"]
    assert not ran.exists()
    result = answer(home, "rollback", "s", "--to", "start", "--reason", "x", "--policy", policy)
    assert result["clean"]
    assert ran.read_text() == "$(touch bad) report.pdf\nroom 17; rm -rf / done\n"
    policy.write_text("tools: {unbook: 'no_such_module_of_ours:unbook'}")
    result_again = run(home, "rollback", "s", "--to", "start", "--plan", "--policy", policy)
    assert (result_again.exit_code, "expected a function as module:function" in result_again.stderr) == (
        2,
        True,
    )


def test_a_command_that_the_loop_registered_runs_only_when_the_user_allows_it(tmp_path: Path) -> None:
    home, ran = tmp_path / "home", tmp_path / "ran"
    undo = {"command": ["/bin/sh", "-c", f"echo undone >> {ran}; exit 3"]}
    with open_ledger(home) as ledger, record_loop(ledger, harness="h", session="s") as loop:
        loop.checkpoint("start")
        loop.tool(done, {"n": 1}, name="book", effect_class="external", compensate=undo)
    (effect,) = plan_of(home)["effects"]
    assert (effect["disposition"], "--run-recorded" in effect["reason"]) == ("not_undone", True)
    (effect,) = plan_of(home, "start", "--run-recorded")["effects"]
    assert effect["disposition"] == "compensated"
    result = run(home, "rollback", "s", "--to", "start", "--reason", "x", "--run-recorded", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["effects"][0]["disposition"] == "not_undone"
    assert "exit status 3" in told["failed_compensations"][0]
    assert run(home, "rollback", "s", "--to", "start", "--reason", "x", "--run-recorded").exit_code == 1
    assert ran.read_text() == "undone\n"  # what has failed is not tried again


def test_shell_commands_are_judged_by_all_that_they_do(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a")

    def bash(command: str) -> str:
        (work / "a").write_text(command)
        return "ok"

    with (
        open_ledger(home) as ledger,
        record_loop(ledger, harness="h", session="s", workspace=work) as loop,
    ):
        loop.checkpoint("start")
        loop.tool(bash, {"command": "rm a; echo b > a"})
        loop.tool(bash, {"command": "rm a; curl -X DELETE https://example.org/a"})
        loop.tool(bash, {"command": "echo x > a; echo x > /etc/motd"})
        loop.tool(lambda command: "ok", {"command": "git commit -am x"}, name="bash")
        loop.tool(lambda command: "ok", {"command": "cat a"}, name="bash")
    assert [one["disposition"] for one in plan_of(home)["effects"]] == [
        "restored",
        "not_undone",
        "unknown",
        "unknown",
    ]


def test_a_function_is_registered_by_name_and_given_again_to_roll_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    undone: list[Any] = []

    def unbook(arguments: Any, result: Any) -> None:
        undone.append((arguments, result))

    with open_ledger(home) as ledger:
        with record_loop(ledger, harness="h", session="s") as loop:
            loop.checkpoint("start")
            loop.tool(
                lambda room: {"id": 7}, {"room": 17}, name="book", effect_class="external", compensate=unbook
            )
        with pytest.raises(InputError, match="has no checkpoint"):
            roll_back(ledger, "s", "nothing")
        ended = roll_back(ledger, "s", "start", compensator=Compensator({"unbook": unbook}))
    assert ended.plan.clean
    assert undone == [({"room": 17}, {"id": 7})]
