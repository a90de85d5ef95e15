"""Makes the fixtures of the Claude Code importer again, from runs of the real harness against the scripted model.

`python -m tests.ledger.importers.remake_claude CAPTURES` reads `CAPTURES/<case>/home.claude/projects` and
`CAPTURES/<case>/wire.jsonl`. Texts of the vendor (prompts, tool texts, reminders, skills) become words of our own;
hashes and digests of the request journal are computed again for these. Without an argument only the case `damaged`,
which is made by hand, and `expected.json` of every case are written again: look at the difference before you keep it.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.ledger.importers.claude_rows import SESSION, hard_case, write
from tests.ledger.importers.fixtures import FIXTURES, promise

CASES = {
    "332-basic": "basic-2.1.332",
    "332-subagents": "subagents-2.1.332",
    "332-compact-manual": "compaction-2.1.332",
    "332-resume-fork": "fork-2.1.332",
    "332-permissions": "permissions-2.1.332",
    "332-rich": "hooks-2.1.332",
    "197-basic": "basic-2.1.197",
    "197-subagents": "subagents-2.1.197",
    "197-compact-auto": "compaction-2.1.197",
    "197-resume-fork": "fork-2.1.197",
    "197-permissions": "permissions-2.1.197",
    "197-rich": "hooks-2.1.197",
    "2060-subagents": "subagents-2.0.60",
    "10100-subagents": "subagents-1.0.100",
}
"""Captured case -> name of the fixture."""

LEFT_OUT = (
    "5b59b1ec-a962-4235-a2a0-5db239f22de1",
    "0d70042a-f4ab-4b61-bd3e-52927ce053c2",
    "a5bdc2b9-17d6-4f7e-a050-bdbf580dd02e",
    "1e86dadb-83be-43bb-9e5f-7818ab744f13",
    "agent-a55a3a04301bd0058",
    "agent-aa64ea85e1a5a9782",
    "agent-a859842fe4c757528",
    "agent-a963072fdb6e4b826",
)
"""Files of the captures that show nothing which the others do not."""

_WHOLE = ("332-basic", "332-rich")
_THINNED = tuple(
    "environment model deferred_tools_delta agent_listing_delta skill_listing auto_mode session_context date"
    " remote_session_change".split()
)
_LONGEST_TEXT = 80
_LONGEST_VENDOR_TEXT = 24
_LISTED = 2
_LISTS = ("tools", "names", "digests", "entries", "systemPrompt", "betas")
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens_details",
)
_FOLDER = re.compile(r"/tmp(?:/[\w.-]+)+?/repo\b")
_HOME = re.compile(r"/(?:root|tmp(?:/[\w.-]+)+?/home)(?=/\.)")
_SLUG = re.compile(r"-tmp-[\w-]+?-repo\b")
_SCRATCH = re.compile(r"/tmp/claude-\d+/")
_PLACES = (
    (_FOLDER, "/home/dev/project"),
    (_HOME, "/home/dev"),
    (_SLUG, "-home-dev-project"),
    (_SCRATCH, "/tmp/scratch/"),
)
_TAG = re.compile(r"\A<[a-z-]+>")
_NOTE = re.compile(r"<note>.*?</note>\n?", re.DOTALL)
_REFUSAL = re.compile(r"\A(?:The user doesn't want to proceed with this tool use|Permission to use \w+)")
_FILE = re.compile(r"\A[\w./+=-]+\Z")
_VENDOR = ("attachment", "rendered", "shape", "system", "tools")

Messages = dict[str, dict[str, Any]]


def _words(text: str, limit: int) -> str:
    """The text with our folders for its own, and when it is long, with words of our own for the vendor's."""
    for pattern, ours in _PLACES:
        text = pattern.sub(ours, text)
    if len(text) <= limit or _FILE.match(text):
        return text
    if text.startswith("<task-notification>"):
        return _NOTE.sub("", text)
    body = text.rstrip()
    head = _TAG.match(body) or _REFUSAL.match(body)
    digest = hashlib.sha256(body.encode()).hexdigest()[:8]
    words = f"Words {digest} of the fixture, in place of {len(body)} characters."
    tail = f"</{head[0][1:]}" if head and head[0].startswith("<") else ""
    return f"{head[0] if head else ''}{words}{tail}{text[len(body) :]}"


def _clean(value: Any, limit: int = _LONGEST_TEXT) -> Any:
    """The same value in words of our own; tools keep their names."""
    if isinstance(value, str):
        return _words(value, limit)
    if isinstance(value, list):
        return [_clean(inner, limit) for inner in value]
    if not isinstance(value, dict):
        return value
    if "input_schema" in value:
        kept = {"description": "A tool of the fixture.", "input_schema": {"type": "object"}}
        return {name: kept.get(name, _clean(inner, limit)) for name, inner in value.items()}
    return {
        _words(name, limit): _clean(_few(name, inner), _LONGEST_VENDOR_TEXT if name in _VENDOR else limit)
        for name, inner in value.items()
    }


def _few(name: str, value: Any) -> Any:
    """Long lists of what the vendor ships, and what it tells of a usage beside the tokens, cut short."""
    if name == "usage" and isinstance(value, dict):
        return {key: value[key] for key in _USAGE if key in value}
    listed = name in _LISTS or name.startswith(("added", "builtIn"))
    return value[:_LISTED] if listed and isinstance(value, list) else value


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _message_hash(message: dict[str, Any]) -> str:
    return _hash({**message, "content": _blocks(message["content"])})


