"""One agent against several: grouped by task, compared where both did it, and honest about few runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import InputError
from ledger.views.fleet import Fleet, fleet, load_tasks
from ledger.views.sessions import SessionsView
from tests.audit.labelled import call
from tests.ledger.audit.histories import History, Told


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A ledger of the test's own."""
    with History(tmp_path) as opened:
        yield opened


def run(
    name: str,
    task: str,
    *,
    helpers: int = 0,
    tokens: int = 100,
    outcome: str = "completed",
    block: bool = False,
) -> list[Told]:
    """A run of one agent and so many helpers; `block`: its message in another protocol's shape."""
    content: Any = [{"type": "text", "text": f"  {task}\n"}] if block else task
    around = {"@session": name}
    events: list[Told] = [
        {"type": "session.started", "harness": "own"},
        {
            "type": "input.message_received",
            "origin": "human",
            "message": {"role": "user", "content": content},
        },
        *_answer(name, tokens),
    ]
    events = [one | around for one in events]
    for number in range(helpers):
        child = f"{name}-helper{number}"
        given: Told = {
            "type": "delegation.started",
            "delegation_id": child,
            "to_agent": f"helper {number}",
            "to_session": child,
            "how": "spawn",
        }
        back: Told = {"type": "delegation.returned", "delegation_id": child, "outcome": "returned"}
        started: Told = {"type": "session.started", "harness": "own", "parent": name}
        events += [given | around, started | {"@session": child}]
        events += [one | {"@session": child} for one in _answer(child, tokens)]
        events += [back | around]
    return [*events, {"type": "session.ended", "outcome": outcome} | around]


def _answer(name: str, tokens: int) -> list[Told]:
    return [
        {"type": "model_call.requested", "call_id": name, "protocol": "openai.chat", "completeness": "none"},
        {
            "type": "model_call.answered",
            "call_id": name,
            "message": {"role": "assistant", "content": "well"},
            "usage": {"input_tokens": tokens, "output_tokens": 0},
            "cost_usd": "0.5",
        },
    ]


def compared(history: History, declared: dict[str, str] | None = None) -> Fleet:
    """The runs of the ledger."""
    ledger = history.ledger
    with SessionsView(ledger.home, ledger.store) as view:
        view.catch_up()
        return fleet(ledger.store, view, declared)


def test_runs_with_the_same_first_message_are_one_task_whatever_its_shape(history: History) -> None:
    history.add(
        [*run("a", "Count leaves"), *run("b", "count  leaves", helpers=1, block=True), *run("c", "Sing")]
    )
    found = compared(history)
    assert len({one.task for one in found.runs}) == 2
    assert len(found.shared()) == 1


def test_cost_and_effort_are_compared_task_by_task(history: History) -> None:
    history.add([*run("a", "count"), *run("b", "count", helpers=2), *run("c", "sing", helpers=1)])
    told = compared(history).as_json()
    same = told["same_tasks"]
    assert (same["one"]["runs"], same["several"]["runs"]) == (1, 1)
    assert same["several"]["cost_usd"]["sum"] == 1.5
    assert same["several_to_one"]["cost_usd"] == {"tasks": 1, "median": 3.0}
    assert same["several_to_one"]["tokens"]["median"] == 3.0
    assert [(one["agents"], one["runs"]) for one in told["by_agents"]] == [(1, 1), (2, 1), (3, 1)]


def test_few_runs_tell_nothing_and_it_says_so(history: History) -> None:
    history.add([*run("a", "count"), *run("b", "count", helpers=2, outcome="failed")])
    same = compared(history).as_json()["same_tasks"]
    assert same["verdict"].startswith("too few runs")
    assert same["one"]["completed"]["low"] < 0.3
    assert same["several"]["completed"]["high"] > 0.7


def test_many_runs_that_differ_are_told_apart(history: History) -> None:
    for number in range(12):
        history.add(run(f"one{number:02}", "count", outcome="failed"))
        history.add(run(f"two{number:02}", "count", helpers=1))
    verdict = compared(history).as_json()["same_tasks"]["verdict"]
    assert verdict == "several agents completed more, and the intervals do not overlap"


