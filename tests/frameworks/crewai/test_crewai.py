"""Real runs of CrewAI crews, agents and flows against the scripted model, with the listener attached."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crewai import LLM, Agent, Crew, Task
from crewai.events import crewai_event_bus
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.hooks import register_before_tool_call_hook, unregister_before_tool_call_hook
from crewai.tools import tool

from ledger.capture.hooks.crewai import LedgerListener
from ledger.events.approval import ApprovalAsked, ApprovalDecided
from ledger.events.delegation import DelegationReturned, DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.session import SessionEnded, SessionStarted
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, EXPERT, Shop
from tests.scripted_model import Error, Lane, Match, Script, ScriptedModel, Step, Text, ToolCall

DELEGATE = (
    "delegate_work_to_coworker",
    {"task": "Are these pumps good?", "context": "none", "coworker": "expert"},
)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    for name in ("CREWAI_DISABLE_TELEMETRY", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def model_of(server: ScriptedModel, *, is_streamed: bool = False) -> Any:
    return LLM(
        model="openai/gpt-4o",
        base_url=f"{server.url}/v1",
        api_key="none",
        stream=is_streamed,
        max_retries=0,
    )


def house_of(shop: Shop, model: Any) -> Any:
    """A crew of two, of which the buyer may hand work to the expert."""
    buyer = Agent(
        role="buyer",
        goal="buy",
        backstory=BUYER,
        llm=model,
        allow_delegation=True,
        tools=[tool(shop.read_offer), tool(shop.check_stock), tool(shop.place_order)],
    )
    expert = Agent(role="expert", goal="know", backstory=EXPERT, llm=model, tools=[tool(shop.look_up)])
    task = Task(description="Buy pumps and hoses, see offer 77.", expected_output="A report.", agent=buyer)
    return Crew(agents=[buyer, expert], tasks=[task], name="house")


@pytest.fixture
def no_hoses() -> Iterator[None]:
    """A hook of the user's that blocks orders of hoses."""

    def block(context: Any) -> bool | None:
        return False if context.tool_input.get("total") == 900.0 else None

    register_before_tool_call_hook(block)
    yield
    unregister_before_tool_call_hook(block)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_everything_that_happened_is_in_the_ledger_once(
    ledger: Ledger, no_hoses: None, is_streamed: bool
) -> None:
    shop = Shop()
    with ScriptedModel(checks.script(expert=DELEGATE)) as server, LedgerListener(ledger) as listener:
        result = house_of(shop, model_of(server, is_streamed=is_streamed)).kickoff()
        assert result.raw == "I ordered pumps and no hoses."
    assert (listener.run.counts.unmatched, listener.run.counts.lost) == (0, 0)
    checks.check_models(ledger, server)
    checks.check_tools(ledger, shop)
    checks.check_order(ledger)
    checks.check_sessions(ledger, runs=1)
    checks.check_ledger(ledger)
    started, returned = (checks.of_type(ledger, kind) for kind in (DelegationStarted, DelegationReturned))
    assert [(one.to_agent, one.call_id, one.how) for one in started] == [("expert", "call_expert", "tool")]
    assert [one.outcome for one in returned] == ["returned"]
    assert any(one.stream is not None for one in checks.of_type(ledger, ModelCallAnswered)) == is_streamed
    (refused,) = [one for one in checks.of_type(ledger, ToolCallSettled) if one.outcome == "denied"]
    assert "blocked by hook" in checks.content(ledger, refused.result)


def test_what_is_recorded_as_sent_is_what_the_server_got(ledger: Ledger) -> None:
    shop = Shop()
    with ScriptedModel(checks.script(expert=DELEGATE)) as server, LedgerListener(ledger):
        house_of(shop, model_of(server)).kickoff()
    asked = checks.of_type(ledger, ModelCallRequested)
    assert len(asked) == len(server.exchanges)
    for one, exchange in zip(asked, server.exchanges, strict=True):
        got = exchange.body
        told = [
            json.loads(ledger.store.content(digest) or b"") for digest in ledger.store.context(one.context)
        ]
        assert told == [each for each in got["messages"] if each["role"] != "system"]
        offered = [each["function"]["name"] for each in checks.content(ledger, one.tools)]
        assert offered == [each["function"]["name"] for each in got["tools"]]


