"""Real runs of Google ADK against the scripted model, with the plugin attached."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.models.google_llm import Gemini
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool
from google.genai import types
from google.genai.errors import ClientError

from ledger.capture.hooks.google_adk import LedgerPlugin
from ledger.events.delegation import DelegationStarted
from ledger.events.model_call import ModelCallAnswered, ModelCallFailed, ModelCallRequested
from ledger.events.review import NoteWritten
from ledger.events.session import SessionEnded
from ledger.home import Ledger, open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.shop import BUYER, DESK, EXPERT, Shop
from tests.scripted_model import Error, Lane, Match, Script, ScriptedModel, Step, Text, ToolCall

os.environ.setdefault("GOOGLE_API_KEY", "none")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "home") as opened:
        yield opened


def script() -> Script:
    handoff = ToolCall("transfer_to_agent", {"agent_name": "buyer"}, id="call_handoff")
    return checks.script(expert=("expert", {"request": "Are these pumps good?"}), handoff=handoff)


class ShowErrors(BasePlugin):
    """Tells the model what a tool raised, where ADK would end the run."""

    async def on_tool_error_callback(self, **told: Any) -> dict[str, str]:
        return {"error": str(told["error"])}


class Talk:
    """An app of three agents, and a conversation with it."""

    def __init__(self, server: ScriptedModel, shop: Shop, plugins: list[Any], *, stream: bool) -> None:
        def model() -> Gemini:
            return Gemini(model="gemini-2.5-flash", base_url=server.url)

        async def check_stock(item: str) -> dict[str, str]:
            """Look how many there are."""
            return {"stock": await shop.check_stock(item)}

        expert = LlmAgent(
            name="expert", description="Knows.", instruction=EXPERT, tools=[shop.look_up], model=model()
        )
        buyer = LlmAgent(
            name="buyer",
            description="Buys.",
            instruction=BUYER,
            model=model(),
            tools=[
                shop.read_offer,
                check_stock,
                FunctionTool(shop.place_order, require_confirmation=True),
                AgentTool(expert),
            ],
        )
        desk = LlmAgent(name="desk", instruction=DESK, sub_agents=[buyer], model=model())
        self._sessions = InMemorySessionService()
        self._runner = Runner(
            app=App(name="shop", root_agent=desk, plugins=plugins), session_service=self._sessions
        )
        self._config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)

    async def run(self, *parts: types.Part) -> list[Any]:
        """One run; the confirmations that it asks for."""
        asked = []
        self._said = ""
        message = types.Content(role="user", parts=list(parts))
        async for event in self._runner.run_async(
            user_id="ada", session_id="order-1", new_message=message, run_config=self._config
        ):
            if not event.partial:
                self._said = "".join(one.text or "" for one in event.content.parts) if event.content else ""
                asked += [one for one in event.get_function_calls() if one.name == "adk_request_confirmation"]
        return asked

    async def begin(self) -> None:
        """Make the session."""
        await self._sessions.create_session(app_name="shop", user_id="ada", session_id="order-1")

    async def first_part(self, part: types.Part) -> None:
        """A run whose events nobody reads past the first."""
        message = types.Content(role="user", parts=[part])
        events = self._runner.run_async(
            user_id="ada", session_id="order-1", new_message=message, run_config=self._config
        )
        async for _ in events:
            break
        await events.aclose()

    async def order(self) -> str:
        """The whole conversation: pumps are confirmed, hoses are not. Gives the last answer."""
        await self.begin()
        asked = await self.run(types.Part(text="Buy pumps and hoses, see offer 77."))
        while asked:
            answers = [
                types.FunctionResponse(
                    id=one.id, name=one.name, response={"confirmed": "pumps" in str(one.args)}
                )
                for one in asked
            ]
            asked = await self.run(*[types.Part(function_response=one) for one in answers])
        await self.run(types.Part(text="Thank you."))
        await self._runner.close()
        return self._said


ENDS = {**checks.ENDS, "call_handoff": "returned"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_call_and_approval_is_in_the_ledger_once(ledger: Ledger, stream: bool) -> None:
    shop = Shop()
    with ScriptedModel(script()) as server, LedgerPlugin(ledger) as plugin:
        asyncio.run(Talk(server, shop, [plugin, ShowErrors(name="errors")], stream=stream).order())
        assert server.unused == {}
        checks.check_models(ledger, server, has_ids=False)
        checks.check_tools(ledger, shop, ENDS)
        checks.check_approvals(ledger)
        checks.check_order(ledger)
        checks.check_ledger(ledger)
        root = checks.check_sessions(ledger, runs=4)
        assert root == "google-adk-order-1"
        ways = [(one.how, one.to_agent) for one in checks.of_type(ledger, DelegationStarted)]
        assert ways == [("handoff", "buyer"), ("tool", "expert")]
        requests = checks.of_type(ledger, ModelCallRequested)
        assert {one.model for one in requests} == {"gemini-2.5-flash"}
        assert all(one.system is not None and one.completeness == "messages" for one in requests)


def test_a_second_process_goes_on_with_the_conversation(tmp_path: Path) -> None:
    steps = [Step(blocks=(Text(f"Answer {number}."),)) for number in range(2)]
    for _ in range(2):
        with (
            open_ledger(tmp_path / "home") as ledger,
            ScriptedModel(Script(lanes=[Lane("desk", steps, Match(system=DESK))])) as server,
            LedgerPlugin(ledger) as plugin,
        ):

            async def greet(talk: Talk) -> None:
                await talk.begin()
                await talk.run(types.Part(text="Hello."))

            asyncio.run(greet(Talk(server, Shop(), [plugin], stream=False)))
    checks.check_gone_on(tmp_path / "home", "google-adk-order-1")


def test_a_model_call_that_fails_is_told_and_ends_the_run(ledger: Ledger) -> None:
    step = Step(error=Error(status=400, message="no such model", type="INVALID_ARGUMENT"))
    with ScriptedModel(Script(default=step)) as server, LedgerPlugin(ledger) as plugin:
        talk = Talk(server, Shop(), [plugin], stream=False)

        async def fail() -> None:
            await talk.begin()
            await talk.run(types.Part(text="Hello."))

        with pytest.raises(ClientError):
            asyncio.run(fail())
        (failed,) = checks.of_type(ledger, ModelCallFailed)
        assert "no such model" in checks.content(ledger, failed.detail)
        assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["failed"]
        checks.check_models(ledger, server)


def test_a_plugin_that_is_not_in_the_app_says_that_it_captured_nothing(ledger: Ledger) -> None:
    plugin = LedgerPlugin(ledger)
    with ScriptedModel(Script()) as server:
        talk = Talk(server, Shop(), [], stream=False)

        async def greet() -> None:
            await talk.begin()
            await talk.run(types.Part(text="Hello."))

        asyncio.run(greet())
        assert len(checks.served(server)) == 1
    with pytest.warns(RuntimeWarning, match="captured nothing"), plugin:
        pass
    (note,) = checks.of_type(ledger, NoteWritten)
    assert "captured nothing" in checks.content(ledger, note.text)


def test_a_stream_that_the_caller_leaves_is_aborted(ledger: Ledger) -> None:
    words = tuple(Text(f"Word {number}. ") for number in range(5))
    with (
        ScriptedModel(Script(default=Step(blocks=words, pace_s=0.02))) as server,
        LedgerPlugin(ledger) as plugin,
    ):
        talk = Talk(server, Shop(), [plugin], stream=True)

        async def leave() -> None:
            await talk.begin()
            await talk.first_part(types.Part(text="Hello."))

        asyncio.run(leave())
    ends = checks.of_type(ledger, ModelCallAnswered)
    assert [one.completeness for one in ends] == ["aborted"]
    assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["aborted"]
    checks.check_ledger(ledger)
