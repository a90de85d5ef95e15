"""DeepSeek Harness: a session log of its own below a folder that `DSH_HOME` names, for `dsh tui --resume`."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zstandard

from ledger.events.session import SessionStarted
from replay.resume.closing import closed
from replay.resume.point import Point
from replay.resume.runtime import Resumption
from replay.resume.runtimes._anthropic import REASONING_LOST
from replay.resume.runtimes._openai import as_text
from replay.resume.turns import Call, Other, Piece, Result, Text, Thought, Turn, with_whole_answers

__all__ = ["NAME", "TITLE", "resumption", "suits"]

NAME = "deepseek-harness"
TITLE = "DeepSeek Harness (0.2.1rc2)"

_VERSION = 4
_PROVIDER = "deepseek-official"
_OWN = ("Current runtime context.", "<system-reminder>")
_OWN_WORDS = "System prompt, tools and runtime context: DeepSeek Harness writes them anew."
_POLICIES = "Permission preset, sandbox mode and approval policy: those of your profile are in force."
_SEPARATORS = re.compile(r"[/\\:]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST = 251
_LOG_IN = (
    "Profiles and keys of ~/.dsh are not in this folder: give a key, or copy its `sessions` into your DSH_HOME"
    " and leave DSH_HOME out."
)


def suits(started: SessionStarted) -> bool:
    """Whether DeepSeek Harness ran it."""
    return started.harness == NAME


def resumption(point: Point, into: Path) -> Resumption:
    """The session log, cut at the point, under a new id."""
    cwd = point.cwd_for("under which DSH looks for it")
    session_id = f"session-{point.new_id()}"
    lost = {_OWN_WORDS, _POLICIES}
    log = _Log(point, session_id, lost)
    log.take(closed(point.turns))
    if not log.turn:
        raise point.nothing_said("DSH could resume")
    folder = f"sessions/{project_folder(cwd)}/{session_id}"
    return Resumption(
        {f"{folder}/session.v{_VERSION}.jsonl.zstd": log.content()},
        command=("dsh", "tui", "--resume", session_id),
        environment={"DSH_HOME": str(into)},
        cwd=cwd,
        not_carried=tuple(sorted(lost)),
        notes=(_LOG_IN,),
        native_id=session_id,
    )


class _Log:
    """The events of a session log, one after the other."""

    def __init__(self, point: Point, session_id: str, lost: set[str]) -> None:
        self.turn = 0
        self._step = 0
        self._lost = lost
        self._point = point
        self._id = point.new_id
        self._time = int(point.began.timestamp() * 1000)
        self._calls: dict[str, int] = {}
        head = {
            "type": "session",
            "version": _VERSION,
            "id": session_id,
            "createdAt": self._time,
            "cwd": point.cwd,
            "isSeeded": False,
            "delegationDepth": 0,
        }
        self._lines = [json.dumps(head)]

    def take(self, turns: list[Turn]) -> None:
        """The events of a conversation: an answer is one message, whatever the number of its items."""
        for turn in with_whole_answers(turns):
            if turn.role == "assistant":
                self._answer(turn.pieces)
            elif turn.role == "user":
                self._said(turn)
        self._end_turn()

    def content(self) -> bytes:
        """The log: the harness wants its first line in a frame of its own."""
        head, *rest = (f"{line}\n".encode("utf-8", "surrogatepass") for line in self._lines)
        return zstandard.compress(head) + zstandard.compress(b"".join(rest))

    def _said(self, turn: Turn) -> None:
        for piece in turn.pieces:
            if isinstance(piece, Result):
                self._result(piece)
        words = [
            {"type": "text", "text": as_text([piece.block]) if isinstance(piece, Other) else piece.text}
            for piece in turn.pieces
            if isinstance(piece, Other) or (isinstance(piece, Text) and not piece.text.startswith(_OWN))
        ]
        if words:
            self._end_turn()
            self._begin_turn()
            message = {"content": words, "source": {"kind": "user"}, "role": "user", "id": self._id()}
            self._add("user/message", message, surfaceOp="append")

    def _answer(self, pieces: Sequence[Piece]) -> None:
        content = [block for piece in pieces if (block := self._block(piece)) is not None]
        if not content:
            return
        if not self.turn:
            self._begin_turn()
        self._end_step()
        self._step += 1
        place = {"turn": self.turn, "step": self._step}
        self._add("step/start", place)
        model = self._point.model or "unknown"
        message = {
            "role": "assistant",
            "content": content,
            "source": {"kind": "model", "provider": _PROVIDER, "model": model},
            "id": self._id(),
        }
        usage = dict.fromkeys(
            ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "totalTokens"), 0
        )
        self._add(
            "assistant/message",
            {**place, "message": message, "usage": usage, "stream": []},
            surfaceOp="append",
        )
        for block in content:
            if block["type"] == "tool-call":
                asked = {"callId": block["id"], "name": block["name"], "arguments": block["arguments"]}
                self._calls[block["id"]] = self._add("tool/call", {**place, **asked})

    def _block(self, piece: Piece) -> dict[str, Any] | None:
        match piece:
            case Text(words):
                return {"type": "text", "text": words}
            case Thought(words, _):
                # A signature is part of a replay state that only the harness can make.
                self._lost.add(REASONING_LOST)
                return None
            case Call(call_id, tool, arguments, _):
                return {
                    "type": "tool-call",
                    "id": call_id or tool,
                    "name": tool,
                    "arguments": as_text(arguments),
                }
            case Other(block):
                return {"type": "text", "text": as_text([block])}
            case Result():
                return None  # no protocol has results in an answer

    def _result(self, result: Result) -> None:
        call_id = result.call_id or result.tool or ""
        message = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call_id},
            "toolCallId": call_id,
            "content": [{"type": "text", "text": as_text(result.content)}],
            "isError": bool(result.failed),
            "id": self._id(),
        }
        data: dict[str, Any] = {"turn": self.turn, "step": self._step, "message": message}
        sources = [self._calls[call_id]] if call_id in self._calls else []
        self._add("tool/result", data, sourceEventSeqs=sources, surfaceOp="append")

    def _begin_turn(self) -> None:
        self.turn += 1
        self._add("turn/start", {"turn": self.turn})

    def _end_step(self) -> None:
        if self._step:
            self._add("step/end", {"turn": self.turn, "step": self._step})

    def _end_turn(self) -> None:
        if self.turn:
            self._end_step()
            self._step = 0
            self._add("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})

    def _add(self, kind: str, data: dict[str, Any], **more: Any) -> int:
        seq = len(self._lines) - 1
        event = {"type": kind, "seq": seq, "time": self._time, "data": data, **more}
        self._lines.append(json.dumps(event, ensure_ascii=False))
        return seq


def project_folder(cwd: str) -> str:
    """The folder that DSH keeps a working directory's sessions in."""
    safe = _UNSAFE.sub(_escaped, _SEPARATORS.sub("-", cwd)).lstrip("-")
    return f"--{(safe or 'root')[:_LONGEST]}--"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"~{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))