def test_many_runs_that_do_not_differ_show_no_difference(history: History) -> None:
    for number in range(12):
        history.add(run(f"one{number:02}", "count"))
        history.add(run(f"two{number:02}", "count", helpers=1))
    verdict = compared(history).as_json()["same_tasks"]["verdict"]
    assert verdict == "no difference in completion shown: the intervals overlap"


def test_failures_are_counted_by_kind(history: History) -> None:
    around = {"@session": "a"}
    history.add(run("a", "count", helpers=1))
    history.add([one | around for one in call(7, "look", {}, outcome="failed")])
    history.add([{"type": "model_call.failed", "call_id": "x", "error": "overloaded"} | around])
    history.add(
        [{"type": "delegation.started", "delegation_id": "z", "to_agent": "far", "how": "spawn"} | around]
    )
    history.add([{"type": "delegation.returned", "delegation_id": "z", "outcome": "failed"} | around])
    (found,) = compared(history).runs
    assert dict(found.failures) == {"tool call failed": 1, "model call failed": 1, "hand-over failed": 1}
    assert found.agents == 3


def test_a_run_that_failed_is_a_failure_of_one_agent_as_of_several(history: History) -> None:
    history.add([*run("a", "count", outcome="failed"), *run("b", "count", helpers=1, outcome="aborted")])
    assert [dict(one.failures) for one in compared(history).runs] == [{"run failed": 1}, {"run aborted": 1}]


@pytest.mark.parametrize(("told", "kind"), [("failed", "hand-over"), ("returned", "sub-agent")])
def test_a_sub_agent_that_failed_counts_once(history: History, told: str, kind: str) -> None:
    events = run("a", "count", helpers=1)
    events = [one | ({"outcome": told} if one["type"] == "delegation.returned" else {}) for one in events]
    ended: Told = {"type": "session.ended", "outcome": "failed", "@session": "a-helper0"}
    history.add([*events, ended])
    (found,) = compared(history).runs
    assert dict(found.failures) == {f"{kind} failed": 1}


def test_a_session_under_two_tasks_is_a_mistake(history: History, tmp_path: Path) -> None:
    history.add(run("aa", "count"))
    path = tmp_path / "tasks.yaml"
    path.write_text("tasks: {leaves: [aa], petals: [a]}")
    with pytest.raises(InputError, match=r"expected aa under one task, found it under 'leaves' and 'petals'"):
        load_tasks(path, history.ledger.store)


def test_tasks_may_be_declared(history: History, tmp_path: Path) -> None:
    history.add([*run("aa", "count"), *run("bb", "other words", helpers=1), *run("cc", "not in the set")])
    path = tmp_path / "tasks.yaml"
    path.write_text("tasks: {leaves: [aa, bb]}")
    found = compared(history, load_tasks(path, history.ledger.store))
    assert [(one.session, one.task) for one in found.runs] == [("aa", "leaves"), ("bb", "leaves")]
    path.write_text("tasks: [aa]")
    with pytest.raises(InputError, match="tasks"):
        load_tasks(path, history.ledger.store)


def test_a_run_that_two_sessions_tell_of_counts_once(history: History) -> None:
    history.add([*run("a", "count"), *run("b", "count")])
    for name, other in (("a", "b"), ("b", "a")):
        linked = {"type": "session.linked", "how": ["call_id"], "matched": 1, "only_here": 0, "only_there": 0}
        history.add([linked | {"@session": name, "other": other}])
    found = compared(history)
    assert [one.session for one in found.runs] == ["a"]
    assert found.same_run == 1


def test_a_run_without_a_message_is_counted_and_not_compared(history: History) -> None:
    history.add([{"type": "session.started", "harness": "own"}])
    found = compared(history)
    assert (found.runs, found.without_task) == ([], 1)