def journaled(rows: list[dict[str, Any]]) -> Messages:
    """All messages that a journal in these rows may name, by the name that it gives them."""
    found = {row["hash"]: row["message"] for row in rows if row["type"] == "api-request-blob"}
    answers: dict[str, list[Any]] = {}
    run: list[list[Any]] = []
    current = None
    for row in [*rows, None]:
        if row is None or (row["type"] == "assistant" and row["message"]["id"] != current):
            for message in _stretches(run):
                found.setdefault(_hash(message), message)
            run = []
        if row is not None and row["type"] == "assistant":
            current = row["message"]["id"]
            answers.setdefault(current, []).extend(row["message"]["content"])
        elif row is not None and row["type"] == "user":
            run.append(_blocks(row["message"]["content"]))
    for content in answers.values():
        message = {"role": "assistant", "content": content}
        found.setdefault(_hash(message), message)
    return found


def _stretches(run: list[list[Any]]) -> Iterator[dict[str, Any]]:
    for start in range(len(run)):
        for end in range(start + 1, len(run) + 1):
            yield {"role": "user", "content": [block for part in run[start:end] for block in part]}


def listed(requests: dict[str, dict[str, Any]], request: dict[str, Any]) -> list[str]:
    """Names of all messages of a request."""
    base = request.get("base")
    return (listed(requests, requests[base])[: request["keep"]] if base else []) + list(request["tail"])


def digested(request: dict[str, Any], shape: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """The digest that the journal gives of a request: of its body with all contents as blocks, marks set."""
    body = json.loads(
        _dump({**request["params"], **shape, "messages": messages})
    )  # a copy without shared parts
    for message in body["messages"]:
        message["content"] = _blocks(message["content"])
    for mark in request["cacheControl"]:
        node = body
        for step in mark["path"]:
            node = node[step]
        node["cache_control"] = mark["value"]
    return _hash(body)


def _remade(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in words of our own, with the hashes that these have."""
    names = {name: _message_hash(_clean(message)) for name, message in journaled(rows).items()}
    remade: list[dict[str, Any]] = [_clean(row) for row in rows]
    shapes: dict[str, str] = {}
    for row in remade:
        if row["type"] == "api-request-blob":
            row["hash"] = _message_hash(row["message"])
        elif row["type"] == "api-request-shape":
            shapes[row["shapeHash"]] = row["shapeHash"] = _hash(row["shape"])
        elif row["type"] == "api-request":
            row["tail"] = [names[name] for name in row["tail"]]
            row["shapeHash"] = shapes[row["shapeHash"]]
    messages = journaled(remade)
    by_hash = {row["shapeHash"]: row["shape"] for row in remade if row["type"] == "api-request-shape"}
    requests = {row["id"]: row for row in remade if row["type"] == "api-request"}
    for request in requests.values():
        named = [messages[name] for name in listed(requests, request)]
        request["requestDigest"] = digested(request, by_hash[request["shapeHash"]], named)
    return remade


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without what is injected at the start of every session; who continued it continues what was before."""
    above: dict[str, str | None] = {}
    kept = []
    for row in rows:
        parent = row.get("parentUuid")
        while parent in above:
            parent = above[parent]
        if row.get("attachment", {}).get("type") in _THINNED:
            above[row["uuid"]] = parent
        else:
            kept.append(row | {"parentUuid": parent} if "parentUuid" in row else row)
    return kept


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _wire(exchanges: Iterable[dict[str, Any]], logged: str) -> dict[str, Any]:
    """The requests whose answers are logged, each part once; without metadata and billing block."""
    parts: dict[str, int] = {}
    requests = []
    for exchange in exchanges:
        answer = re.search(r'"id":"(msg_[^"]+)"', "".join(exchange["chunks"][:1]))
        if answer is None or answer[1] not in logged or exchange["aborted"]:
            continue
        body = exchange["body"]
        system = body.get("system")
        if isinstance(system, list):
            body["system"] = [
                block for block in system if not block["text"].startswith("x-anthropic-billing-header")
            ]
        body = _clean({name: value for name, value in body.items() if name != "metadata"})
        places = {
            name: [parts.setdefault(_dump(part), len(parts)) for part in body.pop(name, [])]
            for name in ("system", "tools", "messages")
        }
        requests.append({"answer": answer[1], **places, "rest": body})
    return {"parts": list(parts), "requests": requests}


def _remake(captures: Path) -> None:
    for captured, case in CASES.items():
        folder = FIXTURES / "claude-code" / case
        home = captures / captured / "home.claude" / "projects"
        logged = ""
        for source in sorted(home.rglob("*.json*")):
            if source.name.split(".")[0] in LEFT_OUT:
                continue
            name = _SLUG.sub("-home-dev-project", str(source.relative_to(home)))
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            rows = _rows(source)
            rows = [_clean(row) for row in rows] if source.suffix == ".json" else _remade(rows)
            text = "".join(_dump(row) + "\n" for row in (rows if captured in _WHOLE else _thinned(rows)))
            target.write_text(text, encoding="utf-8")
            logged += text
        wire = _wire(_rows(captures / captured / "wire.jsonl"), logged)
        (folder / "wire.json").write_text(
            '{"parts":[\n'
            + ",\n".join(wire["parts"])
            + '\n],"requests":[\n'
            + ",\n".join(_dump(request) for request in wire["requests"])
            + "\n]}\n",
            encoding="utf-8",
        )


def main() -> None:
    """Write the fixtures, or only what they promise."""
    if len(sys.argv) > 1:
        _remake(Path(sys.argv[1]))
    keys = ("made-up-key-7f3a9c2e51b8", "made-up-token-c04d61e8a92f")
    write(FIXTURES / "claude-code" / "damaged" / f"{SESSION}.jsonl", hard_case(keys, "y" * 3000))
    for case in sorted((FIXTURES / "claude-code").iterdir()):
        if case.is_dir():
            with tempfile.TemporaryDirectory() as home:
                text = json.dumps(promise(case, Path(home)), indent=1) + "\n"
            (case / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
