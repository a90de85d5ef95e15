"""Remake the DeepSeek Harness fixtures: run the real harness from its SDK against the scripted model.

Usage, in an environment with `deepseek-harness-sdk` and the packages of this project, without network:
python -m tests.ledger.importers.remake_deepseek FOLDER_FOR_RUNS
"""

import json
import sys
from pathlib import Path
from typing import Any

import zstandard
from deepseek_harness import DeepSeekHarness  # type: ignore[import-not-found]

from ledger.importers._files import open_source
from tests.ledger.importers.harness_runs import case_folder, jsonl, lab, scrub, write_promise
from tests.scripted_model import Error, Lane, Match, Step, Text, Thinking, ToolCall, Usage

SOURCE = "deepseek-harness"
_SMALL_CONTEXT = """- id: compaction-basic
  config:
    thresholdRatio: 0.002
    retainRatio: 0.0001
    headroomTokens: 4096
    maxTokens: 4096
"""


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command, "description": "run it"})


def _basic() -> list[Lane]:
    return [
        Lane(
            "main",
            [
                Step(
                    [
                        Thinking("The file has a typo; look first."),
                        Text("I look."),
                        ToolCall("read", {"file_path": "greeting.txt"}),
                        _bash("cat notes.md"),
                    ],
                    Usage(1000, 20, 300, 50),
                ),
                Step(
                    [
                        ToolCall(
                            "edit",
                            {"file_path": "greeting.txt", "old_string": "wrold", "new_string": "world"},
                        ),
                        ToolCall(
                            "write",
                            {
                                "file_path": "/etc/never.txt",
                                "content": "x",
                                "sandbox_permissions": "danger-full-access",
                                "justification": "try what is refused",
                            },
                        ),
                    ],
                    Usage(500, 30),
                ),
                Step(error=Error(529, "busy", "overloaded_error")),
                Step([Text("half an answer that is cut in the middle")], cut_after=3),
                Step(
                    [
                        ToolCall("write", {"file_path": "new.txt", "content": "made\n"}),
                        ToolCall("nonsense", {}),
                    ]
                ),
                Step([Text("Fixed.")]),
                Step([Text("Resumed.")]),
            ],
        )
    ]


def _compaction() -> list[Lane]:
    say = "RULE: never delete files. " * 30
    return [
        Lane(
            "main",
            [
                Step([Text("I look."), ToolCall("bash", {"command": "cat greeting.txt"})], Usage(1000, 20)),
                Step([Text("One done. " + say)], Usage(3000, 200)),
                Step([Text("SUMMARY: the rule is kept."), Text("Or an answer.")], Usage(900, 40)),
                Step([Text("Two done.")], Usage(800, 20)),
                Step([Text("Three done.")], Usage(800, 20)),
            ],
        )
    ]


def _delegation() -> list[Lane]:
    ask = ToolCall("subagent", {"description": "alpha", "prompt": "SUBTASK-ALPHA: say what is in the file."})
    return [
        Lane(
            "sub",
            [
                Step([ToolCall("read", {"file_path": "greeting.txt"})]),
                Step([Text("Report ALPHA.")]),
                Step([Text("Nothing more.")]),
            ],
            Match(first_user="SUBTASK-ALPHA"),
        ),
        Lane(
            "main",
            [
                Step([Text("I ask an agent."), ask]),
                Step([Text("I wait."), ToolCall("list_agents", {})], delay_s=1.5),
                Step([Text("All came.")], delay_s=1.5),
                Step([Text("Nothing more.")]),
            ],
        ),
    ]


def _run(
    base: Path, case: str, profile: str, lanes: list[Lane], prompts: list[str], patch: str, resume: bool
) -> None:
    with lab(base / case, lanes) as place:
        patches: tuple[str, ...] = ()
        if patch:
            (place.folder / "patch.yml").write_text(patch, encoding="utf-8")
            patches = (str(place.folder / "patch.yml"),)
        options: dict[str, Any] = {
            "dsh_home": str(place.folder / "home"),
            "cwd": str(place.repo),
            "base_url": place.url,
            "api_key": "scripted",
            "profile": profile,
            "patches": patches,
            "env": {"HOME": str(place.folder)},
            "request_timeout_seconds": 60,
        }
        with DeepSeekHarness(**options) as harness:
            for prompt in prompts:
                harness.run(prompt, session_id=f"lab-{case}")
        if resume:
            with DeepSeekHarness(**options) as harness:
                harness.resume_session(f"lab-{case}").run("Go on.")


def _collect(base: Path, case: str) -> None:
    folder = case_folder(SOURCE, case)
    home = base / case / "home" / "sessions"
    for path in sorted(home.rglob("session.*jsonl*")):
        with open_source(path) as stream:
            rows = [json.loads(line) for line in stream.read().splitlines()]
        rows = [scrub(_small(row), base / case, _is_ours) for row in rows]
        target = folder / path.parent.name / path.name
        target.parent.mkdir(parents=True)
        if path.suffix == ".zstd":  # one frame for the header, one for each batch, as the harness writes it
            pack = zstandard.ZstdCompressor(write_checksum=True)
            target.write_bytes(b"".join(pack.compress(jsonl([row])) for row in rows))
        else:
            target.write_bytes(jsonl(rows))
    write_promise(folder, base / case / "ledger")


def _is_ours(where: tuple[str, ...], text: str) -> bool:
    """Whether a long text is the script's or a tool's, not the vendor's."""
    return (
        where[-1] == "arguments"
        or text.startswith(("<path>", "Error:"))
        or "RULE: " in text
        or "Go on." in text
    )


def _small(row: dict[str, Any]) -> dict[str, Any]:
    """A header with three tools is enough to be read."""
    header = row.get("data", {}).get("header") if row.get("type") == "request/header" else None
    if header and header.get("tools"):
        header["tools"] = [tool for tool in header["tools"] if tool["name"] in ("bash", "read", "subagent")]
        for tool in header["tools"]:
            tool["parameters"] = {"type": "object", "properties": {}}
            tool["description"] = f"our words for {tool['name']}"
    return row


def main() -> None:
    """Run every case, or those named, and write its fixture."""
    base, only = Path(sys.argv[1]).resolve(), sys.argv[2:]
    cases: dict[str, tuple[str, list[Lane], list[str], str, bool]] = {
        "basic": ("sdk", _basic(), ["Fix the typo in greeting.txt, please."], "", True),
        "compaction": (
            "sdk-minimal",
            _compaction(),
            ["RULE: never delete files. " * 40, "Go on. " * 20, "And now?"],
            _SMALL_CONTEXT,
            False,
        ),
        "delegation": ("sdk", _delegation(), ["Ask the agents."], "", False),
    }
    for case, (profile, lanes, prompts, patch, resume) in cases.items():
        if not only or case in only:
            try:
                _run(base, case, profile, lanes, prompts, patch, resume)
            except Exception as error:  # noqa: BLE001 - a run that fails is shown, the others go on
                print(case, "failed:", repr(error)[:2000], file=sys.stderr)
                continue
            _collect(base, case)


if __name__ == "__main__":
    main()
