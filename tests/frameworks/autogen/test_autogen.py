"""Real runs of an AutoGen team against the scripted model, with the log handler attached."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

from ledger.capture.hooks.autogen import LedgerHandler
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, DESK, Shop
from tests.scripted_model import ScriptedModel, ToolCall

ENDS = {**dict.fromkeys(checks.ENDS, "returned"), "call_anchors": "failed", "call_handoff": "returned"}
del ENDS["call_look"]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize("is_streamed", [False, True])
def test_everything_that_happened_is_in_the_ledger_once(ledger: Ledger, is_streamed: bool) -> None:
    shop = Shop()

    async def buy(server: ScriptedModel) -> None:
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
        await Swarm([desk, buyer], termination_condition=stop).run(task="Buy pumps.")

    handoff = ToolCall("transfer_to_buyer", {}, id="call_handoff")
    script = checks.script(expert=("look_up", {"what": "pumps"}), handoff=handoff)
    with ScriptedModel(script) as server, LedgerHandler(ledger) as handler:
        asyncio.run(buy(server))
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
    assert handler.run.counts.lost == 0
    checks.check_ledger(ledger)


def test_a_handler_that_heard_nothing_says_so(ledger: Ledger) -> None:
    with pytest.warns(RuntimeWarning, match="the hook of autogen captured nothing"):
        LedgerHandler(ledger).close()
