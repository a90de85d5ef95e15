"""A LangGraph agent, recorded by the proxy and replayed in a fresh process without a model."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.types import Command

from tests.frameworks import shop as checks
from tests.frameworks.langgraph.test_langgraph import buyer_of, model_of
from tests.frameworks.replayed import check_replay
from tests.frameworks.shop import Shop


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
def test_every_request_is_answered_from_the_record(tmp_path: Path, kind: str, way: str) -> None:
    script = checks.script(expert=("ask_expert", {"question": "Are these pumps good?"}))
    check_replay(__name__, tmp_path, script, kind, way)


async def talk(graph: Any, *, is_streamed: bool) -> str:
    """The whole conversation; its last answer."""
    config: Any = {"configurable": {"thread_id": "order-1"}}

    async def turn(given: Any) -> None:
        if not is_streamed:
            await graph.ainvoke(given, config)
            return
        async for _ in graph.astream(given, config, stream_mode=["messages", "updates"]):
            pass

    await turn({"messages": [("user", "Buy pumps and hoses, see offer 77.")]})
    await turn(Command(resume={"decisions": [{"type": "approve"}]}))
    await turn(Command(resume={"decisions": [{"type": "reject", "message": "too dear"}]}))
    await turn({"messages": [("user", "Thank you.")]})
    state = await graph.aget_state(config)
    return str(state.values["messages"][-1].text)


if __name__ == "__main__":
    url, kind, way = sys.argv[1:]
    server: Any = SimpleNamespace(url=url)
    agent = buyer_of(model_of(server, kind), Shop())
    print(json.dumps(asyncio.run(talk(agent, is_streamed=way == "streamed"))))
