"""The ledger's own MCP server, asked by the client of the real SDK."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.commands import record_session
from tests.frameworks.replayed import ROOT


async def talk(home: Path, mode: Any) -> dict[str, Any]:
    """What a client sees."""
    place = StdioServerParameters(
        command=sys.executable,
        args=["-m", "webui", "--home", str(home), "mcp"],
        env={"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    async with Client(place, mode=mode) as client:
        tools = await client.list_tools()
        rows = await client.call_tool("run_sql", {"sql": "select session, harness from sessions"})
        saved = await client.call_tool("run_query", {"name": "tool_use"})
        refused = await client.call_tool("run_sql", {"sql": "copy events to '/tmp/a'"})
        shown = await client.call_tool("show_session", {"session": "live"})
        return {
            "tools": [tool.name for tool in tools.tools],
            "rows": rows.content[0].text,  # type: ignore[union-attr]
            "saved": saved.is_error,
            "refused": refused.is_error,
            "shown": shown.content[0].text,  # type: ignore[union-attr]
        }


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_work_for_a_client_of_the_sdk(tmp_path: Path, mode: str) -> None:
    record_session(tmp_path)
    seen = asyncio.run(talk(tmp_path, mode))
    assert seen["tools"] == ["list_tables", "list_queries", "run_query", "run_sql", "show_session"]
    assert json.loads(seen["rows"].partition("\n")[2])["rows"] == [["live-1", "my-loop"]]
    assert (seen["saved"], seen["refused"]) == (False, True)
    assert "my-loop" in seen["shown"]
