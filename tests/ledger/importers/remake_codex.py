"""Makes the fixtures of the Codex importer again, from captured runs of the real harness against the scripted model.

`python -m tests.ledger.importers.remake_codex CAPTURES` reads `CAPTURES/<case>/codex_home/**/rollout-*.jsonl`,
`CAPTURES/<case>/wire.jsonl` and `CAPTURES/<case>/run1.stdout.jsonl`. Texts of the vendor (prompts, skills, tool texts)
become words of our own of the same shape; everything else stays as the harness wrote it. Without an argument only
`expected.json` of every case is written again: look at the difference before you keep it.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.ledger.importers.fixtures import FIXTURES, promise

_FOLDER_OF_CASES = FIXTURES / "codex"
_CASES = {
    "basic": "basic",
    "resume-fork": "fork",
    "subagents": "subagents",
    "subagents-v2": "subagents-history",
    "compact-auto": "compaction",
    "appserver": "approvals",
    "sandbox": "sandbox",
    "errors": "errors",
}
_BASE = "You are the agent of this fixture. Keep to the rules of the house.\n"
_TAGGED = re.compile(
    r"\A<(?P<tag>skills_instructions|tools|multi_agent_mode|collaboration_mode)>.*\Z", re.DOTALL
)
_PERMISSIONS = re.compile(
    r"\A<permissions instructions>.*?`sandbox_mode` is `(?P<mode>[\w-]+)`.*\Z", re.DOTALL
)
_SUMMARY = re.compile(r"Another language model started to solve this problem.*?analysis:\n", re.DOTALL)
_FOLDER = re.compile(r"/tmp/lab/codex/[\w-]+")


def _clean(value: Any, key: str = "") -> Any:
    """The same value in words of our own."""
    if isinstance(value, dict):
        if value.get("role") == "developer" and isinstance(value.get("content"), list):
            value = value | {"content": [_developer(block) for block in value["content"]]}
        return {_FOLDER.sub("/home/dev", name): _clean(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key == "body":
        return "\n## Skills\n- none\n"
    if value.startswith("You are performing a CONTEXT CHECKPOINT"):
        return "Sum up, please."
    return _FOLDER.sub("/home/dev", _SUMMARY.sub("A summary of what came before:\n", value))


def _developer(block: dict[str, Any]) -> dict[str, Any]:
    """A text that the vendor wrote for the model."""
    text = block["text"]
    if found := _TAGGED.match(text):
        return block | {"text": f"<{found['tag']}>\nWords of our own.\n</{found['tag']}>"}
    if found := _PERMISSIONS.match(text):
        return block | {
            "text": f"<permissions instructions>\nThe sandbox is `{found['mode']}`.\n</permissions instructions>"
        }
    return block | {"text": "You are one of several agents. These are words of our own."}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    payload = row["payload"]
    if row["type"] == "session_meta" and "base_instructions" in payload:
        payload["base_instructions"]["text"] = _BASE
    if row["type"] == "world_state" and isinstance(payload["state"].get("tools"), dict):
        payload["state"]["tools"] = dict.fromkeys(payload["state"]["tools"], "Words of our own.")
    cleaned: dict[str, Any] = _clean(row)
    return cleaned


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _wire(path: Path) -> dict[str, Any]:
    """The requests that were answered: each item once, and which of them each request sent after the base prompt."""
    items: dict[str, int] = {}
    requests = []
    for line in path.open(encoding="utf-8"):
        exchange = json.loads(line)
        response = re.search(r'"id":"(resp_[^"]+)"', "".join(exchange["chunks"][:1]))
        if not exchange["path"].endswith("/responses") or response is None or exchange["aborted"]:
            continue
        kind = json.loads(exchange["headers"]["x-codex-turn-metadata"])["request_kind"]
        sent = [items.setdefault(_dump(_clean(item)), len(items)) for item in exchange["body"]["input"][1:]]
        requests.append(
            {"response": response[1], "kind": kind, "model": exchange["body"]["model"], "input": sent}
        )
    return {"items": [json.loads(item) for item in items], "requests": requests}


def _remake(captures: Path) -> None:
    for captured, case in _CASES.items():
        folder = _FOLDER_OF_CASES / case
        for source in sorted((captures / captured / "codex_home").rglob("rollout-*.jsonl")):
            target = folder / source.relative_to(captures / captured / "codex_home")
            target.parent.mkdir(parents=True, exist_ok=True)
            rows = [_dump(_row(json.loads(line))) for line in source.open(encoding="utf-8")]
            target.write_text("\n".join(rows) + "\n", encoding="utf-8")
        wire = _wire(captures / captured / "wire.jsonl")
        lines = [_dump(item) for item in wire["items"]], [_dump(request) for request in wire["requests"]]
        (folder / "wire.json").write_text(
            '{"items":[\n' + ",\n".join(lines[0]) + '\n],"requests":[\n' + ",\n".join(lines[1]) + "\n]}\n",
            encoding="utf-8",
        )
    stream = _FOLDER_OF_CASES / "exec-stream"
    stream.mkdir(exist_ok=True)
    for captured in ("basic", "errors"):
        text = (captures / captured / "run1.stdout.jsonl").read_text(encoding="utf-8")
        (stream / f"{captured}.jsonl").write_text(_FOLDER.sub("/home/dev", text), encoding="utf-8")


def main() -> None:
    """Write the fixtures, or only what they promise."""
    if len(sys.argv) > 1:
        _remake(Path(sys.argv[1]))
    for case in sorted(folder for folder in _FOLDER_OF_CASES.iterdir() if folder.is_dir()):
        with tempfile.TemporaryDirectory() as home:
            text = json.dumps(promise(case, Path(home) / "home"), indent=1) + "\n"
        (case / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
