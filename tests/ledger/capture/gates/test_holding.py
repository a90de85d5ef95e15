"""The hand brake and the breakers: a loop stops at its next call, and goes on when it is released."""

import asyncio
import json
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.capture.gates.deciding import hold, release
from ledger.effects.loop_policy import Budget, LoopPolicy, Price, load_loop_policy
from ledger.errors import HeldError, InputError
from ledger.events.model_call import ModelCallFailed
from ledger.events.policy import BreakerTripped, BudgetCharged, BudgetExceeded, Held
from ledger.events.tool_call import ToolCallSettled
from ledger.home import Ledger, open_ledger
from tests.commands import answer, run
from tests.ledger.capture.gates.test_approvals import only_all, waits_for
from tests.ledger.capture.loops import chat_answer, only, records, scripted, types

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_a_held_loop_stops_at_its_next_call_and_goes_on_when_released(ledger: Ledger) -> None:
    acted: list[str] = []
    with record_loop(ledger, harness="test", session="s") as loop:
        loop.model(scripted, **ASK)
        assert hold(ledger.recorder, "s", "alice", "look at it") == ["s"]
        thread = threading.Thread(target=_act, args=(loop, acted))
        thread.start()
        waits_for(lambda: "tool_call.started" in types(ledger, "s"))
        thread.join(0.3)
        assert (acted, thread.is_alive()) == ([], True)
        assert release(ledger.recorder, "s", "alice", None) == ["s"]
        thread.join(120)
    assert acted == ["acted"]
    assert release(ledger.recorder, "s", "alice", None) == []


def _act(loop: Any, acted: list[str]) -> None:
    loop.tool(lambda: acted.append("acted"), {}, name="act")


def test_a_loop_may_rather_raise_and_says_that_the_call_never_began(ledger: Ledger) -> None:
    acted: list[str] = []
    with record_loop(ledger, harness="test", session="s", when_held="raise") as loop:
        hold(ledger.recorder, "s", "alice", "enough")
        with pytest.raises(HeldError, match="held by a person: enough"):
            _act(loop, acted)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)
    assert acted == []
    assert only(ledger, "s", ToolCallSettled).outcome == "not_started"
    assert only(ledger, "s", ModelCallFailed).error == "ledger.errors.HeldError"


def test_a_hold_reaches_those_that_work_was_handed_to_and_a_restarted_loop(ledger: Ledger) -> None:
    with record_loop(ledger, harness="test", session="s", when_held="raise") as loop:
        with loop.delegate(agent="helper") as child:
            held = hold(ledger.recorder, "s", "alice", None)
            assert held == ["s", child.session]
            with pytest.raises(HeldError):
                _act(child, [])
        with pytest.raises(HeldError):
            _act(loop, [])
    with (
        record_loop(ledger, harness="test", session="s", when_held="raise") as loop,
        pytest.raises(HeldError),
    ):
        _act(loop, [])


def test_a_held_loop_hands_no_work_over(ledger: Ledger) -> None:
    with record_loop(ledger, harness="test", session="s", when_held="raise") as loop:
        hold(ledger.recorder, "s", "alice", None)
        with pytest.raises(HeldError, match="session s is held"), loop.delegate(agent="helper") as child:
            _act(child, [])
    assert types(ledger, "s").count("delegation.returned") == 1


def test_an_asynchronous_loop_waits_without_holding_up_others(ledger: Ledger) -> None:
    async def model(**request: Any) -> Any:
        return scripted(**request)

    async def main() -> int:
        others = 0
        async with record_loop(ledger, harness="test", session="s") as loop:
            hold(ledger.recorder, "s", "alice", None)
            task = asyncio.create_task(loop.amodel(model, **ASK))
            while "model_call.requested" not in types(ledger, "s"):
                others += 1
                await asyncio.sleep(0.01)
            assert not task.done()
            release(ledger.recorder, "s", "alice", None)
            await task
        return others

    assert asyncio.run(main()) > 0
    assert types(ledger, "s")[-2:] == ["model_call.answered", "session.ended"]


_LOOP = """
import sys, time
from ledger.capture import record_loop
from ledger.home import open_ledger
with open_ledger(sys.argv[1]) as ledger, record_loop(ledger, harness="test", session="far") as loop:
    for number in range(100_000):
        loop.tool(lambda: print(number, flush=True), {}, name="step")
        time.sleep(0.01)
"""


