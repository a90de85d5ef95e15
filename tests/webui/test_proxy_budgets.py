"""Budgets of a proxied run: whose calls they are is told by what the client says of its agents."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ledger.effects.loop_policy import Budget, LoopPolicy, Price
from ledger.events.model_call import ModelCallRequested
from ledger.events.policy import BreakerTripped
from tests.commands import answer
from tests.ledger.capture.gates.test_approvals import waits_for
from tests.scripted_model import ScriptedModel, Step, Text, ToolCall
from tests.webui.proxied import RUN, encoded, messages, proxying, recorded, script, send

PRICES = {"scripted*": Price(input=Decimal(10_000))}
READ, WRITE = ToolCall("bash", {"command": "ls"}), ToolCall("bash", {"command": "rm -rf x"})


def asks(base: str, agent: str | None, number: int) -> bytes:
    """One request of an agent; the body of the answer."""
    headers = {} if agent is None else {"x-claude-code-agent-id": agent}
    return send(base, "/v1/messages", encoded(messages(f"hi {number}")), headers=headers)[2]


FIRES: list[tuple[dict[str, Any], list[str | None], str]] = [
    ({"per": "session", "calls": 2}, [None, "a", "b"], f"session {RUN}"),
    ({"per": "agent", "calls": 2}, ["a", "b", "a", "b", "a"], "agent a"),
    ({"per": "agent", "calls": 1}, ["a", None, None], "agent (unnamed)"),
    ({"per": "agent", "tokens": 200}, ["a", "b", "a", "b"], "agent a"),
    ({"per": "agent", "usd": 2}, ["a", "b", "a", "a"], "agent a"),
    ({"per": "edge", "calls": 1}, [None, None, "a", "b", "a"], "edge unnamed -> a"),
    ({"per": "edge", "tokens": 120}, [None, None, "a", "b"], "edge unnamed -> a"),
    ({"per": "run", "fan_out": 2}, [None, "a", "a", "b", "b", "c"], "run"),
    ({"per": "session", "depth": 0}, [None, None, "a"], f"session {RUN}"),
    ({"per": "agent", "effects": 1}, ["a", "b", "a", "b"], "agent a"),
]
"""A budget, who asks in turn, and whose account is over; the last request is not sent."""


@pytest.mark.parametrize(("limits", "agents", "scope"), FIRES)
def test_a_budget_holds_what_goes_past_it(
    tmp_path: Path, limits: dict[str, Any], agents: list[str | None], scope: str
) -> None:
    policy = LoopPolicy(budgets=(Budget.model_validate({"name": "b", **limits}),), prices=PRICES)
    call = WRITE if "effects" in limits else READ
    steps = [Step([Text(f"said {number}"), call]) for number in range(len(agents))]
    with (
        ScriptedModel(script(*steps)) as model,
        proxying(tmp_path, model.url, policy=policy) as base,
        ThreadPoolExecutor() as pool,
    ):
        for number, agent in enumerate(agents[:-1]):
            assert f"said {number}".encode() in asks(base, agent, number)
        sent = pool.submit(asks, base, agents[-1], len(agents) - 1)
        waits_for(lambda: len(recorded(tmp_path, ModelCallRequested)) == len(agents))
        waits_for(lambda: recorded(tmp_path, BreakerTripped))
        assert (len(model.exchanges), sent.done()) == (len(agents) - 1, False)
        answer(tmp_path, "release", RUN)
        assert f"said {len(agents) - 1}".encode() in sent.result(120)
    assert (recorded(tmp_path, BreakerTripped)[0].scope or "").strip() == scope


SILENT: list[tuple[dict[str, Any], list[str | None]]] = [
    ({"per": "session", "calls": 3}, [None, "a", "b"]),
    ({"per": "agent", "calls": 2}, ["a", "b", "a", "b", None, None]),
    ({"per": "agent", "tokens": 1000}, ["a", "b", "a", "b"]),
    ({"per": "agent", "usd": 100}, ["a", "b"]),
    ({"per": "edge", "calls": 1}, [None, None, None, "a", "b"]),
    ({"per": "run", "fan_out": 2}, [None, "a", "a", "b", "b"]),
    ({"per": "session", "depth": 1}, [None, "a", None]),
    ({"per": "agent", "effects": 1}, ["a", "a", "a"]),
]


@pytest.mark.parametrize(("limits", "agents"), SILENT)
def test_a_budget_stays_silent_within(
    tmp_path: Path, limits: dict[str, Any], agents: list[str | None]
) -> None:
    policy = LoopPolicy(budgets=(Budget.model_validate({"name": "b", **limits}),), prices=PRICES)
    steps = [Step([Text(f"said {number}"), READ]) for number in range(len(agents))]
    with ScriptedModel(script(*steps)) as model, proxying(tmp_path, model.url, policy=policy) as base:
        for number, agent in enumerate(agents):
            assert f"said {number}".encode() in asks(base, agent, number)
    assert recorded(tmp_path, BreakerTripped) == []


def test_what_agents_spent_before_a_restart_of_the_proxy_counts(tmp_path: Path) -> None:
    policy = LoopPolicy(budgets=(Budget(name="b", per="agent", calls=Decimal(2)),))
    steps = [Step([Text(f"said {number}")]) for number in range(4)]
    with ScriptedModel(script(*steps)) as model:
        with proxying(tmp_path, model.url, policy=policy) as base:
            for number, agent in enumerate(("a", "b", "a")):
                asks(base, agent, number)
        with proxying(tmp_path, model.url, policy=policy) as base, ThreadPoolExecutor() as pool:
            sent = pool.submit(asks, base, "a", 3)
            waits_for(lambda: recorded(tmp_path, BreakerTripped))
            assert len(model.exchanges) == 3
            answer(tmp_path, "release", RUN)
            assert b"said 3" in sent.result(120)
