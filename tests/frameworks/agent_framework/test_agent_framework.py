"""Real runs of the Agent Framework against the scripted model, with the middleware attached."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Message, tool
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from ledger.capture.hooks.agent_framework import LedgerMiddleware
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.review import NoteWritten
from ledger.events.session import SessionEnded
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, EXPERT, Shop
from tests.scripted_model import Error, Script, ScriptedModel, Step, Text


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def client_of(server: ScriptedModel, kind: str, **more: Any) -> Any:
    made = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    client = OpenAIChatCompletionClient if kind == "chat" else OpenAIChatClient
    return client(model="m", async_client=made, **more)


def buyer_of(client: Any, shop: Shop, middleware: list[Any]) -> Agent:
    free = {"approval_mode": "never_require"}
    look_up = tool(shop.look_up, **free)
    expert = Agent(client=client, name="expert", instructions=EXPERT, tools=[look_up], middleware=middleware)
    return Agent(
        client=client,
        name="buyer",
        instructions=BUYER,
        tools=[
            tool(shop.read_offer, **free),
            tool(shop.check_stock, **free),
            tool(shop.place_order, approval_mode="always_require"),
            expert.as_tool(name="ask_expert"),
        ],
        middleware=middleware,
    )


async def order(agent: Agent, *, stream: bool) -> str:
    """The whole conversation: pumps are approved, hoses are not. Gives the last answer."""
    session = agent.create_session(session_id="order-1")

    async def run(said: Any) -> Any:
        if not stream:
            return await agent.run(said, session=session)
        parts = agent.run(said, session=session, stream=True)
        async for _ in parts:
            pass
        return await parts.get_final_response()

    response = await run("Buy pumps and hoses, see offer 77.")
    while response.user_input_requests:
        answers = [
            one.to_function_approval_response("pumps" in str(one.function_call.arguments))
            for one in response.user_input_requests
        ]
        response = await run(Message(role="user", contents=answers))
    response = await run("Thank you.")
    return str(response.text)


def script() -> Script:
    return checks.script(expert=("ask_expert", {"task": "Are these pumps good?"}))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_every_call_and_approval_is_in_the_ledger_once(ledger: Ledger, kind: str, stream: bool) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerMiddleware(ledger) as recording:
        asyncio.run(order(buyer_of(client_of(server, kind), shop, [*recording]), stream=stream))
        assert server.unused == {}
        checks.check_models(ledger, server)
        checks.check_tools(ledger, shop)
        checks.check_approvals(ledger)
        checks.check_order(ledger)
        checks.check_ledger(ledger)
        assert checks.check_sessions(ledger, runs=4) == "agent-framework-order-1"
        ways = [(one.how, one.to_agent, one.call_id) for one in checks.of_type(ledger, DelegationStarted)]
        assert ways == [("tool", "expert", "call_expert")]
        requests = checks.of_type(ledger, ModelCallRequested)
        assert all(one.tools is not None and one.completeness == "messages" for one in requests)
        assert {one.completeness for one in checks.of_type(ledger, ModelCallAnswered)} == {"complete"}


def test_a_second_process_goes_on_with_the_conversation(tmp_path: Path) -> None:
    for number in range(2):
        step = Step(blocks=(Text(f"Answer {number}."),))
        with (
            open_ledger(tmp_path / "home") as ledger,
            ScriptedModel(Script(default=step)) as server,
            LedgerMiddleware(ledger) as recording,
        ):
            agent = Agent(client=client_of(server, "chat"), middleware=[*recording])
            asyncio.run(agent.run("Hello.", session=agent.create_session(session_id="order-1")))
    checks.check_gone_on(tmp_path / "home", "agent-framework-order-1")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_call_that_fails_is_told_and_ends_the_run(ledger: Ledger, stream: bool) -> None:
    step = Step(error=Error(status=400, message="no such model"))

    async def run(agent: Agent) -> None:
        if not stream:
            await agent.run("Hello.")
            return
        async for _ in agent.run("Hello.", stream=True):
            pass

    with ScriptedModel(Script(default=step)) as server, LedgerMiddleware(ledger) as recording:
        with pytest.raises(ChatClientException):
            asyncio.run(run(Agent(client=client_of(server, "chat"), middleware=[*recording])))
        (failed,) = checks.of_type(ledger, ModelCallFailed)
        assert "no such model" in checks.content(ledger, failed.detail)
        assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["failed"]
        checks.check_models(ledger, server)


def test_a_client_that_is_asked_directly_gives_a_session_of_its_own(ledger: Ledger) -> None:
    with ScriptedModel(Script()) as server, LedgerMiddleware(ledger) as recording:
        _, chats, functions = recording
        client = client_of(server, "chat", middleware=[chats, functions])
        asyncio.run(client.get_response([Message(role="user", contents=["Hello."])]))
        checks.check_models(ledger, server)
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["completed"]


def test_a_run_without_a_session_is_recorded(ledger: Ledger) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerMiddleware(ledger) as recording:
        agent = buyer_of(client_of(server, "chat"), shop, [*recording])
        asyncio.run(agent.run("Buy pumps and hoses, see offer 77."))
        checks.check_models(ledger, server)
    assert len(checks.served(server)) == 6
    checks.check_ledger(ledger)


def test_an_agent_without_the_middleware_is_not_seen_and_the_hook_says_so(ledger: Ledger) -> None:
    recording = LedgerMiddleware(ledger)
    with ScriptedModel(Script()) as server:
        asyncio.run(Agent(client=client_of(server, "chat")).run("Hello."))
        assert len(checks.served(server)) == 1
    with pytest.warns(RuntimeWarning, match="captured nothing"), recording:
        pass
    (note,) = checks.of_type(ledger, NoteWritten)
    assert "captured nothing" in checks.content(ledger, note.text)
