"""A real agent goes on from a restored point, with the history that our rollback wrote."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter

from ledger.capture.hooks.pydantic_ai import LedgerCapability
from ledger.home import open_ledger
from tests.commands import answer, run
from tests.frameworks.pydantic_ai.test_pydantic_ai import model_of
from tests.frameworks.resuming import AFTER, BEFORE, SEEN, Tools, script
from tests.scripted_model import Script, ScriptedModel, Step, Text


class Shop(Tools):
    """An agent with a question before it orders, and what its tools did."""

    def __init__(self, server: ScriptedModel, kind: str, capabilities: list[Any] | None = None) -> None:
        super().__init__()
        self.agent = Agent(
            model_of(server, kind),
            name="buyer",
            instructions="You buy for the house.",
            tools=[self.read_offer, Tool(self.place_order, requires_approval=True)],
            output_type=[str, DeferredToolRequests],
            capabilities=capabilities or [],
        )

    async def talk(self) -> bytes:
        """Asked, approved, and gone on; the whole history."""
        result = await self.agent.run(BEFORE, conversation_id="order-1")
        assert isinstance(result.output, DeferredToolRequests)
        given = DeferredToolResults(approvals={call.tool_call_id: True for call in result.output.approvals})
        result = await self.agent.run(message_history=result.all_messages(), deferred_tool_results=given)
        result = await self.agent.run(AFTER, message_history=result.all_messages())
        return result.all_messages_json()


@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("way", ["imported", "recorded"])
def test_an_agent_goes_on_where_an_order_was_asked_about(tmp_path: Path, way: str, kind: str) -> None:
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        if way == "imported":
            (tmp_path / "run.json").write_bytes(asyncio.run(Shop(server, kind).talk()))
            (session,) = answer(home, "import", tmp_path / "run.json")["sessions"]
        else:
            with open_ledger(home) as ledger, LedgerCapability(ledger) as capability:
                asyncio.run(Shop(server, kind, [capability]).talk())
            session = next(row["id"] for row in answer(home, "sessions") if row["parent"] is None)
        first = len(server.exchanges)
        requested = [
            one["seq"]
            for one in map(json.loads, run(home, "events", session, "--json").stdout.splitlines())
            if one["type"] == "tool_call.requested" or one["type"] == "approval.asked"
        ]
        seq = requested[-1]
        answer(home, "checkpoint", session, "--at", seq, "--label", "asked")
        into = tmp_path / "back"
        result = run(home, "rollback", session, "--to", "asked", "--reason", "too dear", "--into", into)
        assert result.exit_code == 1, result.output  # the order is not undone, and it says so
        history = ModelMessagesTypeAdapter.validate_json((into / "messages.json").read_bytes())
        again = Shop(server, kind)
        asked = asyncio.run(again.agent.run(message_history=history)).output
        assert isinstance(asked, DeferredToolRequests)
        assert (again.ran, len(server.exchanges)) == ([], first)
        (call,) = asked.approvals
        denied = DeferredToolResults(approvals={call.tool_call_id: ToolDenied("too dear")})
        end = asyncio.run(again.agent.run(message_history=history, deferred_tool_results=denied))
        assert (again.ran, end.output) == ([], "Resumed.")
        request = json.dumps(server.exchanges[first].body)
        assert all(words in request for words in (BEFORE, SEEN, "call_order", "too dear"))
        assert not any(words in request for words in (AFTER, "Ordered what was approved.", "ordered pumps"))


def test_a_history_of_another_protocol_is_read_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    messages = [
        {"role": "user", "content": BEFORE},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "call_read", "type": "function", "function": {"name": "read_offer", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_read", "content": SEEN},
        {"role": "assistant", "content": "Pumps it is."},
    ]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}))
    (session,) = answer(home, "import", tmp_path / "chat.json")["sessions"]
    answer(home, "checkpoint", session, "--label", "here")
    into = tmp_path / "back"
    how = ("--reason", "elsewhere", "--into", into, "--as", "pydantic-ai")
    assert run(home, "rollback", session, "--to", "here", *how).exit_code in (0, 1)
    history = ModelMessagesTypeAdapter.validate_json((into / "messages.json").read_bytes())
    assert [message.kind for message in history] == ["request", "response", "request", "response"]
    with ScriptedModel(Script(default=Step(blocks=(Text("Yes."),)))) as server:
        asyncio.run(Shop(server, "chat").agent.run("Go on.", message_history=history))
        request = json.dumps(server.exchanges[0].body)
    assert all(words in request for words in (BEFORE, "Looking.", SEEN, "Pumps it is.", "Go on."))
