"""Budgets of all kinds, for sessions, runs, agents and edges: each fires past its limit, and not before."""

from decimal import Decimal
from typing import Any

import pytest

from ledger.capture import record_loop
from ledger.capture.gates.deciding import release
from ledger.capture.loop import RecordedLoop
from ledger.effects.loop_policy import Budget, LoopPolicy, Price
from ledger.errors import HeldError
from ledger.events.policy import BreakerTripped, Held
from ledger.home import Ledger
from tests.ledger.capture.gates.test_holding import ASK
from tests.ledger.capture.loops import Kind, scripted

PRICES = {"scripted*": Price(input=Decimal(100), output=Decimal(1000))}
SPENT = {"tokens": Decimal(13), "usd": Decimal("0.0036")}
"""What one scripted answer costs."""


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def all_of(ledger: Ledger, kind: type[Kind]) -> list[Kind]:
    """The events of a kind, of all sessions."""
    return [record.event for record in ledger.store.read_all() if isinstance(record.event, kind)]


def do(loop: RecordedLoop, unit: str) -> None:
    """Use up one of a unit in a loop."""
    match unit:
        case "effects":
            loop.tool(lambda to: None, {"to": "a"}, name="send_mail")
        case "fan_out":
            with loop.delegate(agent="hand") as hand:
                hand.message("hi")
        case "seconds":
            CLOCK.now += 1.0
            loop.model(scripted, **ASK)
        case _:
            loop.model(scripted, **ASK)


def amount(unit: str, times: int) -> Decimal:
    """What doing it so often takes."""
    return SPENT.get(unit, Decimal(1)) * times


def run_with(ledger: Ledger, budget: Budget, session: str = "s") -> Any:
    policy = LoopPolicy(budgets=(budget,), prices=PRICES)
    return record_loop(
        ledger,
        harness="test",
        session=session,
        agent="boss",
        policy=policy,
        when_held="raise",
        monotonic=CLOCK,
    )


UNITS = ("usd", "tokens", "calls", "fan_out", "seconds", "effects")
OWNERS = {
    "session": "session s.",
    "run": "run",
    "agent": "agent helper",
    "edge": "edge boss -> helper",
}


@pytest.mark.parametrize("per", OWNERS)
@pytest.mark.parametrize("unit", UNITS)
def test_each_unit_of_each_owner_fires(ledger: Ledger, per: str, unit: str) -> None:
    """What is counted before it happens may be done up to the limit, what is counted after up to below it."""
    is_before = unit in ("calls", "fan_out", "effects")
    limit = amount(unit, 3) if is_before else amount(unit, 2)
    budget = Budget.model_validate({"name": "b", "per": per, unit: limit})
    with run_with(ledger, budget) as loop, loop.delegate(agent="helper") as helper:
        # The delegation to the helper is one itself, for the run.
        done = 2 if (per, unit) == ("run", "fan_out") else 3 if is_before else 1 if unit == "seconds" else 2
        for _ in range(done):
            do(helper, unit)
        with pytest.raises(HeldError, match=f"breaker 'b/{unit}'"):
            do(helper, unit)
    tripped = all_of(ledger, BreakerTripped)
    assert tripped
    assert all(one.breaker == f"b/{unit}" for one in tripped)
    assert any((one.scope or "").startswith(OWNERS[per]) for one in tripped)
    assert {one.breaker for one in all_of(ledger, Held)} == {f"b/{unit}"}


@pytest.mark.parametrize("per", OWNERS)
@pytest.mark.parametrize("unit", UNITS)
def test_each_unit_of_each_owner_stays_silent_below_its_limit(ledger: Ledger, per: str, unit: str) -> None:
    limit = amount(unit, 4)
    budget = Budget.model_validate({"name": "b", "per": per, unit: limit})
    with run_with(ledger, budget) as loop, loop.delegate(agent="helper") as helper:
        for _ in range(3):
            do(helper, unit)
    assert all_of(ledger, BreakerTripped) == []


