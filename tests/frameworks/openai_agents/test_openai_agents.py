"""Real runs of the OpenAI Agents SDK against the scripted model, with the tracing processor attached."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    retry_policies,
    set_trace_processors,
)
from agents.models.openai_provider import OpenAIProvider
from openai import AsyncOpenAI, BadRequestError

from ledger.capture.hooks.openai_agents import LedgerTracing
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import (
    ModelCallFailed,
    ModelCallRequested,
    ModelCallRetried,
)
from ledger.events.review import NoteWritten
from ledger.events.session import SessionEnded
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, DESK, EXPERT, Shop
from tests.scripted_model import Error, Lane, Script, ScriptedModel, Step, Text, ToolCall


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    set_trace_processors([])
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def config_of(server: ScriptedModel, kind: str, **more: Any) -> RunConfig:
    client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    provider = OpenAIProvider(openai_client=client, use_responses=kind == "responses")
    settings = ModelSettings(include_usage=True) if kind == "chat" else ModelSettings()
    return RunConfig(
        model_provider=provider,
        workflow_name="buying",
        group_id="order-1",
        model_settings=settings,
        **more,
    )


def desk_of(shop: Shop, hooks: Any) -> Agent[Any]:
    expert = Agent[Any](name="expert", instructions=EXPERT, tools=[function_tool(shop.look_up)], model="m")
    buyer = Agent[Any](
        name="buyer",
        instructions=BUYER,
        model="m",
        tools=[
            function_tool(shop.read_offer),
            function_tool(shop.check_stock),
            function_tool(shop.place_order, needs_approval=True),
            expert.as_tool("ask_expert", "Ask the expert.", hooks=hooks),
        ],
    )
    return Agent[Any](name="desk", instructions=DESK, handoffs=[buyer], model="m")


async def order(agent: Agent[Any], config: RunConfig, hooks: Any, *, stream: bool) -> Any:
    """The whole conversation: pumps are approved, hoses are not. Gives the last answer."""
    memory = SQLiteSession("order-1")

    async def run(start: Agent[Any], said: str | RunState[Any]) -> Any:
        given: dict[str, Any] = {"run_config": config, "hooks": hooks, "session": memory}
        if not stream:
            return await Runner.run(start, said, **given)
        result = Runner.run_streamed(start, said, **given)
        async for _ in result.stream_events():
            pass
        return result

    result = await run(agent, "Buy pumps and hoses, see offer 77.")
    while result.interruptions:
        state = result.to_state()
        for one in result.interruptions:
            (state.approve if "pumps" in str(one.raw_item.arguments) else state.reject)(one)
        result = await run(agent, state)
    result = await run(result.last_agent, "Thank you.")
    return result.final_output


def script() -> Script:
    return checks.script(
        expert=("ask_expert", {"input": "Are these pumps good?"}),
        handoff=ToolCall("transfer_to_buyer", {}, id="call_handoff"),
    )


ENDS = {**checks.ENDS, "call_handoff": "returned"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize("has_hooks", [True, False], ids=["hooks", "processor"])
def test_every_call_and_approval_is_in_the_ledger_once(
    ledger: Ledger, has_hooks: bool, kind: str, stream: bool
) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerTracing(ledger) as tracing:
        hooks = tracing.hooks if has_hooks else None
        asyncio.run(order(desk_of(shop, hooks), config_of(server, kind), hooks, stream=stream))
        assert server.unused == {}
        checks.check_models(ledger, server, has_ids=has_hooks or kind == "responses")
        checks.check_tools(ledger, shop, ENDS)
        checks.check_approvals(ledger)
        checks.check_order(ledger)
        checks.check_ledger(ledger)
        assert checks.check_sessions(ledger, runs=4) == "openai-agents-order-1"
        ways = [(one.how, one.to_agent, one.call_id) for one in checks.of_type(ledger, DelegationStarted)]
        expert_call = "call_expert" if has_hooks else None  # a span does not tell the id when it begins
        assert ways == [("handoff", "buyer", "call_handoff"), ("tool", "expert", expert_call)]
        requests = checks.of_type(ledger, ModelCallRequested)
        assert {one.completeness for one in requests} == {"messages"}


def test_a_second_process_goes_on_with_the_conversation(tmp_path: Path) -> None:
    for number in range(2):
        set_trace_processors([])
        step = Step(blocks=(Text(f"Answer {number}."),))
        with (
            open_ledger(tmp_path / "home") as ledger,
            ScriptedModel(Script(default=step)) as server,
            LedgerTracing(ledger) as tracing,
        ):
            agent = Agent[Any](name="desk", model="m")
            config = config_of(server, "responses")
            asyncio.run(Runner.run(agent, "Hello.", run_config=config, hooks=tracing.hooks))
    checks.check_gone_on(tmp_path / "home", "openai-agents-order-1")


@pytest.mark.parametrize("has_hooks", [True, False], ids=["hooks", "processor"])
def test_a_model_call_that_fails_is_told_and_ends_the_run(ledger: Ledger, has_hooks: bool) -> None:
    step = Step(error=Error(status=400, message="no such model"))
    with ScriptedModel(Script(default=step)) as server, LedgerTracing(ledger) as tracing:
        run = Runner.run(
            Agent[Any](name="desk", model="m"),
            "Hello.",
            run_config=config_of(server, "responses"),
            hooks=tracing.hooks if has_hooks else None,
        )
        with pytest.raises(BadRequestError):
            asyncio.run(run)
        (failed,) = checks.of_type(ledger, ModelCallFailed)
        assert "no such model" in checks.content(ledger, failed.detail)
        assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["failed"]
        checks.check_models(ledger, server)


def test_a_run_without_tracing_is_not_seen_and_the_hook_says_so(ledger: Ledger) -> None:
    tracing = LedgerTracing(ledger)
    with ScriptedModel(Script()) as server:
        config = config_of(server, "responses", tracing_disabled=True)
        with pytest.warns(RuntimeWarning, match="captured nothing"), tracing:
            asyncio.run(Runner.run(Agent[Any](name="desk", model="m"), "Hello.", run_config=config))
        assert len(checks.served(server)) == 1
    (note,) = checks.of_type(ledger, NoteWritten)
    assert "captured nothing" in checks.content(ledger, note.text)


@pytest.mark.parametrize("has_hooks", [True, False], ids=["hooks", "processor"])
def test_an_attempt_that_the_sdk_repeats_is_a_call_of_its_own(ledger: Ledger, has_hooks: bool) -> None:
    steps = [Step(error=Error(status=503, message="busy")), Step(blocks=(Text("Hello."),))]
    with (
        ScriptedModel(Script(lanes=[Lane("desk", steps)])) as server,
        LedgerTracing(ledger) as tracing,
    ):
        retry = ModelRetrySettings(max_retries=1, policy=retry_policies.http_status([503]))
        agent = Agent[Any](name="desk", model="m", model_settings=ModelSettings(retry=retry))
        hooks = tracing.hooks if has_hooks else None
        asyncio.run(Runner.run(agent, "Hello.", run_config=config_of(server, "responses"), hooks=hooks))
        assert server.unused == {}
        checks.check_models(ledger, server)
        retried = checks.of_type(ledger, ModelCallRetried)
        (failed,) = checks.of_type(ledger, ModelCallFailed)
        assert [one.failed_call_id for one in retried] == ([failed.call_id] if has_hooks else [])
