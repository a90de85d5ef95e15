"""Client and server of the real MCP SDK, with the taps between them."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from ledger.events.approval import ApprovalDecided
from ledger.events.capability import CapabilityLoaded
from ledger.events.session import SessionEnded
from ledger.events.tool_call import ToolCallRequested, ToolCallSettled, ToolCallStarted
from ledger.home import open_ledger
from tests.frameworks import shop as checks
from tests.frameworks.replayed import ROOT

TAP = [sys.executable, "-m", "webui"]
SERVER = [sys.executable, "-m", "tests.frameworks.mcp_sdk.server"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}


async def waited(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.05)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def _agree(context: Any, asked: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"is_wanted": True})


@contextlib.asynccontextmanager
async def connected(folder: Path, way: str, mode: Any) -> AsyncIterator[Client]:
    """A client whose way to the server leads through the tap."""
    tap = [*TAP, "--home", str(folder / "home"), "tap", "mcp", "--server", "shelf"]
    with contextlib.ExitStack() as stack:
        if way == "stdio":
            command = [*tap, "--", *SERVER, "stdio", str(folder)]
            place: Any = StdioServerParameters(
                command=command[0], args=command[1:], env=ENVIRONMENT, cwd=ROOT
            )
        else:
            behind, before = free_port(), free_port()
            url = f"http://127.0.0.1:{behind}/mcp"
            for command, port in (
                ([*SERVER, "http", str(folder), str(behind)], behind),
                ([*tap, "--url", url, "--port", str(before)], before),
            ):
                child = stack.enter_context(subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT))
                stack.callback(child.terminate)
                await waited(lambda port=port: answers(port))
            place = f"http://127.0.0.1:{before}/mcp"
        async with Client(place, mode=mode, elicitation_callback=_agree) as client:
            yield client


async def talk(folder: Path, way: str, mode: Any) -> dict[str, Any]:
    """What a client sees: tools, a call, one that fails, a question, and one that is cancelled."""
    async with connected(folder, way, mode) as client:
        seen: dict[str, Any] = {"tools": [one.name for one in (await client.list_tools()).tools]}
        for name, arguments in (("add", {"left": 2, "right": 3}), ("fail", {}), ("book", {"item": "pumps"})):
            with contextlib.suppress(Exception):
                result = await client.call_tool(name, arguments)
                seen[name] = (result.is_error, result.content[0].text)
        running = asyncio.create_task(client.call_tool("wait", {}))
        await waited((folder / "wait").exists)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        result = await client.call_tool("add", {"left": 4, "right": 5})
        seen["after"] = result.content[0].text
    return seen


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_all_that_passes_is_in_the_ledger(tmp_path: Path, way: str, mode: str) -> None:
    seen = asyncio.run(talk(tmp_path, way, mode))
    is_asked = mode == "legacy"  # without a handshake a server cannot ask in the middle of a call
    assert seen["tools"] == ["add", "fail", "wait", "book"]
    assert (seen["add"], seen["after"]) == ((False, "5"), "9")
    assert seen["fail"][0] is True
    assert seen.get("book") == ((False, "accept: True") if is_asked else None)
    with open_ledger(tmp_path / "home") as ledger:
        offered = [one.capability for one in checks.of_type(ledger, CapabilityLoaded) if one.kind == "tool"]
        assert offered == seen["tools"]
        called = {one.call_id: one.tool for one in checks.of_type(ledger, ToolCallRequested)}
        assert list(called.values()) == ["add", "fail", "book", "wait", "add"]
        assert [one.call_id for one in checks.of_type(ledger, ToolCallStarted)] == list(called)
        settled = {called[one.call_id]: one.outcome for one in checks.of_type(ledger, ToolCallSettled)}
        assert len(checks.of_type(ledger, ToolCallSettled)) == len(called)
        assert settled == {
            "add": "returned",
            "fail": "failed",
            "book": "returned" if is_asked else "failed",
            "wait": "unknown",  # it was cancelled, and may have run to its end
        }
        decided = [one.outcome for one in checks.of_type(ledger, ApprovalDecided)]
        assert decided == (["approved"] if is_asked else [])
        assert [one.outcome for one in checks.of_type(ledger, SessionEnded)] == ["completed"]
        checks.check_ledger(ledger)