def test_the_command_stops_a_loop_in_another_process_within_one_call(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LOOP, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        held = answer(tmp_path, "hold", "far", "--reason", "stop", "--by", "alice")
        assert held == {"session": "far", "held": ["far"]}
        # One call may have begun before; the next is requested, waits, and does not run.
        waits_for(lambda: _requested_after_hold(tmp_path))
        events = _events(tmp_path)
        place = next(index for index, one in enumerate(events) if one["type"] == "policy.held")
        after = [one["type"] for one in events[place:]]
        assert after.count("tool_call.requested") == 1 or after.count("tool_call.settled") == 1
        assert answer(tmp_path, "release", "far")["released"] == ["far"]
        waits_for(lambda: len(_events(tmp_path)) > len(events) + 4)
        process.kill()
    assert run(tmp_path, "release", "far").exit_code == 1


def _events(home: Path) -> list[Any]:
    return [json.loads(line) for line in run(home, "events", "far", "--json").stdout.splitlines()]


def _requested_after_hold(home: Path) -> bool:
    kinds = [one["type"] for one in _events(home)]
    return "tool_call.started" in kinds[kinds.index("policy.held") :]


# -- budgets ---------------------------------------------------------------------------------------------------------


def budgeted(ledger: Ledger, *budgets: Budget, **options: Any) -> Any:
    """A loop with budgets, that raises when it is held."""
    policy = LoopPolicy(
        budgets=budgets, prices={"scripted*": Price(input=Decimal(100), output=Decimal(1000))}
    )
    return record_loop(ledger, harness="test", session="s", policy=policy, when_held="raise", **options)


def test_the_calls_within_a_limit_run_and_the_next_does_not(ledger: Ledger) -> None:
    with budgeted(ledger, Budget(name="steps", calls=Decimal(4))) as loop:
        for _ in range(4):
            loop.model(scripted, **ASK)
        with pytest.raises(HeldError, match="breaker 'steps/calls'"):
            loop.model(scripted, **ASK)
    charged = only_all(ledger, BudgetCharged)
    assert [(one.amount, one.remaining) for one in charged] == [(2, 2), (2, 0)]  # at a half, and at 80 %
    assert only(ledger, "s", BudgetExceeded).reached == 5
    tripped = only(ledger, "s", BreakerTripped)
    assert (tripped.limit, tripped.reached, tripped.scope) == ("4 calls", "5 calls", "session s")
    assert only(ledger, "s", Held).breaker == "steps/calls"


def test_a_release_gives_the_budget_once_more_also_after_a_restart(ledger: Ledger) -> None:
    with budgeted(ledger, Budget(name="steps", calls=Decimal(2))) as loop:
        for _ in range(2):
            loop.model(scripted, **ASK)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)
        release(ledger.recorder, "s", "alice", None)
        for _ in range(2):
            loop.model(scripted, **ASK)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)
    with budgeted(ledger, Budget(name="steps", calls=Decimal(2))) as loop:
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)
        release(ledger.recorder, "s", "alice", None)
        for _ in range(2):
            loop.model(scripted, **ASK)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)


def test_what_was_spent_before_a_restart_counts(ledger: Ledger) -> None:
    for _ in range(2):
        with budgeted(ledger, Budget(name="steps", calls=Decimal(3))) as loop:
            loop.model(scripted, **ASK)
    with budgeted(ledger, Budget(name="steps", calls=Decimal(3))) as loop:
        loop.model(scripted, **ASK)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)


@pytest.mark.parametrize(("unit", "limit"), [("tokens", 13), ("usd", "0.0036")])
def test_tokens_and_cost_hold_what_comes_after_them(ledger: Ledger, unit: str, limit: Any) -> None:
    budget = Budget.model_validate({"name": "b", unit: limit})
    with budgeted(ledger, budget) as loop:
        loop.model(scripted, **ASK)
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)
    assert only(ledger, "s", BudgetExceeded).unit == unit


def test_time_holds_too(ledger: Ledger) -> None:
    now = [0.0]
    with budgeted(ledger, Budget(name="b", seconds=Decimal(60)), monotonic=lambda: now[0]) as loop:
        loop.model(scripted, **ASK)
        now[0] = 61.0
        with pytest.raises(HeldError):
            loop.model(scripted, **ASK)


