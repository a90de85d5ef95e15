"""Remake the pi fixtures: run the real pi in RPC mode against the scripted model.

Usage, with npm's `@mariozechner/pi-coding-agent` installed, without network:
python -m tests.ledger.importers.remake_pi PATH_OF_PI FOLDER_FOR_RUNS
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.ledger.importers.harness_runs import case_folder, jsonl, lab, scrub, write_promise
from tests.scripted_model import Error, Lane, Step, Text, Thinking, ToolCall, Usage

_RULE = "RULE: never delete files. "
_MODELS: dict[str, Any] = {
    "api": "anthropic-messages",
    "apiKey": "scripted",
    "models": [
        {
            "id": "lab-model",
            "name": "Lab",
            "reasoning": True,
            "input": ["text"],
            "cost": {"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1.25},
            "contextWindow": 200000,
            "maxTokens": 8000,
        }
    ],
}


def _step(*blocks: Text | Thinking | ToolCall) -> Step:
    return Step(blocks, Usage(1000, 20, 300, 50))


def _lanes() -> list[Lane]:
    steps = [
        _step(
            Thinking("The file has a typo; look first."),
            Text("I look."),
            ToolCall("read", {"path": "greeting.txt"}),
            ToolCall("bash", {"command": "echo oops >&2; exit 3"}),
        ),
        _step(
            ToolCall("edit", {"path": "greeting.txt", "oldText": "wrold", "newText": "world"}),
            ToolCall("nonsense", {}),
        ),
        _step(Text("Fixed.")),
        Step(error=Error(400, "no", "invalid_request_error")),
        _step(Text("The rule is clear.")),
        _step(Text("SUMMARY: the rule is kept.")),
        _step(Text("SUMMARY: of the turn's beginning.")),
        _step(Text("After the compaction.")),
        _step(Text("The other way.")),
        _step(Text("Last.")),
    ]
    return [Lane("main", steps)]


class _Pi:
    """A running pi, spoken to over its standard streams."""

    def __init__(self, binary: str, folder: Path, repo: Path) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PI_OFFLINE": "1", "TERM": "dumb"}
        self._process = subprocess.Popen(
            [binary, "--mode", "rpc", "--provider", "lab", "--model", "lab-model"],
            cwd=repo,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Timer(90, self._process.kill).start()

    def ask(self, until: str, **command: Any) -> dict[str, Any]:
        """Send a command; wait for an event of this type, or the response to it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event.get("type") == until or (
                event.get("type") == "response" and (event.get("command") == until or not event["success"])
            ):
                return event
        raise RuntimeError(f"pi ended before it answered {command}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Run the one case and write its fixture."""
    binary, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    with lab(folder, _lanes()) as place:
        home = folder / ".pi" / "agent"
        home.mkdir(parents=True)
        models = {"providers": {"lab": {"baseUrl": place.url, **_MODELS}}}
        (home / "models.json").write_text(json.dumps(models), encoding="utf-8")
        settings = {"compaction": {"keepRecentTokens": 20}, "retry": {"enabled": False}}
        (home / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        pi = _Pi(binary, folder, place.repo)
        pi.ask("agent_end", type="prompt", message="Fix the typo in greeting.txt, please.")
        pi.ask("bash", type="bash", command="echo typed")
        pi.ask("agent_end", type="prompt", message="This is refused.")
        pi.ask("agent_end", type="prompt", message=_RULE * 20)
        print(str(pi.ask("compact", type="compact"))[:300], file=sys.stderr)
        pi.ask("agent_end", type="prompt", message="Go on.")
        messages = pi.ask("get_fork_messages", type="get_fork_messages")["data"]["messages"]
        print(str(pi.ask("fork", type="fork", entryId=messages[-1]["entryId"]))[:300], file=sys.stderr)
        pi.ask("agent_end", type="prompt", message="The other way.")
        pi.close()
    target = case_folder("pi", "tree")
    for path in sorted(home.rglob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [scrub(row, folder, lambda where, text: _RULE in text or len(text) < 2000) for row in rows]
        (target / path.name).write_bytes(jsonl(rows))
    write_promise(target, folder / "ledger")


if __name__ == "__main__":
    main()
