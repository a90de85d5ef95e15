"""Remake the opencode fixture: run the real opencode against the scripted model, then keep the tables that matter.

Usage, with npm's `opencode-ai` installed, without network:
python -m tests.ledger.importers.remake_opencode PATH_OF_OPENCODE FOLDER_FOR_RUNS
"""

import contextlib
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.ledger.importers.harness_runs import case_folder, lab, scrub, write_promise
from tests.scripted_model import Lane, Match, Step, Text, ToolCall, Usage

TABLES = ("event_sequence", "event", "session", "message", "part")


def _step(*blocks: Text | ToolCall) -> Step:
    return Step(blocks, Usage(1000, 20, 300, 50))


def _lanes() -> list[Lane]:
    edit = {"filePath": "greeting.txt", "oldString": "wrold", "newString": "world"}
    steps = [
        _step(
            Text("I look."),
            ToolCall("read", {"filePath": "greeting.txt"}),
            ToolCall("bash", {"command": "echo oops >&2; exit 3", "description": "fail"}),
        ),
        _step(ToolCall("edit", edit), ToolCall("bash", {"command": "rm notes.md", "description": "delete"})),
        _step(Text("Fixed.")),
        _step(Text("Resumed.")),
    ]
    titles = [_step(Text("A title")) for _ in range(4)]
    return [Lane("title", titles, Match(has_tools=False)), Lane("main", steps, Match(tool="read"))]


def _settings(url: str) -> dict[str, Any]:
    model = {"name": "Lab", "limit": {"context": 200000, "output": 8000}, "cost": {"input": 1, "output": 5}}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": "Lab",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"lab-model": model},
    }
    return {
        "model": "lab/lab-model",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"lab": provider},
        "permission": {"bash": {"*": "allow", "rm *": "deny"}},
    }


def main() -> None:
    """Run the one case and write its fixture."""
    binary, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    with lab(folder, _lanes()) as place:
        (place.repo / "opencode.json").write_text(json.dumps(_settings(place.url)), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        for words in (["Fix the typo in greeting.txt, please."], ["--continue", "Go on."]):
            command = [binary, "run", *words]
            subprocess.run(
                command, cwd=place.repo, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=90
            )
    target = case_folder("opencode", "permissions")
    keep_tables(folder / ".local/share/opencode/opencode.db", folder / "small.db", folder)
    (target / "opencode.db.gz").write_bytes(gzip.compress((folder / "small.db").read_bytes(), mtime=0))
    write_promise(target, folder / "ledger")


def keep_tables(source: Path, target: Path, folder: Path) -> None:
    """Copy the tables of sessions, row by row, with the lab's folder renamed."""
    with (
        contextlib.closing(sqlite3.connect(source)) as old,
        contextlib.closing(sqlite3.connect(target)) as new,
    ):
        for table in TABLES:
            (schema,) = old.execute("select sql from sqlite_master where name = ?", (table,)).fetchone()
            new.execute(schema)
            for row in old.execute(f"select * from {table}").fetchall():
                values = [_clean(value, folder) for value in row]
                marks = ", ".join("?" for _ in values)
                new.execute(f"insert into {table} values ({marks})", values)
        new.commit()
        new.execute("vacuum")


def _clean(value: Any, folder: Path) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        return json.dumps(scrub(json.loads(value), folder, lambda where, text: len(text) < 400))
    return scrub(value, folder, lambda where, text: True)


if __name__ == "__main__":
    main()