def test_a_model_call_that_fails_is_told_and_ends_the_crew(ledger: Ledger) -> None:
    step = Step(error=Error(status=400, message="no such model"))
    with (
        ScriptedModel(Script(default=step)) as server,
        LedgerListener(ledger),
        pytest.raises(Exception, match="no such model"),
    ):
        house_of(Shop(), model_of(server)).kickoff()
    failed = checks.of_type(ledger, ModelCallFailed)
    assert failed
    assert all("no such model" in checks.content(ledger, one.detail) for one in failed)
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["failed"]
    checks.check_models(ledger, server)


def test_a_model_call_that_fails_in_passing_does_not_end_the_crew(ledger: Ledger) -> None:
    lanes = [
        Lane("note", [Step(error=Error(status=400, message="no ink"))], Match(any_user="Write it down")),
        Lane("one", [Step(blocks=(Text("Done."),)), Step(blocks=(Text("Done again."),))]),
    ]
    with ScriptedModel(Script(lanes=lanes)) as server, LedgerListener(ledger):
        model = model_of(server)

        def note(_: Any) -> None:
            with pytest.raises(Exception, match="no ink"):
                model.call("Write it down")

        agent = Agent(role="clerk", goal="count", backstory="You count.", llm=model)
        tasks = [
            Task(description=f"Count {what}.", expected_output="A line.", agent=agent, callback=note)
            for what in ("pumps", "hoses")
        ]
        tasks[1].callback = None
        assert Crew(agents=[agent], tasks=tasks).kickoff().raw == "Done again."
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["completed"]
    checks.check_models(ledger, server)
    checks.check_ledger(ledger)


def test_a_lone_agent_and_a_lone_model_are_sessions_of_their_own(ledger: Ledger) -> None:
    steps = [Step(blocks=(Text("Seven."),)), Step(blocks=(Text("Eight."),))]
    with ScriptedModel(Script(lanes=[Lane("one", steps)])) as server, LedgerListener(ledger):
        model = model_of(server)
        agent = Agent(role="counter", goal="count", backstory="You count.", llm=model)
        assert agent.kickoff("How many?").raw == "Seven."
        assert model.call("And now?") == "Eight."
    started = checks.of_type(ledger, SessionStarted)
    assert [(one.agent, one.parent) for one in started] == [("counter", None), (None, None)]
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["completed", "completed"]
    checks.check_models(ledger, server)
    checks.check_ledger(ledger)


def test_feedback_that_a_flow_asks_for_is_a_question(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class Buying(Flow):
        @start()
        @human_feedback(message="May I?")
        def plan(self) -> str:
            return "Buy pumps."

        @listen(plan)
        def act(self) -> str:
            return "done"

    monkeypatch.setattr("builtins.input", lambda *_: "approved")
    with LedgerListener(ledger):
        Buying().kickoff()
    (asked,) = checks.of_type(ledger, ApprovalAsked)
    (decided,) = checks.of_type(ledger, ApprovalDecided)
    assert (decided.approval_id, decided.outcome) == (asked.approval_id, "approved")
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["completed"]
    checks.check_ledger(ledger)


def test_a_store_that_cannot_write_stops_the_tool(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    @tool("send")
    def send() -> str:
        """Send."""
        ran.append("sent")
        return "sent"

    steps = [Step(blocks=(ToolCall("send", {}, id="call_send"),)), Step(blocks=(Text("Sent."),))]
    append = ledger.store.append

    def refuse(drafts: Any, **more: Any) -> Any:
        if any(isinstance(draft.event, ToolCallRequested) for group in drafts.values() for draft in group):
            raise OSError("the disk is full")
        return append(drafts, **more)

    monkeypatch.setattr(type(ledger.store), "append", lambda self, drafts, **more: refuse(drafts, **more))
    with ScriptedModel(Script(lanes=[Lane("one", steps)])) as server, LedgerListener(ledger):
        agent = Agent(role="sender", goal="send", backstory="You send.", llm=model_of(server), tools=[send])
        with pytest.raises(Exception, match=r"disk is full|blocked"):
            agent.kickoff("Send it.")
    assert ran == []


def test_a_listener_that_heard_nothing_says_so_and_leaves_the_bus(ledger: Ledger) -> None:
    listener = LedgerListener(ledger)
    with pytest.warns(RuntimeWarning, match="the hook of crewai captured nothing"):
        listener.close()
    with ScriptedModel(Script(default=Step(blocks=(Text("Yes."),)))) as server:
        assert model_of(server).call("Are you there?") == "Yes."
    crewai_event_bus.flush()
    assert checks.of_type(ledger, ModelCallRequested) == []
