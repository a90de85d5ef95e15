"""Two branches or sessions side by side: what they share is counted once, and where they part is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.errors import InputError
from ledger.events.model_call import ModelCallAnswered
from ledger.events.recovery import RolledBack
from ledger.events.session import SessionEnded, SessionForked, SessionStarted
from ledger.home import Ledger, open_ledger
from replay.comparing.comparison import Comparison, compare
from replay.forking import fork_session
from replay.inprocess import branch_loop
from tests.commands import FIXTURES, HOSTILE, answer, run
from tests.ledger.capture.loops import chat_answer
from tests.ledger.views.test_branches import answered, append, said, tree_of

from ..conftest import ledger

__all__ = ["ledger"]


def loop(
    ledger: Ledger,
    session: str,
    *,
    system: str = "careful",
    words: str = "answer",
    tool: str = "send",
    to: str = "a",
    result: str = "sent",
    turns: int = 2,
    fails: bool = False,
    question: str = "go",
) -> str:
    """A loop of some turns; its arguments are what a test changes in the second."""
    with record_loop(ledger, harness="test", session=session) as run:
        messages: list[Any] = [{"role": "system", "content": system}]
        for turn in range(turns):
            is_last = turn == turns - 1
            messages.append({"role": "user", "content": question if is_last else "go"})
            run.message(messages[-1])
            text = words if is_last else "answer"
            reply = run.model(lambda text=text, **_: chat_answer(text), model="m", messages=messages)
            messages.append(reply["choices"][0]["message"])
            if is_last and fails:
                with pytest.raises(ZeroDivisionError):
                    run.tool(lambda **_: 1 / 0, {"to": to}, name=tool)
            else:
                told = result if is_last else "sent"
                run.tool(
                    lambda told=told, **_: told,
                    {"to": to if is_last else "a"},
                    name=tool if is_last else "send",
                )
    return session


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"system": "other"}, "other_request", "system prompt"),
        ({"words": "no"}, "other_answer", "another answer"),
        ({"tool": "post"}, "other_tool", "another tool"),
        ({"to": "b"}, "other_arguments", "other arguments"),
        ({"result": "lost"}, "other_result", "another result"),
        ({"fails": True}, "other_result", "another result"),
        ({"question": "stop"}, "other_message", "another message"),
        ({"turns": 3}, "other_step", "session.ended on the left, input.message_received on the right"),
    ],
)
def test_the_first_difference_is_named_with_its_reason(
    ledger: Ledger, changes: dict[str, Any], kind: str, words: str
) -> None:
    loop(ledger, "one")
    loop(ledger, "two", **changes)
    comparison = compare(ledger, "one", "two")
    parting = comparison.divergence
    assert parting is not None and parting.left and parting.right
    assert (parting.kind, words in parting.cause) == (kind, True), parting
    for act in (parting.left, parting.right):
        assert ledger.store.record(act.session, act.seq).type == act.type
    back = compare(ledger, "two", "one").divergence
    assert back is not None
    assert (back.kind, back.left, back.right) == (kind, parting.right, parting.left)
    assert compare(ledger, "two", "two").divergence is None


def test_a_request_about_another_day_is_no_other_act(ledger: Ledger) -> None:
    loop(ledger, "one", system="It is Monday.")
    loop(ledger, "two", system="It is Tuesday.", to="b")
    comparison = compare(ledger, "one", "two")
    assert comparison.divergence is not None and comparison.divergence.kind == "other_request"
    assert comparison.first_other_act is not None
    assert comparison.first_other_act.kind == "other_arguments"


def test_what_one_side_does_beyond_the_other_is_told(ledger: Ledger) -> None:
    append(ledger, "one", SessionStarted(harness="h"), said(ledger, "a"), said(ledger, "b"))
    append(ledger, "two", SessionStarted(harness="h"), said(ledger, "a"))
    comparison = compare(ledger, "one", "two")
    parting = comparison.divergence
    assert parting is not None
    assert (parting.kind, parting.cause, parting.right) == (
        "ended",
        "the right side has nothing more",
        None,
    )
    assert parting.left is not None and parting.left.seq == 3


def test_a_branch_shares_its_beginning_and_that_counts_once(ledger: Ledger) -> None:
    append(ledger, "root", SessionStarted(harness="h"), said(ledger, "a"))
    at = append(ledger, "root", answered(ledger, "m1", 10))
    append(ledger, "root", answered(ledger, "m2", 100), SessionEnded(outcome="completed"))
    branch = fork_session(ledger, "root", at, "else")
    append(ledger, branch, answered(ledger, "m3", 1000), SessionEnded(outcome="failed"))
    told = compare(ledger, "root", branch).as_json()
    assert told["shared"]["tokens"]["input"] == 10
    assert (told["left"]["tokens"]["input"], told["right"]["tokens"]["input"]) == (100, 1000)
    assert told["shared"]["records"] == at
    assert (told["left"]["outcome"], told["right"]["outcome"]) == ("completed", "failed")
    assert told["divergence"]["left"]["seq"] == at + 1
    assert (told["divergence"]["right"]["session"], told["divergence"]["right"]["seq"]) == (branch, 3)
    other = fork_session(ledger, branch, 4, "and more")
    assert compare(ledger, "root", other).as_json()["shared"]["records"] == at
    assert compare(ledger, branch, other).as_json()["shared"]["records"] == at + 4


def test_a_future_that_was_given_up_is_compared_with_what_came_in_its_place(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m1", 1), said(ledger, "wrong"))
    append(ledger, "s", answered(ledger, "m2", 10))
    rolled = append(ledger, "s", RolledBack(to_seq=2))
    append(ledger, "s", said(ledger, "right"), answered(ledger, "m3", 100))
    told = compare(ledger, f"s~{rolled}", "s").as_json()
    assert (
        told["shared"]["tokens"]["input"],
        told["left"]["tokens"]["input"],
        told["right"]["tokens"]["input"],
    ) == (
        1,
        10,
        100,
    )
    assert (told["left"]["id"], told["divergence"]["kind"]) == (f"s~{rolled}", "other_message")
    assert told["divergence"]["left"]["seq"] == 3
    for name in ("s~2", "s~", "s~x", "nothing"):
        with pytest.raises(Exception, match=r"no branch|no session"):
            compare(ledger, name, "s")


def test_a_run_on_recorded_answers_is_aligned_with_its_origin(ledger: Ledger) -> None:
    def agent(run: Any) -> None:
        messages: list[Any] = []
        for turn in range(3):
            messages.append({"role": "user", "content": f"turn {turn}"})
            run.message(messages[-1])
            reply = run.model(lambda **_: chat_answer(f"answer {turn}"), model="m", messages=messages)  # noqa: B023
            messages.append(reply["choices"][0]["message"])

    with record_loop(ledger, harness="test") as run:
        agent(run)
    asked = [record.seq for record in ledger.store.read(run.session, names=("model_call.requested",))]
    other = chat_answer("something else")
    with branch_loop(ledger, run.session, at=asked[1] + 1, answers={asked[1]: other}) as branch:
        agent(branch)
    told = compare(ledger, run.session, branch.report.replay_session).as_json()
    assert told["shared"]["records"] == 0, "it holds its own records of what it shares"
    assert told["divergence"]["kind"] == "other_answer"
    assert told["divergence"]["left"]["seq"] == asked[1] + 1
    assert told["left"]["tokens"]["input"] == 18
    assert told["right"]["tokens"]["input"] == 12, "an answer from the record is not paid for again"
    tree = tree_of(ledger, run.session)
    assert tree.branches[0].difference is not None and tree.branches[0].difference.there is not None
    assert tree.branches[0].difference.there.seq == asked[1]


def test_hunks_hold_every_act_once(ledger: Ledger) -> None:
    for name, texts in (("one", "abcdefg"), ("two", "xbcyefzg")):
        append(ledger, name, SessionStarted(harness="h"), *(said(ledger, text) for text in texts))
    comparison = compare(ledger, "one", "two")
    assert_whole(comparison)
    assert comparison.as_json()["common"] == 5


def assert_whole(comparison: Comparison) -> None:
    left = [index for hunk in comparison.hunks() for index in hunk.left]
    right = [index for hunk in comparison.hunks() for index in hunk.right]
    assert left == list(range(len(comparison.sides[0])))
    assert right == list(range(len(comparison.sides[1])))


def test_a_revised_answer_counts_once(ledger: Ledger) -> None:
    append(ledger, "s", SessionStarted(harness="h"), answered(ledger, "m", 1))
    append(ledger, "s", answered(ledger, "m", 5, revision=1))
    told = compare(ledger, "s", "s").as_json()
    assert told["shared"]["tokens"]["input"] == 5
    assert told["shared"]["model_calls"] == 1


# -- the commands ----------------------------------------------------------------------------------------------------


def test_the_commands_show_branches_and_differences(tmp_path: Path) -> None:
    answer(tmp_path, "import", FIXTURES / "langgraph" / "stale-approval")
    rows = answer(tmp_path, "sessions")
    fork = next(row["id"] for row in rows if ".fork-" in row["id"])
    root = fork.split(".fork-")[0]
    branches = answer(tmp_path, "branches", root)
    assert [(one["depth"], one["id"], one["kind"]) for one in branches] == [
        (0, root, "root"),
        (1, fork, "fork"),
    ]
    assert branches[1]["difference"]["here"]["about"] == "denied"
    assert branches[1]["difference"]["there"]["about"] == "approved"
    shown = run(tmp_path, "branches", fork).stdout
    assert f"* └─ {fork[:20]}" in shown and "approval.decided denied" in shown
    told = answer(tmp_path, "compare", root, fork)
    assert told["divergence"]["kind"] == "other_decision"
    assert told["shared"]["records"] == branches[1]["at_seq"]
    shown = run(tmp_path, "compare", root, fork).stdout
    for words in ("LEFT", "both begin with", "they part: another decision", "alike"):
        assert words in shown
    assert "they do the same" in run(tmp_path, "compare", root, root).stdout


def test_the_command_branch_opens_one_by_a_message(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        loop(ledger, "one")
    made = answer(tmp_path, "branch", "one", "--at", "3", "--message", "turn left")
    state = answer(tmp_path, "state", made["session"])
    assert state["context"][-1] == {"role": "user", "content": "turn left"}
    assert (state["forked_from"], state["forked_from_seq"]) == ("one", 3)
    assert [one["id"] for one in answer(tmp_path, "branches", "one")] == ["one", made["session"]]
    assert run(tmp_path, "branch", "one", "--at", "99", "--message", "x").exit_code == 2
    assert run(tmp_path, "branch", "one", "--at", "1", "--message", "x", "--", "true").exit_code == 2


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        for name in ("one", "two"):
            with record_loop(ledger, harness=HOSTILE, session=name, agent=HOSTILE, name=HOSTILE) as run_:
                run_.tool(lambda: None, {}, name=f"{HOSTILE} {name}")
        fork_session(ledger, "one", 2, HOSTILE)
    for words in (("compare", "one", "two"), ("branches", "one")):
        shown = run(tmp_path, *words).stdout
        assert shown.replace("\n", "").isprintable()
        json.dumps(answer(tmp_path, *words))


def test_a_branch_that_is_none_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        append(ledger, "s", SessionStarted(harness="h"), SessionForked(origin="t", origin_seq=1))
        append(ledger, "s", answered(ledger, "m", 1))
        assert next(iter(ledger.store.read("s", names=(ModelCallAnswered.TYPE,))))
        with pytest.raises(InputError, match="is no rollback"):
            compare(ledger, "s~1", "s")
    done = run(tmp_path, "compare", "s~1", "s")
    assert (done.exit_code, "names no branch" in done.stderr) == (2, True)
