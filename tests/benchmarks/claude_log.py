"""Writes a Claude Code log of any size: the mix of rows that real sessions have, the same bytes for the same seed.

`python -m tests.benchmarks.claude_log FILE MEGABYTES`
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WORDS = (
    "the file reads line after line and returns what it found in time for next test case run value error path class"
    " import self function return none true false with open count table index query row column store event record"
).split()
_SESSION = "5f0c2a6e-9f4e-4c0e-8f67-1c1d3f1b2a10"
_SPEAKS = 0.7
_THINKS = 0.5
_COMPACTS_AFTER = 400
_MEDIAN_RESULT_BYTES = 1200
_LARGEST_RESULT_BYTES = 200_000


def write_log(path: Path, size_bytes: int, seed: int = 1) -> None:
    """Write whole turns until the file has this size."""
    written = 0
    with path.open("wb") as file:
        for row in _rows(random.Random(seed)):
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            file.write(line)
            written += len(line)
            if written >= size_bytes:
                return


def _rows(rng: random.Random) -> Iterator[dict[str, Any]]:
    """An endless session of version 2.1.197: prompts, answers of several rows, tool calls, results, compactions."""
    writer = _Writer(rng)
    while True:
        yield writer.row(
            "user", message={"role": "user", "content": writer.text(40)}, promptId=writer.new_id()
        )
        for _ in range(rng.randint(1, 12)):
            calls = rng.randint(1, 3)
            yield from writer.answer(calls)
            for call_id in writer.calls:
                yield writer.result(call_id)
        yield from writer.answer(0)
        yield writer.row("system", subtype="turn_duration", durationMs=rng.randint(500, 90_000))
        if writer.messages > _COMPACTS_AFTER:
            yield from writer.compaction()


class _Writer:
    """Makes rows that hang together."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._leaf: str | None = None
        self._seconds = 0.0
        self._numbers = 0
        self.calls: list[str] = []
        self.messages = 0

    def new_id(self) -> str:
        """A random uuid."""
        digits = f"{self._rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def text(self, words: int) -> str:
        """Prose of about so many words."""
        return " ".join(self._rng.choices(_WORDS, k=max(1, words)))

    def row(self, kind: str, **fields: Any) -> dict[str, Any]:
        """One row that continues the last one."""
        uuid = self.new_id()
        self._seconds += self._rng.random() * 4
        seconds = int(self._seconds)
        row = {
            "parentUuid": self._leaf,
            "isSidechain": False,
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": f"2026-03-{1 + seconds // 86400 % 28:02}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}"
            f":{seconds % 60:02}.{int(self._seconds * 1000) % 1000:03}Z",
            "userType": "external",
            "entrypoint": "cli",
            "cwd": "/home/dev/project",
            "sessionId": _SESSION,
            "version": "2.1.197",
            "gitBranch": "main",
        }
        self._leaf = uuid
        self.messages += kind in ("user", "assistant")
        return row

    def answer(self, calls: int) -> Iterator[dict[str, Any]]:
        """One model answer: a row for each block, with the same id and usage on each."""
        rng = self._rng
        self._numbers += 1
        blocks: list[dict[str, Any]] = []
        if rng.random() < _THINKS:
            signature = f"{rng.getrandbits(2400):x}"
            blocks.append({"type": "thinking", "thinking": self.text(60), "signature": signature})
        if rng.random() < _SPEAKS or not calls:
            blocks.append({"type": "text", "text": self.text(int(rng.lognormvariate(3.5, 0.8)))})
        self.calls = [f"toolu_{self._numbers:08}{index}" for index in range(calls)]
        for call_id in self.calls:
            tool, arguments = rng.choice(
                (
                    ("Bash", {"command": self.text(8), "description": self.text(5)}),
                    ("Read", {"file_path": f"/home/dev/project/{self.text(1)}.py"}),
                    (
                        "Edit",
                        {
                            "file_path": "/home/dev/project/a.py",
                            "old_string": self.text(30),
                            "new_string": self.text(40),
                        },
                    ),
                    ("Grep", {"pattern": self.text(2), "output_mode": "content"}),
                )
            )
            blocks.append({"type": "tool_use", "id": call_id, "name": tool, "input": arguments})
        usage = {
            "input_tokens": rng.randint(1, 20),
            "cache_creation_input_tokens": rng.randint(0, 4000),
            "cache_read_input_tokens": rng.randint(0, 150_000),
            "output_tokens": rng.randint(10, 2000),
            "service_tier": "standard",
        }
        for block in blocks:
            message = {
                "id": f"msg_{self._numbers:024}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": "tool_use" if calls else "end_turn",
                "stop_sequence": None,
                "usage": usage,
            }
            yield self.row("assistant", message=message, requestId=f"req_{self._numbers:024}")

    def result(self, call_id: str) -> dict[str, Any]:
        """The result of a call: most are short, some are very long."""
        size = min(self._rng.lognormvariate(0, 1.6) * _MEDIAN_RESULT_BYTES, _LARGEST_RESULT_BYTES)
        text = self.text(int(size / 5))
        failed = self._rng.random() < 0.05
        block = {"tool_use_id": call_id, "type": "tool_result", "content": text, "is_error": failed}
        details = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        return self.row("user", message={"role": "user", "content": [block]}, toolUseResult=details)

    def compaction(self) -> Iterator[dict[str, Any]]:
        """A boundary and the summary that follows it."""
        last, self._leaf = self._leaf, None
        metadata = {"trigger": "auto", "preTokens": 150_000 + self.messages}
        yield self.row("system", subtype="compact_boundary", logicalParentUuid=last, compactMetadata=metadata)
        summary = {"role": "user", "content": self.text(400)}
        yield self.row("user", message=summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        self.messages = 0


if __name__ == "__main__":
    write_log(Path(sys.argv[1]), int(float(sys.argv[2]) * 1_000_000))
