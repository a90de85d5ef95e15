"""Real runs of an AutoGen team against the scripted model, with the log handler attached."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

from ledger.capture.hooks.autogen import LedgerHandler
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationStarted
from ledger.events.input import MessageReceived
from ledger.events.session import SessionEnded
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, DESK, Shop
from tests.scripted_model import Error, Script, ScriptedModel, Step, ToolCall

ENDS = {**dict.fromkeys(checks.ENDS, "returned"), "call_anchors": "failed", "call_handoff": "returned"}
del ENDS["call_look"]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def team_of(server: ScriptedModel, shop: Shop, *, is_streamed: bool) -> Swarm:
    """A desk that hands over to a buyer."""
    model = OpenAIChatCompletionClient(
        model="m",
        base_url=f"{server.url}/v1",
        api_key="none",
        include_name_in_message=False,
        stream_options={"include_usage": True},
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": "unknown",
            "structured_output": False,
        },
    )
    buyer = AssistantAgent(
        "buyer",
        model,
        tools=[shop.read_offer, shop.check_stock, shop.look_up, shop.place_order],
        system_message=BUYER,
        max_tool_iterations=10,
        model_client_stream=is_streamed,
    )
    desk = AssistantAgent(
        "desk", model, handoffs=["buyer"], system_message=DESK, model_client_stream=is_streamed
    )
    stop = MaxMessageTermination(40) | TextMentionTermination("I ordered")
    return Swarm([desk, buyer], termination_condition=stop)


def script() -> Script:
    handoff = ToolCall("transfer_to_buyer", {}, id="call_handoff")
    said = checks.script(expert=("look_up", {"what": "pumps"}), handoff=handoff, thanks=False)
    return Script(lanes=[lane for lane in said.lanes if lane.name != "expert"], prefix=said.prefix)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_everything_that_happened_is_in_the_ledger_once(ledger: Ledger, is_streamed: bool) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerHandler(ledger) as handler:
        asyncio.run(team_of(server, shop, is_streamed=is_streamed).run(task="Buy pumps."))
        assert server.unused == {}
    if is_streamed:
        answers = checks.of_type(ledger, checks.ModelCallAnswered)
        assert [one.usage.output_tokens for one in answers] == [
            one["usage"][1] for one in checks.served(server)
        ]
    else:
        checks.check_models(ledger, server)
    settled = {one.call_id: one.outcome for one in checks.of_type(ledger, checks.ToolCallSettled)}
    requested = [one.call_id for one in checks.of_type(ledger, checks.ToolCallRequested)]
    assert settled == ENDS
    assert sorted(requested) == sorted(ENDS)
    assert sum(shop.ran.values()) == len(ENDS) - 1  # the handoff is a tool of the framework
    (handoff,) = checks.of_type(ledger, DelegationStarted)
    assert (handoff.how, handoff.to_agent, handoff.call_id) == ("handoff", "buyer", "call_handoff")
    assert handler.run.counts.lost == 0
    checks.check_ledger(ledger)


def test_input_that_a_user_is_asked_for_is_a_question_and_its_answer(ledger: Ledger) -> None:
    with LedgerHandler(ledger):
        user = UserProxyAgent("ada", input_func=lambda _: "Buy them.")
        team = RoundRobinGroupChat([user], termination_condition=MaxMessageTermination(2))
        asyncio.run(team.run(task="Shall I buy pumps?"))
    (asked,) = checks.of_type(ledger, ApprovalAsked)
    (decided,) = checks.of_type(ledger, ApprovalDecided)
    (said,) = checks.of_type(ledger, MessageReceived)
    assert (decided.approval_id, decided.decider) == (asked.approval_id, "ada")
    assert checks.content(ledger, said.message)["content"] == "Buy them."
    checks.check_ledger(ledger)


def test_an_agent_that_raises_ends_the_session_as_failed(ledger: Ledger) -> None:
    step = Step(error=Error(status=400, message="no such model"))
    with (
        ScriptedModel(Script(default=step)) as server,
        LedgerHandler(ledger),
        pytest.raises(Exception, match="no such model"),
    ):
        asyncio.run(team_of(server, Shop(), is_streamed=False).run(task="Buy pumps."))
    (ended,) = checks.of_type(ledger, SessionEnded)
    assert ended.outcome == "failed"
    assert "no such model" in ended.reason


def test_a_handler_that_heard_nothing_says_so(ledger: Ledger) -> None:
    with pytest.warns(RuntimeWarning, match="the hook of autogen captured nothing"):
        LedgerHandler(ledger).close()
