"""Remake the Gemini CLI fixture: run the real CLI against the scripted model.

Usage, with npm's `@google/gemini-cli` installed, without network:
python -m tests.ledger.importers.remake_gemini PATH_OF_GEMINI FOLDER_FOR_RUNS
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.ledger.importers.harness_runs import case_folder, jsonl, lab, scrub, write_promise
from tests.scripted_model import Lane, Match, Step, Text, ToolCall, Usage

_EDIT = {"file_path": "greeting.txt", "old_string": "wrold", "new_string": "world", "instruction": "fix"}


def _step(*blocks: Text | ToolCall) -> Step:
    return Step(blocks, Usage(1000, 20, 300, 0, 5))


def main() -> None:
    """Run the one case and write its fixture."""
    binary, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    steps = [
        _step(
            Text("I look."),
            ToolCall("read_file", {"file_path": "greeting.txt"}),
            ToolCall("run_shell_command", {"command": "echo oops >&2; exit 3"}),
        ),
        _step(ToolCall("replace", _EDIT), ToolCall("nonsense", {})),
        _step(Text("Fixed.")),
        _step(Text("Resumed.")),
    ]
    with lab(folder, [Lane("main", steps, Match(tool="read_file"))]) as place:
        home = folder / ".gemini"
        home.mkdir()
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True},
        }
        (home / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GEMINI_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": place.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "TERM": "dumb",
        }
        for words in (
            ["-p", "Fix the typo in greeting.txt, please."],
            ["--resume", "latest", "-p", "Go on."],
        ):
            command = [binary, "-m", "gemini-2.5-flash", "--yolo", *words]
            subprocess.run(
                command, cwd=place.repo, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=90
            )
    target = case_folder("gemini-cli", "resumed")
    for path in sorted((home / "tmp").rglob("chats/session-*")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [
            _our_words(scrub(row, folder, lambda where, text: "session_context" in text or len(text) < 400))
            for row in rows
        ]
        (target / path.name).write_bytes(jsonl(rows))
    write_promise(target, folder / "ledger")


def _our_words(row: object) -> object:
    text = json.dumps(row)
    start = text.find("<session_context>")
    while start >= 0:
        end = text.index("</session_context>", start)
        text = text[: start + 17] + "our words about the session" + text[end:]
        start = text.find("<session_context>", end)
    return json.loads(text)


if __name__ == "__main__":
    main()
