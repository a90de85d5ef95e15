"""An agent that counts, and hands work to a sub-agent which counts too. Streams; prints the last words."""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from clerk import blocks_of  # type: ignore[import-not-found]

TOOLS = [
    {"name": name, "description": f"To {name}.", "input_schema": {"type": "object"}}
    for name in ("count", "delegate")
]


def ask(messages: list[Any], agent: str | None) -> list[dict[str, Any]]:
    """The blocks of an answer."""
    body = {"model": "scripted", "max_tokens": 99, "stream": True, "tools": TOOLS, "messages": messages}
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    if agent is not None:
        headers["x-claude-code-agent-id"] = agent
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            found: list[dict[str, Any]] = blocks_of(answer.read().decode())
            return found
    except urllib.error.HTTPError as error:
        raise SystemExit(f"refused with {error.code}: {error.read().decode()}") from error


def work(order: str, agent: str | None = None) -> str:
    """Ask and act until there is nothing more to do."""
    messages: list[Any] = [{"role": "user", "content": order}]
    while True:
        blocks = ask(messages, agent)
        messages.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            return "".join(block.get("text", "") for block in blocks)
        results = []
        for call in calls:
            is_handed_over = call["name"] == "delegate"
            content = work(call["input"]["order"], call["input"]["agent"]) if is_handed_over else "counted"
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": content})
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(work(sys.argv[1]))
