"""Real runs of LangGraph against the scripted model, with the callback handler attached."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from ledger.capture.hooks.langgraph import LedgerCallback
from ledger.errors import NotRecordedError
from ledger.events.approval import ApprovalAsked, ApprovalDecided, ApprovalUsed
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested, ModelCallRetried
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, EXPERT, Shop
from tests.scripted_model import Error, Lane, Script, ScriptedModel, Step, Text, ToolCall


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def model_of(server: ScriptedModel, kind: str) -> Any:
    if kind == "anthropic":
        return ChatAnthropic(model="m", base_url=server.url, api_key="none", max_retries=0)
    return ChatOpenAI(
        model="m",
        base_url=f"{server.url}/v1",
        api_key="none",
        max_retries=0,
        stream_usage=True,
        use_responses_api=kind == "responses",
    )


def buyer_of(model: Any, shop: Shop) -> Any:
    expert = create_agent(model, tools=[tool(shop.look_up)], system_prompt=EXPERT, name="expert")

    @tool
    async def ask_expert(question: str) -> str:
        """Ask the expert."""
        result = await expert.ainvoke({"messages": [("user", question)]})
        return str(result["messages"][-1].text)

    @wrap_tool_call
    async def tell_errors(request: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    return create_agent(
        model,
        tools=[tool(shop.read_offer), tool(shop.check_stock), tool(shop.place_order), ask_expert],
        system_prompt=BUYER,
        name="buyer",
        checkpointer=InMemorySaver(),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"place_order": True}), tell_errors],
    )


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("is_new_process", [False, True])
def test_everything_that_happened_is_in_the_ledger_once(
    ledger: Ledger, kind: str, is_streamed: bool, is_new_process: bool
) -> None:
    shop = Shop()
    handlers = [LedgerCallback(ledger, effects={"place_order": "irreversible"})]

    async def turn(graph: Any, given: Any) -> None:
        if is_new_process:
            handlers.append(LedgerCallback(ledger, effects={"place_order": "irreversible"}))
        config: Any = {"callbacks": [handlers[-1]], "configurable": {"thread_id": "order-1"}}
        if is_streamed:
            async for _ in graph.astream(given, config, stream_mode=["messages", "updates"]):
                pass
        else:
            await graph.ainvoke(given, config)

    async def talk(graph: Any) -> None:
        await turn(graph, {"messages": [("user", "Buy pumps and hoses, see offer 77.")]})
        await turn(graph, Command(resume={"decisions": [{"type": "approve"}]}))
        await turn(graph, Command(resume={"decisions": [{"type": "reject", "message": "too dear"}]}))
        await turn(graph, {"messages": [("user", "Thank you.")]})

    script = checks.script(expert=("ask_expert", {"question": "Are these pumps good?"}))
    with ScriptedModel(script) as server:
        asyncio.run(talk(buyer_of(model_of(server, kind), shop)))
        assert server.unused == {}
    if is_new_process:
        handlers[0].run.session("not used")
        handlers[0].run.ended("not used")
        used = handlers[1:]
    else:
        used = handlers
    for handler in used:
        handler.close()
        assert (handler.run.counts.unmatched, handler.run.counts.lost) == (0, 0)
    if not is_new_process:
        checks.check_sessions(ledger, runs=4)
    # LangChain keeps the id of a streamed answer for OpenAI Responses only.
    checks.check_models(ledger, server, has_ids=not is_streamed or kind == "responses")
    checks.check_tools(ledger, shop)
    checks.check_approvals(ledger)
    checks.check_order(ledger)
    checks.check_ledger(ledger)
    started, returned = (checks.of_type(ledger, kind) for kind in (DelegationStarted, DelegationReturned))
    assert [(one.to_agent, one.call_id, one.how) for one in started] == [("expert", "call_expert", "tool")]
    assert [one.outcome for one in returned] == ["returned"]
    assert any(one.stream is not None for one in checks.of_type(ledger, ModelCallAnswered)) == is_streamed


def lone_lane(*steps: Step) -> Script:
    return Script(lanes=[Lane("one", steps)], prefix="lone-")


@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_tool_that_asks_inside_a_sub_graph_is_one_call(ledger: Ledger, is_new_process: bool) -> None:
    ran: list[str] = []

    @tool
    def buy(item: str) -> str:
        """Buy something."""
        if interrupt(f"Buy {item}?") == "yes":
            ran.append(item)
        return f"bought {item}"

    call = ToolCall("buy", {"item": "pumps"}, id="call_buy")
    with ScriptedModel(lone_lane(Step(blocks=(call,)), Step(blocks=(Text("Bought."),)))) as server:
        agent = create_agent(model_of(server, "chat"), tools=[buy], name="buyer")
        outer = StateGraph(MessagesState)
        outer.add_node("buyer", agent)
        outer.add_edge(START, "buyer")
        graph = outer.compile(checkpointer=InMemorySaver(), name="house")
        first = LedgerCallback(ledger)
        config: Any = {"configurable": {"thread_id": "1"}}
        graph.invoke({"messages": [("user", "Buy pumps.")]}, {**config, "callbacks": [first]})
        second = LedgerCallback(ledger) if is_new_process else first
        graph.invoke(Command(resume="yes"), {**config, "callbacks": [second]})
        for handler in {first, second}:
            handler.close()
    assert ran == ["pumps"]
    (requested,) = checks.of_type(ledger, ToolCallRequested)
    (settled,) = checks.of_type(ledger, ToolCallSettled)
    assert (requested.call_id, settled.call_id, settled.outcome) == ("call_buy", "call_buy", "returned")
    assert len(checks.of_type(ledger, ToolCallStarted)) == 2
    (asked,), (decided,), (used,) = (
        checks.of_type(ledger, kind) for kind in (ApprovalAsked, ApprovalDecided, ApprovalUsed)
    )
    assert asked.approval_id == decided.approval_id == used.approval_id
    assert (asked.call_id, decided.outcome, used.call_id) == ("call_buy", "approved", "call_buy")
    assert (
        len(checks.of_type(ledger, DelegationStarted)) == len(checks.of_type(ledger, DelegationReturned)) == 1
    )
    checks.check_models(ledger, server)
    checks.check_ledger(ledger)


def test_a_retry_is_tied_to_the_call_that_failed(ledger: Ledger) -> None:
    steps = (Step(error=Error(503, "busy")), Step(blocks=(Text("Here."),)))
    with ScriptedModel(lone_lane(*steps)) as server, LedgerCallback(ledger) as handler:
        model = model_of(server, "chat").with_retry(wait_exponential_jitter=False, stop_after_attempt=2)
        model.invoke("Are you there?", {"callbacks": [handler]})
    (failed,) = checks.of_type(ledger, ModelCallFailed)
    (retried,) = checks.of_type(ledger, ModelCallRetried)
    assert (failed.status, retried.failed_call_id) == (503, failed.call_id)
    assert [one.attempt for one in checks.of_type(ledger, ModelCallRequested)] == [1, 2]
    checks.check_models(ledger, server)


def test_a_run_that_fails_says_so(ledger: Ledger) -> None:
    @tool
    def burn() -> str:
        """Fail."""
        raise RuntimeError("fire")

    call = ToolCall("burn", {}, id="call_burn")
    with ScriptedModel(lone_lane(Step(blocks=(call,)))) as server, LedgerCallback(ledger) as handler:
        graph = create_agent(model_of(server, "chat"), tools=[burn])
        with pytest.raises(RuntimeError, match="fire"):
            graph.invoke({"messages": [("user", "Burn.")]}, {"callbacks": [handler]})
    (settled,) = checks.of_type(ledger, ToolCallSettled)
    (ended,) = checks.of_type(ledger, SessionEnded)
    assert (settled.outcome, ended.outcome, ended.reason) == ("failed", "failed", "RuntimeError")


def test_a_store_that_cannot_write_stops_the_tool(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    @tool
    def send() -> str:
        """Send."""
        ran.append("sent")
        return "sent"

    call = ToolCall("send", {}, id="call_send")
    with ScriptedModel(lone_lane(Step(blocks=(call,)))) as server:
        handler = LedgerCallback(ledger)
        graph = create_agent(model_of(server, "chat"), tools=[send])
        append = ledger.store.append

        def refuse(drafts: Any, **more: Any) -> Any:
            if any(
                isinstance(draft.event, ToolCallRequested) for group in drafts.values() for draft in group
            ):
                raise OSError("the disk is full")
            return append(drafts, **more)

        monkeypatch.setattr(type(ledger.store), "append", lambda self, drafts, **more: refuse(drafts, **more))
        with pytest.raises(NotRecordedError):
            graph.invoke({"messages": [("user", "Send.")]}, {"callbacks": [handler]})
        handler.close()
    assert ran == []


def test_a_handler_that_was_not_attached_says_so(ledger: Ledger) -> None:
    with ScriptedModel(lone_lane(Step(blocks=(Text("Yes."),)))) as server:
        handler = LedgerCallback(ledger)
        model_of(server, "chat").invoke("Are you there?")
        with pytest.warns(RuntimeWarning, match="the hook of langgraph captured nothing"):
            handler.close()
