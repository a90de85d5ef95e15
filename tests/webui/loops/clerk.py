"""An agent with a tool that leaves a trace: `count` adds a line to a file. Streams; prints the last words."""

import argparse
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TOOL = {
    "name": "count",
    "description": "Count one more.",
    "input_schema": {"type": "object", "properties": {"by": {"type": "integer"}}},
}


def ask(system: str, messages: list[Any], tool: Any = TOOL) -> list[dict[str, Any]]:
    """The blocks of an answer; a busy server is asked again."""
    body = {"model": "scripted", "max_tokens": 99, "stream": True, "system": system, "tools": [tool]}
    data = json.dumps({**body, "messages": messages}).encode()
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    for _ in range(4):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=120) as answer:
                return blocks_of(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code not in (502, 503):
                raise SystemExit(f"refused with {error.code}: {error.read().decode()}") from error
            time.sleep(0.05)
    raise SystemExit("busy for too long")


def blocks_of(stream: str) -> list[dict[str, Any]]:
    """The blocks that a stream of events builds."""
    blocks: list[dict[str, Any]] = []
    for line in stream.splitlines():
        event = json.loads(line[5:]) if line.startswith("data:") else {}
        if event.get("type") == "content_block_start":
            blocks.append({**event["content_block"], "written": ""})
        elif event.get("type") == "content_block_delta":
            blocks[-1]["written"] += event["delta"].get("text") or event["delta"].get("partial_json") or ""
    for block in blocks:
        written = block.pop("written")
        if block["type"] == "text":
            block["text"] = written
        else:
            block["input"] = json.loads(written or "{}")
    return blocks


def count(counter: Path, fake: str | None) -> str:
    """The tool."""
    with counter.open("a", encoding="utf-8") as file:
        file.write("counted\n")
    return fake or f"{len(counter.read_text(encoding='utf-8').splitlines())} so far"


def work(said: argparse.Namespace, order: str, tool: Callable[[], str]) -> str:
    """Ask and act until there is nothing more to do."""
    schema = {**TOOL, "description": said.description} if said.description else TOOL
    messages: list[Any] = [{"role": "user", "content": order}]
    while True:
        blocks = ask(said.system, messages, schema)
        messages.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            return "".join(block.get("text", "") for block in blocks)
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": tool()} for call in calls]
        messages.append({"role": "user", "content": results})


def main() -> None:
    """Run one order, or some at the same time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("orders", nargs="+")
    parser.add_argument("--system", default="You are a careful clerk who counts.")
    parser.add_argument("--description")
    parser.add_argument("--counter", type=Path, default=Path("counter.txt"))
    parser.add_argument("--fake")
    parser.add_argument("--outside")
    said = parser.parse_args()
    if said.outside:
        try:
            socket.create_connection((said.outside, 443), timeout=20).close()
            print("reached outside")
        except OSError as error:
            print(f"not reached: {error}")
    with ThreadPoolExecutor(len(said.orders)) as pool:
        for words in pool.map(
            lambda order: work(said, order, lambda: count(said.counter, said.fake)), said.orders
        ):
            print(words)


if __name__ == "__main__":
    main()
