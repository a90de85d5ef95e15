"""Runs real packages that trace or connect agents, and keeps what they write, for those who remake fixtures.

`python -m tests.ledger.importers.plain_services [NAME…]` in an environment that has what a run imports:
`pip install langsmith "mcp<2" openai`. No test imports it.
"""

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import BaseModel

from tests.ledger.importers.plain_runs import TOOL, TURNS, case_folder, package, scripted

_INGEST = {
    "use_multipart_endpoint": False,
    "size_limit": 100,
    "size_limit_bytes": 1_000_000,
    "scale_up_nthreads_limit": 1,
    "scale_up_qsize_trigger": 1000,
    "scale_down_nempty_trigger": 4,
}


def langsmith() -> None:
    """A traced chain that asks a model and runs a tool, as the SDK posts and patches it."""
    sdk = package("langsmith")
    openai = package("openai")
    wrap_openai = package("langsmith.wrappers").wrap_openai

    posted: list[dict[str, Any]] = []

    class Sink(BaseHTTPRequestHandler):
        def _say(self, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self) -> None:
            self._say({"version": "0", "batch_ingest_config": _INGEST})

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            posted.append(json.loads(raw))
            self._say({})

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    client = sdk.Client(api_url=url, api_key="none", info={"batch_ingest_config": _INGEST})

    def rain(town: str) -> str:
        return "rain"

    weather = sdk.traceable(run_type="tool", client=client, name="weather")(rain)

    def forecast(url: str) -> str:
        chat = wrap_openai(
            openai.OpenAI(base_url=f"{url}/v1", api_key="none"), tracing_extra={"client": client}
        )
        messages: list[Any] = [{"role": "user", "content": "How is the weather in Bonn?"}]
        message = (
            chat.chat.completions.create(model="scripted", messages=messages, tools=[TOOL]).choices[0].message
        )
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            result = weather("Bonn", langsmith_extra={"metadata": {"tool_call_id": call.id}})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        answer = chat.chat.completions.create(model="scripted", messages=messages, tools=[TOOL])
        return str(answer.choices[0].message.content)

    forecast = sdk.traceable(run_type="chain", client=client, name="forecast")(forecast)
    os.environ["LANGSMITH_TRACING"] = "true"
    with scripted(TURNS[0], TURNS[2]) as model:
        print("langsmith", forecast(model.url))
        client.flush()
        time.sleep(1)
    server.shutdown()
    merged = {name: [run for body in posted for run in body.get(name) or ()] for name in ("post", "patch")}
    for run in (*merged["post"], *merged["patch"]):
        run.get("extra", {}).pop("runtime", None)  # of this machine
        run.get("extra", {}).get("metadata", {}).pop("revision_id", None)
    (case_folder("langsmith", "chain") / "payload.json").write_text(json.dumps(merged, indent=1) + "\n")


def mcp() -> None:
    """A client and a server of the `mcp` package with a tap between them: a call, a refusal, two questions."""
    anyio = package("anyio")
    ClientSession = package("mcp").ClientSession
    types = package("mcp").types
    Context = package("mcp.server.fastmcp").Context
    FastMCP = package("mcp.server.fastmcp").FastMCP
    create_client_server_memory_streams = package("mcp.shared.memory").create_client_server_memory_streams

    app = FastMCP("workshop", instructions="Ask before you burn.")

    class Sure(BaseModel):
        sure: bool

    def count(drawer: int) -> int:
        """Count the bolts in a drawer."""
        return drawer * 3

    async def burn(what: str, context: Any) -> str:
        """Burn something."""
        answer = await context.elicit(f"Burn {what}?", Sure)
        return str(answer.action)

    async def poem(context: Any) -> str:
        """Write a poem."""
        asked = types.SamplingMessage(
            role="user", content=types.TextContent(type="text", text="A line, please.")
        )
        said = await context.session.create_message([asked], max_tokens=20)
        return str(getattr(said.content, "text", ""))

    for function in (count, burn, poem):
        if function is not count:
            function.__annotations__["context"] = Context  # the package looks there for what to hand in
        app.tool()(function)
    seen: list[dict[str, Any]] = []

    async def tap(source: Any, sink: Any, way: str) -> None:
        async with source, sink:
            async for one in source:
                message = one.message.model_dump(mode="json", by_alias=True, exclude_none=True)
                seen.append({"ts": 1795953600.0 + len(seen), "direction": way, "message": message})
                await sink.send(one)

    async def say(context: Any, params: Any) -> Any:
        text = types.TextContent(type="text", text="Bolts are blue.")
        return types.CreateMessageResult(
            role="assistant", content=text, model="scripted", stopReason="endTurn"
        )

    async def decline(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="decline")

    async def run() -> None:
        async with (
            create_client_server_memory_streams() as (client_side, server_side),
            anyio.create_task_group() as group,
        ):
            to_client, from_tap = anyio.create_memory_object_stream(10)
            to_tap, from_client = anyio.create_memory_object_stream(10)
            group.start_soon(tap, client_side[0], to_client, "server_to_client")
            group.start_soon(tap, from_client, client_side[1], "client_to_server")
            serve = app._mcp_server
            group.start_soon(serve.run, *server_side, serve.create_initialization_options())
            async with ClientSession(
                from_tap, to_tap, sampling_callback=say, elicitation_callback=decline
            ) as session:
                await session.initialize()
                await session.list_tools()
                await session.call_tool("count", {"drawer": 2})
                await session.call_tool("count", {"drawer": "no number"})
                await session.call_tool("burn", {"what": "the letter"})
                await session.call_tool("poem", {})
            group.cancel_scope.cancel()

    anyio.run(run)
    text = "".join(json.dumps(line) + "\n" for line in seen)
    (case_folder("mcp-messages", "tap") / "tap.ndjson").write_text(text)
    print("mcp", len(seen))


RUNS: dict[str, Callable[[], None]] = {"langsmith": langsmith, "mcp": mcp}

if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        RUNS[name]()
