"""pi: a session file, for `pi --session`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledger.events.model_call import ModelCallRequested
from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point, stamp
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import REASONING_LOST
from replay.resume.runtimes._openai import as_text
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, Turn, with_whole_answers

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "pi"
TITLE = "pi (0.73.1)"

_VERSION = 3
_WIRES = {
    "openai.responses": ("openai-responses", "openai"),
    "anthropic.messages": ("anthropic-messages", "anthropic"),
    "openai.chat": ("openai-completions", "openai"),
    "gemini": ("google-generative-ai", "google"),
}
_BY_PROVIDER = {
    "openai": "openai-responses",
    "anthropic": "anthropic-messages",
    "google": "google-generative-ai",
}
_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_NO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _NO_COST}
_OWN_WORDS = "System prompt and tools: pi writes them anew."


def suits(started: SessionStarted) -> bool:
    """Whether pi ran it."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The session file, cut at the point, under a new id."""
    cwd = point.cwd_for("which pi wants to be told")
    session_id = point.new_id()
    lost = {_OWN_WORDS}
    file = _File(point, session_id, lost)
    file.take(closed(point.turns))
    if not file.count:
        raise point.nothing_said("pi could resume")
    name = f"{session_id}.jsonl"
    return Resumption(
        {name: file.content()},
        command=("pi", "--session", str(into / name)),
        cwd=cwd,
        not_carried=tuple(sorted(lost)),
        native_id=session_id,
    )


class _File:
    """The entries of a session file, one after the other."""

    def __init__(self, point: Point, session_id: str, lost: set[str]) -> None:
        self.count = 0
        self._lost = lost
        self._time = stamp(point.began)
        self._milliseconds = int(point.began.timestamp() * 1000)
        self._api, self._provider = _wire(point)
        self._model = point.model or "unknown"
        head = {
            "type": "session",
            "version": _VERSION,
            "id": session_id,
            "timestamp": self._time,
            "cwd": point.cwd,
        }
        self._lines = [_line(head)]
        self._add("model_change", provider=self._provider, modelId=self._model)
        self.count = 0

    def take(self, turns: list[Turn]) -> None:
        """The entries of a conversation: an answer is one message, whatever the number of its items."""
        for turn in with_whole_answers(turns):
            if turn.role == "assistant":
                self._answer(turn.pieces)
            elif turn.role == "user":
                self._said(turn)

    def content(self) -> bytes:
        """The file."""
        return b"".join(self._lines)

    def _said(self, turn: Turn) -> None:
        words = []
        for piece in turn.pieces:
            if isinstance(piece, Result):
                self._message(
                    role="toolResult",
                    toolCallId=piece.call_id or "",
                    toolName=piece.tool or "unnamed",
                    content=_shown(piece.content),
                    isError=bool(piece.failed),
                )
            elif isinstance(piece, Text | Other):
                words += _shown(piece.text if isinstance(piece, Text) else [piece.block])
        if words:
            self._message(role="user", content=words)

    def _answer(self, pieces: Sequence[Piece]) -> None:
        content = [block for piece in pieces if (block := self._block(piece)) is not None]
        if content:
            asks = any(block["type"] == "toolCall" for block in content)
            self._message(
                role="assistant",
                content=content,
                api=self._api,
                provider=self._provider,
                model=self._model,
                usage=_NO_USAGE,
                stopReason="toolUse" if asks else "stop",
            )

    def _block(self, piece: Piece) -> dict[str, Any] | None:
        match piece:
            case Text(words):
                return {"type": "text", "text": words}
            case Thought(_, block) if "thinkingSignature" in block:
                return block
            case Thought(words, block) if (
                block.get("type") == "reasoning"
            ):  # pi keeps the whole item as signature
                return {"type": "thinking", "thinking": words, "thinkingSignature": json.dumps(block)}
            case Thought(words, block) if block.get("signature"):
                return {"type": "thinking", "thinking": words, "thinkingSignature": block["signature"]}
            case Thought():
                self._lost.add(REASONING_LOST)
                return None
            case Call(call_id, tool, arguments, _):
                given = arguments if isinstance(arguments, dict) else {"input": arguments}
                return {"type": "toolCall", "id": call_id or tool, "name": tool, "arguments": given}
            case Other(block):
                return {"type": "text", "text": as_text([block])}
            case Result():
                return None  # no protocol has results in an answer

    def _message(self, **message: Any) -> None:
        self._add("message", message={**message, "timestamp": self._milliseconds})

    def _add(self, kind: str, **more: Any) -> None:
        number = len(self._lines)
        parent = f"{number - 1:08x}" if number > 1 else None
        entry = {"type": kind, "id": f"{number:08x}", "parentId": parent, "timestamp": self._time, **more}
        self._lines.append(_line(entry))
        self.count += 1


def _wire(point: Point) -> tuple[str, str]:
    """Protocol and provider, by the names that pi has for them."""
    if point.protocol in _WIRES:
        return _WIRES[point.protocol]
    named = [
        event.provider for event in point.events() if isinstance(event, ModelCallRequested) and event.provider
    ]
    provider = named[-1] if named else "openai"
    return _BY_PROVIDER.get(provider, "openai-completions"), provider


def _shown(content: Any) -> list[dict[str, Any]]:
    """Content as pi's blocks of text and images."""
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return [
            block
            if block.get("type") == "image" and "data" in block
            else {"type": "text", "text": as_text([block])}
            for block in content
        ]
    return [{"type": "text", "text": as_text(content)}]


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
