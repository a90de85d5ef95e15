"""Writes Claude Code logs row by row for tests: a session that hangs together, and whatever a test does to it."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ledger.events import Record
from ledger.events.model_call import ModelCallRequested
from ledger.home import Ledger
from ledger.importers._intake import FileReport, import_paths

SESSION = "11111111-1111-4111-8111-111111111111"
FORK = "00000000-2222-4222-8222-222222222222"
USAGE = {
    "input_tokens": 5,
    "output_tokens": 7,
    "cache_read_input_tokens": 11,
    "cache_creation_input_tokens": 13,
}

Row = dict[str, Any]


class Session:
    """Rows of one session as they are written."""

    def __init__(self, session: str = SESSION, version: str = "2.1.197", first: int = 1) -> None:
        self.session = session
        self.version = version
        self.rows: list[Row] = []
        self.leaf: str | None = None
        self._count = first - 1

    def add(self, kind: str, **fields: Any) -> Row:
        """One row that continues the last one, unless the fields say otherwise."""
        self._count += 1
        row: Row = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            "type": kind,
            "uuid": uuid(self._count),
            "timestamp": f"2026-03-01T{self._count // 3600:02}:{self._count // 60 % 60:02}:{self._count % 60:02}.000Z",
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": self.session,
            "version": self.version,
            "gitBranch": "main",
        }
        row |= fields
        self.leaf = row["uuid"]
        self.rows.append(row)
        return row

    def bare(self, kind: str, **fields: Any) -> Row:
        """A row without an id of its own, as the harness writes its state."""
        row = {"type": kind, "sessionId": self.session, **fields}
        self.rows.append(row)
        return row

    def says(self, content: Any, **fields: Any) -> Row:
        """A user row."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answers(self, message_id: str, *blocks: Any, **fields: Any) -> list[Row]:
        """One answer: a row for each block, with the same id and usage on each."""
        return [self.part(message_id, block, **fields) for block in blocks]

    def part(self, message_id: str, block: Any, **fields: Any) -> Row:
        """One row of an answer."""
        message = {
            "id": message_id,
            "role": "assistant",
            "type": "message",
            "model": fields.pop("model", "claude-opus-5-5"),
            "content": [block],
            "stop_reason": fields.pop("stop_reason", "tool_use"),
            "usage": fields.pop("usage", USAGE),
        }
        return self.add("assistant", message=message, requestId=f"req_{message_id}", **fields)

    def result(self, call_id: str, content: Any = "done", *, error: bool = False, **fields: Any) -> Row:
        """The result of a call."""
        return self.says(
            [{"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": error}], **fields
        )

    def compacts(
        self, summary: str | None = "What came before.", trigger: str = "auto", **metadata: Any
    ) -> None:
        """A compaction."""
        before, self.leaf = self.leaf, None
        self.add(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=before,
            compactMetadata={"trigger": trigger, "preTokens": 1000, "postTokens": 10, **metadata},
        )
        if summary is not None:
            self.says(summary, isCompactSummary=True)

    def write(self, folder: Path, name: str | None = None) -> Path:
        """The rows as a file."""
        return write(folder / (name or f"{self.session}.jsonl"), self.rows)


def uuid(number: int) -> str:
    """The id of the row with this number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def call(call_id: str, tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    """A tool call block."""
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def line(row: Any) -> bytes:
    """A row as the harness writes it."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def write(path: Path, rows: Iterable[Any]) -> Path:
    """Rows, or lines that are written already, as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(row if isinstance(row, bytes) else line(row) for row in rows))
    return path


def bring_in(ledger: Ledger, *paths: Path) -> FileReport:
    """Import; give the report of the first file."""
    files: Sequence[FileReport] = import_paths(ledger.recorder, paths).files
    return files[0]


def events(ledger: Ledger, session: str, kind: type[Any]) -> list[Any]:
    """Events of one sort in a session."""
    return [record.event for record in ledger.store.read(session) if isinstance(record.event, kind)]


def context_of(ledger: Ledger, request: ModelCallRequested) -> list[Any]:
    """Contents of the messages that a request shows to the model."""
    digests = ledger.store.context(request.context) if request.context else []
    return [json.loads(ledger.store.content(digest))["content"] for digest in digests]


def records(ledger: Ledger, wanted: Callable[[Record], bool] = lambda record: True) -> list[Record]:
    """Records of the whole ledger that a test wants to see."""
    return [record for record in ledger.store.read_all() if wanted(record)]


def simple_session(session: str = SESSION, turns: int = 2, first: int = 1) -> Session:
    """Turns of prompt, answer with a call, result, closing answer."""
    made = Session(session, first=first)
    for turn in range(turns):
        made.says(f"Please do {turn}.", promptId=f"prompt-{turn}")
        made.answers(f"msg_{turn}a", text(f"I do {turn}."), call(f"call_{turn}", command=f"make {turn}"))
        made.result(f"call_{turn}", f"made {turn}", toolUseResult={"stdout": f"made {turn}", "durationMs": 5})
        made.answers(f"msg_{turn}b", text(f"Done {turn}."), stop_reason="end_turn")
    return made


def hard_case(keys: Sequence[str], orphan: str) -> list[Any]:
    """Lines of a session with everything that goes wrong at once."""
    log = Session()
    log.says("Go.", parentUuid=uuid(77_777))
    log.part("msg_1", text("One."))
    log.part("msg_1", call("call_1", command=f"curl -H 'x-api-key: {keys[0]}' example.org"))
    log.result("call_1", f"token={keys[1]}")
    side = Session(first=300)
    side.says("Look.", isSidechain=True)
    side.answers("msg_side", text("Seen."), isSidechain=True)
    log.rows.extend(side.rows)
    log.compacts()
    log.answers("msg_2", call("call_open"))
    log.result("call_unknown", orphan)
    lines: list[Any] = list(log.rows)
    lines.insert(4, b'{"type":"user","uuid":"zzzzzzzz", oops}\n')
    lines.insert(2, lines[1])  # the same row again
    lines.insert(3, lines[1] | {"note": "the same id, another row"})
    lines.append(line(log.rows[-1])[:200])
    return lines