def test_effects_and_fan_out_are_counted_before_they_happen(ledger: Ledger) -> None:
    budgets = [
        Budget(name="e", effects=Decimal(1)),
        Budget(name="f", fan_out=Decimal(1), per="run"),
    ]
    with budgeted(ledger, *budgets) as loop:
        loop.tool(lambda: None, {}, name="look", effect_class="read")
        loop.tool(lambda: None, {}, name="send", effect_class="external")
        with pytest.raises(HeldError, match="'e/effects'"):
            loop.tool(lambda: None, {}, name="send", effect_class="external")
        release(ledger.recorder, "s", "alice", None)
        with loop.delegate(agent="a") as child:
            child.model(scripted, **ASK)
            with pytest.raises(HeldError, match="'f/fan_out'"), child.delegate(agent="b"):
                raise AssertionError("it does not begin")


def test_a_delegation_that_goes_too_deep_does_nothing(ledger: Ledger) -> None:
    with budgeted(ledger, Budget(name="d", depth=Decimal(1))) as loop, loop.delegate(agent="a") as child:
        child.model(scripted, **ASK)
        with child.delegate(agent="b") as below, pytest.raises(HeldError, match="'d/depth'"):
            below.model(scripted, **ASK)


def test_a_budget_of_an_edge_counts_what_is_done_beyond_it(ledger: Ledger) -> None:
    with budgeted(ledger, Budget(name="b", calls=Decimal(1), per="edge"), agent="boss") as loop:
        for _ in range(3):
            loop.model(scripted, **ASK)
        with loop.delegate(agent="helper") as child:
            child.model(scripted, **ASK)
        with loop.delegate(agent="helper") as other:
            with pytest.raises(HeldError):
                other.model(scripted, **ASK)
            tripped = only(ledger, other.session, BreakerTripped)
    assert tripped.scope == "edge boss -> helper"


def test_a_loop_without_a_policy_records_nothing_more(ledger: Ledger) -> None:
    with record_loop(ledger, harness="test", session="s") as loop:
        loop.model(lambda **request: chat_answer("hi"), **ASK)
        _act(loop, [])
    assert not [
        one for one in records(ledger, "s") if one.type.startswith(("policy.", "approval.", "governance."))
    ]


# -- the policy file -------------------------------------------------------------------------------------------------

POLICY = """
effects:
- {tool: "wire_*", class: irreversible, target: /iban}
approvals:
- {tool: "wire_*", when: {/amount: 1}, ask: false}
- {tool: "*", class: [irreversible, credential], deciders: [alice], timeout: 15m, lasts: 8h, scopes: [once, session]}
prices: {"claude-*": {input: 3, output: 15.5}}
budgets: [{name: day, usd: 5, per: run}, {name: steps, calls: 200, effects: 20, per: agent}]
"""


def test_a_policy_file_says_it_all(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    policy = load_loop_policy(path)
    assert policy.approval_for("wire_money", {"amount": 1}, "irreversible", None) is None
    rule = policy.approval_for("wire_money", {"amount": 2}, "irreversible", None)
    assert rule is not None
    assert (rule.timeout, rule.lasts, rule.deciders) == (900, 28800, ("alice",))
    assert policy.approval_for("read", {}, "read", None) is None
    assert policy.price_of("claude-x") == Price(input=Decimal(3), output=Decimal("15.5"))
    assert policy.budgets[0].limits() == {"usd": Decimal(5)}
    assert policy.canonical() == load_loop_policy(path).canonical()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("approvals: [{tool: x, timeout: soon}]", "expected a span of time"),
        ("approvals: [{tool: x, scopes: [always]}]", "approvals.1.scopes.1"),
        ("budgets: [{name: x, pounds: 3}]", "budgets.1.pounds: expected a known word"),
    ],
)
def test_a_mistake_in_a_policy_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_loop_policy(path)


def test_a_ledger_of_a_loop_that_was_held_verifies(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, record_loop(ledger, harness="test", session="s"):
        hold(ledger.recorder, "s", "alice", "sk-proj-" + "a1B2" * 12)
    assert answer(tmp_path, "verify")["ok"] is True