@pytest.mark.parametrize("per", OWNERS)
def test_depth_fires_for_each_owner_and_stays_silent_within(ledger: Ledger, per: str) -> None:
    budget = Budget.model_validate({"name": "b", "per": per, "depth": 1})
    with run_with(ledger, budget) as loop, loop.delegate(agent="helper") as helper:
        do(helper, "calls")
        assert all_of(ledger, BreakerTripped) == []
        with pytest.raises(HeldError, match="'b/depth'"), helper.delegate(agent="deeper") as deeper:
            do(deeper, "calls")


def test_an_agent_of_many_sessions_has_one_budget_and_others_have_their_own(ledger: Ledger) -> None:
    with run_with(ledger, Budget(name="b", calls=Decimal(2), per="agent")) as loop:
        for _ in range(2):
            with loop.delegate(agent="helper") as helper:
                do(helper, "calls")
        with loop.delegate(agent="other") as other:
            do(other, "calls")
        with loop.delegate(agent="helper") as helper, pytest.raises(HeldError):
            do(helper, "calls")
        do(loop, "calls")


def test_an_edge_is_told_by_both_its_ends(ledger: Ledger) -> None:
    with run_with(ledger, Budget(name="b", calls=Decimal(1), per="edge")) as loop:
        for _ in range(3):
            do(loop, "calls")  # nobody handed over to the boss
        with loop.delegate(agent="helper") as helper:
            do(helper, "calls")
            with helper.delegate(agent="helper") as below:
                do(below, "calls")  # helper -> helper is another edge
        with loop.delegate(agent="helper") as helper, pytest.raises(HeldError):
            do(helper, "calls")
    (tripped,) = all_of(ledger, BreakerTripped)
    assert tripped.scope == "edge boss -> helper"


@pytest.mark.parametrize("per", ["run", "agent", "edge"])
def test_what_delegated_sessions_spent_before_a_restart_counts(ledger: Ledger, per: str) -> None:
    budget = Budget.model_validate({"name": "b", "per": per, "calls": 2})
    with run_with(ledger, budget) as loop, loop.delegate(agent="helper") as helper:
        do(helper, "calls")
        do(helper, "calls")
    with run_with(ledger, budget) as loop, loop.delegate(agent="helper") as helper:
        with pytest.raises(HeldError):
            do(helper, "calls")
        assert release(ledger.recorder, helper.session, "alice", None)
        do(helper, "calls")


def test_a_call_of_an_unknown_class_is_judged_by_its_arguments(ledger: Ledger) -> None:
    with run_with(ledger, Budget(name="b", effects=Decimal(1))) as loop:
        for _ in range(3):
            loop.tool(lambda command: "", {"command": "ls -l"}, name="bash")
        loop.tool(lambda command: "", {"command": "rm -rf build"}, name="bash")
        with pytest.raises(HeldError, match="'b/effects'"):
            loop.tool(lambda command: "", {"command": "rm -rf dist"}, name="bash")


def test_a_delegation_keeps_to_what_it_was_given_to_spend(ledger: Ledger) -> None:
    budget = Budget(name="wide", usd=Decimal(100))
    with run_with(ledger, budget) as loop:
        with loop.delegate(agent="helper", budget_usd=SPENT["usd"] * 2) as helper:
            do(helper, "calls")
            with helper.delegate(agent="below") as below:
                do(below, "calls")  # it spends of what the helper was given
                with pytest.raises(HeldError, match="'delegation/usd'"):
                    do(below, "calls")
            with pytest.raises(HeldError, match="'delegation/usd'"):
                do(helper, "calls")
        do(loop, "calls")
        with loop.delegate(agent="helper", budget_usd=SPENT["usd"] * 2) as helper:
            do(helper, "calls")


def test_a_delegation_without_a_policy_keeps_to_costs_that_the_answers_tell(ledger: Ledger) -> None:
    with record_loop(ledger, harness="test", session="s", when_held="raise") as loop:
        with loop.delegate(agent="helper", budget_usd=Decimal("0.01")) as helper:
            for _ in range(5):
                do(helper, "calls")  # scripted answers tell no cost, and nobody gave prices
        do(loop, "calls")
    assert all_of(ledger, BreakerTripped) == []
