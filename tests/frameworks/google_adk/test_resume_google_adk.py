"""A real ADK session goes on from a restored point, in a new session that our rollback wrote."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from ledger.capture.hooks.google_adk import LedgerPlugin
from ledger.home import open_ledger
from replay.resume.google_adk import resume_session
from tests.commands import answer, run
from tests.frameworks.resuming import AFTER, BEFORE, SEEN, STEPS
from tests.frameworks.shop import BUYER, DESK
from tests.scripted_model import Lane, Match, Script, ScriptedModel, Step, ToolCall

os.environ.setdefault("GOOGLE_API_KEY", "none")

WHO: dict[str, str] = {"app_name": "shop", "user_id": "ada"}


def script() -> Script:
    handoff = ToolCall("transfer_to_agent", {"agent_name": "buyer"}, id="call_handoff")
    lanes = [
        Lane("desk", (Step(blocks=(handoff,)),), Match(system=DESK)),
        Lane("buyer", STEPS, Match(system=BUYER)),
    ]
    return Script(lanes=lanes, prefix="resume-")


class Shop:
    """A desk that hands over to a buyer, who asks before it orders; and what its tools did."""

    def __init__(self, server: ScriptedModel, service: Any, plugins: list[Any] | None = None) -> None:
        self.ran: list[str] = []

        def read_offer(number: str, tool_context: ToolContext) -> str:
            """Read an offer."""
            self.ran.append("read")
            tool_context.state["offer"] = number
            return f"offer {number}: 40 pumps"

        def place_order(item: str, tool_context: ToolContext) -> str:
            """Place an order."""
            self.ran.append(f"order {item}")
            tool_context.state["ordered"] = item
            return f"ordered {item}"

        def model() -> Gemini:
            return Gemini(model="gemini-2.5-flash", base_url=server.url)

        tools: list[Any] = [read_offer, FunctionTool(place_order, require_confirmation=True)]
        buyer = LlmAgent(name="buyer", description="Buys.", instruction=BUYER, model=model(), tools=tools)
        desk = LlmAgent(name="desk", instruction=DESK, sub_agents=[buyer], model=model())
        self.service = service
        self.runner = Runner(
            app=App(name="shop", root_agent=desk, plugins=plugins or []), session_service=service
        )

    async def turn(self, session: str, *parts: types.Part) -> list[Any]:
        """One run; the confirmations that it asks for."""
        message, asked = types.Content(role="user", parts=list(parts)), []
        async for event in self.runner.run_async(user_id="ada", session_id=session, new_message=message):
            asked += [one for one in event.get_function_calls() if one.name == "adk_request_confirmation"]
        return asked

    async def decide(self, session: str, question: str, confirmed: bool) -> None:
        """Answer a confirmation."""
        response = types.FunctionResponse(
            id=question, name="adk_request_confirmation", response={"confirmed": confirmed}
        )
        assert await self.turn(session, types.Part(function_response=response)) == []

    async def talk(self) -> None:
        """Asked, confirmed, and gone on."""
        await self.service.create_session(**WHO, session_id="order-1")
        (asked,) = await self.turn("order-1", types.Part(text=BEFORE))
        await self.decide("order-1", asked.id, confirmed=True)
        await self.turn("order-1", types.Part(text=AFTER))
        await self.runner.close()
        assert self.ran == ["read", "order pumps"]


@pytest.mark.parametrize("decision", [False, True], ids=["reject", "confirm"])
@pytest.mark.parametrize("way", ["imported", "recorded"])
def test_a_session_goes_on_where_an_order_was_asked_about(tmp_path: Path, way: str, decision: bool) -> None:
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        if way == "imported":
            asyncio.run(Shop(server, SqliteSessionService(str(tmp_path / "sessions.sqlite"))).talk())
            (session,) = [
                name
                for name in answer(home, "import", tmp_path / "sessions.sqlite")["sessions"]
                if "order-1" in name
            ]
        else:
            with open_ledger(home) as ledger, LedgerPlugin(ledger) as plugin:
                asyncio.run(Shop(server, InMemorySessionService(), [plugin]).talk())
            (session,) = [row["id"] for row in answer(home, "sessions") if row["parent"] is None]
        first = len(server.exchanges)
        lines = run(home, "events", session, "--json").stdout.splitlines()
        asked = next(one for one in map(json.loads, lines) if one["type"] == "approval.asked")
        answer(home, "checkpoint", session, "--at", asked["seq"], "--label", "asked")
        into = tmp_path / "back"
        how = ("--reason", "too dear", "--into", into)
        result = run(home, "rollback", session, "--to", "asked", *how)
        assert result.exit_code == 1, result.output
        shop = asyncio.run(go_on(server, into / "session.json", asked["data"]["approval_id"], decision))
        assert shop.ran == (["order pumps"] if decision else [])
        request = json.dumps(server.exchanges[first].body)
        assert BUYER in request
        assert all(words in request for words in (BEFORE, SEEN, "place_order"))
        assert not any(words in request for words in (AFTER, "Ordered what was approved."))
        assert ("ordered pumps" in request) == decision


async def go_on(server: ScriptedModel, path: Path, question: str, decision: bool) -> Shop:
    """Make the session in another service, and answer what was open."""
    shop = Shop(server, InMemorySessionService())
    session = await resume_session(shop.service, Event, path)
    assert (session.app_name, session.user_id, session.id != "order-1") == ("shop", "ada", True)
    assert session.state == {"offer": "77"}, "the state at the point, without what came later"
    await shop.decide(session.id, question, confirmed=decision)
    await shop.runner.close()
    return shop


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="expected loopledger-google-adk/1"):
        asyncio.run(resume_session(InMemorySessionService(), Event, tmp_path / "other.json"))
