"""A real thread in a real SqliteSaver goes on from a restored point: what came after it is not in its requests."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from ledger.capture.hooks.langgraph import LedgerCallback
from ledger.home import open_ledger
from replay.resume.langgraph import ThreadNotFoundError, aresume_thread, resume_thread
from tests.commands import answer, run
from tests.frameworks.langgraph.test_langgraph import model_of
from tests.frameworks.resuming import AFTER, BEFORE, SEEN, Tools, script
from tests.scripted_model import Lane, Script, ScriptedModel, Step, Text, ToolCall

CONFIG: Any = {"configurable": {"thread_id": "order-1"}}
APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
REJECT: Any = Command(resume={"decisions": [{"type": "reject", "message": "too dear"}]})


class Shop(Tools):
    """An agent with a question before it orders, and what its tools did."""

    def __init__(self, server: ScriptedModel, saver: Any, kind: str = "chat") -> None:
        super().__init__()
        self.graph: Any = create_agent(
            model_of(server, kind),
            tools=[tool(self.read_offer), tool(self.place_order)],
            system_prompt="You buy for the house.",
            name="buyer",
            checkpointer=saver,
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"place_order": True})],
        )

    def talk(self, config: Any = CONFIG) -> None:
        """Asked, approved, and gone on."""
        self.graph.invoke({"messages": [("user", BEFORE)]}, config)
        self.graph.invoke(APPROVE, config)
        self.graph.invoke({"messages": [("user", AFTER)]}, config)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "threads.sqlite", check_same_thread=False)
    yield connection
    connection.close()


def sent(server: ScriptedModel) -> list[str]:
    """The bodies of all model requests, as text."""
    return [json.dumps(exchange.body) for exchange in server.exchanges if exchange.protocol is not None]


def go_back(home: Path, session: str, checkpoint: str, into: Path) -> dict[str, Any]:
    """Roll back by the command; what it wrote."""
    how = ("--reason", "wrong order", "--into", into, "--json")
    result = run(home, "rollback", session, "--to", checkpoint, *how)
    assert result.exit_code in (0, 1), result.output
    assert (into / "thread.json").is_file()
    return dict(json.loads(result.stdout))


def question(home: Path, session: str) -> tuple[str, int]:
    """The checkpoint at which the order was asked about."""
    asked = next(one for one in events(home, session) if one["type"] == "approval.asked")
    rows = [row for row in answer(home, "checkpoints", session) if row["taken"] < asked["seq"]]
    return rows[-1]["checkpoint_id"], rows[-1]["seq"]


def events(home: Path, session: str) -> list[dict[str, Any]]:
    """All events of a session."""
    return [json.loads(line) for line in run(home, "events", session, "--json").stdout.splitlines()]


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
@pytest.mark.parametrize("decision", ["reject", "approve"])
def test_an_imported_thread_asks_again_and_the_stale_answer_is_not_used(
    tmp_path: Path, database: sqlite3.Connection, decision: str, kind: str
) -> None:
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        shop = Shop(server, SqliteSaver(database), kind)
        shop.talk()
        assert shop.ran == ["read", "order pumps"]
        first = len(sent(server))
        (session,) = answer(home, "import", tmp_path / "threads.sqlite")["sessions"]
        checkpoint, _ = question(home, session)
        go_back(home, session, checkpoint, tmp_path / "back")
        # The stale answer lies in the database: a resume without a copy would use it.
        stored = SqliteSaver(database).get_tuple(
            {"configurable": {**CONFIG["configurable"], "checkpoint_ns": "", "checkpoint_id": checkpoint}}
        )
        assert stored is not None and any(row[1] == "__resume__" for row in stored.pending_writes or [])

        again = Shop(server, SqliteSaver(database), kind)  # as in a new process
        config = resume_thread(again.graph, tmp_path / "back" / "thread.json")
        asked = again.graph.invoke(None, config)
        assert asked["__interrupt__"], "the question is open again"
        assert (again.ran, len(sent(server))) == ([], first), (
            "neither the answer nor a tool nor a model was used"
        )
        again.graph.invoke(REJECT if decision == "reject" else APPROVE, config)
        assert again.ran == ([] if decision == "reject" else ["order pumps"])
        request = sent(server)[first]
        assert BEFORE in request and SEEN in request and "call_order" in request
        assert AFTER not in request and "Ordered what was approved." not in request
        assert ("ordered pumps" in request) == (decision == "approve")
    added = answer(home, "import", tmp_path / "threads.sqlite")
    assert added["records_added"] > 0  # the copy and what came of it is a branch of the same thread


def test_a_thread_goes_back_to_each_of_its_checkpoints(tmp_path: Path, database: sqlite3.Connection) -> None:
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        Shop(server, SqliteSaver(database)).talk()
    (session,) = answer(home, "import", tmp_path / "threads.sqlite")["sessions"]
    rows = answer(home, "checkpoints", session)
    assert len(rows) > 8
    for number, row in enumerate(rows[1:]):  # before the first, nothing was said
        into = tmp_path / f"back-{number}"
        go_back(home, session, row["checkpoint_id"], into)
        wanted = SqliteSaver(database).get_tuple(
            {
                "configurable": {
                    "thread_id": "order-1",
                    "checkpoint_ns": "",
                    "checkpoint_id": row["checkpoint_id"],
                }
            }
        )
        assert wanted is not None
        with ScriptedModel(script()) as server:
            graph = Shop(server, SqliteSaver(database)).graph
            config = resume_thread(graph, into / "thread.json")
            state = graph.get_state(config)
            told = [message.content for message in state.values.get("messages", [])]
            kept = wanted.checkpoint["channel_values"].get("messages", [])
            assert told == [message.content for message in kept]
            assert state.interrupts == ()


def test_a_thread_recorded_by_the_callback_goes_back_by_what_was_said(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "threads.sqlite"
    with ScriptedModel(script()) as server, sqlite3.connect(path, check_same_thread=False) as connection:
        shop = Shop(server, SqliteSaver(connection))
        with open_ledger(home) as ledger, LedgerCallback(ledger) as handler:
            shop.talk({**CONFIG, "callbacks": [handler]})
        thread = back_to_the_question(home, tmp_path)
        shop.ran.clear()
        config = resume_thread(shop.graph, thread)
        assert shop.graph.invoke(None, config)["__interrupt__"]
        shop.graph.invoke(REJECT, config)
        check_first_request(server, shop)
    connection.close()


def test_an_async_thread_does_the_same(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "threads.sqlite"

    async def all_of_it(server: ScriptedModel) -> None:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            shop = Shop(server, saver)
            with open_ledger(home) as ledger, LedgerCallback(ledger) as handler:
                recorded: Any = {**CONFIG, "callbacks": [handler]}
                await shop.graph.ainvoke({"messages": [("user", BEFORE)]}, recorded)
                await shop.graph.ainvoke(APPROVE, recorded)
                await shop.graph.ainvoke({"messages": [("user", AFTER)]}, recorded)
            thread = back_to_the_question(home, tmp_path)
            shop.ran.clear()
            config = await aresume_thread(shop.graph, thread)
            assert (await shop.graph.ainvoke(None, config))["__interrupt__"]
            await shop.graph.ainvoke(REJECT, config)
            check_first_request(server, shop)

    with ScriptedModel(script()) as server:
        asyncio.run(all_of_it(server))


def back_to_the_question(home: Path, folder: Path) -> Path:
    """Roll back the session that the callback recorded to where the order was asked about."""
    (row,) = [one for one in answer(home, "sessions") if one["parent"] is None]
    asked = next(one for one in events(home, row["id"]) if one["type"] == "approval.asked")
    answer(home, "checkpoint", row["id"], "--at", asked["seq"], "--label", "asked")
    told = go_back(home, row["id"], "asked", folder / "back")
    assert "resume_thread" in json.dumps(told)
    return folder / "back" / "thread.json"


def check_first_request(server: ScriptedModel, shop: Shop) -> None:
    """The request after the refusal: what was said up to the question, and nothing of what came later."""
    assert shop.ran == []
    request = sent(server)[-1]
    assert BEFORE in request and SEEN in request and "too dear" in request
    assert AFTER not in request and "Ordered what was approved." not in request


def test_a_tool_that_had_ended_beside_one_that_asked_is_not_run_again(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    home, ran = tmp_path / "home", list[str]()

    @tool
    def look(what: str) -> str:
        """Look."""
        ran.append("look")
        return f"{what}: seven"

    @tool
    def buy(what: str) -> str:
        """Buy."""
        if interrupt(f"Buy {what}?") == "yes":
            ran.append("buy")
        return f"asked about {what}"

    both = (
        ToolCall("look", {"what": "hoses"}, id="call_look"),
        ToolCall("buy", {"what": "pumps"}, id="call_buy"),
    )
    steps = (Step(blocks=both), Step(blocks=(Text("Done."),)), Step(blocks=(Text("Done otherwise."),)))
    with ScriptedModel(Script(lanes=[Lane("one", steps)], prefix="both-")) as server:
        graph: Any = create_agent(
            model_of(server, "chat"), tools=[look, buy], checkpointer=SqliteSaver(database), name="buyer"
        )
        with open_ledger(home) as ledger, LedgerCallback(ledger) as handler:
            told: Any = {**CONFIG, "callbacks": [handler]}
            graph.invoke({"messages": [("user", BEFORE)]}, told)
            graph.invoke(Command(resume="yes"), told)
        assert sorted(ran) == ["buy", "look"]
        (row,) = [one for one in answer(home, "sessions") if one["parent"] is None]
        asked = next(one for one in events(home, row["id"]) if one["type"] == "approval.asked")
        settled = next(one for one in events(home, row["id"]) if one["type"] == "tool_call.settled")
        answer(home, "checkpoint", row["id"], "--at", max(asked["seq"], settled["seq"]), "--label", "asked")
        go_back(home, row["id"], "asked", tmp_path / "back")
        ran.clear()
        config = resume_thread(graph, tmp_path / "back" / "thread.json")
        assert graph.invoke(None, config)["__interrupt__"]
        graph.invoke(Command(resume="no"), config)
        assert ran == [], "the look is kept, and the old yes is not used"
        request = sent(server)[-1]
        assert "hoses: seven" in request and "asked about pumps" in request


def test_another_database_says_that_it_does_not_hold_the_point(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    home = tmp_path / "home"
    with ScriptedModel(script()) as server:
        Shop(server, SqliteSaver(database)).talk()
        (session,) = answer(home, "import", tmp_path / "threads.sqlite")["sessions"]
        go_back(home, session, question(home, session)[0], tmp_path / "back")
        empty = sqlite3.connect(":memory:", check_same_thread=False)
        with pytest.raises(ThreadNotFoundError, match="own database"):
            resume_thread(Shop(server, SqliteSaver(empty)).graph, tmp_path / "back" / "thread.json")
        empty.close()
