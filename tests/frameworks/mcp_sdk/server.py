"""A server of the MCP SDK: `python -m tests.frameworks.mcp_sdk.server stdio FOLDER`, or `http FOLDER PORT`.

Its tools leave files in the folder, so that a test sees what ran.
"""

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("shelf")
folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()


class Consent(BaseModel):
    """What is asked for."""

    is_wanted: bool


@server.tool()
def add(left: int, right: int) -> int:
    """Add."""
    (folder / "add").touch()
    return left + right


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the shelf is locked")


@server.tool()
async def wait() -> str:
    """Wait for long."""
    (folder / "wait").touch()
    await anyio.sleep(60)
    return "done"


@server.tool()
async def book(item: str, context: Context) -> str:
    """Book it, if the user says so."""
    answer = await context.elicit(f"Book {item}?", Consent)
    return f"{answer.action}: {getattr(getattr(answer, 'data', None), 'is_wanted', None)}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
