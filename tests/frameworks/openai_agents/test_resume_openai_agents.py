"""A real run goes on from a restored point: from its RunState with the question open, and from session items."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunState, SQLiteSession, function_tool, set_trace_processors

from ledger.capture.hooks.openai_agents import LedgerTracing
from ledger.home import open_ledger
from tests.commands import answer, run
from tests.frameworks.openai_agents.test_openai_agents import config_of
from tests.frameworks.resuming import AFTER, BEFORE, SEEN, Tools, script
from tests.scripted_model import ScriptedModel


class Shop(Tools):
    """An agent with a question before it orders, and what its tools did."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = Agent[Any](
            name="buyer",
            instructions="You buy for the house.",
            model="m",
            tools=[function_tool(self.read_offer), function_tool(self.place_order, needs_approval=True)],
        )


async def talk(server: ScriptedModel, kind: str, saved: Path | None, hooks: Any, memory: Any = None) -> None:
    """Asked, approved, and gone on; with `saved` the state is saved when asked, and when it has ended."""
    given: dict[str, Any] = {"run_config": config_of(server, kind), "hooks": hooks, "session": memory}
    shop = Shop()
    result = await Runner.run(shop.agent, BEFORE, **given)
    state = result.to_state()
    if saved is not None:
        (saved / "1-asked.json").write_text(json.dumps(state.to_json()))
    state.approve(result.interruptions[0])
    result = await Runner.run(shop.agent, state, **given)
    if saved is not None:
        (saved / "2-ended.json").write_text(json.dumps(result.to_state().to_json()))
    said: Any = AFTER if memory is not None else [*result.to_input_list(), {"role": "user", "content": AFTER}]
    await Runner.run(shop.agent, said, **given)
    assert shop.ran == ["read", "order pumps"]


@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_a_saved_state_asks_again_and_the_answer_of_later_is_not_in_it(tmp_path: Path, kind: str) -> None:
    set_trace_processors([])
    home, saved = tmp_path / "home", tmp_path / "saved"
    saved.mkdir()
    with ScriptedModel(script()) as server:
        asyncio.run(talk(server, kind, saved, None))
        first = len(server.exchanges)
        (session,) = answer(home, "import", saved)["sessions"]
        checkpoint = answer(home, "checkpoints", session)[0]
        assert checkpoint["label"] == "saved state"
        into = tmp_path / "back"
        how = ("--reason", "too dear", "--into", into)
        assert run(home, "rollback", session, "--to", checkpoint["checkpoint_id"], *how).exit_code == 1
        told = json.loads((into / "state.json").read_text())
        assert told == json.loads((saved / "1-asked.json").read_text())

        async def go_on(shop: Shop) -> Any:
            state = await RunState.from_json(shop.agent, told)
            assert len(state.get_interruptions()) == 1
            again = await Runner.run(shop.agent, state, run_config=config_of(server, kind))
            assert (len(again.interruptions), shop.ran, len(server.exchanges)) == (1, [], first)
            state = again.to_state()
            state.reject(state.get_interruptions()[0])
            return await Runner.run(shop.agent, state, run_config=config_of(server, kind))

        shop = Shop()
        result = asyncio.run(go_on(shop))
        assert (shop.ran, result.final_output) == ([], "Resumed.")
        request = json.dumps(server.exchanges[first].body)
        assert all(words in request for words in (BEFORE, SEEN, "call_order", "not approved"))
        assert not any(words in request for words in (AFTER, "Ordered what was approved.", "ordered pumps"))


@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize("way", ["recorded", "database"])
def test_the_items_of_a_session_hold_what_was_said_up_to_the_point(
    tmp_path: Path, way: str, kind: str
) -> None:
    set_trace_processors([])
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        if way == "recorded":
            with open_ledger(home) as ledger, LedgerTracing(ledger) as tracing:
                asyncio.run(talk(server, kind, None, tracing.hooks))
            (session,) = [row["id"] for row in answer(home, "sessions") if row["parent"] is None]
        else:
            memory = SQLiteSession("order-1", tmp_path / "session.sqlite")
            asyncio.run(talk(server, kind, None, None, memory))
            memory.close()
            (session,) = answer(home, "import", tmp_path / "session.sqlite")["sessions"]
        first = len(server.exchanges)
        events = map(json.loads, run(home, "events", session, "--json").stdout.splitlines())
        read = next(one for one in events if one["type"] == "tool_call.settled")
        answer(home, "checkpoint", session, "--at", read["seq"], "--label", "read")
        into = tmp_path / "back"
        how = ("--reason", "wrong", "--into", into)
        assert run(home, "rollback", session, "--to", "read", *how).exit_code in (0, 1)
        assert not (into / "state.json").exists()
        items = json.loads((into / "items.json").read_text())

        async def go_on(shop: Shop) -> Any:
            memory = SQLiteSession("restored")
            await memory.add_items(items)
            config = config_of(server, kind)
            return await Runner.run(shop.agent, "Rather not.", session=memory, run_config=config)

        result = asyncio.run(go_on(Shop()))
        assert result.final_output == "Resumed."
        request = json.dumps(server.exchanges[first].body)
        assert all(words in request for words in (BEFORE, SEEN, "call_read", "Rather not."))
        assert not any(
            words in request for words in (AFTER, "call_order", "Ordered", "No result of this call")
        )
