"""Real runs of Pydantic AI against the scripted model, with the capability attached."""

import asyncio
import json
from collections.abc import AsyncIterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    ToolDenied,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from ledger.capture.hooks.pydantic_ai import LedgerCapability
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallFailed, ModelCallRequested
from ledger.events.review import NoteWritten
from ledger.events.session import SessionEnded
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, EXPERT, Shop
from tests.scripted_model import Error, Lane, Script, ScriptedModel, Step, Text, ToolCall


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def model_of(server: ScriptedModel, kind: str) -> Model:
    if kind == "anthropic":
        return AnthropicModel("m", provider=AnthropicProvider(base_url=server.url, api_key="none"))
    openai = OpenAIChatModel if kind == "chat" else OpenAIResponsesModel
    return openai("m", provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="none"))


def buyer_of(model: Model, shop: Shop, capabilities: list[AbstractCapability[Any]]) -> Agent[None, Any]:
    expert = Agent(model, name="expert", instructions=EXPERT, tools=[shop.look_up], capabilities=capabilities)

    async def ask_expert(ctx: RunContext[None], question: str) -> str:
        """Ask the expert."""
        return (await expert.run(question)).output

    async def check_stock(item: str) -> str:
        """Look how many there are."""
        try:
            return await shop.check_stock(item)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    return Agent(
        model,
        name="buyer",
        instructions=BUYER,
        tools=[
            shop.read_offer,
            check_stock,
            Tool(shop.place_order, requires_approval=True),
            Tool(ask_expert),
        ],
        output_type=[str, DeferredToolRequests],
        capabilities=capabilities,
    )


async def order(agent: Agent[None, Any], *, stream: bool) -> Any:
    """The whole conversation: pumps are approved, hoses are not. Gives the last answer."""

    async def read(_: RunContext[None], events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    more: dict[str, Any] = {"event_stream_handler": read} if stream else {}
    result = await agent.run("Buy pumps and hoses, see offer 77.", conversation_id="order-1", **more)
    while isinstance(result.output, DeferredToolRequests):
        answers: dict[str, Any] = {
            call.tool_call_id: "pumps" in str(call.args) or ToolDenied("no hoses")
            for call in result.output.approvals
        }
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals=answers),
            **more,
        )
    result = await agent.run("Thank you.", message_history=result.all_messages(), **more)
    return result.output


def script() -> Script:
    return checks.script(expert=("ask_expert", {"question": "Are these pumps good?"}))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
def test_every_call_and_approval_is_in_the_ledger_once(ledger: Ledger, kind: str, stream: bool) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerCapability(ledger) as capability:
        asyncio.run(order(buyer_of(model_of(server, kind), shop, [capability]), stream=stream))
        assert server.unused == {}
        assert {
            bool(one.body.get("stream"))
            for one in server.exchanges
            if one.body and "expert" not in str(one.lane)
        } == {stream}
        checks.check_models(ledger, server)
        checks.check_tools(ledger, shop)
        checks.check_approvals(ledger)
        checks.check_order(ledger)
        checks.check_ledger(ledger)
        assert checks.check_sessions(ledger, runs=4) == "pydantic-ai-order-1"
        ways = [(one.how, one.to_agent, one.call_id) for one in checks.of_type(ledger, DelegationStarted)]
        assert ways == [("tool", "expert", "call_expert")]
        requests = checks.of_type(ledger, ModelCallRequested)
        assert all(one.tools is not None and one.completeness == "messages" for one in requests)


def test_a_second_process_goes_on_with_the_conversation(tmp_path: Path) -> None:
    for number in range(2):
        step = Step(blocks=(Text(f"Answer {number}."),))
        with (
            open_ledger(tmp_path / "home") as ledger,
            ScriptedModel(Script(default=step)) as server,
            LedgerCapability(ledger) as capability,
        ):
            agent = Agent(model_of(server, "chat"), capabilities=[capability])
            asyncio.run(agent.run("Hello.", conversation_id="order-1"))
    checks.check_gone_on(tmp_path / "home", "pydantic-ai-order-1")


def test_a_model_call_that_fails_is_told_and_ends_the_run(ledger: Ledger) -> None:
    step = Step(error=Error(status=400, message="no such model"))
    with ScriptedModel(Script(default=step)) as server, LedgerCapability(ledger) as capability:
        with pytest.raises(ModelHTTPError):
            asyncio.run(Agent(model_of(server, "chat"), capabilities=[capability]).run("Hello."))
        (failed,) = checks.of_type(ledger, ModelCallFailed)
        assert failed.status == 400
        assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["failed"]
        checks.check_models(ledger, server)


def test_an_agent_without_the_capability_is_not_seen_and_the_hook_says_so(ledger: Ledger) -> None:
    capability = LedgerCapability(ledger)
    with ScriptedModel(Script()) as server:
        asyncio.run(Agent(model_of(server, "chat")).run("Hello."))
        assert len(checks.served(server)) == 1
    with pytest.warns(RuntimeWarning, match="captured nothing"), capability:
        pass
    (note,) = checks.of_type(ledger, NoteWritten)
    assert "captured nothing" in checks.content(ledger, note.text)


def test_tokens_of_a_sub_agent_without_the_capability_are_missed_aloud(ledger: Ledger) -> None:
    shop = Shop()
    asker = [Step(blocks=(ToolCall("ask", id="call_ask"),)), Step(blocks=(Text("They are."),))]
    lanes = [*script().lanes, Lane("asker", asker)]
    with ScriptedModel(Script(lanes=lanes)) as server, LedgerCapability(ledger) as capability:
        model = model_of(server, "chat")
        expert = Agent(model, name="expert", instructions=EXPERT, tools=[shop.look_up])

        async def ask(ctx: RunContext[None]) -> str:
            """Ask the expert."""
            return (await expert.run("Are these pumps good?", usage=ctx.usage)).output

        agent = Agent(model, name="asker", tools=[ask], capabilities=[capability])
        with pytest.warns(RuntimeWarning, match="calls went past the hook"):
            asyncio.run(agent.run("Ask."))
    (note,) = checks.of_type(ledger, NoteWritten)
    assert "496 tokens of usage were reported" in checks.content(ledger, note.text)


def test_the_messages_of_a_request_are_those_of_the_framework(ledger: Ledger) -> None:
    with ScriptedModel(Script()) as server, LedgerCapability(ledger) as capability:
        asyncio.run(Agent(model_of(server, "chat"), capabilities=[capability]).run("Hello."))
    (asked,) = checks.of_type(ledger, ModelCallRequested)
    messages = [json.loads(ledger.store.content(one)) for one in ledger.store.context(asked.context)]
    assert messages[0]["kind"] == "request"
    assert messages[0]["parts"][0]["content"] == "Hello."
